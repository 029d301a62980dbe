package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-lex/lex/audit"
	"github.com/caddy-lex/lex/caddymodule"
	"github.com/caddy-lex/lex/evaluation"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
)

func calibrateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "calibrate --benign <file>... | --url <url> [--attacks <file>...] [--fpr 0.5%] [--config <file> [--adapter <name>]] [--json] | --guard <name> --labelled <file>... --config <file> [--adapter <name>] [--json]",
		Short: "Finds the threshold that refuses a given share of your own harmless prompts, or calibrates a guard",
		Long: `
Reads harmless prompts, JSON lines as for "caddy lex assess" or "caddy lex bench",
and prints the refuse_at that refuses the share --fpr of such prompts, with its
95 % interval, what the present and the proposed threshold refuse of them by attack
type, and the lines for the Caddyfile. With --attacks it also prints what the two
thresholds refuse of these prompts.

Give prompts of your own traffic that somebody has looked through: what is attack
among them counts as a false alarm. Lines with a label of attacks are left out of
--benign, and lines with a harmless label out of --attacks. The fewer false alarms
are asked for, the more prompts are needed: 368 for 1 %, 736 for 0.5 %, 1843 for
0.2 %. With fewer there is no threshold, and the exit status is 1.

With --url the turns that a running proxy has counted take the place of the harmless
prompts (GET /stats). What is attack among them counts as a false alarm too. If the
proxy does not show its statistics to everybody, give the environment variable
ADMIN_PASSWORD.

--config names the configuration whose policy and embedder decide. With --url, give
the proxy's.

With --guard the guard of this name is asked about the texts of --labelled instead, JSON
lines as for "caddy lex bench", and what corrects its probabilities is fitted to their
labels (Platt scaling). The line for the guard's block is printed only if it lowers the
log loss on texts that it was not fitted to; otherwise the exit status is 1.

A line that cannot be read is reported on standard error and left out, and the
exit status is then 1. Prompts on which detection was degraded, because the embedder
or a guard gave no whole verdict, are left out and counted, with the same status.`,
	}
	cmd.Flags().StringArray("benign", nil, "File of harmless prompts in JSON lines; may be given several times")
	cmd.Flags().String("url", "", "Base URL of a running proxy whose traffic takes the place of harmless prompts")
	cmd.Flags().StringArray("attacks", nil, "File of attacks in JSON lines; may be given several times")
	cmd.Flags().String("fpr", "0.5%", "Share of harmless prompts that may be refused")
	configFlags(cmd, "Configuration file whose policy and embedder decide")
	cmd.Flags().Bool("json", false, "Write one JSON object")
	cmd.Flags().String("guard", "", "Name of a guard of the configuration, to calibrate it")
	cmd.Flags().StringArray("labelled", nil, "File of labelled texts in JSON lines for --guard; may be given several times")
	run(calibrate, cmd)
	return cmd
}

// A calibration is what the command finds. --json writes it.
type calibration struct {
	Version  string         `json:"version"`
	Detector string         `json:"detector"`
	LeftOut  map[string]int `json:"left_out"` // lines, by label or the reason
	evaluation.Threshold
	Present float64 `json:"refuse_at_present"`
	// Caddyfile is the block policy with the options to change; "" without a threshold.
	Caddyfile string         `json:"caddyfile"`
	Benign    []refusedShare `json:"benign"`
	Attacks   []refusedShare `json:"attacks"` // null if none were given
}

// A refusedShare says what the two thresholds refuse of the texts of one attack type.
type refusedShare struct {
	AttackType string `json:"attack_type"` // all: of any
	N          int64  `json:"n"`
	Present    share  `json:"present"`
	Proposed   *share `json:"proposed"` // null without a threshold
}

// A share is a part of n texts, in per cent with its exact 95 % interval.
type share struct {
	Refused int64      `json:"refused"`
	Pct     float64    `json:"refused_pct"`
	CI      [2]float64 `json:"refused_ci95"`
}

func calibrate(cmd *cobra.Command, fl caddycmd.Flags) error {
	if fl.Changed("guard") || fl.Changed("labelled") {
		return calibrateGuard(cmd, fl)
	}
	benign, attacks, rate, err := calibrateFlags(fl)
	if err != nil {
		return err
	}
	app, err := dryRunApp(fl.String("config"), fl.String("adapter"), promptOptions...)
	if err != nil {
		return err
	}
	m := &leveller{app: app, leftOut: make(map[string]int), faults: cmd.ErrOrStderr()}
	harmless, err := m.harmless(cmd.Context(), benign, fl.String("url"))
	if err != nil {
		return err
	}
	harmful, err := m.read(cmd.Context(), attacks, evaluation.Attack, evaluation.WeakAttack)
	if err != nil {
		return err
	}

	policy := app.Governor().Kernel.Policy()
	c := calibration{
		Version: app.Governor().Version, Detector: detect.Default().Version(), LeftOut: m.leftOut,
		Threshold: evaluation.ThresholdFor(harmless.Total(), rate), Present: policy.RefuseAt,
	}
	if c.RefuseAt != nil {
		c.Caddyfile = policyBlock(policy, policy.RefusingFrom(*c.RefuseAt))
	}
	c.Benign = c.shares(harmless)
	if len(attacks) > 0 {
		c.Attacks = c.shares(harmful)
	}
	if err := c.write(cmd.OutOrStdout(), fl.Bool("json")); err != nil {
		return err
	}
	if err := m.degraded.err(); err != nil {
		return err
	}
	if m.bad > 0 {
		return fmt.Errorf("%d lines could not be assessed", m.bad)
	}
	return c.missing(harmless.Total())
}

