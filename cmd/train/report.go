package main

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/detect"
)

// tallyOf is what is told of one source and label.
type tallyOf struct {
	source, label   string
	n, fixed, named int     // texts; at or over the threshold; over 1 % FPR
	worst           float64 // highest severity
}

// report writes MODEL.md: prose around the held-out figures.
func report(all []example, margins [][detect.Heads]float32, strict map[int][detect.Heads]float32, c *calibration, m *detect.Model, dir string) (string, error) {
	var b strings.Builder
	userCut := cut(all, margins, c, ordinary)
	documentCut := cut(all, margins, c, cleanDocument)
	fmt.Fprintf(&b, modelHead, m.Version())
	rows := rowsOf(all, func(i int) float64 { return c.severity(&all[i], margins[i]) }, userCut, documentCut, func(int) bool { return true })

	section(&b, "Attacks: share found (held-out sources)", "refused at 0.70 | found at 1 % false alarms", rows, func(r tallyOf) (string, bool) {
		return fmt.Sprintf("%s | %s", percent(r.fixed, r.n), percent(r.named, r.n)), attack(r.label)
	})
	wild := rowsOf(all, func(i int) float64 { return c.severity(&all[i], strict[i]) }, userCut, documentCut, func(i int) bool { _, ok := strict[i]; return ok && all[i].label == "jailbreak" })
	section(&b, "Jailbreaks without any jailbreak collection in training (identity learnt from seeds and direct injections)", "refused at 0.70 | found at 1 % false alarms", wild, func(r tallyOf) (string, bool) {
		return fmt.Sprintf("%s | %s", percent(r.fixed, r.n), percent(r.named, r.n)), true
	})
	section(&b, "Ordinary and borderline texts: share refused (held-out sources)", "refused at 0.70 | highest severity", rows, func(r tallyOf) (string, bool) {
		return fmt.Sprintf("%s | %.2f", percent(r.fixed, r.n), r.worst), !attack(r.label)
	})
	perHead(&b, all, margins, c)
	fmt.Fprintf(&b, "\nAll ordinary prompts together: %s refused; all clean documents: %s. The seeds are contrast lines, written to look like attacks, and count in neither.\n",
		refused(all, margins, c, ordinary), refused(all, margins, c, cleanDocument))
	fmt.Fprintf(&b, "\nThreat signal: 0.5 %% of ordinary prompts exceed %.3f. Continuity: 1 %% of ordinary answers, from the third on, fall under %.3f.\n",
		m.Calibration().Threat, m.Calibration().LostThread)
	threats(&b, all, m)
	if err := answers(&b, m, dir); err != nil {
		return "", err
	}
	b.WriteString(modelTail)
	return b.String(), nil
}

func refused(all []example, margins [][detect.Heads]float32, c *calibration, chosen func(*example) bool) string {
	n := len(choose(all, chosen))
	return fmt.Sprintf("%.2f %% of %d", 100*share(all, margins, c, chosen), n)
}

func attack(label string) bool { return label != "benign" && label != "borderline_benign" }

// cut is the severity that 1 % of the chosen ordinary texts exceed.
func cut(all []example, margins [][detect.Heads]float32, c *calibration, chosen func(*example) bool) float64 {
	var s []float64
	for i := range all {
		if chosen(&all[i]) {
			s = append(s, c.severity(&all[i], margins[i]))
		}
	}
	return quantile(s, 0.99)
}

func rowsOf(all []example, severity func(int) float64, userCut, documentCut float64, chosen func(int) bool) []tallyOf {
	found := map[string]*tallyOf{}
	for i := range all {
		if !chosen(i) {
			continue
		}
		e := &all[i]
		t := found[e.source+e.label]
		if t == nil {
			t = &tallyOf{source: e.source, label: e.label}
			found[e.source+e.label] = t
		}
		s := severity(i)
		t.n++
		t.worst = max(t.worst, s)
		if s >= refuseAt {
			t.fixed++
		}
		if e.document && s > documentCut || !e.document && s > userCut {
			t.named++
		}
	}
	out := make([]tallyOf, 0, len(found))
	for _, t := range found {
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b tallyOf) int { return strings.Compare(a.label+a.source, b.label+b.source) })
	return out
}

