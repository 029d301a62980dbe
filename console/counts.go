package console

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel"
)

// MaxBuckets is how many buckets [Window.Counts] counts in.
const MaxBuckets = 500

// A Span is the time from From, included, to To, excluded; 0 <= From < To.
type Span struct{ From, To int64 }

// MaxTime is the largest time of a span: the largest integer that JSON keeps.
const MaxTime = int64(1) << 53

// Valid reports whether a span is one.
func (s Span) Valid() bool { return s.From >= 0 && s.From < s.To && s.To <= MaxTime }

// widened returns the span from and to whole units.
func (s Span) widened(unit int64) Span { return Span{floorTo(s.From, unit), ceilTo(s.To, unit)} }

// ValidStep reports whether a span can be counted by steps of so many milliseconds: whole
// seconds that make at most [MaxBuckets].
func ValidStep(s Span, step int64) bool {
	s = s.widened(second)
	return step >= second && step%second == 0 && (s.To-s.From-1)/step < MaxBuckets
}

// Counts are the rows of a span in buckets of equal length, the last of which may be
// shorter. The lists have one entry for each bucket.
type Counts struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
	Step int64 `json:"step"`
	// Since is from when on the counts are whole. Before it they are lower than the truth.
	Since int64 `json:"since"`
	// ProvisionalFrom is from when on turns may still be under way, which count when they
	// end, at the time when they began.
	ProvisionalFrom int64   `json:"provisional_from"`
	At              []int64 `json:"at"` // where the buckets begin
	Turns           []int   `json:"turns"`
	Refused         []int   `json:"refused"`
	WouldRefuse     []int   `json:"would_refuse"`
	Corrected       []int   `json:"corrected"`
	Gaps            []int   `json:"gaps"`
	Failed          []int   `json:"failed"`
	// Reasons count the rows that are refused, or would be, by their reason or invariant.
	Reasons map[string]int `json:"reasons"`
	// AttackTypes count all rows that have one.
	AttackTypes map[string]int `json:"attack_types"`
	// Before are the totals of the span of the same length before.
	Before Totals `json:"before"`
}

