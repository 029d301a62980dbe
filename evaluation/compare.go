package evaluation

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// A Pair is one labelled prompt that two policies, models or guards decided on.
type Pair struct {
	Kind     Kind
	Label    string
	Source   string // the data set
	Language string
	A, B     bool // whether each of them refused it
}

// A Comparison is what two policies, models or guards decided on the same prompts. "caddy
// lex bench --compare --json" writes its JSON.
type Comparison struct {
	A       string         `json:"a"` // what decided
	B       string         `json:"b"`
	Records int            `json:"records"`  // that both decided on
	LeftOut map[string]int `json:"left_out"` // records that were not compared, by label or the reason

	Totals    []Difference `json:"totals"`    // by kind
	Sources   []Difference `json:"sources"`   // by kind, label and source
	Languages []Difference `json:"languages"` // by kind and language
}

// A Difference compares the decisions on one group of records.
type Difference struct {
	Kind     Kind   `json:"kind"`
	Label    string `json:"label,omitempty"`
	Source   string `json:"source,omitempty"`
	Language string `json:"lang,omitempty"`
	N        int    `json:"n"`
	RefusedA int    `json:"refused_a"`
	RefusedB int    `json:"refused_b"`
	// OnlyA and OnlyB count the records that only one of the two refused.
	OnlyA int `json:"only_a"`
	OnlyB int `json:"only_b"`
	// Points is the share that B refused less the share that A refused, in percentage
	// points, and CI its 95 % interval.
	Points float64    `json:"difference_points"`
	CI     [2]float64 `json:"difference_ci95"`
	// P is the exact p-value of McNemar's test.
	P float64 `json:"p"`
}

// Compare compares the decisions on all pairs. The caller fills in A, B and LeftOut.
func Compare(pairs []Pair) *Comparison {
	return &Comparison{
		Records: len(pairs),
		Totals:  differences(pairs, func(p Pair) Difference { return Difference{Kind: p.Kind} }),
		Sources: differences(pairs, func(p Pair) Difference { return Difference{Kind: p.Kind, Label: p.Label, Source: p.Source} }),
		Languages: differences(pairs, func(p Pair) Difference {
			return Difference{Kind: p.Kind, Language: p.Language}
		}),
	}
}

// differences groups the pairs by the difference that group returns, and fills these.
func differences(pairs []Pair, group func(Pair) Difference) []Difference {
	rows := make(map[Difference]*Difference)
	for _, p := range pairs {
		key := group(p)
		if rows[key] == nil {
			rows[key] = new(key)
		}
		rows[key].add(p)
	}
	out := make([]Difference, 0, len(rows))
	for _, d := range rows {
		d.Points, d.CI = pairedDifference(d.OnlyA, d.OnlyB, d.N)
		d.P = McNemar(d.OnlyA, d.OnlyB)
		out = append(out, *d)
	}
	slices.SortFunc(out, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), strings.Compare(a.Label, b.Label), strings.Compare(a.Source, b.Source), strings.Compare(a.Language, b.Language))
	})
	return out
}

func (d *Difference) add(p Pair) {
	d.N++
	if p.A {
		d.RefusedA++
	}
	if p.B {
		d.RefusedB++
	}
	switch {
	case p.A && !p.B:
		d.OnlyA++
	case p.B && !p.A:
		d.OnlyB++
	}
}

// McNemar returns the two-sided exact p-value of McNemar's test (Psychometrika 12, 1947):
// if two classifiers are equally good, each record on which they differ is a toss of a fair
// coin. onlyA and onlyB are the numbers of records that one of them marks and the other does
// not; records on which they agree say nothing.
func McNemar(onlyA, onlyB int) float64 {
	if onlyA == onlyB {
		return 1
	}
	return min(1, 2*atMost(int64(min(onlyA, onlyB)), int64(onlyA+onlyB), 0.5))
}

// pairedDifference returns the difference of two shares of the same n records in percentage
// points, and its 95 % interval: Wald's, after half a record was added to each of the four
// outcomes (Agresti and Min, Statistics in Medicine 24, 2005), without which it would be
// too short where few records differ.
func pairedDifference(onlyA, onlyB, n int) (points float64, interval [2]float64) {
	more := float64(onlyB - onlyA)
	total := float64(n) + 2
	half := z95 * math.Sqrt(float64(onlyA+onlyB)+1-more*more/total)
	points = 100 * more / float64(n)
	interval = [2]float64{max(-100, 100*(more-half)/total), min(100, 100*(more+half)/total)}
	return points, interval
}

// WriteText writes the comparison as tables for people.
func (c *Comparison) WriteText(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "A: %s\nB: %s\n%d records\n", c.A, c.B, c.Records)
	for _, label := range slices.Sorted(maps.Keys(c.LeftOut)) {
		_, _ = fmt.Fprintf(w, "left out: %d %s\n", c.LeftOut[label], Printable(label))
	}
	writeDifferences(w, "Totals", c.Totals, func(Difference) string { return "" })
	writeDifferences(w, "By label and source", c.Sources, func(d Difference) string { return Printable(d.Label) + "\t" + Printable(d.Source) })
	writeDifferences(w, "By language", c.Languages, func(d Difference) string { return Printable(d.Language) + "\t" })
	return w.Flush() // also reports an error of the lines before
}

func writeDifferences(w io.Writer, title string, rows []Difference, name func(Difference) string) {
	_, _ = fmt.Fprintf(w, "\n%s (refused, and B less A in percentage points with 95 %% intervals)\n", title)
	_, _ = fmt.Fprintf(w, "kind\t%s\tn\tA\tB\tA only\tB only\tB - A\tp (McNemar)\n", strings.Repeat("\t", strings.Count(name(Difference{}), "\t")))
	for _, d := range rows {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%+.1f (%+.1f to %+.1f)\t%.3g\n",
			d.Kind, name(d), d.N, d.RefusedA, d.RefusedB, d.OnlyA, d.OnlyB, d.Points, d.CI[0], d.CI[1], d.P)
	}
}