func section(b *strings.Builder, title, columns string, rows []tallyOf, cells func(tallyOf) (string, bool)) {
	fmt.Fprintf(b, "\n### %s\n\n| label | source | texts | %s |\n|---|---|---|---|---|\n", title, columns)
	for _, r := range rows {
		if text, ok := cells(r); ok {
			fmt.Fprintf(b, "| %s | %s | %d | %s |\n", r.label, r.source, r.n, text)
		}
	}
}

// perHead tells how each head does by itself, and how well it is calibrated.
func perHead(b *strings.Builder, all []example, margins [][detect.Heads]float32, c *calibration) {
	fmt.Fprintf(b, "\n### Each head by itself (held-out sources)\n\n| head | positives | found at 1 %% false alarms | score >= 0.70 | negatives with score >= 0.30 |\n|---|---|---|---|---|\n")
	for h := range detect.Heads {
		var pos, neg []float64
		for i := range all {
			e := &all[i]
			if e.weight[h] == 0 || h == int(detect.Injection) && !e.document {
				continue
			}
			p := c.probability(h, margins[i][h])
			if e.target[h] > 0 {
				pos = append(pos, p)
			} else {
				neg = append(neg, p)
			}
		}
		over := func(values []float64, limit float64) int {
			n := 0
			for _, v := range values {
				if v >= limit {
					n++
				}
			}
			return n
		}
		limit := math.Nextafter(quantile(neg, 0.99), 2)
		fmt.Fprintf(b, "| %s | %d | %s | %s | %s |\n", detect.Head(h), len(pos), percent(over(pos, limit), len(pos)),
			percent(over(pos, refuseAt), len(pos)), percent(over(neg, 0.30), len(neg)))
	}
}

// threats tells what share of each label exceeds the threat threshold. The
// references have seen these texts; they have few parameters to learn them with.
func threats(b *strings.Builder, all []example, m *detect.Model) {
	n, over := map[string]int{}, map[string]int{}
	for i := range all {
		if e := &all[i]; !e.document && e.source != "seeds" {
			n[e.label]++
			if m.Assess([]detect.Text{{Source: detect.User, Body: e.text}}).Threat > float64(m.Calibration().Threat) {
				over[e.label]++
			}
		}
	}
	fmt.Fprintf(b, "Over the threat threshold: harmful %s, jailbreak %s, borderline %s, ordinary %s (the references have seen these texts).\n",
		percent(over["harmful"], n["harmful"]), percent(over["jailbreak"], n["jailbreak"]),
		percent(over["borderline_benign"], n["borderline_benign"]), percent(over["benign"], n["benign"]))
}

// answers measures the output side on openings of model answers.
func answers(b *strings.Builder, m *detect.Model, dir string) error {
	records, err := readRecords(filepath.Join(dir, "outputs.jsonl"))
	if err != nil {
		return fmt.Errorf("measuring answers: %w", err)
	}
	type count struct{ n, refusals, capitulated int }
	counts := map[string]*count{}
	for _, r := range records {
		c := counts[r.Label]
		if c == nil {
			c = &count{}
			counts[r.Label] = c
		}
		c.n++
		if detect.IsRefusal(r.Text) {
			c.refusals++
		}
		if m.Judge(r.Prompt, r.Text).Capitulated {
			c.capitulated++
		}
	}
	fmt.Fprintf(b, "\n### Answers (the input side has seen many of these prompts)\n\n| label | answers | read as a refusal | judged capitulated |\n|---|---|---|---|\n")
	for _, label := range []string{"benign_answer", "compliance", "refusal"} {
		if c := counts[label]; c != nil {
			fmt.Fprintf(b, "| %s | %d | %s | %s |\n", label, c.n, percent(c.refusals, c.n), percent(c.capitulated, c.n))
		}
	}
	return nil
}

func percent(k, n int) string {
	return fmt.Sprintf("%.1f %% (%d)", 100*float64(k)/float64(max(1, n)), k)
}
