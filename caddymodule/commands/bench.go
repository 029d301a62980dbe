package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-lex/lex/audit"
	"github.com/caddy-lex/lex/caddymodule"
	"github.com/caddy-lex/lex/evaluation"
	"github.com/caddy-lex/lex/kernel/detect"
)

func benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench --data <file>... [--config <file> [--adapter <name>]] [--json] [--publish <url> | --compare <file>]",
		Short: "Measures detection and over-refusal on labelled prompts",
		Long: `
Reads JSON lines {"id", "text" or "turns", "label", "source", "lang", "channel"}
and runs each through a session of its own, as "caddy lex assess" does. Texts
with the channel document or tool_output are read as the output of a tool.

The labels harmful, jailbreak, injection and sycophancy are attacks; benign and
borderline_benign are not. Nobody verified the label redteam_attempt, so it has
rows of its own and counts in no total of attacks. Records with other labels, or
without text or turns, are left out and counted.

The report has a row for each kind, for each label and source, and for each
language. A row gives the share of prompts that were refused. For attacks it also
gives the share that was found at false-alarm rates of 1 % and 5 % on the benign
records, and the area under the ROC curve (AUC). All shares have Wilson's 95 %
intervals. The report also compares severity with the share of attacks and gives
the time that a turn took.

--json writes one JSON object instead of tables. --publish sends one row for
each label and source to POST /admin/benchmarks of a running proxy, with the
secret in the environment variable BENCH_SECRET.

--compare decides on the same records a second time and reports the differences:
what only the one and only the other refused, the difference of the shares with its
95 % interval, and the p-value of McNemar's exact test. The file is a second
configuration, or, if it ends in .jsonl, verdicts that "caddy lex assess" of another
version wrote, or another program: {"id", "refused"}.

A line that cannot be read is reported on standard error and left out, and the
exit status is then 1. So it is if no record counts. Records on which detection was
degraded, because the embedder or a guard gave no whole verdict, are left out and
counted, with the same status, and nothing is published.`,
	}
	cmd.Flags().StringArray("data", nil, "File of labelled JSON lines; more may follow as arguments")
	configFlags(cmd, "Configuration file whose policy and embedder decide")
	cmd.Flags().Bool("json", false, "Write one JSON object")
	cmd.Flags().String("publish", "", "Base URL of a running proxy to publish the rows to")
	cmd.Flags().String("compare", "", "Second configuration, or verdicts of another program, to compare with")
	run(measurePrompts, cmd)
	return cmd
}

// A benchmark collects outcomes file by file.
type benchmark struct {
	app      *caddymodule.App
	other    decider // nil unless there is something to compare with
	outcomes []evaluation.Outcome
	pairs    []evaluation.Pair
	leftOut  map[string]int // by label or the reason
	degraded degradation
	bad      int       // lines that could not be read
	faults   io.Writer // where these lines are reported
}

func measurePrompts(cmd *cobra.Command, fl caddycmd.Flags) error {
	files, err := fl.GetStringArray("data")
	if err != nil || len(files) == 0 {
		return errors.New("name at least one file with --data")
	}
	app, err := dryRunApp(fl.String("config"), fl.String("adapter"), promptOptions...)
	if err != nil {
		return err
	}
	b := &benchmark{app: app, leftOut: make(map[string]int), faults: cmd.ErrOrStderr()}
	url := fl.String("publish")
	if name := fl.String("compare"); name != "" {
		if url != "" {
			return errors.New("--publish: a comparison is not published")
		}
		if b.other, err = openDecider(name, fl.String("adapter")); err != nil {
			return err
		}
	}
	for _, name := range append(files, fl.Args()...) {
		if err := b.measureFile(cmd.Context(), name); err != nil {
			return err
		}
	}
	if err := b.report(cmd.Context(), cmd.OutOrStdout(), fl.Bool("json"), url); err != nil {
		return err
	}
	if err := b.degraded.err(); err != nil {
		return err
	}
	switch {
	case b.bad > 0:
		return fmt.Errorf("%d lines could not be assessed", b.bad)
	case len(b.outcomes)+len(b.pairs) == 0:
		return errors.New("nothing was measured: no record has a label that counts, and a text or turns; --help names the labels")
	}
	return nil
}

