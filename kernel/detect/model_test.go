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

func TestModelRoundTrip(t *testing.T) {
	p := detect.Parameters{Rows: make([]detect.Row, detect.Buckets)}
	p.Rows[7].Weight[detect.Injection], p.Rows[9].IDF = -5, 127
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
	raw2 := bytes.Clone(raw)
	raw2[len(raw2)-1] ^= 1
	other, err := detect.Decode(raw2)
	if err != nil || other.Version() == m.Version() {
		t.Errorf("a changed byte keeps the version %s (%v)", m.Version(), err)
	}
}

func TestDecodeRefusesMalformedModels(t *testing.T) {
	p := detect.Parameters{Rows: make([]detect.Row, detect.Buckets)}
	good, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	p.Offset[0] = float32(math.NaN())
	nan, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string][]byte{
		"empty": nil, "short": good[:len(good)-1], "long": append(bytes.Clone(good), 0),
		"magic": append([]byte("LEXD9999"), good[8:]...), "not a number": nan,
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
	if info, err := os.Stat("model.bin"); err != nil || info.Size() > 3<<20 {
		t.Errorf("model.bin: %v", err)
	}
}
