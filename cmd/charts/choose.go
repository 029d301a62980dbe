package main

import (
	"bytes"
	"fmt"

	"github.com/caddy-lex/lex/kernel"
)

// budget is the average run length in control that is asked for, of both charts and at
// the lower end of its interval, so each chart alone gets twice of it. It is twice the
// 50,000 turns that are promised, because other users are not those of the data.
const budget = 100_000

// The values that are tried. A k of 0.30 would alarm on a constant 0.31 in the end.
var (
	ks      = []float64{0.31, 0.33, 0.35}
	reliefs = map[string][]float64{"fast": {0.10, 0.15, 0.20}, "slow": {0.03, 0.04, 0.05}}
)

// reportChoice chooses the charts by this rule: for each k and relief the least h, in
// steps of 0.05, with which that chart runs long enough on ordinary dialogues and on
// ordinary prompts; of these the pair with the least delay, summed over the family.
func reportChoice(b *bytes.Buffer, h half) {
	control := []population{populationOf(h.dialogues), populationOf(h.prompts)}
	var best charts
	least := 0
	slow := candidates("slow", control)
	for _, f := range candidates("fast", control) {
		for _, s := range slow {
			pair := charts{f, s}
			if d := pair.delays(); best == nil || d < least {
				best, least = pair, d
			}
		}
	}
	fmt.Fprintf(b, "## Choice\n\nOn %d dialogues (%s) and %d prompts (%s):\n\n", len(h.dialogues), sources(h.dialogues), len(h.prompts), sources(h.prompts))
	fmt.Fprintf(b, "- the rule chooses %s\n- the policy has %s\n\n", show(best), show(defaultCharts()))
	for _, c := range []charts{best, defaultCharts()} {
		fmt.Fprintf(b, "%s: delays sum to %d; run length on dialogues %v, on prompts %v\n\n", show(c), c.delays(), c.measure(control[0], 100, 1e6), c.measure(control[1], 100, 1e6))
	}
}

func candidates(name string, control []population) (out charts) {
	for _, k := range ks {
		for _, relief := range reliefs[name] {
			c := kernel.Chart{K: k, Relief: relief}
			for c.H = 0.7; c.H < 10 && !longEnough(c, control); c.H += 0.05 {
			}
			out = append(out, c)
		}
	}
	return out
}

func longEnough(c kernel.Chart, control []population) bool {
	for _, of := range control {
		if (charts{c}).measure(of, 40, longest).Low < 2*budget {
			return false
		}
	}
	return true
}

func (c charts) delays() (sum int) {
	for _, p := range family {
		turn, _ := c.delay(p)
		sum += turn
	}
	return sum
}

func show(c charts) string {
	return fmt.Sprintf("fast k %.2f h %.2f relief %.2f, slow k %.2f h %.2f relief %.2f", c[0].K, c[0].H, c[0].Relief, c[1].K, c[1].H, c[1].Relief)
}
