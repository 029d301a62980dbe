package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// A report is all that was measured.
type report struct {
	options  options
	machine  machine
	targets  []*target
	absent   []string
	results  results
	memory   map[*target]*footprint
	profiles []profiled
	others   float64 // the share of all processors that other programs used
	bare     *target
	governed *target
	picture  string // its file, beside the page
}

// text is the generated part of the page.
func (r *report) text() string {
	var out strings.Builder
	out.WriteString(r.conditions() + "\n")
	for _, why := range r.absent {
		out.WriteString("\n" + why + "\n")
	}
	out.WriteString("\n### Governed with bolt against bare Caddy\n\n" + r.summary())
	fmt.Fprintf(&out, "\n![Share of bare Caddy's throughput at 16 connections](%s)\n", r.picture)
	for _, w := range works {
		fmt.Fprintf(&out, "\n### %s\n\n%s", w, r.work(w))
	}
	out.WriteString("\n### Memory\n\n" + r.memories())
	out.WriteString("\n### Processor time of an answer by part of the code\n\n" + r.areas())
	return out.String()
}

// conditions are the machine and the run, in a paragraph.
func (r *report) conditions() string {
	m := r.machine
	versions := strings.Replace(m.goVersion, "go", "Go ", 1) + ", Caddy " + m.caddy
	if m.redis != "" {
		versions += ", Redis " + m.redis
	}
	if m.node != "" {
		versions += ", Node " + m.node
	}
	busy := ""
	if r.others > 0.05 {
		busy = " **The machine was busy with other work, so these figures are worth little.**"
	}
	return fmt.Sprintf("Measured on %s in %d rounds of %v for each row, with a last load of %s: %d cores (%s), %d GiB of memory, %s; an fsync of 4 KiB takes %s. %s. Other programs used %s of the cores.%s",
		m.day, r.options.rounds, r.options.time, strings.Replace(r.options.soak.String(), "m0s", "m", 1), m.cores, m.processor, m.memory, m.system, micro(float64(m.fsync)), versions, percent(r.others), busy)
}

// table writes a table in Markdown. The first column stands left, the others right.
func table(rows [][]string) string {
	var out strings.Builder
	for i, row := range rows {
		out.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			out.WriteString("|---|" + strings.Repeat("---:|", len(row)-1) + "\n")
		}
	}
	return out.String()
}

// summary has a row for each work: bare Caddy and governed Caddy, medians.
func (r *report) summary() string {
	rows := [][]string{{"work", "bare: answers/s", "p50", "governed: answers/s", "p50", "share", "added to p50"}}
	for _, w := range works {
		bare, governed := r.results[cell{r.bare, w}], r.results[cell{r.governed, w}]
		rows = append(rows, []string{
			w.String(),
			count(over(bare, rate).median), milli(over(bare, p50).median),
			count(over(governed, rate).median), milli(over(governed, p50).median),
			percent(against(governed, bare, share).median), added(against(governed, bare, more(p50)).median, milli),
		})
	}
	return table(rows)
}

// work has a row for each target, with the spread over the rounds in parentheses.
func (r *report) work(w work) string {
	head := []string{"", "answers/s", "of bare", "p50", "p99", "CPU", "added", "allocated", "CPU of clients and upstream"}
	if w.streamed {
		head = append(head, "first text p50", "p99", "added", "added a frame", "CPU added a frame")
	}
	rows := [][]string{head}
	bare := r.results[cell{r.bare, w}]
	for _, t := range r.targets {
		got := r.results[cell{t, w}]
		if len(got) == 0 {
			rows = append(rows, append([]string{t.name, "cannot do it"}, strings.Split(strings.Repeat("–", len(head)-2), "")...))
			continue
		}
		row := []string{
			t.name, within(over(got, rate), count), within(against(got, bare, share), percent),
			within(over(got, p50), milli), within(over(got, p99), milli),
			r.processor(t, got), r.added(t, against(got, bare, more(cpu)), micro), r.allocated(t, got), micro(over(got, client).median),
		}
		if w.streamed {
			row = append(row, within(over(got, first50), milli), within(over(got, first99), milli),
				r.added(t, against(got, bare, more(first50)), milli),
				r.added(t, against(got, bare, eachFrame(p50)), micro), r.added(t, against(got, bare, eachFrame(cpu)), micro))
		}
		rows = append(rows, row)
	}
	return table(rows)
}

