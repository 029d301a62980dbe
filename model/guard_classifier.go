package model

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// The servers of classifiers, as [Config.Provider] names them.
const (
	ServerTEI  = "tei"  // Text Embeddings Inference: POST /predict
	ServerVLLM = "vllm" // vLLM, and SGLang's copy of its API: POST /classify
)

const classifierTimeout = 2 * time.Second

// NewClassifierGuard makes a guard of a classifier of prompt attacks, such as Prompt
// Guard 2, PIGuard or a DeBERTa of Protect AI or deepset. It knows prompts and results
// of tools. It checks the configuration and completes it with defaults; it asks the
// server nothing. The observer may be nil.
func NewClassifierGuard(c Config, observer Observer) (*Guard, error) {
	if c.Timeout == 0 {
		c.Timeout = classifierTimeout
	}
	form := guardForm{roles: []Role{RolePrompt, RoleToolResult}, reaches: classifierReaches, batch: classifierBatch}
	switch {
	case c.BaseURL == "":
		return nil, errors.New("base_url is required: the address of the server, such as http://127.0.0.1:8080")
	case c.Provider == ServerTEI:
		form.ask = askTEI
	case c.Provider == ServerVLLM:
		form.ask = askVLLM
	default:
		return nil, errors.New("server must be tei or vllm")
	}
	return newGuard(c, form, observer)
}

// classifierBatch is how many texts TEI takes at once unless told otherwise
// (--max-client-batch-size).
const classifierBatch = 32

// The models read 512 tokens, which are some 2000 bytes of English and 480 bytes of
// what their tokenizers know nothing of. A piece is first cut for ordinary text, and
// smaller if the server rejects it: servers are asked not to truncate, because what is
// cut off silently is called clean.
var classifierReaches = []reach{
	{size: 1200, overlap: 200, most: 32},
	{size: 480, overlap: 80, most: 81},
}

type predictQuestion struct {
	Inputs    [][]string `json:"inputs"` // a batch of texts; two in one list would be a pair
	RawScores bool       `json:"raw_scores"`
	Truncate  bool       `json:"truncate"`
}

// askTEI asks POST /predict
// (https://huggingface.github.io/text-embeddings-inference/#/Text%20Embeddings%20Inference/predict).
func askTEI(ctx context.Context, g *Guard, namespace string, t GuardText, pieces []string) ([]Verdict, error) {
	var q predictQuestion
	for _, piece := range pieces {
		q.Inputs = append(q.Inputs, []string{breakTemplateMarks(piece)})
	}
	return g.question(ctx, namespace, "predict", q, len(pieces), func(answer []byte) ([]Verdict, error) {
		return readTEI(answer, g.config.Model, t.Role)
	})
}

type prediction struct {
	Label *string  `json:"label"`
	Score *float64 `json:"score"`
}

// sumSlack is how far the probabilities of all classes may be off 1: they are rounded,
// to 16 bits on some servers.
const sumSlack = 0.02

// readTEI reads for each text the probabilities of all labels.
func readTEI(answer []byte, model string, role Role) ([]Verdict, error) {
	var texts [][]prediction
	if json.Unmarshal(answer, &texts) != nil {
		return nil, unusable("no list of predictions for each text")
	}
	var out []Verdict
	for _, predictions := range texts {
		verdict, err := readPredictions(predictions, model, role)
		if err != nil {
			return nil, err
		}
		out = append(out, verdict)
	}
	return out, nil
}

// readPredictions reads the probabilities of all labels of a text. All labels of attacks mean
// the same classes, so these have the sum, which is 1 less that of the harmless labels.
func readPredictions(predictions []prediction, model string, role Role) (Verdict, error) {
	verdict, sum := Verdict{}, 0.0
	for i, p := range predictions {
		if p.Label == nil || p.Score == nil || !isProbability(*p.Score) {
			return nil, unusable("a prediction without a label or a probability")
		}
		if slices.ContainsFunc(predictions[:i], func(other prediction) bool { return *other.Label == *p.Label }) {
			return nil, unusable("a label twice")
		}
		classes, known := classesOf(model, *p.Label, role)
		if !known {
			return nil, unusable("a label that is not known")
		}
		for _, class := range classes {
			verdict[class] = min(1, verdict[class]+*p.Score)
		}
		sum += *p.Score
	}
	if len(verdict) == 0 || math.Abs(sum-1) > sumSlack {
		return nil, unusable("not the probabilities of all labels")
	}
	return verdict, nil
}

