package console

import (
	"slices"

	"github.com/caddy-lex/lex/kernel"
)

// The units of the counters, in milliseconds.
const (
	second     = int64(1000)
	minuteSpan = 60 * second
)

// Totals are how many rows there are, and how many of them have a flag. Refused counts
// those that are blocked, too.
type Totals struct {
	Turns       int `json:"turns"` // and decided tool calls
	Refused     int `json:"refused"`
	WouldRefuse int `json:"would_refuse"`
	Corrected   int `json:"corrected"`
	Gaps        int `json:"gaps"`
	Failed      int `json:"failed"`
}

// totalsOf counts one row.
func totalsOf(r *Row) Totals {
	t := Totals{Turns: 1}
	for _, f := range r.Flags {
		switch f {
		case Blocked, Refused:
			t.Refused = 1
		case WouldRefuse:
			t.WouldRefuse = 1
		case Corrected:
			t.Corrected = 1
		case Uninspected:
			t.Gaps = 1
		case Failed:
			t.Failed = 1
		}
	}
	return t
}

func (t *Totals) add(o Totals) {
	t.Turns += o.Turns
	t.Refused += o.Refused
	t.WouldRefuse += o.WouldRefuse
	t.Corrected += o.Corrected
	t.Gaps += o.Gaps
	t.Failed += o.Failed
}

// counters count rows by the time at which their turns began. They are not safe for
// concurrent use.
type counters struct {
	minutes map[int64]*minute // by their beginning
}

// A minute has what began in it.
type minute struct {
	seconds   [60]tally
	total     tally // of all seconds
	parts     map[partKey]*partCount
	detectors map[string]*DetectorCount
	whole     int // turns of which nothing was inspected
}

// A tally is what began in a span.
type tally struct {
	Totals
	codes []codeCount // few
}

// A codeCount counts a reason, an invariant or an attack type.
type codeCount struct {
	kind codeKind
	name string
	n    int
}

type codeKind byte

const (
	reasonCode codeKind = iota
	attackCode
)

type partKey struct {
	part, why string
	class     Class
}

type partCount struct {
	turns, bytes int
	latest       Place
}

// maxParts is how many kinds of parts a minute tells apart: callers can make up paths.
const maxParts = 100

// otherParts stands for the rest.
var otherParts = partKey{"others", "more kinds than are told apart", ClassGap}

// floorTo rounds down to a multiple of a unit, below 0 too.
func floorTo(n, unit int64) int64 {
	if n%unit < 0 {
		n -= unit
	}
	return n - n%unit
}

// ceilTo rounds up.
func ceilTo(n, unit int64) int64 { return -floorTo(-n, unit) }

// add counts a row.
func (c *counters) add(e *reading) {
	at := floorTo(e.At, minuteSpan)
	m := c.minutes[at]
	if m == nil {
		m = &minute{parts: make(map[partKey]*partCount), detectors: make(map[string]*DetectorCount)}
		c.minutes[at] = m
	}
	sec := int((e.At - at) / second)
	for _, t := range []*tally{&m.seconds[sec], &m.total} {
		t.add(totalsOf(&e.Row))
		for _, reason := range reasonsOf(&e.Row) {
			t.count(reasonCode, reason)
		}
		if e.AttackType != string(kernel.NoAttack) {
			t.count(attackCode, e.AttackType)
		}
	}
	m.addCoverage(e)
}

func (t *tally) count(kind codeKind, name string) {
	for i := range t.codes {
		if c := &t.codes[i]; c.kind == kind && c.name == name {
			c.n++
			return
		}
	}
	t.codes = append(t.codes, codeCount{kind, shared(name), 1})
}

// reasonsOf are the codes of a row that is refused, or would be.
func reasonsOf(r *Row) (codes []string) {
	if slices.Contains(r.Flags, Blocked) || slices.Contains(r.Flags, Refused) || slices.Contains(r.Flags, WouldRefuse) {
		for _, s := range []*string{r.Reason, r.Invariant} {
			if s != nil {
				codes = append(codes, *s)
			}
		}
	}
	return codes
}

func (m *minute) addCoverage(e *reading) {
	if e.Gap == GapWhole {
		m.whole++
	}
	seen := make(map[partKey]bool, len(e.unread))
	for _, p := range e.unread {
		key := partKey{p.Part, p.Why, p.class}
		count, known := m.parts[key]
		if !known && len(m.parts) >= maxParts {
			key = otherParts
			count, known = m.parts[key]
		}
		if !known {
			count = new(partCount)
			m.parts[partKey{shared(key.part), shared(key.why), key.class}] = count
		}
		if !seen[key] {
			count.turns++
		}
		seen[key] = true
		count.bytes += p.Bytes
		count.latest.later(e.ID, e.At)
	}
	for _, d := range e.detectors {
		count := m.detectors[d.Name]
		if count == nil {
			count = &DetectorCount{Name: shared(d.Name)}
			m.detectors[count.Name] = count
		}
		count.add(d.Outcome)
	}
}

// forget drops what began before a time.
func (c *counters) forget(before int64) {
	for at := range c.minutes {
		if at+minuteSpan <= before {
			delete(c.minutes, at)
		}
	}
}