// processor is the time of the proxy, and of the server beside it after a plus sign.
func (r *report) processor(t *target, got []figures) string {
	switch {
	case t.proxy == nil:
		return "–"
	case t.beside != nil:
		return within(over(got, cpu), micro) + " + " + micro(over(got, beside).median)
	}
	return within(over(got, cpu), micro)
}

func (r *report) allocated(t *target, got []figures) string {
	if t.admin == "" {
		return "–"
	}
	return kilo(over(got, func(f figures) float64 { return f.allocated }).median)
}

// added is what a proxy adds to bare Caddy.
func (r *report) added(t *target, s spread, unit func(float64) string) string {
	if t.proxy == nil || t == r.bare {
		return "–"
	}
	return added(s.median, unit)
}

func (r *report) memories() string {
	rows := [][]string{{"", "at rest", fmt.Sprintf("%d open streams", r.options.streams), "a stream", "after the rounds", "after the last load"}}
	for _, t := range r.targets {
		m := r.memory[t]
		if m == nil {
			continue
		}
		each := "–"
		if m.streams != (memory{}) {
			each = kilo((float64(m.streams.anonymous) - float64(m.rest.anonymous)) / float64(r.options.streams))
		}
		rows = append(rows, []string{t.name, m.rest.String(), m.streams.String(), each, m.rounds.String(), m.soak.String()})
	}
	return table(rows)
}

// String is the resident memory in MB, and in parentheses that without mapped files.
func (m memory) String() string {
	if m == (memory{}) {
		return "cannot do it"
	}
	return fmt.Sprintf("%d MB (%d)", m.resident/1e6, m.anonymous/1e6)
}

func (r *report) areas() string {
	head := []string{"", "bare Caddy", "governed"}
	for _, a := range areas {
		head = append(head, a.name)
	}
	rows := [][]string{head}
	for _, p := range r.profiles {
		all := over(r.results[cell{r.governed, p.work}], cpu).median
		row := []string{p.work.String(), micro(over(r.results[cell{r.bare, p.work}], cpu).median), micro(all)}
		for _, s := range p.shares {
			row = append(row, fmt.Sprintf("%s (%s)", micro(s*all), percent(s)))
		}
		rows = append(rows, row)
	}
	return table(rows)
}

// The figures by name, durations in nanoseconds.
func rate(f figures) float64    { return f.rate }
func p50(f figures) float64     { return float64(f.p50) }
func p99(f figures) float64     { return float64(f.p99) }
func first50(f figures) float64 { return float64(f.first50) }
func first99(f figures) float64 { return float64(f.first99) }
func cpu(f figures) float64     { return float64(f.cpu) }
func beside(f figures) float64  { return float64(f.beside) }
func client(f figures) float64  { return float64(f.client) }

func share(f, bare figures) float64 { return f.rate / bare.rate }

// more is how much larger a figure is than bare Caddy's.
func more(of func(figures) float64) func(f, bare figures) float64 {
	return func(f, bare figures) float64 { return of(f) - of(bare) }
}

// eachFrame is [more] for one frame of a stream.
func eachFrame(of func(figures) float64) func(f, bare figures) float64 {
	return func(f, bare figures) float64 { return (of(f) - of(bare)) / frames }
}

func count(v float64) string   { return humanize.Comma(int64(v + 0.5)) }
func percent(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }
func milli(v float64) string   { return fmt.Sprintf("%.2f ms", v/float64(time.Millisecond)) }
func micro(v float64) string   { return fmt.Sprintf("%.0f µs", v/float64(time.Microsecond)) }
func kilo(v float64) string    { return fmt.Sprintf("%.1f KB", v/1000) }

// added writes a difference with its sign.
func added(v float64, unit func(float64) string) string {
	if v < 0 {
		return unit(v)
	}
	return "+" + unit(v)
}

// within writes the median, and least and most in parentheses.
func within(s spread, unit func(float64) string) string {
	least, _, _ := strings.Cut(unit(s.least), " ")
	most, _, _ := strings.Cut(unit(s.most), " ")
	return fmt.Sprintf("%s (%s–%s)", unit(s.median), least, most)
}

// Marks of the generated part of the page; the rest of it is written by hand.
const (
	beginMark = "<!-- generated: figures -->\n"
	endMark   = "<!-- end: figures -->"
)

// writePage puts the text between the marks of a page.
func writePage(file, text string) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(page), beginMark)
	_, after, closed := strings.Cut(rest, endMark)
	if !ok || !closed {
		return errors.New(filepath.Base(file) + " has no marks of its generated part")
	}
	return os.WriteFile(file, []byte(before+beginMark+"\n"+text+"\n"+endMark+after), 0o644)
}
