package kernel

// classes are the attack types with a score of their own, in the order in which
// ties are broken.
var classes = [5]AttackType{Identity, Coercion, Exploitative, HarmRequest, Sycophancy}

// pooled returns the scores in the order of classes, injection pooled with
// identity: instructions in a document attack the assistant's identity too.
func (s Scores) pooled() [5]float64 {
	return [5]float64{max(s.Identity, s.Injection), s.Coercion, s.Exploitative, s.HarmRequest, s.Sycophancy}
}

// top returns the largest score of any type.
func (s Scores) top() float64 {
	p := s.pooled()
	return max(p[0], p[1], p[2], p[3], p[4])
}

// classify computes the severity, runs the slow-drip test on it and names the
// attack.
func (k *Kernel) classify(t *Turn) {
	scores := t.Evidence.Scores.pooled()
	t.Severity = k.severity(scores)
	k.drip(t)
	t.AttackType = k.attackType(scores)
	if t.SlowDrip && t.Evidence.Scores.top() < k.policy.refuseAt(t.Evidence.Degraded) {
		t.AttackType = SlowDrip
	}
}

// Severity is that of a prompt with these scores, in [0, 1].
func (k *Kernel) Severity(s Scores) float64 { return k.severity(s.pooled()) }

// severity is 1 - (1 - s1)(1 - max(0, s2 - watch_at)) of the two highest scores:
// the highest alone when nothing else is suspected, more when a second type is,
// never over 1.
func (k *Kernel) severity(scores [5]float64) float64 {
	first, second := 0.0, 0.0
	for _, s := range scores {
		if s > first {
			first, second = s, first
		} else if s > second {
			second = s
		}
	}
	support := max(0, second-k.policy.WatchAt)
	if support == 0 {
		return first // exact, where 1 - (1 - s1) would round
	}
	return 1 - float64((1-first)*(1-support))
}

// attackType names the highest type, or multi when two are high.
func (k *Kernel) attackType(scores [5]float64) AttackType {
	highest, high := 0, 0
	for i, s := range scores {
		if s > scores[highest] {
			highest = i
		}
		if s >= k.policy.MultiAt {
			high++
		}
	}
	switch {
	case high >= 2:
		return Multi
	case scores[highest] >= k.policy.WatchAt:
		return classes[highest]
	}
	return NoAttack
}
