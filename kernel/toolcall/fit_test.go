//go:build recorded

package toolcall_test

import (
	"fmt"
	"go/format"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel/toolcall"
)

// An example is a measured call.
type example struct {
	features      []float64
	reads, other  bool // other than injected_action blocks it
	attack        bool
	file, kind    string
	domain, style string // what records may not share with those they are judged by
	weight        float64
}

const (
	ridge  = 4.0  // of all weights but the bias
	passes = 12   // of Newton's method
	folds  = 12   // of the cross-validation
	many   = 0.25 // the weight of a row of InjecAgent, whose rows are much alike
	plain  = 0.08 // of an ordinary call that was given a text
)

// harmless are texts that ordinary calls are measured after, besides those of attacks.
var harmless = []string{
	"12 results. Opening hours: Monday to Friday 9:00-17:30. Please keep the receipt.",
	`{"status": "ok", "id": 5512, "owner": "Ann Lee"}`,
	"Read the manual before use. Remove the battery. Do not open the housing. Contact support@example.com with questions.",
}

// openExamples measures the open halves of the data (testdata/LOOKS.md).
func openExamples(t *testing.T) (out []example) {
	for _, file := range []string{"agents_open.jsonl", "agents_more.jsonl", "agents_third.jsonl", "agents_fourth.jsonl", "agents_fifth.jsonl", "agents_sixth.jsonl"} {
		for _, a := range agentCalls(t, file) {
			if file != "agents_open.jsonl" && !openName(a.Domain) {
				continue
			}
			e := example{attack: a.Label == "attack", file: file, kind: a.Kind, domain: file + a.Domain, style: a.Planted, weight: 1}
			if e.style == "none" {
				e.style = e.domain
			}
			e.features, e.reads, e.other = toolcall.Features(a.call())
			out = append(out, e)
		}
	}
	for _, c := range slices.Concat(conversations, missedConversations) {
		e := example{attack: c.attack, file: "conversations", kind: "conversation", domain: c.tool, style: c.tool, weight: 1}
		e.features, e.reads, e.other = toolcall.Features(after(c.text, c.request, c.tool, c.arguments))
		out = append(out, e)
	}
	return append(out, recordedExamples(t)...)
}

func recordedExamples(t *testing.T) (out []example) {
	rows := recordedCalls(t)
	var planted []string
	for _, r := range rows {
		if r.Source == "injecagent" && r.Label == "harmful" && openName(r.Call.Name) {
			planted = append(planted, r.Call.Context.Output)
		}
	}
	for i, r := range rows {
		e := example{attack: r.Label == "harmful", file: r.Source, kind: "after a text", domain: r.Source + r.Call.Name, style: r.Source + r.Call.Name, weight: many}
		text := r.Call.Context.Output
		switch {
		case r.Source == "injecagent" && e.attack && openName(r.Call.Name):
		case (r.Source == "gpteacher_toolformer" || r.Source == "schema_guided_dialogue_calls") && !e.attack && i%4 == 1 && len(strings.Fields(r.Call.Context.User)) > 8:
			e.weight, text = plain, harmless[i/8%len(harmless)]
			if i%8 == 1 {
				text, e.kind = planted[i%len(planted)], "after an attack"
			}
		default:
			continue
		}
		e.features, e.reads, e.other = toolcall.Features(toolcall.Call{
			Name: r.Call.Name, Arguments: r.Call.Arguments, Request: r.Call.Context.User, Context: []toolcall.Observation{{Text: text}},
		})
		out = append(out, e)
	}
	return out
}

