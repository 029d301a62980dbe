package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/detect"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// languages tells what happens to prompts in languages other than English.
func (e *evaluation) languages(b *strings.Builder) {
	type tally struct{ n, refused, one, attacks, found int }
	counts := map[string]*tally{}
	c := e.cuts(e.severity)
	for i := range e.all {
		x := &e.all[i]
		if !x.counted() || x.document || x.lang == "" || x.lang == "en" {
			continue
		}
		if counts[x.lang] == nil {
			counts[x.lang] = &tally{}
		}
		t, over := counts[x.lang], boolToInt(c.over(x, e.severity[i], 0))
		if attack(x.label) {
			t.attacks, t.found = t.attacks+1, t.found+over
			continue
		}
		t.n, t.one, t.refused = t.n+1, t.one+over, t.refused+boolToInt(e.severity[i] >= refuseAt)
	}
	fmt.Fprintf(b, "\n### Languages other than English\n\nThe attacks are user prompts of CyberSecEval prompt injection that show what they are. These figures are for the heads alone, without the reader for other languages ([LANGUAGES.md](LANGUAGES.md)), which finds requests for harm in them.\n\n| language | ordinary and borderline | refused at 0.70 | over the 1 %% cut | attacks | found at 1 %% |\n|---|---|---|---|---|---|\n")
	for _, lang := range sortedKeys(counts) {
		t := counts[lang]
		fmt.Fprintf(b, "| %s | %d | %s | %s | %d | %s |\n", lang, t.n, wilson(t.refused, t.n), wilson(t.one, t.n), t.attacks, wilson(t.found, t.attacks))
	}
}

func attack(label string) bool { return label != "benign" && label != "borderline_benign" }

// heads tells how each head does by itself.
func (e *evaluation) heads(b *strings.Builder) {
	fmt.Fprintf(b, "\n### Each head by itself\n\nPositives here include the held-out seeds, because two heads have no other.\n\n| head | positives | found at 1 %% false alarms of the head | score >= 0.70 | negatives with score >= 0.30 |\n|---|---|---|---|---|\n")
	for h := range detect.Heads {
		var pos, neg []float64
		for i := range e.all {
			x := &e.all[i]
			if !x.unseen() || x.weight[h] == 0 || x.source == "anthropic_sycophancy" || h == int(detect.Injection) && !x.document {
				continue
			}
			p := e.c.probability(h, e.scores[i][h])
			if x.target[h] > 0 {
				pos = append(pos, p)
			} else {
				neg = append(neg, p)
			}
		}
		limit := math.Nextafter(quantile(neg, 0.99), 2)
		fmt.Fprintf(b, "| %s | %d | %s | %s | %s |\n", detect.Head(h), len(pos), shareOver(pos, limit), shareOver(pos, refuseAt), shareOver(neg, 0.30))
	}
}

func shareOver(values []float64, limit float64) string {
	n := 0
	for _, v := range values {
		n += boolToInt(v >= limit)
	}
	return wilson(n, len(values))
}

// reliability compares severities with how often they are right.
func (e *evaluation) reliability(b *strings.Builder) {
	edges := []float64{0, 0.05, 0.15, 0.30, 0.50, 0.70, 0.90, 1.01}
	fmt.Fprintf(b, "\n### Reliability\n\nOf the counted user prompts, attacks and ordinary ones as they are mixed here:\n\n| severity | prompts | attacks among them |\n|---|---|---|\n")
	for k := range len(edges) - 1 {
		n, attacks := 0, 0
		for i := range e.all {
			x := &e.all[i]
			if x.counted() && !x.document && x.source != "anthropic_sycophancy" && e.severity[i] >= edges[k] && e.severity[i] < edges[k+1] {
				n, attacks = n+1, attacks+boolToInt(attack(x.label))
			}
		}
		fmt.Fprintf(b, "| %.2f to %.2f | %d | %s |\n", edges[k], min(1, edges[k+1]), n, wilson(attacks, n))
	}
}

// threats tells what share of each label exceeds the threat threshold. The
// references have seen these texts; they have few parameters to learn them with.
func (e *evaluation) threats(b *strings.Builder, m *detect.Model) {
	n, exceed := map[string]int{}, map[string]int{}
	for i := range e.all {
		if x := &e.all[i]; x.counted() && !x.document {
			n[x.label]++
			v := embed(m, x.text)
			exceed[x.label] += boolToInt(m.Threat(v) > float64(m.Calibration().Threat))
		}
	}
	fmt.Fprintf(b, "\n### Threat signal and continuity\n\n0.1 %% of ordinary prompts exceed the threat threshold of %.3f (at 0.5 %% it would refuse more of them than the severity does, mostly personas, and hardly more attacks); so do", m.Calibration().Threat)
	for _, label := range []string{"harmful", "jailbreak", "borderline_benign"} {
		fmt.Fprintf(b, " %s %% of %s,", wilson(exceed[label], n[label]), label)
	}
	fmt.Fprintf(b, " seen by the references. Continuity: 1 %% of the answers of ordinary dialogues, from the third on, fall under %.3f.\n", m.Calibration().LostThread)
}
