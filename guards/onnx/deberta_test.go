package onnx_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/model"
)

// A disentangled head is what DeBERTa adds to attention: tokens attend by how far apart they
// are, in buckets that grow with the distance (He et al., DeBERTa, 2021, and
// make_log_bucket_position in Hugging Face's modeling_deberta_v2.py).
type disentangled struct {
	width      int
	middle     int64 // distance up to which each is a bucket of its own
	farthest   int64
	span       int64 // buckets on each side
	words      [][]float32
	distances  [][]float32 // by bucket
	classifier [][]float32 // width x 2
}

func newDisentangled(words int) disentangled {
	d := disentangled{width: 4, middle: 4, farthest: 64, span: 8}
	random := rand.New(rand.NewPCG(9, 9))
	matrix := func(rows, columns int) [][]float32 {
		out := make([][]float32, rows)
		for i := range out {
			for range columns {
				out[i] = append(out[i], float32(random.NormFloat64()))
			}
		}
		return out
	}
	d.words, d.distances, d.classifier = matrix(words, d.width), matrix(int(2*d.span), d.width), matrix(d.width, 2)
	return d
}

// graph is the head as exporters write it, with all that a length of any size needs.
func (d disentangled) graph() *exported {
	g := &exported{inputs: []string{"input_ids", "attention_mask"}, outputs: []string{"logits"}}
	matrix := func(name string, m [][]float32) string {
		var flat []float32
		for _, row := range m {
			flat = append(flat, row...)
		}
		return g.floats(name, flat, len(m), len(m[0]))
	}
	scalar := func(name string, v int64) string {
		return g.tensor(name, int64s, binary.LittleEndian.AppendUint64(nil, uint64(v)), nil)
	}
	float := func(name string, v float64) string { return g.floats(name, []float32{float32(v)}) }
	op := func(operator string, inputs ...string) string { return g.node(operator, inputs) }
	cast := func(in string, to int64) string { return g.node("Cast", []string{in}, integer("to", to)) }

	zero, one, middle, below := scalar("zero", 0), scalar("one", 1), scalar("middle", d.middle), scalar("below", -d.middle)
	first, second := g.ints("first", 0), g.ints("second", 1)
	length := g.node("Gather", []string{op("Shape", "input_ids"), one}, integer("axis", 0))
	places := op("Range", zero, length, one)
	apart := op("Sub", op("Unsqueeze", places, second), op("Unsqueeze", places, first))
	near := op("And", op("Less", apart, middle), op("Greater", apart, below))
	distance := op("Where", near, scalar("nearest", d.middle-1), op("Abs", apart))
	scaled := op("Div", op("Log", op("Div", cast(distance, float32s), float("middle.f", float64(d.middle)))),
		float("log", math.Log(float64(d.farthest-1)/float64(d.middle))))
	far := op("Add", op("Ceil", op("Mul", scaled, float("steps", float64(d.middle-1)))), "middle.f")
	bucket := op("Where", op("LessOrEqual", distance, middle), cast(apart, float32s), op("Mul", far, cast(op("Sign", apart), float32s)))
	index := op("Clip", op("Add", cast(bucket, int64s), scalar("span", d.span)), zero, scalar("last", 2*d.span-1))
	shape := g.node("Concat", []string{second, op("Unsqueeze", length, first), op("Unsqueeze", length, first)}, integer("axis", 0))
	index = op("Expand", op("Unsqueeze", index, first), shape)

	x := g.node("Gather", []string{matrix("words", d.words), "input_ids"}, integer("axis", 0))
	byDistance := op("MatMul", x, g.node("Transpose", []string{matrix("distances", d.distances)}, integers("perm", 1, 0)))
	scores := g.node("GatherElements", []string{byDistance, index}, integer("axis", 2))
	mask := cast(op("Unsqueeze", "attention_mask", second), 9) // bool
	scores = op("Where", op("Not", mask), float("least", -math.MaxFloat32), scores)
	attended := op("MatMul", g.node("Softmax", []string{scores}, integer("axis", -1)), x)
	pooled := op("Squeeze", op("Slice", attended, first, second, second), second)
	g.named("logits", "MatMul", []string{pooled, matrix("classifier", d.classifier)})
	return g
}

// attack is the probability of an attack, by hand.
func (d disentangled) attack(ids []int) float64 {
	dot := func(a, b []float32) (sum float64) {
		for i := range a {
			sum += float64(a[i]) * float64(b[i])
		}
		return sum
	}
	weights, sum := make([]float64, len(ids)), 0.0
	for j := range ids {
		weights[j] = math.Exp(dot(d.words[ids[0]], d.distances[d.bucket(-int64(j))]))
		sum += weights[j]
	}
	var logits [2]float64
	for j, id := range ids {
		for k, w := range d.words[id] {
			for l := range logits {
				logits[l] += weights[j] / sum * float64(w) * float64(d.classifier[k][l])
			}
		}
	}
	return 1 / (1 + math.Exp(logits[0]-logits[1]))
}

func (d disentangled) bucket(apart int64) int64 {
	if distance := max(apart, -apart); distance > d.middle {
		steps := math.Ceil(math.Log(float64(distance)/float64(d.middle)) / math.Log(float64(d.farthest-1)/float64(d.middle)) * float64(d.middle-1))
		distance = int64(steps) + d.middle
		if apart < 0 {
			distance = -distance
		}
		apart = distance
	}
	return max(0, min(2*d.span-1, apart+d.span))
}

// The operators with which exports of DeBERTa compute distances and look them up give what a
// person computes, at every length.
func TestDisentangledAttention(t *testing.T) {
	d := newDisentangled(len(words))
	g := guardOf(t, folder(t, map[string][]byte{"model.onnx": d.graph().bytes()}))
	random := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{1, 5, 29, 30, 31, 60, 100, 200} {
		ids := []int{2}
		var text []string
		for range n {
			id := 4 + random.IntN(len(words)-4)
			ids, text = append(ids, id), append(text, words[id])
		}
		ids = append(ids, 3)
		v, want := asked(t, &g, model.RolePrompt, strings.Join(text, " ")), d.attack(ids)
		if p := v[model.Identity]; math.Abs(p-want) > 1e-5 {
			t.Errorf("%d words: %v, want %v", n, p, want)
		}
	}
}
