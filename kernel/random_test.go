package kernel_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

// newKernel returns the kernel of a policy that must be valid.
func newKernel(t testing.TB, p kernel.Policy) *kernel.Kernel {
	t.Helper()
	k, err := kernel.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// random makes inputs that stand at the edges far more often than chance would.
type random struct{ *rand.Rand }

func newRandom(seed uint64) random { return random{rand.New(rand.NewPCG(seed, 1))} }

// pick returns one of the values, or, half of the time, one between lo and hi.
func (r random) pick(lo, hi float64, edges ...float64) float64 {
	if r.IntN(2) == 0 {
		return lo + (hi-lo)*r.Float64()
	}
	return edges[r.IntN(len(edges))]
}

// policy returns a valid policy, mostly an extreme one.
func (r random) policy() kernel.Policy {
	p := kernel.DefaultPolicy()
	for {
		p.Floor = r.pick(0.001, 0.2, 0.001, 0.05, 0.3)
		p.Tau = r.pick(p.Floor, 0.33, math.Nextafter(p.Floor, 1), 0.08, 0.332)
		p.Recovery = r.pick(p.Tau, 0.333, math.Nextafter(p.Tau, 1))
		p.Optimal = r.pick(p.Recovery, 0.333, math.Nextafter(p.Recovery, 1), math.Nextafter(1.0/3, 0))
		p.Rho = r.pick(0, 1, 1e-15, 1e-6, 0.35, 1-1e-9, math.Nextafter(1, 0))
		p.Eta = r.pick(0, 50, 1e-9, 4.6, 50)
		p.Beta = r.pick(0, 1, 1e-9, 0.25, 1)
		p.Kappa = r.pick(0, 1-3*p.Tau, 0, 0.4, math.Nextafter(1-3*p.Tau, 0))
		p.Clip = r.pick(0, 4, 1e-9, 1.5, 4)
		if p.Validate() == nil {
			return p
		}
	}
}

// simplex returns a point of the simplex with components of at least floor,
// often with one or two of them exactly there.
func (r random) simplex(floor float64) kernel.Point {
	a, b := r.Float64(), r.Float64()
	if a+b > 1 {
		a, b = 1-a, 1-b
	}
	room := 1 - 3*floor
	p := kernel.Point{floor + a*room, floor + b*room, floor + (1-a-b)*room}
	switch r.IntN(4) {
	case 0: // one at the floor
		p = kernel.Point{floor, floor + a*room, floor + (1-a)*room}
	case 1: // two at the floor
		p = kernel.Point{floor, floor, 1 - 2*floor}
	}
	for i := range p {
		p[i] = max(p[i], floor) // against rounding
	}
	r.Shuffle(3, func(i, j int) { p[i], p[j] = p[j], p[i] })
	return p
}

// pressure returns a pressure; one in four is none at all.
func (r random) pressure(clip float64) kernel.Point {
	var p kernel.Point
	if r.IntN(4) == 0 {
		return p
	}
	for i := range p {
		p[i] = r.pick(0, clip, 0, 0, clip, 1e-12, 3*clip, 5e-324)
	}
	return p
}

// session returns a session that the kernel can be in, with the pressure as
// what the previous output left.
func (r random) session(k *kernel.Kernel) kernel.Session {
	p := k.Policy()
	return kernel.Session{
		X: r.simplex(p.Tau), Z: r.simplex((1 - p.Kappa) / 3),
		Carry: r.pressure(p.Clip), Policy: k.PolicyHash(),
	}
}

// evidence returns evidence of every kind, most of it quiet.
func (r random) evidence() kernel.Evidence {
	score := func() float64 {
		if r.IntN(3) > 0 {
			return 0.2 * r.Float64()
		}
		return r.Float64()
	}
	e := kernel.Evidence{
		Scores: kernel.Scores{
			Identity: score(), Coercion: score(), Exploitative: score(),
			HarmRequest: score(), Sycophancy: score(), Injection: score(),
		},
		ThreatSignal:     r.Float64() - 0.7,
		SovereigntyDrift: r.IntN(8) == 0,
		Degraded:         r.IntN(8) == 0,
	}
	if r.IntN(32) == 0 {
		e.DeniedBy = "no-weapons"
	}
	if r.IntN(32) == 0 {
		e.Standing = []kernel.Reason{kernel.SlowDripAlarm}
	}
	return e
}

// output returns evidence of an answer, most of it quiet.
func (r random) output() kernel.Output {
	o := kernel.Output{LostThread: r.IntN(8) == 0}
	if r.IntN(4) == 0 {
		categories := []kernel.Category{
			kernel.IdentityAdoption, kernel.ConstraintDisavowal,
			kernel.SycophanticCapitulation, kernel.HarmfulCompliance,
		}
		o.Capitulated, o.Category, o.Confidence = true, categories[r.IntN(4)], r.Float64()
	}
	return o
}
