package kernel_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

// What no step, no handler and no store can have written is an error, whatever the id says.
func TestFormRefusesWhatCannotBe(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	type change func(*kernel.Receipt)
	for name, test := range map[string]struct {
		names  string // what the error names
		text   change
		tool   change
		either change
	}{
		"turn 0":                   {names: "turn", either: func(r *kernel.Receipt) { r.Turn = 0 }},
		"turn -1":                  {names: "turn", either: func(r *kernel.Receipt) { r.Turn = -1 }},
		"no time":                  {names: "timestamp", either: func(r *kernel.Receipt) { r.Timestamp = 0 }},
		"a time before 1970":       {names: "timestamp", either: func(r *kernel.Receipt) { r.Timestamp = -1 }},
		"no outcome":               {names: "outcome", either: func(r *kernel.Receipt) { r.Outcome = "" }},
		"an unknown outcome":       {names: "outcome", either: func(r *kernel.Receipt) { r.Outcome = "fine" }},
		"refused and answered":     {names: "outcome", either: func(r *kernel.Receipt) { r.Outcome = kernel.Answered }},
		"no mode":                  {names: "mode", either: func(r *kernel.Receipt) { r.Mode = "" }},
		"an unknown mode":          {names: "mode", either: func(r *kernel.Receipt) { r.Mode = "dry" }},
		"refused while observing":  {names: "mode", either: func(r *kernel.Receipt) { r.Mode = kernel.Observe }},
		"migrated from nowhere":    {names: "migrated", either: func(r *kernel.Receipt) { r.Migrated, r.Prev = true, "" }},
		"a state off the simplex":  {names: "x is", either: func(r *kernel.Receipt) { r.X[0] += 0.1 }},
		"weights off the simplex":  {names: "z is", either: func(r *kernel.Receipt) { r.Z = kernel.Point{} }},
		"a negative statistic":     {names: "cusum", either: func(r *kernel.Receipt) { r.CUSUM = -0.1 }},
		"a carry without a number": {names: "carry", either: func(r *kernel.Receipt) { r.Carry[1] = math.NaN() }},

		"a short trace":        {names: "trace_id", either: func(r *kernel.Receipt) { r.TraceID = "abc" }},
		"a trace in capitals":  {names: "trace_id", either: func(r *kernel.Receipt) { r.TraceID = strings.Repeat("A", 32) }},
		"a trace that is none": {names: "trace_id", either: func(r *kernel.Receipt) { r.TraceID = strings.Repeat("0", 32) }},

		"a guard's score over 1":   {names: "detector", either: func(r *kernel.Receipt) { r.Coverage.Detectors = []kernel.DetectorRun{{Score: 1.1}} }},
		"a guard's negative score": {names: "detector", either: func(r *kernel.Receipt) { r.Coverage.Detectors = []kernel.DetectorRun{{Score: -0.1}} }},
		"a guard's negative time":  {names: "detector", either: func(r *kernel.Receipt) { r.Coverage.Detectors = []kernel.DetectorRun{{Millis: -1}} }},

		"a score over 1":          {names: "harm_request", either: func(r *kernel.Receipt) { r.Scores.HarmRequest = 1.01 }},
		"a negative score":        {names: "injection", either: func(r *kernel.Receipt) { r.Scores.Injection = -0.1 }},
		"a signal over 2":         {names: "prompt_threat_signal", either: func(r *kernel.Receipt) { r.ThreatSignal = 2.1 }},
		"an unknown reason":       {names: "standing", text: func(r *kernel.Receipt) { r.Standing = []kernel.Reason{"mood"} }},
		"a confidence over 1":     {names: "confidence", text: func(r *kernel.Receipt) { r.Confidence = 2 }},
		"an unknown category":     {names: "category", text: func(r *kernel.Receipt) { r.Category = "mood" }},
		"text with a decision":    {names: "tool", text: func(r *kernel.Receipt) { r.Decision = kernel.Approved }},
		"text with an invariant":  {names: "tool", text: func(r *kernel.Receipt) { r.Invariant = "exfiltration" }},
		"text with a rule":        {names: "tool", text: func(r *kernel.Receipt) { r.Rule = "deny" }},
		"text with an effect":     {names: "tool", text: func(r *kernel.Receipt) { r.Effect = kernel.ToolReads }},
		"text at high risk":       {names: "tool", text: func(r *kernel.Receipt) { r.HighRisk = true }},
		"text that is standalone": {names: "tool", text: func(r *kernel.Receipt) { r.Standalone = true }},
		"text with a provenance":  {names: "tool", text: func(r *kernel.Receipt) { r.Provenance = kernel.FromUser }},
		"text that is flagged":    {names: "tool", text: func(r *kernel.Receipt) { r.Flagged = "exfiltration" }},
		"text with arguments":     {names: "tool", text: func(r *kernel.Receipt) { r.ArgumentsCommitment = strings.Repeat("0", 64) }},

		"a call without a decision":   {names: "decision is unknown", tool: func(r *kernel.Receipt) { r.Decision = "" }},
		"a call with an unknown one":  {names: "decision is unknown", tool: func(r *kernel.Receipt) { r.Decision, r.Refused, r.Outcome = "postponed", false, kernel.Answered }},
		"a refused call is approved":  {names: "decision", tool: func(r *kernel.Receipt) { r.Decision = kernel.Approved }},
		"a call with a prompt":        {names: "prompt", tool: func(r *kernel.Receipt) { r.PromptCommitment = strings.Repeat("0", 64) }},
		"a call with an output":       {names: "output", tool: func(r *kernel.Receipt) { r.OutputCommitment = strings.Repeat("0", 64) }},
		"a call that capitulated":     {names: "judged", tool: func(r *kernel.Receipt) { r.Capitulated = true }},
		"a call with a category":      {names: "judged", tool: func(r *kernel.Receipt) { r.Category = kernel.NoCapitulation }},
		"a call of an unknown effect": {names: "effect", tool: func(r *kernel.Receipt) { r.Effect = "mood" }},
		"a call from nowhere":         {names: "provenance", tool: func(r *kernel.Receipt) { r.Provenance = "mood" }},
		"a call that nobody read":     {names: "evidence", tool: func(r *kernel.Receipt) { r.Unassessed = true; r.Scores = kernel.Scores{} }},
		"a call that is repeated":     {names: "evidence", tool: func(r *kernel.Receipt) { r.Repeated = true }},
		"a call with a signal":        {names: "evidence", tool: func(r *kernel.Receipt) { r.ThreatSignal = 0.1 }},
		"a call denied by a rule":     {names: "evidence", tool: func(r *kernel.Receipt) { r.DeniedBy = "rule" }},
		"scores and no invariant":     {names: "invariant", tool: func(r *kernel.Receipt) { r.Scores.Identity, r.Invariant = 0.5, "" }},
		"scores and the state's own":  {names: "invariant", tool: func(r *kernel.Receipt) { r.Scores.Identity, r.Invariant = 0.5, kernel.SessionRisk }},
	} {
		for kind, c := range map[string]struct {
			receipt kernel.Receipt
			change  change
		}{"text": {sealedReceipt(t, k), test.text}, "tool": {toolReceipt(t, k), test.tool}} {
			for _, change := range []change{c.change, test.either} {
				if change == nil {
					continue
				}
				r := c.receipt
				change(&r)
				if err := r.CheckForm(); !errors.Is(err, kernel.ErrReceipt) || !strings.Contains(err.Error(), test.names) {
					t.Errorf("%s, %s: %v", kind, name, err)
				}
			}
		}
	}
}

