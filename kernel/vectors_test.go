package kernel_test

import (
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

// makeVectors builds the golden steps: first one for each branch, then a random
// walk.
func makeVectors(t *testing.T, k *kernel.Kernel) []vector {
	t.Helper()
	vectors := namedVectors()
	r := newRandom(21)
	for range 40 {
		v := at("random", r.simplex(0.08), r.simplex(0.2))
		e, o := r.evidence(), r.output()
		v.CUSUM, v.CUSUMSlow, v.Carry = hex64(0.9*r.Float64()), hex64(1.25*r.Float64()), hexes(r.pressure(1.5))
		v.Scores = [6]hex64{
			hex64(e.Scores.Identity), hex64(e.Scores.Coercion), hex64(e.Scores.Exploitative),
			hex64(e.Scores.HarmRequest), hex64(e.Scores.Sycophancy), hex64(e.Scores.Injection),
		}
		v.Threat, v.Drift, v.Degraded = hex64(e.ThreatSignal), e.SovereigntyDrift, e.Degraded
		v.DeniedBy, v.Standing = e.DeniedBy, e.Standing
		v.Capitul, v.Category, v.Confidence, v.LostThread = o.Capitulated, o.Category, hex64(o.Confidence), o.LostThread
		vectors = append(vectors, v)
	}
	for i := range vectors {
		vectors[i].Want = outputs(vectors[i].run(t, k))
	}
	return vectors
}

// at is a quiet vector at a state.
func at(name string, x, z kernel.Point) vector {
	return vector{Name: name, X: hexes(x), Z: hexes(z), Mode: kernel.Enforce}
}

func namedVectors() []vector {
	centre := func(name string, change func(*vector)) vector {
		v := at(name, uniform, uniform)
		change(&v)
		return v
	}
	score := func(i int, s hex64) func(*vector) { return func(v *vector) { v.Scores[i] = s } }
	return []vector{
		centre("rest", func(*vector) {}),
		centre("identity, watched", score(0, 0.4)),
		centre("coercion, corrected", score(1, 0.68)),
		centre("exploitative, refused", score(2, 0.9)),
		centre("harm request, certain", score(3, 1)),
		centre("sycophancy, refused", score(4, 0.75)),
		centre("injection counts as identity", score(5, 0.6)),
		centre("two types", func(v *vector) { v.Scores[1], v.Scores[3] = 0.6, 0.55 }),
		centre("slow drip", func(v *vector) { v.Scores[0], v.CUSUM = 0.45, 0.85 }),
		centre("slow drip on the slow chart", func(v *vector) { v.Scores[0], v.CUSUMSlow = 0.45, 1.2 }),
		centre("an alarm lasts", func(v *vector) { v.Scores[0], v.CUSUM, v.CUSUMSlow = 0.34, 0.9, 1.25 }),
		centre("loud drip keeps its type", func(v *vector) { v.Scores[0], v.CUSUM = 0.85, 0.85 }),
		centre("quiet turn relieves", func(v *vector) { v.CUSUM, v.CUSUMSlow = 0.5, 0.5 }),
		centre("contrastive threat", func(v *vector) { v.Scores[3], v.Threat = 0.5, 0.2 }),
		centre("contrastive threat, hardly suspected", func(v *vector) { v.Scores[3], v.Threat = 0.49, 2 }),
		centre("threat alone does nothing", func(v *vector) { v.Threat = 2 }),
		centre("self-reference", func(v *vector) { v.Scores[0], v.Drift = 0.31, true }),
		centre("self-reference alone does nothing", func(v *vector) { v.Drift = true }),
		centre("operator's rule", func(v *vector) { v.DeniedBy = "no-weapons" }),
		centre("degraded refuses earlier", func(v *vector) { v.Scores[2], v.Degraded = 0.55, true }),
		centre("a standing refusal", func(v *vector) { v.Standing = []kernel.Reason{kernel.SemanticClassifier} }),
		centre("observed", func(v *vector) { v.Scores[0], v.Mode = 0.95, kernel.Observe }),
		centre("harmful compliance", func(v *vector) {
			v.Capitul, v.Category, v.Confidence = true, kernel.HarmfulCompliance, 0.8
		}),
		centre("identity adopted, thread lost", func(v *vector) {
			v.Capitul, v.Category, v.Confidence, v.LostThread = true, kernel.IdentityAdoption, 1, true
		}),
		centre("carried on C", func(v *vector) { v.Carry = hexPoint{0.15, 0, 0} }),
		centre("carried on R", func(v *vector) { v.Carry = hexPoint{0, 0.5, 0} }),
		centre("carried on S", func(v *vector) { v.Carry = hexPoint{0.15, 0, 0.5} }),
		centre("equal carry moves nothing", func(v *vector) { v.Carry = hexPoint{0.2, 0.2, 0.2} }),
		at("two pillars at tau", kernel.Point{0.08, 0.08, 0.84}, kernel.Point{0.2, 0.2, 0.6}).with(func(v *vector) {
			v.Carry = hexPoint{1.5, 1.5, 0}
		}),
		at("floor", kernel.Point{0.46, 0.46, 0.08}, kernel.Point{0.4, 0.4, 0.2}).with(func(v *vector) {
			v.Scores[0] = 0.65
		}),
		at("recovering", kernel.Point{0.08, 0.46, 0.46}, uniform),
		at("from another policy", kernel.Point{0.01, 0.04, 0.95}, kernel.Point{0.05, 0.15, 0.8}).with(func(v *vector) {
			v.OtherOwner, v.CUSUM, v.CUSUMSlow = true, 3, 4
		}),
	}
}

func (v vector) with(change func(*vector)) vector {
	change(&v)
	return v
}
