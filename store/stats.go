package store

import "math"

// MaxCountedTurn is the highest turn label of a session that the statistics
// count. A session that goes past it, or is marked Eval, is taken out with
// everything it ever added, and stays out.
const MaxCountedTurn = 80

// Stats summarises all counted receipts. All is 0 when there are none.
type Stats struct {
	// TotalReceipts counts the receipts.
	TotalReceipts int
	// InterventionRate is the share with an intervention, 0 to 1.
	InterventionRate float64
	// StabilityMargin is the mean margin after governance.
	StabilityMargin float64
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

// Excluded reports whether a receipt with this label takes its session out of
// the statistics.
func (r Receipt) Excluded() bool { return r.Turn > MaxCountedTurn }

// Excluded reports whether the change takes its session out of the statistics.
func (c Change) Excluded() bool {
	return c.Session.Eval || c.Session.HighestTurn > MaxCountedTurn || c.Receipt.Excluded()
}
