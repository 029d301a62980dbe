package evaluation

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// WriteText writes the report as tables for people.
func (r *Report) WriteText(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "%s, detector %s: %d records\n", r.Version, r.Detector, r.Records)
	for _, label := range slices.Sorted(maps.Keys(r.LeftOut)) {
		_, _ = fmt.Fprintf(w, "left out: %d %s\n", r.LeftOut[label], Printable(label))
	}
	if r.Unread > 0 {
		_, _ = fmt.Fprintf(w, "not wholly inspected: %d\n", r.Unread)
	}
	writeRows(w, "Totals", r.Totals, func(Row) string { return "" })
	writeRows(w, "By label and source", r.Sources, func(row Row) string { return Printable(row.Label) + "\t" + Printable(row.Source) })
	writeRows(w, "By language", r.Languages, func(row Row) string { return Printable(row.Language) + "\t" })
	r.writeReliability(w)
	_, _ = fmt.Fprintf(w, "\nLatency of a turn, in microseconds: p50 %d, p90 %d, p99 %d, longest %d\n", r.Latency.P50, r.Latency.P90, r.Latency.P99, r.Latency.Max)
	return w.Flush() // also reports an error of the lines before
}

// Printable returns a word of the data as it is, or quoted where it has what a terminal acts on
// or what breaks a table.
func Printable(word string) string {
	if strings.ContainsFunc(word, func(c rune) bool { return !strconv.IsPrint(c) }) {
		return strconv.Quote(word)
	}
	return word
}

func writeRows(w io.Writer, title string, rows []Row, name func(Row) string) {
	_, _ = fmt.Fprintf(w, "\n%s (per cent, 95 %% intervals)\n", title)
	_, _ = fmt.Fprintf(w, "kind\t%s\tn\trefused\tfound at 1 %% false alarms\tat 5 %%\tAUC\n", strings.Repeat("\t", strings.Count(name(Row{}), "\t")))
	for _, r := range rows {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", r.Kind, name(r), r.N,
			withInterval(&r.RefusedPct, &r.RefusedCI), withInterval(r.TPRAt1, r.TPRAt1CI), withInterval(r.TPRAt5, r.TPRAt5CI), decimal(r.AUC))
	}
}

func withInterval(value *float64, ci *[2]float64) string {
	if value == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f (%.1f to %.1f)", *value, ci[0], ci[1])
}

func decimal(value *float64) string {
	if value == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f", *value)
}

// barWidth is the length of a full bar, in characters.
const barWidth = 40

// writeReliability draws the share of attacks in each bin as a bar. The sign | marks
// the mean severity: if severity is calibrated, the bar ends there.
func (r *Report) writeReliability(w io.Writer) {
	_, _ = fmt.Fprintf(w, "\nReliability: share of attacks by severity (calibration error %.3f)\n", r.CalibrationError)
	_, _ = fmt.Fprintf(w, "severity\tn\tmean\tattacks\t\n")
	for _, b := range r.Reliability {
		bar := []rune(strings.Repeat("#", int(b.Attacks*barWidth+0.5)) + strings.Repeat(" ", barWidth+1))
		bar[int(b.Mean*barWidth+0.5)] = '|'
		if b.N == 0 {
			bar = nil
		}
		_, _ = fmt.Fprintf(w, "%.1f to %.1f\t%d\t%.3f\t%.3f\t%s\n", b.From, b.To, b.N, b.Mean, b.Attacks, strings.TrimRight(string(bar), " "))
	}
}
