package onnx_test

import (
	"encoding/binary"
	"math"
	"os"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// An exported graph is written as a model.onnx is: the messages of
// https://github.com/onnx/onnx/blob/main/onnx/onnx.proto, by the numbers of their fields.
type exported struct {
	nodes, initializers [][]byte
	inputs              []string
	length              int // of all inputs, in tokens; 0: any
	outputs             []string
	count               int // of nodes, to name them
}

func message(fields ...[]byte) (out []byte) {
	for _, f := range fields {
		out = append(out, f...)
	}
	return out
}

func number(field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.VarintType), v)
}

func content(field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), v)
}

func word(field protowire.Number, v string) []byte { return content(field, []byte(v)) }

// The element types of tensors.
const (
	float32s = 1
	int64s   = 7
)

// floats adds a weight.
func (g *exported) floats(name string, values []float32, dims ...int) string {
	var raw []byte
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return g.tensor(name, float32s, raw, dims)
}

func (g *exported) ints(name string, values ...int64) string {
	var raw []byte
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	return g.tensor(name, int64s, raw, []int{len(values)})
}

func (g *exported) tensor(name string, kind uint64, raw []byte, dims []int) string {
	var fields [][]byte
	for _, d := range dims {
		fields = append(fields, number(1, uint64(d)))
	}
	fields = append(fields, number(2, kind), word(8, name), content(9, raw))
	g.initializers = append(g.initializers, message(fields...))
	return name
}

// node adds an operator and returns the name of its output.
func (g *exported) node(operator string, inputs []string, attributes ...[]byte) string {
	g.count++
	return g.named(operator+"_"+string(rune('a'+g.count/26/26%26))+string(rune('a'+g.count/26%26))+string(rune('a'+g.count%26)), operator, inputs, attributes...)
}

func (g *exported) named(output, operator string, inputs []string, attributes ...[]byte) string {
	var fields [][]byte
	for _, in := range inputs {
		fields = append(fields, word(1, in))
	}
	fields = append(fields, word(2, output), word(3, output), word(4, operator))
	for _, a := range attributes {
		fields = append(fields, content(5, a))
	}
	g.nodes = append(g.nodes, message(fields...))
	return output
}

// integer and integers are attributes of operators.
func integer(name string, v int64) []byte {
	return message(word(1, name), number(3, uint64(v)), number(20, 2))
}

func integers(name string, vs ...int64) []byte {
	fields := [][]byte{word(1, name), number(20, 7)}
	for _, v := range vs {
		fields = append(fields, number(8, uint64(v)))
	}
	return message(fields...)
}

// bytes is the content of the file.
func (g *exported) bytes() []byte {
	var fields [][]byte
	for _, n := range g.nodes {
		fields = append(fields, content(1, n))
	}
	fields = append(fields, word(2, "model"))
	for _, t := range g.initializers {
		fields = append(fields, content(5, t))
	}
	for _, in := range g.inputs {
		fields = append(fields, content(11, g.value(in, int64s)))
	}
	for _, out := range g.outputs {
		fields = append(fields, content(12, message(word(1, out), content(2, content(1, message(
			number(1, float32s), content(2, message(content(1, word(2, "batch")), content(1, word(2, "labels"))))))))))
	}
	return message(number(1, 8), content(8, message(word(1, ""), number(2, 13))), content(7, message(fields...)))
}

func (g *exported) value(name string, kind uint64) []byte {
	length := word(2, "tokens")
	if g.length > 0 {
		length = number(1, uint64(g.length))
	}
	shape := message(content(1, word(2, "batch")), content(1, length))
	return message(word(1, name), content(2, content(1, message(number(1, kind), content(2, shape)))))
}

// meanClassifier is a classifier that a person can compute: the mean of the vectors of all
// tokens, and a linear layer.
func meanClassifier(vectors [][2]float32, weights [2][2]float32, bias [2]float32) *exported {
	g := &exported{inputs: []string{"input_ids", "attention_mask"}, outputs: []string{"logits"}}
	var flat []float32
	for _, v := range vectors {
		flat = append(flat, v[0], v[1])
	}
	g.floats("embeddings", flat, len(vectors), 2)
	g.floats("weights", []float32{weights[0][0], weights[0][1], weights[1][0], weights[1][1]}, 2, 2)
	g.floats("bias", bias[:], 2)
	g.ints("last", 2)
	vectorsOf := g.node("Gather", []string{"embeddings", "input_ids"}, integer("axis", 0))
	mask := g.node("Unsqueeze", []string{g.node("Cast", []string{"attention_mask"}, integer("to", float32s)), "last"})
	mean := func(of string) string {
		return g.node("ReduceMean", []string{of}, integers("axes", 1), integer("keepdims", 0))
	}
	pooled := g.node("Div", []string{mean(g.node("Mul", []string{vectorsOf, mask})), mean(mask)})
	g.named("logits", "Add", []string{g.node("MatMul", []string{pooled, "weights"}), "bias"})
	return g
}

func write(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
