package caddymodule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

func benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench --data <file>... [--config <file>] [--json] [--publish <url>]",
		Short: "Measures detection and over-refusal on labelled prompts",
		Long: `
Reads JSON lines {"id", "text" or "turns", "label", "source", "lang", "channel"}
and runs each through a session of its own, as "caddy lex assess" does. Texts
with the channel document or tool_output are read as what a tool returned.

The labels harmful, jailbreak, injection and sycophancy are attacks, benign and
borderline_benign are not; redteam_attempt is told by itself, since nobody
verified it. Other labels, and records without text or turns, are left out.

Told are the share refused, the share of attacks found where 1 and 5 % of the
benign records would be false alarms, the area under the curve (AUC), for each
label and source and each language, with Wilson's 95 % intervals; how severity
compares with the share of attacks; and how long a turn took.

--json writes one JSON object instead of tables. --publish sends one row for
each label and source to POST /admin/benchmarks of a running proxy, with the
secret in the environment variable BENCH_SECRET.

A line that cannot be read is named on standard error and left out; the exit
status is then 1.`,
	}
	cmd.Flags().StringArray("data", nil, "File of labelled JSON lines; more may follow as arguments")
	cmd.Flags().StringP("config", "c", "", "Configuration file whose policy and embedder decide")
	cmd.Flags().Bool("json", false, "Write one JSON object")
	cmd.Flags().String("publish", "", "Base URL of a running proxy to publish the rows to")
	run(measurePrompts, cmd)
	return cmd
}

// A benchmark collects outcomes file by file.
type benchmark struct {
	app      *App
	outcomes []outcome
	leftOut  map[string]int
	bad      int
	faults   io.Writer
}

func measurePrompts(cmd *cobra.Command, fl caddycmd.Flags) error {
	files, err := fl.GetStringArray("data")
	if err != nil || len(files) == 0 {
		return errors.New("name at least one file with --data")
	}
	app, err := rehearsalApp(fl.String("config"))
	if err != nil {
		return err
	}
	b := &benchmark{app: app, leftOut: make(map[string]int), faults: cmd.ErrOrStderr()}
	for _, name := range append(files, fl.Args()...) {
		if err := b.file(cmd.Context(), name); err != nil {
			return err
		}
	}
	card := b.card()
	if err := card.write(cmd.OutOrStdout(), fl.Bool("json")); err != nil {
		return err
	}
	if url := fl.String("publish"); url != "" {
		if err := card.publish(cmd.Context(), url); err != nil {
			return err
		}
	}
	if b.bad > 0 {
		return fmt.Errorf("%d lines could not be assessed", b.bad)
	}
	return nil
}

func (b *benchmark) file(ctx context.Context, name string) error {
	file, err := os.Open(name) //nolint:gosec // G304: whoever runs the command names the file
	if err != nil {
		return fmt.Errorf("reading the data: %w", err)
	}
	defer file.Close()
	return eachLine(file, func(n int, raw []byte) error {
		if err := b.record(ctx, raw); err != nil {
			b.bad++
			_, err = fmt.Fprintf(b.faults, "%s: line %d: %v\n", name, n, err)
			return err
		}
		return ctx.Err()
	})
}

// record measures one line.
func (b *benchmark) record(ctx context.Context, raw []byte) error {
	r, err := readRecord(raw)
	if err != nil {
		return err
	}
	as, judged := labels[r.Label]
	if !judged || r.Text == nil && len(r.Turns) == 0 {
		b.leftOut[r.Label]++
		return nil
	}
	if err := r.check(); err != nil {
		return err
	}
	began := time.Now()
	x, turns, err := b.app.rehearseRecord(ctx, r, sourceOfChannel(r.Channel))
	if err != nil {
		return err
	}
	b.outcomes = append(b.outcomes, outcome{
		kind: as, label: r.Label, source: r.Source, lang: r.Lang,
		severity: x.Turn.Severity, refused: x.Turn.Refused,
		took: time.Since(began) / time.Duration(turns), notWhollyRead: len(x.Opened.Coverage.Skipped) > 0,
	})
	return nil
}

func (b *benchmark) card() scorecard {
	card := score(b.outcomes)
	card.Version, card.Detector, card.LeftOut = b.app.Governor().Version, b.app.Governor().Detector.Version(), b.leftOut
	return card
}

func (c *scorecard) write(out io.Writer, asJSON bool) error {
	if !asJSON {
		return c.print(out)
	}
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the figures: %w", err)
	}
	_, err = fmt.Fprintf(out, "%s\n", text)
	return err
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

// published are the rows of the card as the interface has them. Without
// governance every prompt reaches the model and none is refused.
func (c *scorecard) published() []publishedRow {
	rows := make([]publishedRow, len(c.Sources))
	for i, r := range c.Sources {
		rows[i] = publishedRow{
			Benchmark: r.Source + "/" + r.Label, NTotal: r.N,
			Notes: "Prompts only, by " + c.Version + " with detector " + c.Detector + "; nothing was generated.",
		}
		switch r.Kind {
		case kindAttack, kindWeak:
			rows[i].Metric, rows[i].BareSuccesses, rows[i].GovernedSuccesses = "attacks that reach the model", r.N, r.N-r.Refused
		default:
			rows[i].Metric, rows[i].GovernedSuccesses = "harmless prompts refused", r.Refused
		}
	}
	return rows
}

func (c *scorecard) publish(ctx context.Context, base string) error {
	p, err := newProxy("--publish", base)
	if err != nil {
		return err
	}
	if !p.open(benchVariable, "X-Lex-Bench-Secret") {
		return errors.New("--publish: the environment variable " + benchVariable + " is empty")
	}
	_, err = p.ask(ctx, http.MethodPost, "/admin/benchmarks", c.published(), nil)
	return err
}
