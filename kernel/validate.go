package kernel

import (
	"errors"
	"fmt"
)

// rule is one thing that must hold of a policy. It is stated so that it holds,
// not so that it is broken: every comparison with NaN is false, so NaN breaks
// every rule that it is part of.
type rule struct {
	field string
	is    any
	holds bool
	must  string
}

// Validate returns nil for a valid policy, else every broken rule joined, each
// an error that wraps [ErrPolicy] and names the field by its JSON name, with its
// value and those that bound it. The bounds are what the package's theorems need.
func (p Policy) Validate() error {
	var broken []error
	for _, rules := range [][]rule{p.stateRules(), p.signalRules(), p.tableRules()} {
		for _, r := range rules {
			if !r.holds {
				broken = append(broken, fmt.Errorf("%w: %s must be %s, not %v", ErrPolicy, r.field, r.must, r.is))
			}
		}
	}
	return errors.Join(broken...)
}

func (p Policy) stateRules() []rule {
	return []rule{
		{"revision", p.Revision, p.Revision == 0 || p.Revision == 1, "0 or 1"},
		{"floor", p.Floor, p.Floor >= 0.001 && p.Floor < 1, "at least 0.001"},
		{"tau", p.Tau, p.Tau > p.Floor && p.Tau < 1.0/3, over("floor", p.Floor) + " and under 1/3"},
		{"recovery", p.Recovery, p.Recovery > p.Tau && p.Recovery < 1.0/3, over("tau", p.Tau) + " and under 1/3"},
		{"optimal", p.Optimal, p.Optimal > p.Recovery && p.Optimal < 1.0/3, over("recovery", p.Recovery) + " and under 1/3"},
		{"rho", p.Rho, p.Rho > 0 && p.Rho < 1, "in (0, 1)"},
		{"eta", p.Eta, p.Eta > 0 && p.Eta <= 50, "in (0, 50]"},
		{"beta", p.Beta, p.Beta > 0 && p.Beta <= 1, "in (0, 1]"},
		// In this form the rounded weights' floor is over tau, not only the real one.
		{"kappa", p.Kappa, p.Kappa >= 0 && p.weightFloor() > p.Tau, fmt.Sprintf("at least 0 and under 1 - 3 tau (tau is %v)", p.Tau)},
		{"clip", p.Clip, p.Clip > 0 && p.Clip <= 4, "in (0, 4]"},
	}
}

func (p Policy) signalRules() []rule {
	return []rule{
		{"carry_capitulated", p.CarryCapitulated, inUnit(p.CarryCapitulated), "in [0, 1]"},
		{"carry_lost_thread", p.CarryLostThread, inUnit(p.CarryLostThread), "in [0, 1]"},
		{"watch_at", p.WatchAt, p.WatchAt > 0 && p.WatchAt < 1, "in (0, 1)"},
		{"multi_at", p.MultiAt, p.MultiAt > p.WatchAt && p.MultiAt < 1, over("watch_at", p.WatchAt) + " and under 1"},
		{"severe_at", p.SevereAt, p.SevereAt > p.WatchAt && p.SevereAt < 1, over("watch_at", p.WatchAt) + " and under 1"},
		{"refuse_at", p.RefuseAt, p.RefuseAt > p.WatchAt && p.RefuseAt < 1, over("watch_at", p.WatchAt) + " and under 1"},
		{"refuse_at_degraded", p.RefuseAtDegraded, p.RefuseAtDegraded > p.WatchAt && p.RefuseAtDegraded <= p.RefuseAt, over("watch_at", p.WatchAt) + fmt.Sprintf(" and at most refuse_at (%v)", p.RefuseAt)},
		{"threat_at", p.ThreatAt, p.ThreatAt > 0 && p.ThreatAt < 1, "in (0, 1)"},
		{"threat_severity", p.ThreatSeverity, p.ThreatSeverity >= 0 && p.ThreatSeverity < 1, "in [0, 1)"},
		{"cusum_k", p.CUSUMK, p.CUSUMK > 0 && p.CUSUMK < 1, "in (0, 1)"},
		{"cusum_h", p.CUSUMH, p.CUSUMH > 0 && p.CUSUMH <= 10, "in (0, 10]"},
		{"cusum_relief", p.CUSUMRelief, p.CUSUMRelief > 0 && p.CUSUMRelief <= 1, "in (0, 1]"},
		{"cusum_slow_k", p.CUSUMSlowK, p.CUSUMSlowK > 0 && p.CUSUMSlowK < 1 || p.withoutSlowChart(), "in (0, 1), or 0 with all of the slow chart"},
		{"cusum_slow_h", p.CUSUMSlowH, p.CUSUMSlowH > 0 && p.CUSUMSlowH <= 10 || p.withoutSlowChart(), "in (0, 10], or 0 with all of the slow chart"},
		{"cusum_slow_relief", p.CUSUMSlowRelief, p.CUSUMSlowRelief > 0 && p.CUSUMSlowRelief <= 1 || p.withoutSlowChart(), "in (0, 1], or 0 with all of the slow chart"},
	}
}

func (p Policy) withoutSlowChart() bool {
	return p.CUSUMSlowK == 0 && p.CUSUMSlowH == 0 && p.CUSUMSlowRelief == 0
}

func (p Policy) tableRules() []rule {
	table := func(name string, row Point) rule {
		return rule{"pressure." + name, row, inUnit(row[0]) && inUnit(row[1]) && inUnit(row[2]), "three numbers in [0, 1]"}
	}
	return []rule{
		table("identity", p.Pressure.Identity),
		table("coercion", p.Pressure.Coercion),
		table("exploitative", p.Pressure.Exploitative),
		table("harm_request", p.Pressure.HarmRequest),
		table("sycophancy", p.Pressure.Sycophancy),
	}
}

// over names a bound with its value: many are not options, so nobody has them at hand.
func over(field string, value float64) string { return fmt.Sprintf("over %s (%v)", field, value) }

// inUnit reports whether v is in [0, 1]; NaN is not.
func inUnit(v float64) bool { return v >= 0 && v <= 1 }
