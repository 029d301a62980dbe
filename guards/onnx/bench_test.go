package onnx_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/model"
)

// A shape is that of a BERT.
type shape struct{ words, width, heads, layers int }

// mini is that of BERT-mini (Turc et al., Well-Read Students Learn Better, 2019).
var mini = shape{words: 30522, width: 256, heads: 4, layers: 4}

// bert is a BERT with random weights and a classifier on its first token, of the operators
// that exporters write at opset 13: the layer norms and the GELU are taken apart.
func bert(s shape) *exported {
	random := rand.New(rand.NewPCG(1, 2))
	g := &exported{inputs: []string{"input_ids", "attention_mask", "token_type_ids"}, outputs: []string{"logits"}}
	weight := func(name string, dims ...int) string {
		size := 1
		for _, d := range dims {
			size *= d
		}
		values := make([]float32, size)
		for i := range values {
			values[i] = float32(random.NormFloat64() * 0.05)
		}
		return g.floats(name, values, dims...)
	}
	constant := func(name string, v float32) string { return g.floats(name, []float32{v}) }
	one, two, half, root2 := constant("one", 1), constant("two", 2), constant("half", 0.5), constant("root2", math.Sqrt2)
	epsilon, scale, minimum := constant("epsilon", 1e-12), constant("scale", float32(math.Sqrt(float64(s.width/s.heads)))), constant("minimum", -1e9)
	first, second, from, to := g.ints("first", 1), g.ints("second", 2), g.ints("from", 0), g.ints("to", 1)
	heads := g.ints("heads", 0, 0, int64(s.heads), int64(s.width/s.heads))
	joined := g.ints("joined", 0, 0, int64(s.width))
	linear := func(in, name string, n, m int) string {
		return g.node("Add", []string{g.node("MatMul", []string{in, weight(name+".weight", n, m)}), weight(name+".bias", m)})
	}
	mean := func(in string) string {
		return g.node("ReduceMean", []string{in}, integers("axes", -1), integer("keepdims", 1))
	}
	norm := func(in, name string) string {
		centred := g.node("Sub", []string{in, mean(in)})
		deviation := g.node("Sqrt", []string{g.node("Add", []string{mean(g.node("Pow", []string{centred, two})), epsilon})})
		normal := g.node("Div", []string{centred, deviation})
		return g.node("Add", []string{g.node("Mul", []string{normal, weight(name+".gamma", s.width)}), weight(name+".beta", s.width)})
	}
	split := func(in string, perm ...int64) string {
		return g.node("Transpose", []string{g.node("Reshape", []string{in, heads})}, integers("perm", perm...))
	}

	mask := g.node("Cast", []string{g.node("Unsqueeze", []string{g.node("Unsqueeze", []string{"attention_mask", first}), second})}, integer("to", float32s))
	mask = g.node("Mul", []string{g.node("Sub", []string{one, mask}), minimum})
	length := g.node("Gather", []string{g.node("Shape", []string{"input_ids"}), g.ints("axis", 1)}, integer("axis", 0))
	positions := g.node("Slice", []string{weight("positions", 1, 512, s.width), from, length, first})
	x := g.node("Add", []string{
		g.node("Gather", []string{weight("words", s.words, s.width), "input_ids"}),
		g.node("Gather", []string{weight("types", 2, s.width), "token_type_ids"}),
	})
	x = norm(g.node("Add", []string{x, positions}), "embeddings")
	for i := range s.layers {
		name := fmt.Sprint("layer.", i)
		query := split(linear(x, name+".query", s.width, s.width), 0, 2, 1, 3)
		key := split(linear(x, name+".key", s.width, s.width), 0, 2, 3, 1)
		value := split(linear(x, name+".value", s.width, s.width), 0, 2, 1, 3)
		scores := g.node("Add", []string{g.node("Div", []string{g.node("MatMul", []string{query, key}), scale}), mask})
		attended := g.node("MatMul", []string{g.node("Softmax", []string{scores}, integer("axis", -1)), value})
		attended = g.node("Reshape", []string{g.node("Transpose", []string{attended}, integers("perm", 0, 2, 1, 3)), joined})
		x = norm(g.node("Add", []string{linear(attended, name+".attention", s.width, s.width), x}), name+".attention.norm")
		wide := linear(x, name+".wide", s.width, 4*s.width)
		gelu := g.node("Add", []string{g.node("Erf", []string{g.node("Div", []string{wide, root2})}), one})
		gelu = g.node("Mul", []string{g.node("Mul", []string{wide, gelu}), half})
		x = norm(g.node("Add", []string{linear(gelu, name+".narrow", 4*s.width, s.width), x}), name+".norm")
	}
	pooled := g.node("Squeeze", []string{g.node("Slice", []string{x, from, to, first}), first})
	g.named("logits", "Identity", []string{linear(g.node("Tanh", []string{linear(pooled, "pooler", s.width, s.width)}), "classifier", s.width, 2)})
	return g
}

// A BERT computes the same whatever it is padded to: what stands behind the mask does not
// count.
func TestBERT(t *testing.T) {
	small := bert(shape{words: 16, width: 32, heads: 4, layers: 2})
	free := guardOf(t, folder(t, map[string][]byte{"model.onnx": small.bytes()}))
	small.length = 300
	padded := guardOf(t, folder(t, map[string][]byte{"model.onnx": small.bytes()}))
	seen := make(map[float64]bool)
	for _, n := range []int{1, 20, 100, 230} {
		text := strings.TrimSpace(strings.Repeat("zonk fine ", n)[:5*n])
		p := asked(t, &free, model.RolePrompt, text)[model.Identity]
		q := asked(t, &padded, model.RolePrompt, text)[model.Identity]
		if math.Abs(p-q) > 1e-5 || !(p > 0 && p < 1) || seen[p] {
			t.Errorf("%d words: %v, and %v padded to 300 tokens", n, p, q)
		}
		seen[p] = true
	}
}

// One text of some tokens, in a BERT-mini with random weights, and the memory that the
// loaded model takes.
func BenchmarkBERTMini(b *testing.B) {
	dir := folder(b, map[string][]byte{"model.onnx": bert(mini).bytes()})
	before := heap()
	kept := guardOf(b, dir)
	b.Logf("%d MiB loaded", (heap()-before)>>20)
	for _, tokens := range []int{64, 256, 512} {
		b.Run(fmt.Sprint(tokens, " tokens"), func(b *testing.B) {
			text := strings.Repeat("a ", tokens-2)
			n := 0
			for b.Loop() {
				n++ // another caller each time, so that no verdict is remembered
				if _, err := kept.Ask(b.Context(), fmt.Sprint(n), model.GuardText{Role: model.RolePrompt, Text: text}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// heap is how many bytes are reachable.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
