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
// refuses: self-reference needs a type that suspects the prompt, the contrastive signal
// that and severity, and the floor needs severity, because the state sums up a session
// and is no probability of harm.
//
// Asking again never turns a refusal into a pass: the operator's rule, the severity, the
// contrastive signal, self-reference and what stands follow from the evidence alone; a
// chart that alarmed alarms again ([Chart]), and a pillar under the floor stays there
// ([Kernel.floorMargin]), with the same pressure ([Kernel.nextCarry]).
func (k *Kernel) reasons(t *Turn) []Reason {
	p, e := &k.policy, &t.Evidence
	suspected := e.Scores.top() >= p.WatchAt
	holds := [len(priority)]bool{
		e.DeniedBy != "",
		t.Severity >= p.refuseAt(e.Degraded),
		e.ThreatSignal > p.ThreatAt && suspected && t.Severity >= p.ThreatSeverity,
		t.SlowDrip,
		e.SovereigntyDrift && suspected,
		k.underFloor(t),
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

// underFloor reports whether the floor refuses a turn. A repeated turn takes no step and is
// not judged.
func (k *Kernel) underFloor(t *Turn) bool {
	if k.policy.Revision == 0 {
		return t.MBefore < k.policy.Floor && t.Severity >= k.policy.SevereAt
	}
	return t.MFloor > 0 && t.MFloor < k.policy.Floor
}

// promptRefused reports whether a reason holds that is not the answer's.
func promptRefused(t *Turn) bool {
	return len(t.Reasons) > 0 && (t.Reasons[0] != CapitulatedOutput || slices.Contains(t.Evidence.Standing, CapitulatedOutput))
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
	case t.Evidence.Unassessed:
		return LabelUnassessed
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
