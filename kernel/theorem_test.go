package kernel_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

// slack is the rounding that the theorems are allowed, for energies of size v.
func slack(v float64) float64 { return 1e-12 * (1 + math.Abs(v)) }

// kl is the Kullback–Leibler divergence in nats, by the platform's own logarithm.
func kl(a, b kernel.Point) float64 {
	total := 0.0
	for i := range a {
		total += a[i] * math.Log(a[i]/b[i])
	}
	return total
}

func add(p kernel.Point) float64 { return p[0] + p[1] + p[2] }

var uniform = kernel.Point{1.0 / 3, 1.0 / 3, 1.0 / 3}

// A walked step: the turn, and the kernel and generator to take others from the
// same place.
type walked struct {
	kernel.Turn
	k *kernel.Kernel
	r random
}

func (w walked) again(t *testing.T, change func(*kernel.Session)) kernel.Turn {
	s := w.Before
	change(&s)
	turn, err := w.k.Assess(s, kernel.Evidence{}, kernel.Enforce)
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

// A theorem is a statement of the package documentation. It gets a random step
// and returns what is wrong with it, or "".
type theorem struct {
	name  string
	wrong func(*testing.T, walked) string
}

// theorems are checked on every step.
var theorems = []theorem{
	{"simplex", wrongSimplex},
	{"projection", wrongProjection},
	{"rest", wrongRest},
	{"contraction", wrongContraction},
	{"input-to-state stability", wrongISS},
	{"correction descends", wrongCorrection},
	{"barrier", wrongBarrier},
	{"across turns", wrongShift},
	{"two-yardstick energy", wrongW},
}

// comparisons take a second step from the same place; each step is checked
// against one of them, in turn.
var comparisons = []theorem{
	{"monotone", wrongMonotone},
	{"continuous", wrongContinuous},
	{"stability ratio", wrongRatio},
	{"symmetry", wrongSymmetry},
}

func TestTheoremsOnRandomSteps(t *testing.T) {
	const walkers, stepsPerPolicy = 8, 50
	for seed := range uint64(walkers) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			r := newRandom(seed)
			var k *kernel.Kernel
			for i := range randomSteps / walkers {
				if i%stepsPerPolicy == 0 {
					k = newKernel(t, kernel.DefaultPolicy())
					if r.IntN(2) == 0 {
						k = newKernel(t, r.policy())
					}
				}
				turn, err := k.Assess(r.session(k), kernel.Evidence{}, kernel.Enforce)
				if err != nil {
					t.Fatal(err)
				}
				checkTheorems(t, walked{turn, k, r}, i)
			}
		})
	}
}

func checkTheorems(t *testing.T, w walked, i int) {
	for _, th := range append(theorems[:len(theorems):len(theorems)], comparisons[i%len(comparisons)]) {
		if fault := th.wrong(t, w); fault != "" {
			t.Fatalf("step %d breaks %q: %s\npolicy %+v\nbefore %+v\npressure %v raw %v state %v",
				i, th.name, fault, w.k.Policy(), w.Before, w.Pressure, w.Raw, w.State)
		}
	}
}

func wrongSimplex(_ *testing.T, w walked) string {
	switch {
	case math.Abs(add(w.State)-1) > 1e-12, math.Abs(add(w.Raw)-1) > 1e-12, math.Abs(add(w.Next.Z)-1) > 1e-12:
		return "a sum is not 1"
	case w.State.Min() < w.k.Policy().Tau:
		return "the state is under tau"
	case w.Raw.Min() <= 0:
		return "the raw state is not positive"
	case w.Next.Z.Min() < (1-w.k.Policy().Kappa)/3 || w.Next.Z.Min() <= w.k.Policy().Tau:
		return "the weights are out of their range"
	case w.M != w.State.Min() || w.MBefore != w.Raw.Min():
		return "a margin is not the least component"
	case w.Intervened != (w.State != w.Raw) || w.Intervened != (w.MBefore < w.k.Policy().Tau):
		return "the governor fired for another reason than the margin"
	}
	return ""
}

// wrongProjection finds the multiplier by bisection instead of by cases.
func wrongProjection(_ *testing.T, w walked) string {
	tau := w.k.Policy().Tau
	at := func(scale float64) (y kernel.Point) {
		for i := range y {
			y[i] = max(tau, scale*w.Raw[i])
		}
		return y
	}
	lo, hi := 0.0, 1.0
	for range 40 {
		if mid := (lo + hi) / 2; add(at(mid)) < 1 {
			lo = mid
		} else {
			hi = mid
		}
	}
	want := at(hi)
	for i := range want {
		if math.Abs(want[i]-w.State[i]) > 1e-10 {
			return fmt.Sprintf("bisection finds %v", want)
		}
	}
	return ""
}

func wrongRest(_ *testing.T, w walked) string {
	if w.Pressure != (kernel.Point{}) {
		return ""
	}
	for i := range w.Raw {
		if w.Raw[i] < min(w.Before.X[i], w.Before.Z[i]) {
			return "a component fell under both of its sources"
		}
	}
	if w.Intervened {
		return "the governor fired without pressure"
	}
	return ""
}

// rho is the relaxation of the step: a tool call that breaks an invariant only presses.
func (w walked) rho() float64 {
	if w.Call.Tool != "" {
		return 0
	}
	return w.k.Policy().Rho
}

func wrongContraction(_ *testing.T, w walked) string {
	v := kl(w.Before.Z, w.Before.X)
	if w.Pressure == (kernel.Point{}) && kl(w.Before.Z, w.Raw) > (1-w.rho())*v+slack(v) {
		return "the energy fell too little"
	}
	return ""
}

