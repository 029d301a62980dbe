package kernel

// pressure computes the turn's pressure: for each pillar the largest pressure of
// any attack type, plus what the previous output left.
func (k *Kernel) pressure(t *Turn) {
	p := k.attackPressure(t.Evidence.Scores)
	for i := range p {
		p[i] += t.Before.Carry[i]
	}
	t.Pressure = k.relative(p)
}

// attackPressure is max over the types of g(score) row_i, where g rises from 0
// at watch_at to 1 at certainty.
func (k *Kernel) attackPressure(s Scores) Point {
	var p Point
	rows := [5]*Point{
		&k.policy.Pressure.Identity, &k.policy.Pressure.Coercion, &k.policy.Pressure.Exploitative,
		&k.policy.Pressure.HarmRequest, &k.policy.Pressure.Sycophancy,
	}
	for i, score := range s.pooled() {
		if score <= k.policy.WatchAt {
			continue
		}
		g := (score - k.policy.WatchAt) / (1 - k.policy.WatchAt)
		for j := range p {
			p[j] = max(p[j], float64(g*rows[i][j]))
		}
	}
	return p
}

// relative removes the smallest component, which moves no point of the simplex,
// and clips the rest.
func (k *Kernel) relative(p Point) Point {
	least := p.Min()
	for i := range p {
		p[i] = min(p[i]-least, k.policy.Clip)
	}
	return p
}

// carry is the pressure that an output leaves for the next turn: on R when it
// did harm, on S when it gave in otherwise, on C when it lost the thread.
func (k *Kernel) carry(o Output) Point {
	var p Point
	if o.LostThread {
		p[Continuity] = k.policy.CarryLostThread
	}
	if o.Capitulated {
		pillar := Sovereignty
		if o.Category == HarmfulCompliance {
			pillar = Reciprocity
		}
		p[pillar] = float64(k.policy.CarryCapitulated * o.Confidence)
	}
	return p
}

// nextCarry is the pressure that the turn leaves for the next one. A turn whose prompt is
// refused generates nothing, so it leaves the pressure that acted on it as well: asked
// again, the same prompt meets the same pressure. On a turn that nobody read no pressure
// acted, so it waits for the next one.
func (k *Kernel) nextCarry(t *Turn) Point {
	p := k.carry(t.Output)
	if t.Evidence.Unassessed || k.policy.Revision > 0 && promptRefused(t) {
		for i := range p {
			p[i] = max(p[i], t.Before.Carry[i])
		}
	}
	return p
}

// carryEffect reports what the previous output's pressure did. It compares the
// state with the one that the same turn would have reached without it.
func (k *Kernel) carryEffect(t *Turn) {
	carry := t.Before.Carry
	if carry == (Point{}) {
		return
	}
	t.Sensing = Sensing{Fired: true, ActivePillar: pillars[carry.largest()], CorrectionApplied: k.stateWithoutCarry(t) != t.State}
}

// pillars holds what Sensing.ActivePillar points to, so that a turn need not
// allocate it.
var pillars = [3]*Pillar{new(Continuity), new(Reciprocity), new(Sovereignty)}

// stateWithoutCarry is the state that the turn would have reached without the carry.
func (k *Kernel) stateWithoutCarry(t *Turn) Point {
	x, z := t.Before.X, t.Before.Z
	lnX, lnZ := logs(x), logs(z)
	p := k.relative(k.attackPressure(t.Evidence.Scores))
	rho := k.relaxation(t)
	return project(k.rawState(k.rest(x, z, lnX, lnZ, rho), lnX, lnZ, p, rho).Point, k.policy.Tau)
}
