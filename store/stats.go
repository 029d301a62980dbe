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

// Tally is a sum over receipts, of one session or of all that are counted. It
// is exact: taking a tally out again leaves what was there before.
type Tally struct {
	Receipts      int64 `json:"receipts"`
	Interventions int64 `json:"interventions"`
	// Margin is the sum of the margins, each rounded to a whole multiple of 1e-9.
	Margin int64 `json:"margin"`
}

// NewTally returns the tally of one receipt, which must be valid.
func NewTally(r Receipt) Tally {
	t := Tally{Receipts: 1, Margin: int64(math.Round(r.MAfter / marginUnit))}
	if r.Intervened {
		t.Interventions = 1
	}
	return t
}

// Plus returns the tally of both.
func (t Tally) Plus(u Tally) Tally {
	return Tally{t.Receipts + u.Receipts, t.Interventions + u.Interventions, t.Margin + u.Margin}
}

// Minus returns t without u, which it must contain.
func (t Tally) Minus(u Tally) Tally {
	return Tally{t.Receipts - u.Receipts, t.Interventions - u.Interventions, t.Margin - u.Margin}
}

// Stats returns the statistics of the tally.
func (t Tally) Stats() Stats {
	if t.Receipts == 0 {
		return Stats{}
	}
	n := float64(t.Receipts)
	return Stats{
		TotalReceipts:    int(t.Receipts),
		InterventionRate: float64(t.Interventions) / n,
		StabilityMargin:  float64(t.Margin) * marginUnit / n,
	}
}

// Excluded reports whether a receipt with this label takes its session out of
// the statistics.
func (r Receipt) Excluded() bool { return r.Turn > MaxCountedTurn }

// Excluded reports whether the turn takes its session out of the statistics.
func (t Turn) Excluded() bool {
	return t.Session.Eval || t.Session.HighestTurn > MaxCountedTurn || t.Receipt.Excluded()
}
