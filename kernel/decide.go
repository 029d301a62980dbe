package kernel

import "slices"

// priority lists the reasons, highest first.
var priority = [...]Reason{
	OperatorPolicy, SemanticClassifier, ContrastiveThreat, SlowDripAlarm,
	SovereigntyDrift, ConstitutionalFloor, CapitulatedOutput,
}

// decide fills the decision from everything else in the turn. It reads nothing
// that it writes, so it can be run again when the output is known.
func (k *Kernel) decide(t *Turn) {
	t.Reasons = k.reasons(t)
	t.Refused = len(t.Reasons) > 0 && t.Mode == Enforce
	t.Label = k.label(t)
	t.Band = k.band(t)
	t.GovernorMode = governorMode(t)
}

// reasons returns every reason that holds, by priority. No single weak signal
// refuses: the contrastive signal and self-reference need a type that suspects
// the prompt, and the floor needs severity, because the state sums up a session
// and is no probability of harm.
func (k *Kernel) reasons(t *Turn) []Reason {
	p, e := &k.policy, &t.Evidence
	suspected := e.Scores.top() >= p.WatchAt
	holds := [len(priority)]bool{
		e.DeniedBy != "",
		t.Severity >= p.refuseAt(e.Degraded),
		e.ThreatSignal > p.ThreatAt && suspected,
		t.SlowDrip,
		e.SovereigntyDrift && suspected,
		t.MBefore < p.Floor && t.Severity >= p.SevereAt,
		t.Output.Capitulated,
	}
	set := 0
	for i, r := range priority {
		if holds[i] || slices.Contains(e.Standing, r) {
			set |= 1 << i
		}
	}
	return reasonLists[set]
}

// reasonLists holds the list of every set of reasons, so that a turn need not
// allocate its own.
var reasonLists = func() (lists [1 << len(priority)][]Reason) {
	for set := range lists {
		for i, r := range priority {
			if set&(1<<i) != 0 {
				lists[set] = append(lists[set], r)
			}
		}
		lists[set] = slices.Clip(lists[set]) // to append to one must not write into it
	}
	return lists
}()

func (k *Kernel) label(t *Turn) string {
	switch {
	case t.Severity >= k.policy.refuseAt(t.Evidence.Degraded):
		return LabelThreat
	case t.Severity >= k.policy.WatchAt:
		return LabelWatch
	}
	return LabelClear
}

// band is a function of the reported margin, lower edges inclusive. The governed
// margin is never under tau, so CRITICAL is reported exactly for refused turns.
func (k *Kernel) band(t *Turn) Band {
	switch {
	case t.Refused:
		return Critical
	case t.M >= k.policy.Optimal:
		return Optimal
	case t.M >= k.policy.Recovery:
		return Alert
	}
	return Stressed
}

func governorMode(t *Turn) string {
	switch {
	case t.Mode == Observe:
		return GovernorObserve
	case t.Refused:
		return GovernorRefuse
	case t.Intervened:
		return GovernorCorrect
	}
	return GovernorPass
}
