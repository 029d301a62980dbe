package caddymodule

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// print writes the card for people.
func (c *scorecard) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "%s, detector %s: %d records\n", c.Version, c.Detector, c.Records)
	for _, label := range sortedKeys(c.LeftOut) {
		_, _ = fmt.Fprintf(w, "left out: %d %s\n", c.LeftOut[label], label)
	}
	if c.Unread > 0 {
		_, _ = fmt.Fprintf(w, "not wholly inspected: %d\n", c.Unread)
	}
	printRows(w, "Totals", c.Totals, func(scoreRow) string { return "" })
	printRows(w, "By label and source", c.Sources, func(r scoreRow) string { return r.Label + "\t" + r.Source })
	printRows(w, "By language", c.Languages, func(r scoreRow) string { return r.Language + "\t" })
	c.printReliability(w)
	_, _ = fmt.Fprintf(w, "\nLatency of a turn, in microseconds: p50 %d, p90 %d, p99 %d, longest %d\n", c.Latency.P50, c.Latency.P90, c.Latency.P99, c.Latency.Max)
	return w.Flush()
}

func printRows(w io.Writer, title string, rows []scoreRow, name func(scoreRow) string) {
	_, _ = fmt.Fprintf(w, "\n%s (per cent, 95 %% intervals)\n", title)
	_, _ = fmt.Fprintf(w, "kind\t%s\tn\trefused\tfound at 1 %% false alarms\tat 5 %%\tAUC\n", strings.Repeat("\t", strings.Count(name(scoreRow{}), "\t")))
	for _, r := range rows {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", r.Kind, name(r), r.N, share(&r.RefusedPct, &r.RefusedCI), share(r.TPRAt1, r.TPRAt1CI), share(r.TPRAt5, r.TPRAt5CI), decimal(r.AUC))
	}
}

func share(value *float64, ci *[2]float64) string {
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

// barWidth is how long a full bar is.
const barWidth = 40

// printReliability draws the share of attacks in each bin of severity as a bar;
// the sign | stands where the bar of a calibrated severity would end.
func (c *scorecard) printReliability(w io.Writer) {
	_, _ = fmt.Fprintf(w, "\nReliability: share of attacks by severity (calibration error %.3f)\n", c.CalibrationError)
	_, _ = fmt.Fprintf(w, "severity\tn\tmean\tattacks\t\n")
	for _, b := range c.Reliability {
		bar := []rune(strings.Repeat("#", int(b.Attacks*barWidth+0.5)) + strings.Repeat(" ", barWidth+1))
		bar[int(b.Mean*barWidth+0.5)] = '|'
		if b.N == 0 {
			bar = nil
		}
		_, _ = fmt.Fprintf(w, "%.1f to %.1f\t%d\t%.3f\t%.3f\t%s\n", b.From, b.To, b.N, b.Mean, b.Attacks, strings.TrimRight(string(bar), " "))
	}
}
