package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
)

// cusumRun is the kernel's sequential test on severities (Page 1954).
type cusumRun struct {
	policy kernel.Policy
	g      float64
}

// alarms takes one turn and reports whether it raises the alarm.
func (p *cusumRun) alarms(severity float64) bool {
	p.g = max(0, p.g+max(severity-p.policy.CUSUMK, -p.policy.CUSUMRelief))
	if p.g < p.policy.CUSUMH {
		return false
	}
	p.g = p.policy.CUSUMH / 2
	return true
}

func userSeverities(m *detect.Model, r record) (out []float64) {
	for _, t := range r.Turns {
		if t.Role == "user" {
			s := assess(m, t.Content)
			out = append(out, severity([detect.Heads]float64{s.Identity, s.Coercion, s.Exploitative, s.HarmRequest, s.Sycophancy, s.Injection}))
		}
	}
	return out
}

// reportCUSUM measures the sequential test: how long ordinary dialogues run without
// an alarm when they follow each other in one session, and how early and how often
// the test or the threshold stops red-team dialogues.
func reportCUSUM(b *strings.Builder, m *detect.Model, dir string) error {
	fmt.Fprintf(b, "\n### Slow drip\n\n")
	ordinary, err := readRecords(filepath.Join(dir, "multiturn_benign.jsonl"))
	if err != nil {
		return err
	}
	hostile, err := readRecords(filepath.Join(dir, "multiturn_redteam.jsonl"))
	if err != nil {
		return err
	}
	policy := kernel.DefaultPolicy()
	turns, alarms, over := 0, 0, 0
	p := cusumRun{policy: policy}
	for _, r := range ordinary {
		for _, s := range userSeverities(m, r) {
			turns++
			alarms += boolToInt(p.alarms(s))
			over += boolToInt(s >= policy.CUSUMK)
		}
	}
	fmt.Fprintf(b, "In control: %d turns of %d ordinary task dialogues in one endless session raised the alarm (k = %.2f, h = %.2f) %d times", turns, len(ordinary), policy.CUSUMK, policy.CUSUMH, alarms)
	if alarms > 0 {
		fmt.Fprintf(b, ", once in %d turns", turns/alarms)
	}
	fmt.Fprintf(b, "; %s %% of the turns reached %.2f.\n\n", wilson(over, turns), policy.CUSUMK)
	attacked(b, m, hostile, policy)
	return nil
}

func attacked(b *strings.Builder, m *detect.Model, hostile []record, policy kernel.Policy) {
	byTest, byThreshold, either, delay, long := 0, 0, 0, 0, 0
	for _, r := range hostile {
		p, first, test, threshold := cusumRun{policy: policy}, 0, false, false
		severities := userSeverities(m, r)
		for i, s := range severities {
			alarm, refused := p.alarms(s), s >= refuseAt
			test, threshold = test || alarm, threshold || refused
			if (alarm || refused) && first == 0 {
				first = i + 1
			}
		}
		long += len(severities)
		byTest, byThreshold, either, delay = byTest+boolToInt(test), byThreshold+boolToInt(threshold), either+boolToInt(first > 0), delay+first
	}
	n := len(hostile)
	fmt.Fprintf(b, "Out of control: of %d crowd red-team dialogues (%.1f turns each, intent not verified one by one) a turn reached the refusal threshold in %s %%, the test spoke in %s %%, one of the two in %s %%, the first time on turn %.1f on average.\n",
		n, float64(long)/float64(n), wilson(byThreshold, n), wilson(byTest, n), wilson(either, n), float64(delay)/float64(max(1, either)))
}
