package commands

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-lex/lex/audit"
)

func verifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify (--url <proxy> | --store <store> | <file>...) [--partial] [--texts <file>] [--since <head> --key <verifier key>]",
		Short: "Verifies receipts: form, replay, chains, log, and commitments to texts",
		Long: `
Verifies receipts from a running proxy (--url http://host:port), from a store
(--store redis://host:6379, or the path of an embedded database that no process
has open), or from files of JSON lines as "caddy lex export" writes them, oldest
first ("-" is standard input).

It makes five checks of every receipt, and counts the faults of each:

form    the record is canonical JSON, its id is its hash, and its members do not
        contradict one another
replay  the recorded step, taken again, gives the recorded numbers bit by bit
chain   the step starts from the state that its predecessor left. With a proxy or
        a store the ends of the chains are also compared with the heads of the
        sessions, which shows whether later receipts were cut off. A file cannot
        show that.
log     the receipt stands in the log of the store: no number is left out or
        repeated, and each receipt names the one before it by its hash
setup   the setup that the receipt names, if it is there, has that hash

--partial accepts receipts whose predecessors are not in the source.
--texts reads JSON lines {"id", "prompt", "output", "arguments", "openings"} and
compares the texts with the commitments, by the openings {"prompt", "output",
"arguments"} that came with the answer, or without them by the secret of the
session, for which a proxy wants the environment variable ADMIN_PASSWORD. Prompts
are also scored again, where the setup names the detector model of this program
and the scores follow from the prompt alone.
--since reads a head that "caddy lex head --sign" signed, and --key verifies it. The
log must begin with what the head was made of.

The exit status is 1 if a check fails. Each fault is printed on a line, up to the
twentieth; all are counted.`,
	}
	sourceFlags(cmd)
	cmd.Flags().Bool("partial", false, "Accept that earlier receipts are missing")
	cmd.Flags().String("texts", "", "JSON lines of texts to compare with the commitments")
	sinceFlags(cmd)
	run(verifyReceipts, cmd)
	return cmd
}

func verifyReceipts(cmd *cobra.Command, fl caddycmd.Flags) error {
	since, err := openSince(fl)
	if err != nil {
		return err
	}
	texts, err := readTexts(fl.String("texts"))
	if err != nil {
		return err
	}
	source, shut, err := openSource(cmd.Context(), fl)
	if err != nil {
		return err
	}
	source = texts.watch(since.watch(source))
	faults := &faultPrinter{out: cmd.OutOrStdout(), of: make(map[string]int)}
	v := audit.NewVerifier(source, fl.Bool("partial"), faults.print)
	summary, err := v.Verify(cmd.Context())
	if err == nil {
		err = texts.compare(cmd.Context(), v, source, faults)
	}
	if err == nil {
		since.compare(faults)
		_, err = fmt.Fprintf(faults.out, "%d receipts in %d chains, %s\n%s\n%s\n%s", summary.Receipts, summary.Chains, faults, tails(summary), places(summary), setups(summary))
		texts.report(faults.out)
	}
	if err := errors.Join(err, shut()); err != nil {
		return err
	}
	if faults.n > 0 {
		return fmt.Errorf("%d faults in %d receipts; the first: %s", faults.n, summary.Receipts, faults.first)
	}
	return nil
}

// places reports what is known about receipts that are missing from the log.
func places(s audit.Summary) string {
	switch {
	case s.LastPlace == 0:
		return "log: unknown; the source does not number its receipts"
	case s.Unplaced > 0:
		return fmt.Sprintf("log: receipts %d to %d, %d of them from before there was a log", s.FirstPlace, s.LastPlace, s.Unplaced)
	}
	return fmt.Sprintf("log: receipts %d to %d", s.FirstPlace, s.LastPlace)
}

// tails reports what is known about receipts that were cut off at the ends of the
// chains.
func tails(s audit.Summary) string {
	if !s.HeadsKnown {
		return "cut tails: unknown; a file cannot show whether later receipts were cut off"
	}
	return fmt.Sprintf("cut tails: looked for in %d chains, not known for %d, whose sessions are gone or whose clients went back", s.Chains-s.HeadsUnknown, s.HeadsUnknown)
}

// setups reports whether what decided beside the policies is known.
func setups(s audit.Summary) string {
	if s.SetupsUnknown == 0 {
		return ""
	}
	return fmt.Sprintf("setups: %d that receipts name are not here\n", s.SetupsUnknown)
}

// maxFaults bounds how many faults are printed; all are counted.
const maxFaults = 20

// A faultPrinter prints each fault on a line, counts them by check and keeps the first.
type faultPrinter struct {
	out   io.Writer
	n     int
	of    map[string]int
	first string
}

func (f *faultPrinter) print(where string, c audit.Check) {
	what := fmt.Sprintf("%s: %s: %s", where, c.Name, c.Detail)
	f.of[c.Name]++
	if f.n++; f.n == 1 {
		f.first = what
	}
	switch {
	case f.n <= maxFaults:
		_, _ = fmt.Fprintf(f.out, "fault: %s\n", what)
	case f.n == maxFaults+1:
		_, _ = fmt.Fprintln(f.out, "fault: there are more; they are only counted")
	}
}

// String counts the faults, and those of each check if there are any.
func (f *faultPrinter) String() string {
	if f.n == 0 {
		return "0 faults"
	}
	kinds := make([]string, 0, len(f.of))
	for _, name := range slices.Sorted(maps.Keys(f.of)) {
		kinds = append(kinds, fmt.Sprintf("%s %d", name, f.of[name]))
	}
	return fmt.Sprintf("%d faults: %s", f.n, strings.Join(kinds, ", "))
}