// Counts counts the rows of a span by a valid step. The span is widened to whole seconds.
func (w *Window) Counts(ctx context.Context, span Span, step int64) (Counts, error) {
	span = span.widened(second)
	if err := w.use(ctx, 2*span.From-span.To); err != nil {
		return Counts{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.unusable(); err != nil {
		return Counts{}, err
	}
	c := w.counters.count(span, step)
	now := w.now().UnixMilli()
	c.Since, c.ProvisionalFrom = w.since(now), floorTo(now-longestTurn.Milliseconds(), second)
	return c, nil
}

// count counts in whole seconds.
func (c *counters) count(span Span, step int64) Counts {
	n := int((span.To-span.From-1)/step) + 1
	out := Counts{
		From: span.From, To: span.To, Step: step, At: make([]int64, n), Turns: make([]int, n), Refused: make([]int, n),
		WouldRefuse: make([]int, n), Corrected: make([]int, n), Gaps: make([]int, n), Failed: make([]int, n),
		Reasons: make(map[string]int), AttackTypes: make(map[string]int),
	}
	for i := range out.At {
		out.At[i] = span.From + int64(i)*step
	}
	before := Span{2*span.From - span.To, span.From}
	for at, m := range c.minutes {
		if at < span.To && at+minuteSpan > before.From {
			m.count(at, span, before, &out)
		}
	}
	return out
}

// count adds a minute to the buckets and to the totals of the span before. Most minutes are
// in one of them as a whole.
func (m *minute) count(at int64, span, before Span, to *Counts) {
	last := at + minuteSpan - second
	switch {
	case at >= before.From && last < before.To:
		to.Before.add(m.total.Totals)
		return
	case at >= span.From && last < span.To && to.bucket(at) == to.bucket(last):
		to.add(to.bucket(at), &m.total)
		return
	}
	for s := range m.seconds {
		t, began := &m.seconds[s], at+int64(s)*second
		switch {
		case began >= span.From && began < span.To:
			to.add(to.bucket(began), t)
		case began >= before.From && began < before.To:
			to.Before.add(t.Totals)
		}
	}
}

// bucket is the number of the bucket of a time in the span.
func (c *Counts) bucket(at int64) int64 { return (at - c.From) / c.Step }

func (c *Counts) add(bucket int64, t *tally) {
	c.Turns[bucket] += t.Turns
	c.Refused[bucket] += t.Refused
	c.WouldRefuse[bucket] += t.WouldRefuse
	c.Corrected[bucket] += t.Corrected
	c.Gaps[bucket] += t.Gaps
	c.Failed[bucket] += t.Failed
	for _, code := range t.codes {
		if code.kind == reasonCode {
			c.Reasons[code.name] += code.n
		} else {
			c.AttackTypes[code.name] += code.n
		}
	}
}

// Coverage is what of the turns of a span was inspected.
type Coverage struct {
	From  int64 `json:"from"`
	To    int64 `json:"to"`
	Since int64 `json:"since"` // as in [Counts]
	Turns int   `json:"turns"` // and decided tool calls
	Gaps  int   `json:"gaps"`  // those with one
	Whole int   `json:"whole"` // those of which nothing was inspected
	// Parts are what nobody read, by place and reason, most turns first; at most 200.
	Parts     []PartCount     `json:"parts"`
	Detectors []DetectorCount `json:"detectors"` // by name
}

// A PartCount is a kind of part that no detector read.
type PartCount struct {
	Part   string `json:"part"`
	Why    string `json:"why"`
	Class  Class  `json:"class"`
	Turns  int    `json:"turns"`
	Bytes  int    `json:"bytes"`
	Latest Place  `json:"latest"`
}

// A Place is a receipt and when its turn began.
type Place struct {
	ID string `json:"id"`
	At int64  `json:"at"`
}

// later moves to a receipt that is later. Of two that began at once it takes the one with
// the greater id, so that the order of counting does not show.
func (p *Place) later(id string, at int64) {
	if at > p.At || at == p.At && id > p.ID {
		*p = Place{strings.Clone(id), at}
	}
}

// A DetectorCount is how the runs of a detector ended.
type DetectorCount struct {
	Name    string `json:"name"`
	Clean   int    `json:"clean"`
	Flagged int    `json:"flagged"`
	NotRun  int    `json:"not_run"`
	Failed  int    `json:"failed"`
}

func (d *DetectorCount) add(outcome kernel.DetectorOutcome) {
	switch outcome {
	case kernel.Clean:
		d.Clean++
	case kernel.Flagged:
		d.Flagged++
	case kernel.NotRun:
		d.NotRun++
	case kernel.DetectorFailed:
		d.Failed++
	}
}

// maxListedParts is how many kinds of parts [Window.Coverage] lists.
const maxListedParts = 200

// Coverage sums up what the coverage of receipts says. The span is widened to whole
// minutes.
func (w *Window) Coverage(ctx context.Context, span Span) (Coverage, error) {
	span = span.widened(minuteSpan)
	if err := w.use(ctx, span.From); err != nil {
		return Coverage{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.unusable(); err != nil {
		return Coverage{}, err
	}
	out := w.counters.coverage(span)
	out.Since = w.since(w.now().UnixMilli())
	return out, nil
}

func (c *counters) coverage(span Span) Coverage {
	out := Coverage{From: span.From, To: span.To, Parts: []PartCount{}, Detectors: []DetectorCount{}}
	parts, detectors := make(map[partKey]*partCount), make(map[string]*DetectorCount)
	for at, m := range c.minutes {
		if at < span.From || at >= span.To {
			continue
		}
		out.Turns += m.total.Turns
		out.Gaps += m.total.Gaps
		out.Whole += m.whole
		m.sumUp(parts, detectors)
	}
	for key, p := range parts {
		out.Parts = append(out.Parts, PartCount{key.part, key.why, key.class, p.turns, p.bytes, p.latest})
	}
	slices.SortFunc(out.Parts, func(a, b PartCount) int {
		return cmp.Or(cmp.Compare(b.Turns, a.Turns), cmp.Compare(a.Part, b.Part), cmp.Compare(a.Why, b.Why))
	})
	out.Parts = out.Parts[:min(len(out.Parts), maxListedParts)]
	for _, name := range slices.Sorted(maps.Keys(detectors)) {
		out.Detectors = append(out.Detectors, *detectors[name])
	}
	return out
}

// sumUp adds what a minute's coverage says.
func (m *minute) sumUp(parts map[partKey]*partCount, detectors map[string]*DetectorCount) {
	for key, p := range m.parts {
		sum := parts[key]
		if sum == nil {
			sum = new(partCount)
			parts[key] = sum
		}
		sum.turns += p.turns
		sum.bytes += p.bytes
		sum.latest.later(p.latest.ID, p.latest.At)
	}
	for name, d := range m.detectors {
		sum := detectors[name]
		if sum == nil {
			sum = &DetectorCount{Name: name}
			detectors[name] = sum
		}
		sum.Clean += d.Clean
		sum.Flagged += d.Flagged
		sum.NotRun += d.NotRun
		sum.Failed += d.Failed
	}
}