func calibrateFlags(fl caddycmd.Flags) (benign, attacks []string, rate float64, err error) {
	benign, err1 := fl.GetStringArray("benign")
	attacks, err2 := fl.GetStringArray("attacks")
	rate, err3 := parseRate(fl.String("fpr"))
	switch {
	case len(fl.Args()) > 0:
		err = fmt.Errorf("unexpected argument %q: name files with --benign and --attacks", fl.Arg(0))
	case len(benign) > 0 && fl.String("url") != "":
		err = errors.New("--benign and --url both say which prompts are harmless: give one of them")
	case len(benign) == 0 && fl.String("url") == "":
		err = errors.New("name at least one file with --benign, or a proxy with --url")
	}
	return benign, attacks, rate, errors.Join(err, err1, err2, err3)
}

// parseRate reads a share such as "0.5%".
func parseRate(text string) (float64, error) {
	number, found := strings.CutSuffix(text, "%")
	pct, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !found || err != nil || !(pct >= 0.001 && pct <= 50) { // NaN is in no range
		return 0, errors.New("--fpr: give a share from 0.001% to 50%, such as 0.5%")
	}
	return pct / 100, nil
}

// levels are the levels of prompts by attack type, and how many of each type the present
// policy refuses: its refuse_at may lie between whole hundredths.
type levels struct {
	evaluation.LevelsByType
	refused map[string]int64
}

// A leveller finds the levels of prompts, file by file.
type leveller struct {
	app      *caddymodule.App
	leftOut  map[string]int
	degraded degradation
	bad      int       // lines that could not be read
	faults   io.Writer // where these are reported
}

// harmless returns the levels of the prompts in files, or of the traffic of a proxy.
func (m *leveller) harmless(ctx context.Context, files []string, url string) (levels, error) {
	if url == "" {
		return m.read(ctx, files, evaluation.Benign, evaluation.Borderline)
	}
	p, err := newProxy("--url", url)
	if err != nil {
		return levels{}, err
	}
	p.open(adminVariable, "X-Lex-Admin-Password")
	var stats struct {
		Thresholds *caddymodule.Thresholds `json:"thresholds"`
	}
	if err := p.ask(ctx, reading("/stats"), &stats); err != nil {
		return levels{}, err
	}
	if stats.Thresholds == nil {
		return levels{}, fmt.Errorf("asking the proxy for /stats: it counts no levels: %w", errNoLex)
	}
	counted, err := stats.Thresholds.Levels()
	if err != nil {
		return levels{}, fmt.Errorf("asking the proxy for /stats: %w", err)
	}
	found := levels{counted, make(map[string]int64)}
	present := m.app.Governor().Kernel.Policy().RefuseAt
	for attackType, l := range found.LevelsByType {
		// A threshold between whole hundredths refuses at least what the next one does.
		found.refused[attackType] = l.Refused(int(math.Ceil(present*100 - 1e-9)))
	}
	return found, nil
}

// read returns the levels of the prompts in the files that have no label or one of the
// kinds.
func (m *leveller) read(ctx context.Context, files []string, kinds ...evaluation.Kind) (levels, error) {
	found := levels{make(evaluation.LevelsByType), make(map[string]int64)}
	for _, name := range files {
		if err := m.readFile(ctx, name, kinds, found); err != nil {
			return found, err
		}
	}
	return found, nil
}

func (m *leveller) readFile(ctx context.Context, name string, kinds []evaluation.Kind, found levels) error {
	file, err := os.Open(name) //nolint:gosec // G304: the user of the command names the file
	if err != nil {
		return fmt.Errorf("reading the prompts: %w", err)
	}
	defer file.Close()
	return audit.EachLine(file, func(n int, line []byte) error {
		if err := m.add(ctx, line, kinds, found); err != nil {
			m.bad++
			_, err = fmt.Fprintf(m.faults, "%s: line %d: %v\n", name, n, err)
			return err
		}
		return ctx.Err()
	})
}

func (m *leveller) add(ctx context.Context, line []byte, kinds []evaluation.Kind, found levels) error {
	p, err := readPrompt(line)
	if err != nil {
		return err
	}
	if kind, _ := evaluation.KindOf(p.Label); p.Label != "" && !slices.Contains(kinds, kind) {
		m.leftOut[p.Label]++
		return nil
	}
	if err := p.check(); err != nil {
		return err
	}
	d, err := decide(ctx, m.app, p, speakerOf(p.Channel))
	if err != nil {
		return err
	}
	if m.degraded.leavesOut(d.failed) { // refuse_at_degraded decides
		m.leftOut[leftOutDegraded]++
		return nil
	}
	k := m.app.Governor().Kernel
	level := k.Level(&d.Turn)
	found.Add(string(d.AttackType), kernel.Hundredths(level))
	if level >= k.Policy().RefuseAt {
		found.refused[string(d.AttackType)]++
	}
	return nil
}