func wrongISS(_ *testing.T, w walked) string {
	p, z := w.k.Policy(), w.Before.Z
	gain := 0.0
	for i := range z {
		gain += z[i] * (w.Pressure[i] - w.Pressure.Min())
	}
	bound := (1-w.rho())*kl(z, w.Before.X) + p.Eta*gain
	if kl(z, w.Raw) > bound+slack(bound) {
		return "the energy rose over the bound"
	}
	return ""
}

func wrongCorrection(_ *testing.T, w walked) string {
	descent, length := kl(w.Before.Z, w.Raw)-kl(w.Before.Z, w.State), kl(w.State, w.Raw)
	switch {
	case descent < length-slack(kl(w.Before.Z, w.Raw)):
		return "the correction descends less than its length"
	case length < w.Effort*w.Effort-slack(0):
		return "the length is less than the effort squared"
	}
	return ""
}

func wrongBarrier(_ *testing.T, w walked) string {
	p := w.k.Policy()
	decay := (p.Tau - p.Floor) / (1 - 2*p.Tau - p.Floor) // 1 - gamma*
	for i := range w.State {
		if w.State[i]-p.Floor < decay*(w.Before.X[i]-p.Floor)-1e-15 {
			return "a pillar lost more of its distance to the floor than the rate allows"
		}
	}
	return ""
}

func wrongMonotone(t *testing.T, w walked) string {
	i, more := w.r.IntN(3), w.r.pick(0, 2, 1e-9, 0.5)
	harder := w.again(t, func(s *kernel.Session) { s.Carry[i] += more })
	if harder.Raw[i] > w.Raw[i]+1e-15 || harder.State[i] > w.State[i]+1e-15 {
		return fmt.Sprintf("more pressure on pillar %d raised it", i)
	}
	return ""
}

// wrongContinuous: softmax moves by at most eta times the change of pressure,
// and the projection at most doubles a change.
func wrongContinuous(t *testing.T, w walked) string {
	const nudge = 1e-7
	i := w.r.IntN(3)
	near := w.again(t, func(s *kernel.Session) { s.Carry[i] += nudge })
	for j := range near.State {
		if math.Abs(near.State[j]-w.State[j]) > 2*w.k.Policy().Eta*nudge+1e-14 {
			return fmt.Sprintf("a nudge of pillar %d made the state jump", i)
		}
	}
	return ""
}

// wrongShift computes the target of the weights on its own.
func wrongShift(_ *testing.T, w walked) string {
	p, total, target := w.k.Policy(), add(w.Pressure), uniform
	if total > 0 {
		gain := p.Kappa * min(1, total)
		for i := range target {
			target[i] = (1-gain)/3 + gain*w.Pressure[i]/total
		}
	}
	if bound := p.Beta * (kl(target, w.State) - kl(w.Before.Z, w.State)); w.ZShift > bound+slack(bound) {
		return "the yardstick moved more than the bound"
	}
	for i := range target {
		if math.Abs(w.Next.Z[i]-((1-p.Beta)*w.Before.Z[i]+p.Beta*target[i])) > 1e-15 {
			return "the weights are not the mixture"
		}
	}
	return ""
}

func wrongW(_ *testing.T, w walked) string {
	if w.Pressure != (kernel.Point{}) || w.rho() == 0 {
		return ""
	}
	p := w.k.Policy()
	energy := func(x, z kernel.Point) float64 { return kl(uniform, x) + 2*p.Rho/p.Beta*kl(uniform, z) }
	before, after := energy(w.Before.X, w.Before.Z), energy(w.Next.X, w.Next.Z)
	if after > max(1-p.Rho, 1-p.Beta/2)*before+slack(before)+1e-14*p.Rho/p.Beta {
		return "it fell too little"
	}
	return ""
}

// wrongRatio computes the ratio by its definition.
func wrongRatio(t *testing.T, w walked) string {
	z := w.Before.Z
	rest := w.Before.X
	if w.rho() > 0 {
		rest = w.again(t, func(s *kernel.Session) { s.Carry = kernel.Point{} }).Raw
	}
	v, v0, raw, state := kl(z, w.Before.X), kl(z, rest), kl(z, w.Raw), kl(z, w.State)
	drift := max(0, raw-v0)
	descent := v - v0 + raw - state + max(0, v0-raw)
	switch {
	case math.Abs(w.StabilityRatio-(descent+0.001)/(drift+0.001)) > 1e-9*(1+w.StabilityRatio)+2000*1e-12:
		return fmt.Sprintf("the ratio is %v by definition", (descent+0.001)/(drift+0.001))
	case math.Abs(w.DeltaV-(drift-descent)) > slack(raw)+1e-12:
		return "delta_V is not drift - descent"
	case (w.StabilityRatio > 1) != (w.DeltaV < 0):
		return "the ratio and delta_V disagree"
	case math.Abs(w.LyapunovV-state) > slack(state) || w.LyapunovV < 0:
		return "lyapunov_V is not V(state)"
	}
	return ""
}

func wrongSymmetry(t *testing.T, w walked) string {
	perm := w.r.Perm(3)
	permuted := func(p kernel.Point) kernel.Point { return kernel.Point{p[perm[0]], p[perm[1]], p[perm[2]]} }
	turned := w.again(t, func(s *kernel.Session) {
		s.X, s.Z, s.Carry = permuted(s.X), permuted(s.Z), permuted(s.Carry)
	})
	for _, pair := range [][2]kernel.Point{{permuted(w.State), turned.State}, {permuted(w.Next.Z), turned.Next.Z}} {
		for i := range pair[0] {
			if math.Abs(pair[0][i]-pair[1][i]) > 1e-15 {
				return fmt.Sprintf("permuted by %v it gives %v", perm, pair[1])
			}
		}
	}
	return ""
}
