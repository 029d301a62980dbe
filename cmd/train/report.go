package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/detect"
)

// finish trains the final model, writes it and its card, or only prints the
// figures when out is empty.
func finish(e *evaluation, s *space, text, dir, seeds, out string) error {
	dialogues, err := readRecords(filepath.Join(dir, "multiturn_benign.jsonl"))
	if err != nil {
		return err
	}
	raw, err := build(e.all, s, e.c, dialogues)
	if err != nil {
		return err
	}
	raw, models, err := withLanguages(raw, text, dir, seeds)
	if err != nil {
		return err
	}
	e.addEnglish(&models.part)
	card, err := report(e, models.full, dir)
	if err != nil {
		return err
	}
	fmt.Print(card)
	if out == "" {
		return nil
	}
	if err := os.WriteFile(out, raw, 0o644); err != nil {
		return fmt.Errorf("writing the model: %w", err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(out), "MODEL.md"), []byte(card), 0o644); err != nil {
		return fmt.Errorf("writing the card: %w", err)
	}
	return writeLanguageCard(models, dir, seeds, out)
}

func report(e *evaluation, m *detect.Model, dir string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, modelHead, m.Version())
	e.headline(&b)
	e.sources(&b)
	e.heads(&b)
	e.reliability(&b)
	e.languages(&b)
	e.threats(&b, m)
	if err := answers(&b, m, dir); err != nil {
		return "", err
	}
	b.WriteString("\n### Slow drip\n\nWhat the slow-drip charts make of these severities is in docs/kernel.md (`make charts`).\n")
	b.WriteString(modelTail)
	return b.String(), nil
}

// rates are the shares of false alarms at which the tables are cut.
var rates = []float64{0.01, 0.05}

// cuts holds the severities at the rates, for what users say and for documents.
type cuts struct{ user, document [2]float64 }

func (e *evaluation) cuts(severity []float64) (c cuts) {
	for i, rate := range rates {
		c.user[i] = e.cut(severity, rate, ordinary)
		c.document[i] = e.cut(severity, rate, cleanDocument)
	}
	return c
}

func (c *cuts) over(e *example, severity float64, i int) bool {
	if e.document {
		return severity > c.document[i]
	}
	return severity > c.user[i]
}

// headline compares the model with its heads alone and with the baseline.
func (e *evaluation) headline(b *strings.Builder) {
	fmt.Fprintf(b, "\n| attacks of unseen sources | texts | baseline at 1 %% | baseline at 5 %% | heads at 1 %% | heads at 5 %% | model at 1 %% | model at 5 %% | AUC |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, row := range []struct {
		name   string
		chosen func(*example) bool
	}{
		{"harmful requests and jailbreaks", func(x *example) bool { return x.label == "harmful" || x.label == "jailbreak" }},
		{"harmful requests", func(x *example) bool { return x.label == "harmful" }},
		{"jailbreaks", func(x *example) bool { return x.label == "jailbreak" }},
		{"injections in documents and tool results", func(x *example) bool { return x.label == "injection" && x.document }},
		{"injections by users", func(x *example) bool { return x.label == "injection" && !x.document }},
		{"borderline prompts (false alarms)", func(x *example) bool { return x.label == "borderline_benign" }},
	} {
		cells := []string{row.name}
		n := 0
		for _, severity := range [][]float64{e.baseline, e.headsAlone, e.severity} {
			c := e.cuts(severity)
			for r := range rates {
				k := 0
				n = 0
				for i := range e.all {
					if x := &e.all[i]; x.counted() && row.chosen(x) {
						n++
						if c.over(x, severity[i], r) {
							k++
						}
					}
				}
				cells = append(cells, wilson(k, n))
			}
		}
		cells = slices.Insert(cells, 1, fmt.Sprint(n))
		cells = append(cells, fmt.Sprintf("%.3f", e.auc(row.chosen)))
		fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
	}
}

// auc is the probability that a chosen text scores above an ordinary one of
// its kind.
func (e *evaluation) auc(chosen func(*example) bool) float64 {
	type point struct {
		severity float64
		attack   bool
	}
	var points []point
	document := false
	for i := range e.all {
		if x := &e.all[i]; x.counted() && chosen(x) {
			document = x.document
			points = append(points, point{e.severity[i], true})
		}
	}
	for i := range e.all {
		if x := &e.all[i]; !document && ordinary(x) || document && cleanDocument(x) {
			points = append(points, point{e.severity[i], false})
		}
	}
	slices.SortFunc(points, func(a, b point) int { return int(math.Copysign(1, a.severity-b.severity)) })
	var below, wins, attacks float64
	for _, p := range points {
		if p.attack {
			attacks++
			wins += below
		} else {
			below++
		}
	}
	return wins / (attacks * below)
}

// sources tells every source apart.
func (e *evaluation) sources(b *strings.Builder) {
	type row struct{ n, refused, one, five int }
	rows := map[string]*row{}
	c := e.cuts(e.severity)
	for i := range e.all {
		x := &e.all[i]
		if !x.counted() {
			continue
		}
		key := fmt.Sprintf("%s | %s", x.label, x.source)
		if rows[key] == nil {
			rows[key] = &row{}
		}
		r := rows[key]
		r.n++
		r.refused += boolToInt(e.severity[i] >= refuseAt)
		r.one += boolToInt(c.over(x, e.severity[i], 0))
		r.five += boolToInt(c.over(x, e.severity[i], 1))
	}
	fmt.Fprintf(b, "\n### Every source\n\n| label | source | texts | refused at 0.70 | at 1 %% | at 5 %% |\n|---|---|---|---|---|---|\n")
	for _, k := range sortedKeys(rows) {
		r := rows[k]
		fmt.Fprintf(b, "| %s | %d | %s | %s | %s |\n", k, r.n, wilson(r.refused, r.n), wilson(r.one, r.n), wilson(r.five, r.n))
	}
	fmt.Fprintf(b, "\nOf all ordinary prompts %s %% are refused, of all clean documents %s %%. The cuts at 1 %% and 5 %% are severities of %.3f for prompts and %.3f for documents.\n", e.share(ordinary), e.share(cleanDocument), c.user, c.document)
}

func (e *evaluation) share(chosen func(*example) bool) string {
	n, k := 0, 0
	for i := range e.all {
		if chosen(&e.all[i]) {
			n++
			k += boolToInt(e.severity[i] >= refuseAt)
		}
	}
	return wilson(k, n)
}

func boolToInt(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// wilson is a share in per cent with its 95 % interval (Wilson 1927).
func wilson(k, n int) string {
	if n == 0 {
		return "-"
	}
	const z = 1.96
	p, m := float64(k)/float64(n), float64(n)
	centre := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return fmt.Sprintf("%.1f (%.1f–%.1f)", 100*p, 100*max(0, centre-half), 100*(centre+half))
}
