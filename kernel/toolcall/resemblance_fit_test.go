//go:build recorded

package toolcall_test

import (
	"maps"
	"math"
	"os"
	"slices"
	"testing"

	"gonum.org/v1/gonum/optimize"

	"github.com/caddy-lex/lex/kernel/resemblance"
	"github.com/caddy-lex/lex/kernel/toolcall"
)

// A lookalike is a call that the resemblance learns from.
type lookalike struct {
	call    toolcall.Call
	hostile bool
	author  string
}

// authors are the files that are read, by who wrote them. Of the files of agents the honest calls
// of the open half count, so that a call with a planted text behind it is nothing bad by itself.
var authors = map[string][]string{
	"tricks":     {"blind_open.jsonl"},
	"weak":       {"blind_more.jsonl"},
	"trades":     {"blind_third.jsonl"},
	"day":        {"blind_fourth.jsonl"},
	"company":    {"blind_fifth.jsonl"},
	"platform":   {"blind_seventh.jsonl"},
	"grave":      {"blind_ninth.jsonl"},
	"twins":      {"blind_eleventh.jsonl"},
	"operations": {"blind_thirteenth.jsonl"},
	"offices":    {"blind_fourteenth.jsonl"},
	"developers": {"blind_fifteenth.jsonl"},
	"business":   {"blind_seventeenth.jsonl"},
	"engineers":  {"blind_eighteenth.jsonl"},
	"life":       {"blind_nineteenth.jsonl"},
	"services":   {"blind_twentieth.jsonl"},
	"public":     {"blind_twentyfirst.jsonl"},
	"homes":      {"blind_twentysecond.jsonl"},
	"code":       {"blind_twentythird.jsonl"},
	"back":       {"blind_twentyfourth.jsonl"},
	"sectors":    {"blind_twentyfifth.jsonl"},
	"platforms":  {"blind_twentysixth.jsonl"},
	"assistants": {"blind_twentyseventh.jsonl"},
	"targets":    {"blind_twentyeighth.jsonl"},
	"readers":    {"ordinary.jsonl", "plain.jsonl"},
}

func lookalikes(t *testing.T) (out []lookalike) {
	t.Helper()
	for author, files := range authors {
		for _, file := range files {
			for _, b := range blindRows(t, "testdata/"+file) {
				out = append(out, lookalike{b.call(), b.Expect == "block", author})
			}
		}
	}
	for _, e := range evasions(t) {
		if e.Invariant == toolcall.ServerSideRequestForgery {
			continue // addresses are read exactly, and their words are the same in all
		}
		out = append(out, lookalike{e.call(), e.Expect == "block", "readers"})
	}
	for _, file := range []string{"agents_open.jsonl", "agents_more.jsonl", "agents_third.jsonl", "agents_fourth.jsonl", "agents_fifth.jsonl", "agents_sixth.jsonl"} {
		for _, a := range agentCalls(t, file) {
			if a.Label != "attack" && openName(a.Domain) {
				out = append(out, lookalike{a.call(), false, "agents"})
			}
		}
	}
	return out
}

// An impression is what the fit sees of a call, or of a part of an ordinary one: each part of a
// call that nobody minds is one that nobody minds, while of a hostile call one part may be the
// harm.
type impression struct {
	features []uint32
	hostile  bool
	author   string
	weight   float64
}

const partWeight = 0.3

func impressions(calls []lookalike) (out []impression) {
	for _, l := range calls {
		parts := toolcall.Impressions(l.call)
		out = append(out, impression{parts[0], l.hostile, l.author, 1})
		if !l.hostile && len(parts) > 2 {
			for _, part := range parts[1:] {
				out = append(out, impression{part, false, l.author, partWeight})
			}
		}
	}
	return out
}

// TestResemblance judges each author's calls by weights that have learnt from the others, and
// says what other thresholds would do. With -update it writes the weights that have learnt from
// all.
func TestResemblance(t *testing.T) {
	calls := lookalikes(t)
	all := impressions(calls)
	if *update {
		w := fitResemblance(all, "")
		if err := os.WriteFile("../resemblance/weights.bin", resemblance.Encode(w[0], w[1:]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	thresholds := []float64{1.8, 2.2, 2.6}
	for _, author := range slices.Sorted(maps.Keys(authors)) {
		if author == "readers" {
			continue
		}
		w := fitResemblance(all, author)
		m := resemblance.Read(resemblance.Encode(w[0], w[1:]))
		hostile, ordinary := make([]share, len(thresholds)), make([]share, len(thresholds))
		for _, l := range calls {
			if l.author != author {
				continue
			}
			odds := m.Odds(toolcall.Impressions(l.call))
			for k, from := range thresholds {
				s := &ordinary[k]
				if l.hostile {
					s = &hostile[k]
				}
				s.add(odds >= from)
			}
		}
		for k, from := range thresholds {
			t.Logf("%-10s from %.1f: hostile %v, ordinary %v", author, from, hostile[k], ordinary[k])
		}
	}
}

// softness is how far the weights may grow: C of a linear support vector machine.
const softness = 2

// fitResemblance fits bias and weights to the calls of all authors but one. Hostile calls and
// ordinary ones weigh the same together, whichever are more.
func fitResemblance(all []impression, but string) []float64 {
	counts := map[bool]float64{}
	for _, l := range all {
		if l.author != but && l.weight == 1 {
			counts[l.hostile]++
		}
	}
	loss := func(gradient, w []float64) float64 {
		sum := 0.0
		for i, v := range w[1:] {
			sum += v * v / 2
			if gradient != nil {
				gradient[i+1] = v
			}
		}
		if gradient != nil {
			gradient[0] = 0
		}
		for _, l := range all {
			if l.author == but {
				continue
			}
			scale := resemblance.Scale(l.features)
			margin, sign := w[0], -1.0
			for _, f := range l.features {
				margin += scale * w[1+f]
			}
			if l.hostile {
				sign = 1
			}
			weight := l.weight * softness * (counts[true] + counts[false]) / (2 * counts[l.hostile])
			sum += weight * math.Log1p(math.Exp(-sign*margin))
			if gradient != nil {
				g := -weight * sign / (1 + math.Exp(sign*margin))
				gradient[0] += g
				for _, f := range l.features {
					gradient[1+f] += g * scale
				}
			}
		}
		return sum
	}
	p := optimize.Problem{
		Func: func(w []float64) float64 { return loss(nil, w) },
		Grad: func(gradient, w []float64) { loss(gradient, w) },
	}
	result, err := optimize.Minimize(p, make([]float64, 1+resemblance.Buckets), &optimize.Settings{GradientThreshold: 0.05, MajorIterations: 150}, &optimize.LBFGS{})
	if result == nil {
		panic(err)
	}
	return slices.Clone(result.X)
}
