package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/caddy-lex/lex/audit"
	"github.com/caddy-lex/lex/evaluation"
	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/model"
)

// A guardCalibration is what the command finds for a guard. --json writes it.
type guardCalibration struct {
	Guard   string         `json:"guard"`
	Model   string         `json:"model"`
	LeftOut map[string]int `json:"left_out"` // lines, by label or the reason
	evaluation.PlattReport
	// Caddyfile is the line for the guard's block; "" where it would not help.
	Caddyfile string `json:"caddyfile"`
}

// calibrateGuard asks a guard of a configuration about labelled texts, and fits what corrects
// its probabilities.
func calibrateGuard(cmd *cobra.Command, fl caddycmd.Flags) error {
	files, err := fl.GetStringArray("labelled")
	switch {
	case err != nil:
		return err
	case len(fl.Args()) > 0:
		return fmt.Errorf("unexpected argument %q: name files with --labelled", fl.Arg(0))
	case len(files) == 0 || fl.String("config") == "":
		return errors.New("--guard: name the configuration that has it with --config, and files of labelled texts with --labelled")
	case fl.Changed("benign") || fl.Changed("attacks") || fl.Changed("url") || fl.Changed("fpr"):
		return errors.New("--guard goes with --labelled, --config and --json only")
	}
	app, err := dryRunApp(fl.String("config"), fl.String("adapter"), promptOptions...)
	if err != nil {
		return err
	}
	guard, err := guardNamed(app.Governor().Guards, fl.String("guard"))
	if err != nil {
		return err
	}
	s := guardScorer{guard: guard, leftOut: make(map[string]int), faults: cmd.ErrOrStderr()}
	texts, err := s.score(cmd.Context(), files)
	if err != nil {
		return err
	}
	c := guardCalibration{Guard: guard.Name, Model: guard.Model.Model(), LeftOut: s.leftOut}
	// The samples of the bootstrap are the same each time, and so is what is printed.
	if c.PlattReport, err = evaluation.CalibratePlatt(texts, govern.GuardUnsure, rand.New(rand.NewPCG(1, 2))); err != nil { //nolint:gosec // G404: samples, no secrets
		return fmt.Errorf("fitting %d attacks and %d harmless texts (%s): %w", c.Attacks, c.N-c.Attacks, leftOutText(c.LeftOut), err)
	}
	outOfRange := govern.Calibration{Slope: c.Slope, Intercept: c.Intercept}.Check() != nil
	if c.Improves() && !outOfRange {
		c.Caddyfile = fmt.Sprintf("calibration %s %s\n", fourDigits(c.Slope), fourDigits(c.Intercept))
	}
	if err := c.write(cmd.OutOrStdout(), fl.Bool("json")); err != nil {
		return err
	}
	switch {
	case s.bad > 0:
		return fmt.Errorf("%d lines could not be read", s.bad)
	case c.Improves() && outOfRange:
		return errors.New("no calibration: the guard's probabilities hardly differ, so that it would make nearly all of them 0 or 1")
	case c.Caddyfile == "":
		return errors.New("no calibration: on texts that it was not fitted to it is no better than the guard's own probabilities")
	}
	return nil
}

// fourDigits writes a number with four significant digits.
func fourDigits(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }

func guardNamed(guards []*govern.Guard, name string) (*govern.Guard, error) {
	var names []string
	for _, g := range guards {
		if names = append(names, g.Name); g.Name == name {
			return g, nil
		}
	}
	if len(names) == 0 {
		return nil, errors.New("the configuration has no guards")
	}
	return nil, fmt.Errorf("the configuration has no guard %q, but these: %s", name, strings.Join(names, ", "))
}

// A guardScorer asks a guard about labelled texts.
type guardScorer struct {
	guard   *govern.Guard
	leftOut map[string]int
	bad     int       // lines that could not be read
	faults  io.Writer // where these are reported
}

// A labelledText is a text that a guard is asked about.
type labelledText struct {
	model.GuardText
	attack bool
}

// askedAtOnce is how many texts a guard is asked about at once: a server is kept busy, and
// not flooded.
const askedAtOnce = 4

