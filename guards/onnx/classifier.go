package onnx

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"

	"github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	variables "github.com/gomlx/gomlx/pkg/ml/context"
	"github.com/gomlx/onnx-gomlx/onnx"

	"github.com/caddy-lex/lex/model"
)

// A classifier computes a text classifier in this process. It implements
// [model.Classifier].
type classifier struct {
	settings settings
	tokens   *tokenizer
	inputs   []string
	exec     *variables.Exec
	// lengths are the numbers of tokens that the graph is compiled for, ascending. A text
	// is padded to the next.
	lengths []int
	// running has a place for each inference that may run at once.
	running chan struct{}
}

// paddedTo are the lengths that a graph is compiled for: a graph has fixed shapes, and each
// takes memory.
var paddedTo = []int{32, 64, 128, 256, 512}

// newClassifier reads the graph, compiles it for all lengths and computes one text, so that
// a model that cannot be computed is found out now.
func newClassifier(s settings, t *tokenizer, graphFile []byte, inferences int) (*classifier, error) {
	c := &classifier{settings: s, tokens: t, running: make(chan struct{}, inferences)}
	parsed, err := guarded(func() (*onnx.Model, error) { return onnx.Parse(graphFile) })
	if err != nil {
		return nil, fmt.Errorf("model.onnx: %w", err)
	}
	if err := c.readInputs(parsed); err != nil {
		return nil, fmt.Errorf("model.onnx: %w", err)
	}
	if _, err := guarded(func() (any, error) { return nil, c.compile(parsed) }); err != nil {
		return nil, fmt.Errorf("model.onnx: %w", err)
	}
	if _, err := c.infer(t.encode("")); err != nil {
		return nil, fmt.Errorf("model.onnx: %w", err)
	}
	return c, nil
}

// readInputs checks the inputs, which exporters name as the models of Hugging Face do.
func (c *classifier) readInputs(parsed *onnx.Model) error {
	names, shapes := parsed.Inputs()
	c.inputs, c.lengths = names, nil
	for i, name := range names {
		if !slices.Contains([]string{"input_ids", "attention_mask", "token_type_ids"}, name) {
			return fmt.Errorf("the input %q is not known", name)
		}
		if shapes[i].DType != dtypes.Int64 || len(shapes[i].Dimensions) != 2 {
			return fmt.Errorf("the input %q is not a batch of texts of 64-bit integers", name)
		}
		if fixed := shapes[i].Dimensions[1]; fixed > 0 {
			c.lengths = []int{min(fixed, c.settings.longest)}
		}
	}
	if !slices.Contains(names, "input_ids") || !slices.Contains(names, "attention_mask") {
		return errors.New("it does not have the inputs input_ids and attention_mask")
	}
	if c.lengths != nil {
		return nil
	}
	for _, length := range paddedTo {
		if length < c.settings.longest {
			c.lengths = append(c.lengths, length)
		}
	}
	c.lengths = append(c.lengths, c.settings.longest)
	return nil
}

// keptWeights is the size from which the bytes of a weight are dropped once it is a
// variable. Smaller ones can be shapes and axes, which compiling reads again.
const keptWeights = 1 << 20

// compile compiles the graph for all lengths. The operators run one after another, and what
// runs beside is only the parts of one multiplication: an operator that panics does so where
// infer recovers.
func (c *classifier) compile(parsed *onnx.Model) error {
	backend, err := simplego.New("ops_sequential")
	if err != nil {
		return err
	}
	weights := variables.New().Reuse()
	for _, w := range parsed.Proto.Graph.Initializer {
		if len(w.ExternalData) > 0 {
			return errors.New("its weights are in another file; export the model to one file")
		}
	}
	if err := parsed.VariablesToContext(weights); err != nil {
		return err
	}
	for _, w := range parsed.Proto.Graph.Initializer {
		if len(w.RawData) > keptWeights {
			w.RawData = nil
		}
	}
	output := parsed.OutputsNames[0]
	if slices.Contains(parsed.OutputsNames, "logits") {
		output = "logits"
	}
	c.exec, err = variables.NewExecAny(backend, weights, func(weights *variables.Context, inputs []*graph.Node) []*graph.Node {
		named := make(map[string]*graph.Node)
		for i, name := range c.inputs {
			named[name] = inputs[i]
		}
		return parsed.CallGraph(weights, inputs[0].Graph(), named, output)
	})
	if err != nil {
		return err
	}
	c.exec.SetMaxCache(len(c.lengths))
	for _, length := range c.lengths {
		if err := c.exec.PreCompile(c.tensors(nil, length)); err != nil {
			return err
		}
	}
	return nil
}

// tensors returns the inputs for some tokens, padded to a length.
func (c *classifier) tensors(tokens []int64, length int) []*tensors.Tensor {
	out := make([]*tensors.Tensor, len(c.inputs))
	for i, name := range c.inputs {
		values := make([]int64, length)
		switch name {
		case "input_ids":
			for at := copy(values, tokens); at < length; at++ {
				values[at] = c.settings.padding
			}
		case "attention_mask":
			for at := range tokens {
				values[at] = 1
			}
		} // token_type_ids are 0 in a single text
		out[i] = tensors.FromFlatDataAndDimensions(values, 1, length)
	}
	return out
}

// Labels returns the names of the classes.
func (c *classifier) Labels() []string { return c.settings.labels }

// Classify returns the probability of each label for a text. An inference that has begun
// cannot be cancelled: when the context ends, Classify returns and the inference goes on.
// It keeps its place among the running ones, so that they do not pile up.
func (c *classifier) Classify(ctx context.Context, text string) ([]float64, error) {
	tokens := c.tokens.encode(text)
	if len(tokens) > c.lengths[len(c.lengths)-1] {
		return nil, model.ErrTooLong
	}
	select {
	case c.running <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	type result struct {
		probabilities []float64
		err           error
	}
	done := make(chan result, 1)
	go func() {
		defer func() { <-c.running }()
		p, err := c.infer(tokens)
		done <- result{p, err}
	}()
	select {
	case r := <-done:
		return r.probabilities, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// infer computes the probabilities of the labels.
func (c *classifier) infer(tokens []int64) ([]float64, error) {
	at, _ := slices.BinarySearch(c.lengths, len(tokens))
	inputs := c.tensors(tokens, c.lengths[at])
	logits, err := guarded(func() ([]float32, error) {
		outputs, err := c.exec.Exec(inputs)
		if err != nil {
			return nil, err
		}
		return tensors.CopyFlatData[float32](outputs[0])
	})
	if err != nil {
		return nil, fmt.Errorf("computing the model: %w", err)
	}
	if len(logits) != len(c.settings.labels) {
		return nil, fmt.Errorf("the model has %d outputs, and config.json %d labels", len(logits), len(c.settings.labels))
	}
	return softmax(logits), nil
}

// softmax makes probabilities of logits.
func softmax(logits []float32) []float64 {
	highest, sum := float64(slices.Max(logits)), 0.0
	out := make([]float64, len(logits))
	for i, l := range logits {
		out[i] = math.Exp(float64(l) - highest)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

// errBroken is the error of a graph that leaves out what every graph has.
var errBroken = errors.New("it is not a whole ONNX graph")

// guarded makes an error of a panic. The backend reports most errors of a graph by panics,
// and some it does not look for.
func guarded[T any](do func() (T, error)) (out T, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case runtime.Error:
			err = errBroken
		default:
			err = fmt.Errorf("%v", r)
		}
	}()
	return do()
}
