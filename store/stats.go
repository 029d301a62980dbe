package store

import (
	"cmp"
	"math"
	"slices"

	"github.com/caddy-lex/lex/kernel"
)

// MaxCountedTurn is the highest turn label of a session that the statistics
// count. A session that goes past it, or is marked Eval, is taken out with
// everything it ever added, and stays out. So is a conversation ([Receipt.Conversation])
// with all its turns, whichever of them it is.
const MaxCountedTurn = 80

// Stats summarises all counted receipts. All is 0 when there are none.
type Stats struct {
	// TotalReceipts counts the receipts.
	TotalReceipts int
	// InterventionRate is the share with an intervention, 0 to 1.
	InterventionRate float64
	// StabilityMargin is the mean margin after governance.
	StabilityMargin float64
	// Levels counts the turns that have a level, by attack type and level. Nil when there
	// are none.
	Levels map[kernel.AttackType]*[LevelsEnd]int64
	// LevelsSince is the Timestamp of the first receipt whose level was counted, 0 when
	// there was none. Receipts that an older version wrote have no level, and one that was
	// counted and taken out again stays the first.
	LevelsSince int64
}

// LevelsEnd is the number of levels: 0 to 100.
const LevelsEnd = 101

// A Level is a turn's place in the histogram of the statistics: the attack type of its
// prompt and the highest refuse_at, in hundredths, that refuses it ([kernel.Kernel.Level],
// [kernel.Hundredths]). Counts at such places are exact at every threshold of hundredths,
// and adding and taking out are exact as well, also when replicas share a store: a sketch
// such as a t-digest is neither, and takes more room than the few places that a policy can
// tell apart.
type Level struct {
	AttackType kernel.AttackType
	At         int
}

// levelTypes are the attack types that a level may have. New ones come at the end, because
// places are stored.
var levelTypes = []kernel.AttackType{
	kernel.NoAttack, kernel.Identity, kernel.Coercion, kernel.Exploitative, kernel.HarmRequest, kernel.Sycophancy, kernel.Multi, kernel.SlowDrip,
}

// Counted reports whether there is a level.
func (l Level) Counted() bool { return l != Level{} }

func (l Level) valid() bool {
	return !l.Counted() || l.At >= 0 && l.At < LevelsEnd && slices.Contains(levelTypes, l.AttackType)
}

// Place returns the number under which back-ends count a level that is valid. It never
// changes.
func (l Level) Place() uint16 {
	return uint16(LevelsEnd*slices.Index(levelTypes, l.AttackType) + l.At) //nolint:gosec // G115: under 808
}

// LevelOf returns the level with the place; the zero level if there is none, as when a
// newer version counted it.
func LevelOf(place uint16) Level {
	if int(place) >= LevelsEnd*len(levelTypes) {
		return Level{}
	}
	return Level{levelTypes[place/LevelsEnd], int(place % LevelsEnd)}
}

// AddLevel adds n turns of a level, if there is one.
func (s *Stats) AddLevel(l Level, n int64) {
	if !l.Counted() || n == 0 {
		return
	}
	if s.Levels == nil {
		s.Levels = make(map[kernel.AttackType]*[LevelsEnd]int64)
	}
	counts := s.Levels[l.AttackType]
	if counts == nil {
		counts = new([LevelsEnd]int64)
		s.Levels[l.AttackType] = counts
	}
	counts[l.At] += n
}

// marginUnit is the resolution in which margins are summed. Sums of integers
// leave no residue when a session is taken out again, as sums of floats would,
// whatever the order. With 1e-9 the mean is off by at most 5e-10, and an int64
// has room for 27 thousand million receipts of the largest margin, 1/3.
const marginUnit = 1e-9

// Counters are sums over receipts, of one session or of all that are counted.
// They are exact: what was added can be subtracted again and leaves no residue.
type Counters struct {
	Receipts      int64 `json:"receipts"`
	Interventions int64 `json:"interventions"`
	// Margin is the sum of the margins, each rounded to a whole multiple of 1e-9.
	Margin int64 `json:"margin"`
}

// NewCounters returns the counters of one receipt, which must be valid.
func NewCounters(r Receipt) Counters {
	c := Counters{Receipts: 1, Margin: int64(math.Round(r.MAfter / marginUnit))}
	if r.Intervened {
		c.Interventions = 1
	}
	return c
}

// Plus returns the counters of both.
func (c Counters) Plus(d Counters) Counters {
	return Counters{c.Receipts + d.Receipts, c.Interventions + d.Interventions, c.Margin + d.Margin}
}

// Minus returns c without d, which must be part of c.
func (c Counters) Minus(d Counters) Counters {
	return Counters{c.Receipts - d.Receipts, c.Interventions - d.Interventions, c.Margin - d.Margin}
}

// Stats returns the statistics that the counters amount to.
func (c Counters) Stats() Stats {
	if c.Receipts == 0 {
		return Stats{}
	}
	n := float64(c.Receipts)
	return Stats{
		TotalReceipts:    int(c.Receipts),
		InterventionRate: float64(c.Interventions) / n,
		StabilityMargin:  float64(c.Margin) * marginUnit / n,
	}
}

// CountedUnder returns the key under which the statistics count the receipt, "" if it is of
// no session.
func (r Receipt) CountedUnder() string { return cmp.Or(r.Conversation, r.SessionKey) }

// Excluded reports whether a receipt with this label takes its session out of
// the statistics.
func (r Receipt) Excluded() bool { return r.Turn > MaxCountedTurn }

// Excluded reports whether the change takes its session out of the statistics.
func (c Change) Excluded() bool {
	return c.Session.Eval || c.Session.HighestTurn > MaxCountedTurn || c.Receipt.Excluded()
}
