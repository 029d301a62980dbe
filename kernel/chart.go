package kernel

// A Chart is a one-sided CUSUM (Page 1954) on the severities of a session. Its statistic g
// sums what exceeds K, never falls under 0, and raises the alarm at H. A quiet turn takes
// off at most Relief. The statistic stays at H after an alarm, so that the alarm lasts
// until quiet turns have brought it down.
//
// Next is monotone in g, and an alarm leaves the largest g that there is. So a severity
// that raised the alarm raises it again, whatever g was before.
type Chart struct{ K, H, Relief float64 }

// Next returns the statistic after a turn, in [0, H], and whether the turn raises the
// alarm. g is in [0, H] as well. An alarm can fall only on a severity of at least K.
func (c Chart) Next(g, severity float64) (next float64, alarm bool) {
	next = max(0, g+max(severity-c.K, -c.Relief))
	if next >= c.H {
		return c.H, true
	}
	return next, false
}

// Charts returns the fast and the slow chart of the slow-drip test. The slow chart is the
// zero value where the policy has none.
func (p Policy) Charts() (fast, slow Chart) {
	return Chart{p.CUSUMK, p.CUSUMH, p.CUSUMRelief}, Chart{p.CUSUMSlowK, p.CUSUMSlowH, p.CUSUMSlowRelief}
}

// drip runs the slow-drip test on the turn's severity: either chart may alarm.
func (k *Kernel) drip(t *Turn) {
	fast, slow := k.policy.Charts()
	t.Next.CUSUM, t.SlowDrip = fast.Next(t.Before.CUSUM, t.Severity)
	if t.SlowDrip && k.policy.Revision == 0 {
		t.Next.CUSUM = fast.H / 2 // an alarm fell back to half the level
	}
	if slow != (Chart{}) {
		next, alarm := slow.Next(t.Before.CUSUMSlow, t.Severity)
		t.Next.CUSUMSlow, t.SlowDrip = next, t.SlowDrip || alarm
	}
}