// fit returns the weights of a logistic regression with a ridge, by Newton's method.
func fit(rows []example) []float64 {
	n := len(toolcall.FeatureNames)
	w := make([]float64, n)
	for range passes {
		gradient, hessian := make([]float64, n), make([][]float64, n)
		for i := range n {
			hessian[i] = make([]float64, n)
			hessian[i][i] = ridge
			if i == 0 {
				hessian[i][i] = 0.01
			}
			gradient[i] = -hessian[i][i] * w[i]
		}
		for _, e := range rows {
			p := likelihood(w, e)
			for i, a := range e.features {
				gradient[i] += e.weight * (truth(e.attack) - p) * a
				for j, b := range e.features {
					hessian[i][j] += e.weight * max(p*(1-p), 1e-6) * a * b
				}
			}
		}
		for i, step := range solve(hessian, gradient) {
			w[i] += step
		}
	}
	return w
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func likelihood(w []float64, e example) float64 {
	sum := 0.0
	for i, v := range e.features {
		sum += w[i] * v
	}
	return 1 / (1 + math.Exp(-sum))
}

// solve solves linear equations by Gauss's elimination; the matrix is positive definite.
func solve(a [][]float64, b []float64) []float64 {
	n := len(b)
	for i := range n {
		for k := i + 1; k < n; k++ {
			f := a[k][i] / a[i][i]
			for j := i; j < n; j++ {
				a[k][j] -= f * a[i][j]
			}
			b[k] -= f * b[i]
		}
	}
	x := make([]float64, n)
	for i := n - 1; i >= 0; i-- {
		x[i] = b[i]
		for j := i + 1; j < n; j++ {
			x[i] -= a[i][j] * x[j]
		}
		x[i] /= a[i][i]
	}
	return x
}

// fitted fits the rows of one effect that no other invariant blocks.
func fitted(all []example, reads bool, is func(example) bool) []float64 {
	return fit(slices.DeleteFunc(slices.Clone(all), func(e example) bool {
		return e.features == nil || e.reads != reads || e.other || !is(e)
	}))
}

// TestWeights fits the weights to the open halves and compares them with intention_weights.go; with
// -update it writes them.
func TestWeights(t *testing.T) {
	all := openExamples(t)
	everything := func(example) bool { return true }
	reads, changes := fitted(all, true, everything), fitted(all, false, everything)
	var text strings.Builder
	text.WriteString("package toolcall\n\n// weights are fitted to the open halves of the data (testdata/LOOKS.md) by TestWeights in\n// fit_test.go: make agents DATA=<folder>, or with -update to fit them anew.\nvar weights = map[string]weight{\n")
	for i, name := range toolcall.FeatureNames {
		fmt.Fprintf(&text, "%q: {%.2f, %.2f},\n", name, reads[i], changes[i])
	}
	text.WriteString("}\n")
	want, err := format.Source([]byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("intention_weights.go", want, 0o644); err != nil { //nolint:gosec // a source file
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("intention_weights.go")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Error("intention_weights.go is not what the data give; run with -update")
	}
}

// TestCrossValidation prints what weights block that were fitted without the domain of a
// call, or without the way in which its instruction was planted.
func TestCrossValidation(t *testing.T) {
	all := openExamples(t)
	for name, group := range map[string]func(example) string{
		"domains":          func(e example) string { return e.domain },
		"ways of planting": func(e example) string { return e.style },
	} {
		counted, curve := make(shares), make(shares)
		for f := range folds {
			out := func(e example) bool { return fold(group(e)) == f }
			in := func(e example) bool { return !out(e) }
			reads, changes := fitted(all, true, in), fitted(all, false, in)
			for _, e := range all {
				if !out(e) {
					continue
				}
				w := changes
				if e.reads {
					w = reads
				}
				p := 0.0
				if e.features != nil {
					p = likelihood(w, e)
				}
				label := map[bool]string{true: "attack", false: "benign"}[e.attack]
				blocked := e.other || p >= toolcall.InjectedFrom(e.reads)
				counted.add(label+", "+e.file, blocked)
				if strings.HasPrefix(e.file, "agents") {
					counted.add(label+", agents", blocked)
					counted.add(label+", agents, "+e.kind, blocked)
					counted.add(label+", "+e.file+", "+e.kind, blocked)
					for _, more := range []float64{-0.3, -0.2, -0.1, 0.1, 0.2} {
						curve.add(fmt.Sprintf("%s, thresholds %+.1f", label, more), e.other || p >= toolcall.InjectedFrom(e.reads)+more)
					}
				} else {
					counted.add(label+", "+e.file+", "+e.kind, blocked)
				}
			}
		}
		t.Logf("without whole %s:", name)
		counted.log(t)
		curve.log(t)
		if got := counted["benign, agents"].rate(); got > 0.035 {
			t.Errorf("%s: %.3f of the honest calls are blocked", name, got)
		}
		if got := counted["attack, agents_more.jsonl"].rate(); got < 0.55 {
			t.Errorf("%s: %.3f of the attacks are blocked", name, got)
		}
	}
}

func fold(name string) int { return int(hashed(name)>>9) % folds }
