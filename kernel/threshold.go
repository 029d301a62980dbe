package kernel

// RefusingFrom returns the policy with another refuse_at, under which a turn that nothing
// speaks against but its severity is refused from there on. Where refuse_at rises,
// severe_at and threat_severity rise to it, or else the floor and the contrastive signal
// would go on refusing turns of less severity. Where it falls, refuse_at_degraded falls
// with it and nothing else changes. The policy is valid if p is and refuseAt is over
// watch_at and under 1.
func (p Policy) RefusingFrom(refuseAt float64) Policy {
	if refuseAt > p.RefuseAt {
		p.SevereAt, p.ThreatSeverity = max(p.SevereAt, refuseAt), max(p.ThreatSeverity, refuseAt)
	}
	p.RefuseAt, p.RefuseAtDegraded = refuseAt, min(p.RefuseAtDegraded, refuseAt)
	return p
}

// Level returns the highest refuse_at that refuses the prompt of a turn of this kernel, in
// [0, 1]: under [Policy.RefusingFrom] t, the same evidence in the same state is refused if
// and only if the level is at least t. It is the severity where nothing else refuses; the
// policy's own refuse_at where the floor or the contrastive signal refuses a turn of less
// severity; and 1 where a reason holds that has nothing to do with severity, such as the
// slow drip. The answer does not count. A turn whose detection is degraded has another
// threshold, and what is returned for it means nothing.
func (k *Kernel) Level(t *Turn) float64 {
	level := t.Severity
	for _, r := range t.Reasons {
		switch r {
		case SemanticClassifier, CapitulatedOutput:
		case ContrastiveThreat, ConstitutionalFloor:
			level = max(level, k.policy.RefuseAt)
		default:
			return 1
		}
	}
	return level
}

// Hundredths returns a level in hundredths, rounded down: the largest n for which n/100 is
// at most the level, in 0 to 100. So a threshold of whole hundredths refuses a turn if and
// only if it is at most this.
func Hundredths(level float64) int {
	n := int(float64(level * 100))
	if float64(n+1)/100 <= level { // the product was rounded down
		n++
	}
	if float64(n)/100 > level { // or up
		n--
	}
	return min(max(n, 0), 100)
}
