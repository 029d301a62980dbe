package kernel

const (
	// noise is the size under which delta_V is rounding and written 0. The
	// energies are sums of a few terms of at most about 200, so their rounding
	// errors stay below 1e-13.
	noise = 1e-12
	// ratioBase keeps the stability ratio defined at rest and quiet near it.
	ratioBase = 0.001
)

// step takes t.Before under t.Pressure to the governed state and measures it:
// drift with the relaxation rho, governor, energy. It fills the fields from Raw to
// Intervened and the next weights.
func (k *Kernel) step(t *Turn, rho float64) {
	x, z := t.Before.X, t.Before.Z
	lnX, lnZ := logs(x), logs(z)
	rest := k.rest(x, z, lnX, lnZ, rho)
	raw := k.rawState(rest, lnX, lnZ, t.Pressure, rho)
	t.Raw, t.State = raw.Point, project(raw.Point, k.policy.Tau)
	if rho == 0 && k.policy.Revision > 0 {
		k.onlyPress(t)
	}
	t.MBefore, t.M = t.Raw.Min(), t.State.Min()
	t.Intervened = t.MBefore < k.policy.Tau
	t.SigmaViol, t.Effort = k.shortfall(t.Raw), distance(t.State, t.Raw)
	t.Next.X, t.Next.Z = t.State, k.weights(z, t.Pressure)
	k.energy(t, lnX, lnZ, &rest, &raw)
}

// relaxation is the rho of a turn of text. A severe turn does not relax, or the repeated
// attack would be refused less: what relaxes rises towards the weights, and the weights
// move towards the attacked pillar.
func (k *Kernel) relaxation(t *Turn) float64 {
	if k.severe(t) {
		return 0
	}
	return k.policy.Rho
}

// severe reports whether a turn only presses and is judged by the floor.
func (k *Kernel) severe(t *Turn) bool {
	return k.policy.Revision > 0 && t.Severity >= k.policy.SevereAt
}

// onlyPress keeps true to the last bit what holds of a step without relaxation: the pillar
// that is pressed most does not rise.
func (k *Kernel) onlyPress(t *Turn) {
	i := t.Pressure.largest()
	t.Raw[i] = min(t.Raw[i], t.Before.X[i])
	t.State[i] = min(t.State[i], t.Before.X[i])
}

// floorMargin is the margin that the floor judges: with the pillar i that is pressed most
// and f_j = e^(-eta p_j), it is x_i f_i / (x_i f_i + (1 - x_i) (f_j + f_k)/2). From the
// centre that is the raw state's own component. It knows the session by x_i alone, and in
// this form every rounding is monotone in x_i: the less x_i, the less the margin. A severe
// turn leaves an x_i that is not larger ([Kernel.onlyPress]), so a turn that the floor
// refused is refused again.
func (k *Kernel) floorMargin(t *Turn) float64 {
	i := t.Pressure.largest()
	x, f := t.Before.X[i], Point{}
	for j, p := range t.Pressure {
		f[j] = exp(-float64(k.policy.Eta * p))
	}
	others := (f[(i+1)%3] + f[(i+2)%3]) / 2
	return 1 / (1 + (1-x)*others/(x*f[i]))
}

// rawState is the raw state under a pressure, which is the rest point without one.
func (k *Kernel) rawState(rest blend, lnX, lnZ, p Point, rho float64) blend {
	if p == (Point{}) {
		return rest
	}
	return k.drift(lnX, lnZ, p, rho)
}

// drift is the entropic mirror step: the point proportional to
// x_i^(1-rho) z_i^rho e^(-eta p_i). The bounds on eta and the clip keep every
// component a normal number.
func (k *Kernel) drift(lnX, lnZ, p Point, rho float64) blend {
	var v Point
	for i := range v {
		v[i] = float64((1-rho)*lnX[i]) + float64(rho*lnZ[i]) - float64(k.policy.Eta*p[i])
	}
	return softmax(v)
}

// rest is the drift without pressure. By Hölder its normaliser is at most 1, so
// no component falls under min(x_i, z_i); the max keeps that true when rounding
// would lose the last bit of it, so that the governor never fires at rest.
func (k *Kernel) rest(x, z, lnX, lnZ Point, rho float64) blend {
	raw := k.drift(lnX, lnZ, Point{}, rho)
	for i := range raw.Point {
		raw.Point[i] = max(raw.Point[i], min(x[i], z[i]))
	}
	return raw
}

// shortfall is by how much the raw state is under tau, summed.
func (k *Kernel) shortfall(raw Point) float64 {
	total := 0.0
	for _, r := range raw {
		total += max(0, k.policy.Tau-r)
	}
	return total
}

// energy measures the step in V(y) = KL(z || y).
//
// With x0 the rest point, A = V(x) - V(x0), P = V(raw) - V(x0) and G = V(raw) -
// V(state), the drift is max(0, P) and the descent A + G + max(0, -P). Then
// delta_V = drift - descent, so (descent + base)/(drift + base) is computed as
// 1 - delta_V/(drift + base): in this form its side of 1 and the sign of delta_V
// cannot disagree by rounding.
func (k *Kernel) energy(t *Turn, lnX, lnZ Point, rest, raw *blend) {
	z, lnState := t.Before.Z, logs(t.State)
	before, after := divergence(z, lnZ, lnX), divergence(z, lnZ, lnState)
	t.LyapunovV = after
	if d := after - before; d >= noise || d <= -noise {
		t.DeltaV = d
	}
	drift := ratioBase
	if raw.Point != rest.Point {
		drift += max(0, divergence(z, lnZ, raw.logs())-divergence(z, lnZ, rest.logs()))
	}
	t.StabilityRatio = (drift - t.DeltaV) / drift
	t.ZShift = divergence(t.Next.Z, logs(t.Next.Z), lnState) - after
}

// weights moves z towards the pillars under pressure: beta is the memory, kappa
// the gain. Every component stays at least (1 - kappa)/3, which the policy keeps
// over tau; the max guards the last bit of that.
func (k *Kernel) weights(z, p Point) Point {
	total := sum(p)
	gain := float64(k.policy.Kappa * min(1, total))
	var next Point
	for i := range next {
		w := 1.0 / 3
		if total > 0 {
			w = (1-gain)/3 + float64(gain*(p[i]/total))
		}
		next[i] = float64((1-k.policy.Beta)*z[i]) + float64(k.policy.Beta*w)
	}
	norm := sum(next)
	for i := range next {
		next[i] = max(next[i]/norm, k.policy.weightFloor())
	}
	return next
}
