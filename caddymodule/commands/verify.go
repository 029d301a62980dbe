package commands

import (
	"errors"
	"fmt"
	"io"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-lex/lex/audit"
)

func verifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify (--url <proxy> | --store <store> | <file>...) [--partial] [--texts <file>]",
		Short: "Verifies receipts: ids, chains, replay, and commitments to texts",
		Long: `
Verifies receipts from a running proxy (--url http://host:port), from a store
(--store redis://host:6379, or the path of an embedded database that no process
has open), or from files of JSON lines as "caddy lex export" writes them, oldest
first ("-" is standard input).

It checks the id of every receipt, recomputes its step and compares the numbers
bit by bit, and checks that the step starts from the state that its predecessor
left. With a proxy or a store it also compares the ends of the chains with the
heads of the sessions, which shows whether later receipts were cut off. A file
cannot show that.

--partial accepts receipts whose predecessors are not in the source.
--texts reads JSON lines {"id", "prompt", "output", "arguments", "openings"} and
compares the texts with the commitments, by the openings {"prompt", "output",
"arguments"} that came with the answer, or without them by the secret of the
session, for which a proxy wants the environment variable ADMIN_PASSWORD. Prompts
are also scored again, where the setup names the detector model of this program
and the scores follow from the prompt alone.

The exit status is 1 if a check fails. Each fault is printed on a line.`,
	}
	sourceFlags(cmd)
	cmd.Flags().Bool("partial", false, "Accept that earlier receipts are missing")
	cmd.Flags().String("texts", "", "JSON lines of texts to compare with the commitments")
	run(verifyReceipts, cmd)
	return cmd
}

func verifyReceipts(cmd *cobra.Command, fl caddycmd.Flags) error {
	texts, err := readTexts(fl.String("texts"))
	if err != nil {
		return err
	}
	source, shut, err := openSource(cmd.Context(), fl)
	if err != nil {
		return err
	}
	source = texts.watch(source)
	faults := &faultPrinter{out: cmd.OutOrStdout()}
	v := audit.NewVerifier(source, fl.Bool("partial"), faults.print)
	summary, err := v.Verify(cmd.Context())
	if err == nil {
		err = texts.compare(cmd.Context(), v, source, faults)
	}
	if err == nil {
		_, err = fmt.Fprintf(faults.out, "%d receipts in %d chains, %d faults\n%s\n", summary.Receipts, summary.Chains, faults.n, tails(summary))
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

// tails reports what is known about receipts that were cut off at the ends of the
// chains.
func tails(s audit.Summary) string {
	if !s.HeadsKnown {
		return "cut tails: unknown; a file cannot show whether later receipts were cut off"
	}
	return fmt.Sprintf("cut tails: looked for in %d chains, not known for %d whose sessions are gone", s.Chains-s.HeadsGone, s.HeadsGone)
}

// maxFaults bounds how many faults are printed; all are counted.
const maxFaults = 20

// A faultPrinter prints each fault on a line and keeps the first.
type faultPrinter struct {
	out   io.Writer
	n     int
	first string
}

func (f *faultPrinter) print(where, what string) {
	if f.n++; f.n == 1 {
		f.first = where + ": " + what
	}
	switch {
	case f.n <= maxFaults:
		_, _ = fmt.Fprintf(f.out, "fault: %s: %s\n", where, what)
	case f.n == maxFaults+1:
		_, _ = fmt.Fprintln(f.out, "fault: there are more; they are only counted")
	}
}
