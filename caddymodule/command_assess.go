package caddymodule

import (
	"context"
	"encoding/json"
	"fmt"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
)

func assessCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "assess [--config <file>] < prompts.jsonl > verdicts.jsonl",
		Short: "Assesses prompts from standard input as the proxy would",
		Long: `
Reads JSON lines, {"id", "text"} or {"id", "turns": [{"role", "content"}, ...]},
and writes a verdict for each, in the same order, one a line. Other members of
the input are ignored. The turns of one line run through one session, from its
first step; the verdict is the last turn's. Nothing is stored.

With --config the policy and the embedder of that Caddyfile (or JSON) decide;
its store, secrets and sites are not touched, and answers in turns are judged by
the local judge alone.

A line that cannot be read is named on standard error and left out; the exit
status is then 1.`,
	}
	cmd.Flags().StringP("config", "c", "", "Configuration file whose policy and embedder decide")
	run(assessPrompts, cmd)
	return cmd
}

// An assessment is what the command writes of one line.
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
	// Uninspected says why parts were not read; absent when all were.
	Uninspected []string `json:"uninspected,omitempty"`
}

func assessPrompts(cmd *cobra.Command, fl caddycmd.Flags) error {
	if len(fl.Args()) > 0 {
		return fmt.Errorf("unexpected argument %q: prompts come from standard input", fl.Arg(0))
	}
	app, err := rehearsalApp(fl.String("config"))
	if err != nil {
		return err
	}
	out, bad := json.NewEncoder(cmd.OutOrStdout()), 0
	err = eachLine(cmd.InOrStdin(), func(n int, raw []byte) error {
		v, err := app.assessLine(cmd.Context(), raw)
		if err != nil {
			bad++
			_, err = fmt.Fprintf(cmd.ErrOrStderr(), "line %d: %v\n", n, err)
			return err
		}
		return out.Encode(v)
	})
	if err == nil && bad > 0 {
		err = fmt.Errorf("%d lines could not be assessed", bad)
	}
	return err
}

func (a *App) assessLine(ctx context.Context, raw []byte) (assessment, error) {
	r, err := readRecord(raw)
	if err == nil {
		err = r.check()
	}
	if err != nil {
		return assessment{}, err
	}
	x, _, err := a.rehearseRecord(ctx, r, detect.User)
	if err != nil {
		return assessment{}, err
	}
	return assessmentOf(r.ID, x), nil
}

// rehearseRecord runs a record through a session of its own and returns the
// last turn, and how many there were.
func (a *App) rehearseRecord(ctx context.Context, r record, as detect.Source) (last *govern.Judged, turns int, err error) {
	lines, err := r.lines(as)
	if err != nil {
		return nil, 0, err
	}
	session := a.Governor().DryRun()
	for _, l := range lines {
		if last, err = session.Take(ctx, l); err != nil {
			return nil, 0, err
		}
	}
	return last, len(lines), nil
}

func assessmentOf(id jsontext.Value, j *govern.Judged) assessment {
	t := j.Turn
	v := assessment{
		ID: id, AttackType: t.AttackType, Severity: t.Severity, Scores: t.Evidence.Scores,
		PromptThreatSignal: t.Evidence.ThreatSignal, SlowDrip: t.SlowDrip,
		Refused: t.Refused, RefusalReasons: []kernel.Reason{}, M: t.M, HealthBand: t.Band,
	}
	if t.Refused {
		v.RefusalReasons = t.Reasons
	}
	for _, part := range j.Opened.Coverage.Skipped {
		v.Uninspected = append(v.Uninspected, part.Why)
	}
	return v
}
