package detect_test

import (
	"bytes"
	"errors"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel/detect"
)

// small is a model that knows two words.
func small() detect.Parameters {
	p := detect.Parameters{
		Lexicon: detect.NewLexicon([]string{"bread", "bomb"}, []uint16{3, 9}),
		Rows:    make([]detect.Row, detect.Buckets),
		Words:   make([]detect.Word, 2+detect.SubwordBuckets),

		Languages: detect.Languages{Foreign: make([]int8, detect.SpelledBuckets), Floor: [detect.Questions]float32{1e6, 1e6}, English: silent(), Other: silent()},
	}
	for i := range p.Words {
		p.Words[i].Weight = 255
	}
	return p
}

// silent is a reader that has no opinion.
func silent() (r detect.Requests) {
	for q := range r.Answers {
		r.Answers[q].Weights = make([]int8, detect.RequestBuckets)
	}
	return r
}

func TestModelRoundTrip(t *testing.T) {
	p := small()
	p.Words[1].Hidden[5], p.Words[1].Meaning[7] = -100, 90
	p.Scale, p.Bias[5] = 255*0.01, 1
	p.Out[detect.HarmRequest][5] = -3
	p.Gain[detect.Identity], p.Rule[detect.Coercion], p.Calibration.Threat = 0.25, 3, 0.5
	raw, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	m, err := detect.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	if m.Calibration() != p.Calibration {
		t.Errorf("%+v", m.Calibration())
	}
	harm := func(text string) float64 {
		return assess(m, []detect.Text{{Source: detect.User, Body: text}}).Scores.HarmRequest
	}
	// The hidden unit is 1 − 1 beside the bomb and 1 without it, and speaks
	// against harm: sigmoid(0) and sigmoid(−3).
	if b, o := harm("bomb, bomb"), harm("bread, bread"); b != 0.5 || math.Abs(o-0.047426) > 1e-9 {
		t.Errorf("bomb %v, bread %v", b, o)
	}
	if v := embed(m, "bomb"); v[7] != 1 {
		t.Errorf("%v", v)
	}
	raw2 := bytes.Clone(raw)
	raw2[len(raw2)-1] ^= 1
	other, err := detect.Decode(raw2)
	if err != nil || other.Version() == m.Version() {
		t.Errorf("a changed byte keeps the version %s (%v)", m.Version(), err)
	}
}

func TestDecodeRefusesMalformedModels(t *testing.T) {
	good, err := small().Encode()
	if err != nil {
		t.Fatal(err)
	}
	broken := small()
	broken.Offset[0] = float32(math.NaN())
	nan, err := broken.Encode()
	if err != nil {
		t.Fatal(err)
	}
	crowded := bytes.Clone(good)
	copy(crowded[8:], "\xff\xff\xff\xff") // more words than there is room for
	for name, raw := range map[string][]byte{
		"empty": nil, "short": good[:len(good)-1], "long": append(bytes.Clone(good), 0),
		"magic": append([]byte("LEXD9999"), good[8:]...), "not a number": nan, "too many words": crowded,
	} {
		if _, err := detect.Decode(raw); !errors.Is(err, detect.ErrModel) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (detect.Parameters{}).Encode(); !errors.Is(err, detect.ErrModel) {
		t.Errorf("no rows: %v", err)
	}
}

// The model, its version and its card belong together, and it stays small.
func TestEmbeddedModel(t *testing.T) {
	version := detect.Default().Version()
	if !regexp.MustCompile(`^[0-9a-f]{12}$`).MatchString(version) {
		t.Errorf("version %q", version)
	}
	card, err := os.ReadFile("MODEL.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(card), version) {
		t.Errorf("MODEL.md is not about model %s: run cmd/train", version)
	}
	if info, err := os.Stat("model.bin"); err != nil || info.Size() > 14<<20 {
		t.Errorf("model.bin: %v", err)
	}
}
