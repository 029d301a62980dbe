package commands

import (
	"context"
	"fmt"
	"math"
	"slices"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/caddy-lex/lex/audit"
	"github.com/caddy-lex/lex/caddymodule"
	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
)

func assessCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "assess [--config <file> [--adapter <name>]] [--explain] < prompts.jsonl > verdicts.jsonl",
		Short: "Assesses prompts from standard input as the proxy would",
		Long: `
Reads JSON lines, {"id", "text"} or {"id", "turns": [{"role", "content"}, ...]},
and writes one line with a verdict for each, in the same order. Other members of
the input are ignored. The turns of one line run through a new session; the
verdict is that of the last turn. Nothing is stored.

With --config the policy and the embedder of that Caddyfile (or JSON) decide. Its
store, secrets and sites are not touched, and only the local judge judges the
answers in turns. If the embedder or a guard gives no whole verdict in one of the
turns, detection_degraded is true and detectors names it.

With --explain each verdict has an explanation of the last thing that the user said:
for which type the local model's score is highest, in which part of the text, what
each half of the model adds to it, and which words weigh most. It quotes the prompt.
Receipts do not.

A line that cannot be read is reported on standard error and left out, and the
exit status is then 1.`,
	}
	configFlags(cmd, "Configuration file whose policy and embedder decide")
	cmd.Flags().Bool("explain", false, "Say what weighed most in the local model")
	run(assessPrompts, cmd)
	return cmd
}

// An assessment is what the command writes for one line.
type assessment struct {
	ID                 jsontext.Value    `json:"id"`
	AttackType         kernel.AttackType `json:"attack_type"`
	Severity           float64           `json:"severity"`
	Scores             kernel.Scores     `json:"scores"`
	PromptThreatSignal float64           `json:"prompt_threat_signal"`
	SlowDrip           bool              `json:"slow_drip"`
	Refused            bool              `json:"refused"`
	RefusalReasons     []kernel.Reason   `json:"refusal_reasons"`
	M                  float64           `json:"M"`
	HealthBand         kernel.Band       `json:"health_band"`
	// DetectionDegraded: an embedder or a guard gave no whole verdict in one of the turns.
	DetectionDegraded bool `json:"detection_degraded"`
	// Detectors are those, as receipts list them. It is absent if all of them answered.
	Detectors []kernel.DetectorRun `json:"detectors,omitempty"`
	// Uninspected says why parts were not read. It is absent if all parts were read.
	Uninspected []string `json:"uninspected,omitempty"`
	// TemplateBytes counts what the operator's templates have of the last turn.
	TemplateBytes int `json:"template_bytes,omitzero"`
	// Explanation is there with --explain.
	Explanation *explanation `json:"explanation,omitzero"`
}

// An explanation is a [detect.Explanation] as the command writes it. Parts and words
// carry logits.
type explanation struct {
	Type   string             `json:"type"`
	Score  float64            `json:"score"`
	Window string             `json:"window"`
	Parts  map[string]float64 `json:"parts"`
	Words  []explainedWord    `json:"words"`
	// Concepts is there if a reader speaks of a request for harm.
	Concepts []explainedConcept `json:"concepts,omitempty"`
}

type explainedConcept struct {
	Concept string  `json:"concept"`
	Logit   float64 `json:"logit"`
}

type explainedWord struct {
	Word  string  `json:"word"`
	Logit float64 `json:"logit"`
}

func explain(ctx context.Context, text string) (*explanation, error) {
	e, err := detect.Default().Explain(ctx, text)
	if err != nil || e.Window == "" {
		return nil, err
	}
	out := &explanation{
		Type: e.Head.String(), Score: rounded(e.Score), Window: e.Window,
		Parts: map[string]float64{"spelling": rounded(e.Spelling), "meaning": rounded(e.Meaning), "self_reference": rounded(e.Rule)},
		Words: []explainedWord{},
	}
	for _, w := range e.Words {
		out.Words = append(out.Words, explainedWord{w.Word, rounded(w.Logit)})
	}
	for _, c := range e.Concepts {
		out.Concepts = append(out.Concepts, explainedConcept{c.Name, rounded(float64(c.Weight))})
	}
	return out, nil
}

func rounded(x float64) float64 { return math.Round(x*1000) / 1000 }

func assessPrompts(cmd *cobra.Command, fl caddycmd.Flags) error {
	if len(fl.Args()) > 0 {
		return fmt.Errorf("unexpected argument %q: prompts come from standard input", fl.Arg(0))
	}
	app, err := dryRunApp(fl.String("config"), fl.String("adapter"), promptOptions...)
	if err != nil {
		return err
	}
	bad := 0
	err = audit.EachLine(cmd.InOrStdin(), func(n int, line []byte) error {
		v, err := assessLine(cmd.Context(), app, line, fl.Bool("explain"))
		if err != nil {
			bad++
			_, err = fmt.Fprintf(cmd.ErrOrStderr(), "line %d: %v\n", n, err)
			return err
		}
		text, err := encodeJSON(v)
		if err == nil {
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", text)
		}
		return err
	})
	if err == nil && bad > 0 {
		err = fmt.Errorf("%d lines could not be assessed", bad)
	}
	return err
}

func assessLine(ctx context.Context, app *caddymodule.App, line []byte, explained bool) (assessment, error) {
	p, err := readPrompt(line)
	if err == nil {
		err = p.check()
	}
	if err != nil {
		return assessment{}, err
	}
	d, err := decide(ctx, app, p, detect.User)
	if err != nil {
		return assessment{}, err
	}
	a := assessment{
		ID: p.ID, AttackType: d.AttackType, Severity: d.Severity, Scores: d.Evidence.Scores,
		PromptThreatSignal: d.Evidence.ThreatSignal, SlowDrip: d.SlowDrip,
		Refused: d.Refused, RefusalReasons: []kernel.Reason{}, M: d.M, HealthBand: d.Band,
		DetectionDegraded: len(d.failed) > 0, Detectors: d.failed,
	}
	if d.Refused {
		a.RefusalReasons = d.Reasons
	}
	for _, part := range d.coverage.Skipped {
		if !slices.Contains(a.Uninspected, part.Why) {
			a.Uninspected = append(a.Uninspected, part.Why)
		}
	}
	for _, part := range d.coverage.Inspected {
		if part.Detector == govern.DetectorTemplate {
			a.TemplateBytes += part.Bytes
		}
	}
	if explained {
		a.Explanation, err = explain(ctx, app.Governor().OwnWords(p.lastSaid()))
	}
	return a, err
}