type classifyQuestion struct {
	Model string   `json:"model"`
	Input []string `json:"input"`
}

// askVLLM asks POST /classify
// (https://docs.vllm.ai/en/latest/models/pooling_models.html, Classification API).
func askVLLM(ctx context.Context, g *Guard, namespace string, t GuardText, pieces []string) ([]Verdict, error) {
	q := classifyQuestion{Model: g.config.Model}
	for _, piece := range pieces {
		q.Input = append(q.Input, breakTemplateMarks(piece))
	}
	return g.question(ctx, namespace, "classify", q, len(pieces), func(answer []byte) ([]Verdict, error) {
		return readVLLM(answer, g.config.Model, t.Role)
	})
}

type classified struct {
	Index   *int      `json:"index"`
	Label   *string   `json:"label"`
	Probs   []float64 `json:"probs"`
	Classes *int      `json:"num_classes"`
}

// readVLLM reads for each text the likeliest label and the probabilities of all labels.
// vLLM names no other label than the likeliest, which is the name of the highest
// probability, see attackAmong.
func readVLLM(answer []byte, model string, role Role) ([]Verdict, error) {
	var body struct {
		Data []classified `json:"data"`
	}
	if err := checkEnvelope(answer); err != nil {
		return nil, err
	}
	if json.Unmarshal(answer, &body) != nil {
		return nil, unusable("no list of classes for each text")
	}
	out := make([]Verdict, len(body.Data))
	for _, c := range body.Data {
		switch {
		case c.Index == nil || *c.Index < 0 || *c.Index >= len(out) || out[*c.Index] != nil:
			return nil, unusable("the texts are not numbered")
		case c.Label == nil || len(c.Probs) < 2 || slices.ContainsFunc(c.Probs, func(p float64) bool { return !isProbability(p) }):
			return nil, unusable("a text without a label or probabilities")
		}
		sum := 0.0
		for _, p := range c.Probs {
			sum += p
		}
		classes, known := classesOf(model, *c.Label, role)
		if !known || math.Abs(sum-1) > sumSlack || c.Classes != nil && *c.Classes != len(c.Probs) {
			return nil, unusable("a label that is not known, or not the probabilities of all labels")
		}
		p := attackAmong(c.Probs, len(classes) == 0)
		if len(classes) == 0 {
			classes = spokenOf(familyClassifier, role)
		}
		out[*c.Index] = Verdict{}
		for _, class := range classes {
			out[*c.Index][class] = p
		}
	}
	return out, nil
}

// attackAmong is the probability of an attack among those of all labels, of which only the
// likeliest is known: whether it is harmless. As in [readTEI], it is 1 less that of the
// harmless label, of which the classifiers of prompt attacks have one.
//
// If that is the likeliest, the rest are attacks, however they are divided: beside 0.4 for
// SAFE and twice 0.3, an attack has 0.6, and 0.4 for SAFE is no acquittal. A second harmless
// label would be counted as an attack. If the likeliest is an attack, the harmless label is
// one of the others: the first of all, as in all models whose labels are known here, or,
// where that is the attack, the least likely. Of two labels it is the other one in both cases.
// Whichever it is in truth, an attack then has at least the probability of the likeliest label
// and at least one half, so that no label that is not named acquits.
func attackAmong(probs []float64, harmless bool) float64 {
	highest := slices.Max(probs)
	switch {
	case harmless:
		return 1 - highest
	case probs[0] < highest:
		return max(highest, 1-probs[0])
	}
	return max(highest, 1-slices.Min(probs[1:]))
}

// harmless are the labels of texts that are no attack, in lower case.
var harmless = []string{"benign", "safe", "legit", "label_0"}

// classesOf returns the classes of a label, none for a harmless one. A label that is only
// a number means something else in every model, so it is known of Prompt Guard 2 alone.
func classesOf(model, label string, role Role) (classes []Class, known bool) {
	if strings.HasPrefix(strings.ToLower(label), "label_") && !strings.Contains(plainModel(model), "promptguard2") {
		return nil, false
	}
	if slices.Contains(harmless, strings.ToLower(label)) {
		return nil, true
	}
	category, known := categoryOf(familyClassifier, label)
	return category.In(role), known
}

// plainModel is a model's name without what makers and libraries spell differently.
func plainModel(model string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(model))
}