// score returns the probabilities that the guard gives to the texts of files.
func (s *guardScorer) score(ctx context.Context, files []string) ([]evaluation.Scored, error) {
	var texts []labelledText
	for _, name := range files {
		more, err := s.readFile(ctx, name)
		if err != nil {
			return nil, err
		}
		texts = append(texts, more...)
	}
	verdicts, errs := make([]model.Verdict, len(texts)), make([]error, len(texts))
	var asking errgroup.Group
	asking.SetLimit(askedAtOnce)
	for i, t := range texts {
		asking.Go(func() error {
			verdicts[i], errs[i] = s.guard.Model.Ask(ctx, "calibrate", t.GuardText)
			return ctx.Err()
		})
	}
	if err := asking.Wait(); err != nil {
		return nil, err
	}
	var scored []evaluation.Scored
	for i, t := range texts {
		switch {
		case errs[i] != nil:
			s.leftOut["failed: "+string(model.Why(errs[i]))]++
		case len(verdicts[i]) == 0: // nothing that the guard looks for counts in this role
			s.leftOut["no verdict"]++
		default:
			scored = append(scored, evaluation.Scored{P: verdicts[i].Highest(), Attack: t.attack})
		}
	}
	return scored, nil
}

func (s *guardScorer) readFile(ctx context.Context, name string) (texts []labelledText, err error) {
	file, err := os.Open(name) //nolint:gosec // G304: the user of the command names the file
	if err != nil {
		return nil, fmt.Errorf("reading the texts: %w", err)
	}
	defer file.Close()
	err = audit.EachLine(file, func(n int, line []byte) error {
		text, ok, err := s.read(line)
		if err != nil {
			s.bad++
			_, err = fmt.Fprintf(s.faults, "%s: line %d: %v\n", name, n, err)
			return err
		}
		if ok {
			texts = append(texts, text)
		}
		return ctx.Err()
	})
	return texts, err
}

// read reads a line. What says nothing of the guard is left out: labels that were not
// verified, and texts that it is not asked about.
func (s *guardScorer) read(line []byte) (t labelledText, ok bool, err error) {
	p, err := readPrompt(line)
	if err != nil {
		return t, false, err
	}
	kind, known := evaluation.KindOf(p.Label)
	if !known || kind == evaluation.WeakAttack {
		s.leftOut[p.Label]++
		return t, false, nil
	}
	if err := p.check(); err != nil {
		return t, false, err
	}
	t = labelledText{model.GuardText{Role: model.RolePrompt, Text: p.lastSaid()}, kind == evaluation.Attack}
	if speakerOf(p.Channel) != detect.User {
		t.Role = model.RoleToolResult
	}
	if !slices.Contains(s.guard.Roles, t.Role) {
		s.leftOut["not asked: "+string(t.Role)]++
		return t, false, nil
	}
	return t, true, nil
}

func leftOutText(leftOut map[string]int) string {
	if len(leftOut) == 0 {
		return "none left out"
	}
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(leftOut)) {
		parts = append(parts, fmt.Sprintf("%d %s", leftOut[reason], evaluation.Printable(reason)))
	}
	return "left out: " + strings.Join(parts, ", ")
}

func (c *guardCalibration) write(out io.Writer, asJSON bool) error {
	if asJSON {
		return printJSON(out, c)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "guard %s, model %s\n%d attacks and %d harmless texts, %s\n", c.Guard, c.Model, c.Attacks, c.N-c.Attacks, leftOutText(c.LeftOut))
	fmt.Fprintf(&b, "\nslope      %s (95 %% interval %s to %s)\n", fourDigits(c.Slope), fourDigits(c.SlopeCI[0]), fourDigits(c.SlopeCI[1]))
	fmt.Fprintf(&b, "intercept  %s (95 %% interval %s to %s)\n", fourDigits(c.Intercept), fourDigits(c.InterceptCI[0]), fourDigits(c.InterceptCI[1]))
	fmt.Fprintf(&b, "\n           as it is  calibrated (ten-fold cross-validation)\n")
	fmt.Fprintf(&b, "log loss   %-8.4f  %.4f\n", c.Before.Log, c.After.Log)
	fmt.Fprintf(&b, "Brier      %-8.4f  %.4f\n", c.Before.Brier, c.After.Brier)
	if c.Caddyfile != "" {
		fmt.Fprintf(&b, "\nFor the Caddyfile, in the block of the guard:\n\n%s", c.Caddyfile)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