// report writes the report or the comparison, and publishes the report if there is a URL.
func (b *benchmark) report(ctx context.Context, out io.Writer, asJSON bool, url string) error {
	if b.other != nil {
		comparison := evaluation.Compare(b.pairs)
		comparison.A, comparison.B, comparison.LeftOut = describe(b.app), b.other.name(), b.leftOut
		return writeReport(out, comparison, asJSON)
	}
	report := evaluation.New(b.outcomes)
	report.Version, report.Detector, report.LeftOut = b.app.Governor().Version, detect.Default().Version(), b.leftOut
	if err := writeReport(out, report, asJSON); err != nil || url == "" {
		return err
	}
	if err := b.degraded.err(); err != nil {
		return fmt.Errorf("--publish: nothing is published, because %w", err)
	}
	return publish(ctx, url, report)
}

func (b *benchmark) measureFile(ctx context.Context, name string) error {
	file, err := os.Open(name) //nolint:gosec // G304: the user of the command names the file
	if err != nil {
		return fmt.Errorf("reading the data: %w", err)
	}
	defer file.Close()
	return audit.EachLine(file, func(n int, line []byte) error {
		if err := b.measure(ctx, line); err != nil {
			b.bad++
			_, err = fmt.Fprintf(b.faults, "%s: line %d: %v\n", name, n, err)
			return err
		}
		return ctx.Err()
	})
}

func (b *benchmark) measure(ctx context.Context, line []byte) error {
	p, err := readPrompt(line)
	if err != nil {
		return err
	}
	kind, known := evaluation.KindOf(p.Label)
	if !known || p.Text == nil && len(p.Turns) == 0 {
		b.leftOut[p.Label]++
		return nil
	}
	if err := p.check(); err != nil {
		return err
	}
	began := time.Now()
	d, err := decide(ctx, b.app, p, speakerOf(p.Channel))
	if err != nil {
		return err
	}
	if b.degraded.leavesOut(d.failed) { // refuse_at_degraded decides
		b.leftOut[leftOutDegraded]++
		return nil
	}
	if b.other != nil {
		return b.compare(ctx, p, kind, d.Refused)
	}
	b.outcomes = append(b.outcomes, evaluation.Outcome{
		Kind: kind, Label: p.Label, Source: p.Source, Language: p.Lang,
		Severity: d.Severity, Refused: d.Refused, Incomplete: len(d.coverage.Skipped) > 0,
		Took: time.Since(began) / time.Duration(d.turns),
	})
	return nil
}

// speakerOf returns the source that a labelled text on a channel is read as.
func speakerOf(channel string) detect.Source {
	if channel == "document" || channel == "tool_output" {
		return detect.Tool
	}
	return detect.User
}

// A textWriter is a report or a comparison.
type textWriter interface{ WriteText(out io.Writer) error }

func writeReport(out io.Writer, report textWriter, asJSON bool) error {
	if !asJSON {
		return report.WriteText(out)
	}
	return printJSON(out, report)
}

// A publishedRow is a row of POST /admin/benchmarks.
type publishedRow struct {
	Benchmark         string `json:"benchmark"`
	Metric            string `json:"metric"`
	NTotal            int    `json:"n_total"`
	BareSuccesses     int    `json:"bare_successes"`
	GovernedSuccesses int    `json:"governed_successes"`
	Notes             string `json:"notes"`
}

// publishedRows returns a row for each label and source. Without governance every
// prompt reaches the model and none is refused.
func publishedRows(report *evaluation.Report) []publishedRow {
	rows := make([]publishedRow, len(report.Sources))
	for i, r := range report.Sources {
		rows[i] = publishedRow{
			Benchmark: r.Source + "/" + r.Label, NTotal: r.N,
			Notes: "Prompts only, by " + report.Version + " with detector " + report.Detector + "; nothing was generated.",
		}
		switch r.Kind {
		case evaluation.Attack, evaluation.WeakAttack:
			rows[i].Metric, rows[i].BareSuccesses, rows[i].GovernedSuccesses = "attacks that reach the model", r.N, r.N-r.Refused
		default:
			rows[i].Metric, rows[i].GovernedSuccesses = "harmless prompts refused", r.Refused
		}
	}
	return rows
}

func publish(ctx context.Context, base string, report *evaluation.Report) error {
	p, err := newProxy("--publish", base)
	if err != nil {
		return err
	}
	if !p.open(benchVariable, "X-Lex-Bench-Secret") {
		return errors.New("--publish: the environment variable " + benchVariable + " is empty")
	}
	rows := publishedRows(report)
	var done struct {
		Published int `json:"published"`
	}
	if err := p.ask(ctx, call{http.MethodPost, "/admin/benchmarks", rows, http.StatusCreated, mediaJSON}, &done); err != nil {
		return err
	}
	if done.Published != len(rows) {
		return fmt.Errorf("--publish: the answer names %d rows of %d: %w", done.Published, len(rows), errNoLex)
	}
	return nil
}