// Every receipt that the kernel makes, with who and when, is well formed: under each
// policy, in each mode, of text and of calls, refused or not, however the turn ended.
func TestFormOfEveryReceipt(t *testing.T) {
	random := newRandom(13)
	for range 200 {
		k := newKernel(t, random.policy())
		s, prev := k.NewSession(), ""
		for turn := range 10 {
			mode := kernel.Enforce
			if random.IntN(2) == 0 {
				mode = kernel.Observe
			}
			taken := take(t, k, s, random.evidence(), mode, random.output())
			called, err := k.RecordToolCall(taken.Next, kernel.ToolCall{Tool: "run", Effect: kernel.ToolSends, HighRisk: random.IntN(2) == 0, Standalone: random.IntN(2) == 0}, kernel.Evidence{}, mode)
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range []kernel.Turn{taken, called} {
				r := k.Receipt(step)
				r.Turn, r.Timestamp, r.Prev = turn+1, 1, prev
				outcomes := []kernel.Outcome{r.Outcome, kernel.ProviderFailed, kernel.ClientGone, kernel.Aborted, kernel.Failed}
				r.Outcome = outcomes[random.IntN(len(outcomes))]
				if err := r.CheckForm(); err != nil {
					t.Fatalf("%v: %+v", err, r)
				}
				prev, s = r.Link(), step.Next
			}
		}
	}
}