// shares returns what is refused of the prompts, of all and then by attack type.
func (c *calibration) shares(found levels) []refusedShare {
	all := refusedShare{AttackType: "all"}
	var rows []refusedShare
	for _, attackType := range slices.Sorted(maps.Keys(found.LevelsByType)) {
		row := c.share(attackType, found.LevelsByType[attackType], found.refused[attackType])
		all.Present.Refused += row.Present.Refused
		rows = append(rows, row)
	}
	return append([]refusedShare{c.share("all", found.Total(), all.Present.Refused)}, rows...)
}

func (c *calibration) share(attackType string, l *evaluation.Levels, refused int64) refusedShare {
	n := l.N()
	row := refusedShare{AttackType: attackType, N: n, Present: newShare(refused, n)}
	if c.RefuseAt != nil {
		row.Proposed = new(newShare(l.Refused(kernel.Hundredths(*c.RefuseAt)), n))
	}
	return row
}

func newShare(refused, n int64) share {
	if n == 0 {
		return share{CI: [2]float64{0, 100}}
	}
	return share{refused, evaluation.Percent(int(refused), int(n)), evaluation.ClopperPearson(refused, n)}
}

// policyBlock returns the options of the policy in which the two differ. The first is
// always there, because it is what was asked for.
func policyBlock(present, proposed kernel.Policy) string {
	var b strings.Builder
	fmt.Fprintf(&b, "policy {\n\trefuse_at %.2f\n", proposed.RefuseAt)
	for _, o := range []struct {
		name     string
		from, to float64
	}{
		{"refuse_at_degraded", present.RefuseAtDegraded, proposed.RefuseAtDegraded},
		{"severe_at", present.SevereAt, proposed.SevereAt},
		{"threat_severity", present.ThreatSeverity, proposed.ThreatSeverity},
	} {
		if o.from != o.to {
			fmt.Fprintf(&b, "\t%s %.2f\n", o.name, o.to)
		}
	}
	return b.String() + "}\n"
}

// missing returns the error of a calibration without a threshold.
func (c *calibration) missing(l *evaluation.Levels) error {
	switch n := l.N(); {
	case c.RefuseAt != nil:
		return nil
	case n < c.Needed:
		return fmt.Errorf("a rate of %s needs at least %d harmless prompts, and there are %d", percent(c.Rate), c.Needed, n)
	default:
		return fmt.Errorf("no refuse_at keeps a rate of %s: %d of %d prompts are refused at %.2f, the highest that there is, or for other reasons than severity",
			percent(c.Rate), l.Refused(evaluation.HighestThreshold), n, evaluation.HighestThreshold/100.0)
	}
}

func percent(rate float64) string { return strconv.FormatFloat(100*rate, 'g', 4, 64) + " %" }

func (c *calibration) write(out io.Writer, asJSON bool) error {
	if asJSON {
		return printJSON(out, c)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "%s, detector %s\n", c.Version, c.Detector)
	for _, label := range slices.Sorted(maps.Keys(c.LeftOut)) {
		_, _ = fmt.Fprintf(w, "left out: %d %s\n", c.LeftOut[label], evaluation.Printable(label))
	}
	if c.RefuseAt != nil {
		_, _ = fmt.Fprintf(w, "\nFor a false-alarm rate of %s: refuse_at %.2f (95 %% interval %.2f to %.2f)\n", percent(c.Rate), *c.RefuseAt, c.RefuseAtCI[0], c.RefuseAtCI[1])
	}
	c.writeShares(w, "Harmless prompts", c.Benign)
	if c.Attacks != nil {
		c.writeShares(w, "Attacks", c.Attacks)
	}
	if err := w.Flush(); err != nil || c.Caddyfile == "" { // also an error of the lines before
		return err
	}
	_, err := fmt.Fprintf(out, "\nFor the Caddyfile, in the global option lex:\n\n%s", c.Caddyfile)
	return err
}

func (c *calibration) writeShares(w io.Writer, title string, rows []refusedShare) {
	_, _ = fmt.Fprintf(w, "\n%s refused (per cent, exact 95 %% intervals)\n", title)
	header := fmt.Sprintf("attack type\tn\tat %.2f, as it is", c.Present)
	if c.RefuseAt != nil {
		header += fmt.Sprintf("\tat %.2f", *c.RefuseAt)
	}
	_, _ = fmt.Fprintln(w, header)
	for _, r := range rows {
		line := fmt.Sprintf("%s\t%d\t%s", r.AttackType, r.N, r.Present)
		if r.Proposed != nil {
			line += fmt.Sprintf("\t%s", *r.Proposed)
		}
		_, _ = fmt.Fprintln(w, line)
	}
}

// String returns the count, and the share with its interval.
func (s share) String() string {
	return fmt.Sprintf("%d: %.2f (%.2f to %.2f)", s.Refused, s.Pct, s.CI[0], s.CI[1])
}
