package model_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-lex/lex/model"
)

// A scripted classifier says what it is told to.
type scripted struct {
	labels []string
	says   func(ctx context.Context, text string) ([]float64, error)
}

func (s scripted) Labels() []string { return s.labels }

func (s scripted) Classify(ctx context.Context, text string) ([]float64, error) {
	return s.says(ctx, text)
}

func localGuard(t *testing.T, says func(ctx context.Context, text string) ([]float64, error)) *model.Guard {
	t.Helper()
	g, err := model.NewLocalGuard(model.LocalConfig{Model: "m", Inferences: 1}, scripted{[]string{"SAFE", "INJECTION", "JAILBREAK"}, says}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The probabilities of a classifier in the process are read as those of a server are, and
// what is no verdict is a failure of a kind.
func TestLocalGuard(t *testing.T) {
	for name, test := range map[string]struct {
		probabilities []float64
		err           error
		want          float64
		why           model.Failure
	}{
		"attack":             {[]float64{0.25, 0.5, 0.25}, nil, 0.75, ""},
		"harmless":           {[]float64{0.98, 0.01, 0.01}, nil, 0.02, ""},
		"too few":            {[]float64{0.5, 0.5}, nil, 0, model.Unusable},
		"none":               {nil, nil, 0, model.Unusable},
		"no probability":     {[]float64{math.NaN(), 0.5, 0.5}, nil, 0, model.Unusable},
		"over one":           {[]float64{0, 1.5, 0}, nil, 0, model.Unusable},
		"not all":            {[]float64{0.1, 0.1, 0.1}, nil, 0, model.Unusable},
		"an error":           {nil, errors.New("canary"), 0, model.ServerError},
		"too long":           {nil, model.ErrTooLong, 0, model.Rejected},
		"somebody's context": {nil, context.DeadlineExceeded, 0, model.ServerError},
	} {
		g := localGuard(t, func(context.Context, string) ([]float64, error) { return test.probabilities, test.err })
		for role, class := range map[model.Role]model.Class{model.RolePrompt: model.Identity, model.RoleToolResult: model.Injection} {
			v, err := g.Ask(t.Context(), "n", model.GuardText{Role: role, Text: "text"})
			if model.Why(err) != test.why || math.Abs(v[class]-test.want) > 1e-9 {
				t.Errorf("%s: %v %v", name, v, err)
			}
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("%s: %v tells too much", name, err)
			}
		}
	}
}

// Pieces with too many tokens are asked about in smaller ones, and a verdict is kept.
func TestLocalGuardReadsPieces(t *testing.T) {
	var asked atomic.Int32
	g := localGuard(t, func(_ context.Context, text string) ([]float64, error) {
		asked.Add(1)
		if len(text) > 480 {
			return nil, model.ErrTooLong
		}
		if strings.Contains(text, "attack") {
			return []float64{0, 1, 0}, nil
		}
		return []float64{1, 0, 0}, nil
	})
	text := model.GuardText{Role: model.RolePrompt, Text: strings.Repeat("a ", 1500) + "attack"}
	for range 2 {
		if v, err := g.Ask(t.Context(), "n", text); v[model.Identity] != 1 {
			t.Errorf("%v %v", v, err)
		}
	}
	if n := asked.Load(); n != 3+8 { // 3 pieces of 1200 bytes, 8 of 480, and nothing the second time
		t.Errorf("asked %d times", n)
	}
}

// A text of which a piece has too many tokens is read to its end in smaller ones although
// another piece was found to be an attack, and that finding remains.
func TestLocalGuardFindsBeforeSmallerPieces(t *testing.T) {
	g := localGuard(t, func(_ context.Context, text string) ([]float64, error) {
		switch {
		case len(text) > 480 && strings.Contains(text, "number"):
			return nil, model.ErrTooLong
		case len(text) > 480: // found only as a whole
			return []float64{0.25, 0.75, 0}, nil
		}
		return []float64{1, 0, 0}, nil
	})
	text := model.GuardText{Role: model.RolePrompt, Text: strings.Repeat("attack ", 300) + strings.Repeat("number ", 300)}
	if v, err := g.Ask(t.Context(), "n", text); err != nil || v[model.Identity] != 0.75 {
		t.Errorf("%v %v", v, err)
	}
}

// A classifier that does not answer in time does not hold the turn, also not one that waits
// for its turn behind others, and a caller who leaves is not held against it.
func TestLocalGuardInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := localGuard(t, func(ctx context.Context, _ string) ([]float64, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		began := time.Now()
		_, err := g.Ask(t.Context(), "n", model.GuardText{Role: model.RolePrompt, Text: "text"})
		if took := time.Since(began); model.Why(err) != model.Timeout || took != 2*time.Second {
			t.Errorf("%v after %v", err, took)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := g.Ask(gone, "n", model.GuardText{Role: model.RolePrompt, Text: "text"}); model.Why(err) != model.Cancelled {
			t.Errorf("%v", err)
		}
	})
}

func TestLocalGuardsThatCannotBe(t *testing.T) {
	labels := []string{"SAFE", "INJECTION"}
	for _, test := range []struct {
		config model.LocalConfig
		labels []string
		want   string
	}{
		{model.LocalConfig{Model: " ", Inferences: 1}, labels, "model is required"},
		{model.LocalConfig{Model: "m"}, labels, "inferences"},
		{model.LocalConfig{Model: "m", Inferences: 1, Timeout: -1}, labels, "timeout"},
		{model.LocalConfig{Model: "m", Inferences: 1}, []string{"SAFE", "mood"}, `"mood"`},
		{model.LocalConfig{Model: "m", Inferences: 1}, []string{"LABEL_0", "LABEL_1"}, `"LABEL_0"`},
		{model.LocalConfig{Model: "m", Inferences: 1}, []string{"SAFE", "BENIGN"}, "no label for an attack"},
		{model.LocalConfig{Model: "m", Inferences: 1}, nil, "no label for an attack"},
	} {
		if _, err := model.NewLocalGuard(test.config, scripted{labels: test.labels}, nil); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v", test, err)
		}
	}
	g := localGuard(t, nil)
	if g.Knows(model.RoleAnswer) || !g.Knows(model.RolePrompt) || g.Model() != "m" {
		t.Error("the guard says something else of itself")
	}
	g.Close() // it has no connections
}
