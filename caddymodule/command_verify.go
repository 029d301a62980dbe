package caddymodule

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// maxFaults bounds how many faults are printed; all are counted.
const maxFaults = 20

func verifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify (--url <proxy> | --store <store> | <file>...) [--partial] [--texts <file>]",
		Short: "Verifies receipts: ids, chains, replay, and commitments to texts",
		Long: `
Verifies receipts from a running proxy (--url http://host:port), from a store
(--store redis://host:6379, or the path of an embedded database that nobody has
open), or from files of JSON lines as "caddy lex export" writes them, oldest
first ("-" is standard input).

Checked are every receipt's id, that its step gives the recorded numbers bit by
bit, and that it starts from what its predecessor left. Against a proxy or a
store the ends of the chains are compared with the heads of the sessions, so
that a cut tail is seen too; a file cannot show that.

--partial accepts receipts whose predecessors stand before the first one.
--texts reads JSON lines {"id", "prompt", "output"} and compares the texts with
the commitments; over --url this needs the environment variable ADMIN_PASSWORD.

The exit status is 1 when any check fails; each fault is named on a line.`,
	}
	trailFlags(cmd)
	cmd.Flags().Bool("partial", false, "Accept that earlier receipts are not there")
	cmd.Flags().String("texts", "", "JSON lines of texts to compare with the commitments")
	run(verifyReceipts, cmd)
	return cmd
}

func trailFlags(cmd *cobra.Command) {
	cmd.Flags().String("url", "", "Base URL of a running proxy")
	cmd.Flags().String("store", "", "redis:// URL, or path of an embedded database; {env.X} is replaced")
}

// openTrail opens what the flags and arguments name.
func openTrail(ctx context.Context, fl caddycmd.Flags) (trail, error) {
	url, place, files := fl.String("url"), fl.String("store"), fl.Args()
	switch {
	case url != "" && place == "" && len(files) == 0:
		return newProxyTrail(url)
	case url == "" && place != "" && len(files) == 0:
		return openStoreTrail(ctx, caddy.NewReplacer().ReplaceAll(place, ""))
	case url == "" && place == "" && len(files) > 0:
		return &fileTrail{names: files, policies: make(map[string][]byte)}, nil
	}
	return nil, errors.New("name one source: --url <proxy>, --store <store>, or files of JSON lines")
}

// A verifier checks the receipts of a trail, oldest first.
type verifier struct {
	trail    trail
	chain    kernel.Chain
	kernels  map[string]*kernel.Kernel
	out      io.Writer
	receipts int
	faults   int
	first    string // the first fault
}

func verifyReceipts(cmd *cobra.Command, fl caddycmd.Flags) error {
	t, err := openTrail(cmd.Context(), fl)
	if err != nil {
		return err
	}
	v := &verifier{
		trail: t, chain: kernel.Chain{Partial: fl.Bool("partial")},
		kernels: make(map[string]*kernel.Kernel), out: cmd.OutOrStdout(),
	}
	if err := errors.Join(v.run(cmd.Context(), fl.String("texts")), t.close()); err != nil {
		return err
	}
	if v.faults > 0 {
		return fmt.Errorf("%d faults in %d receipts; the first: %s", v.faults, v.receipts, v.first)
	}
	return nil
}

func (v *verifier) run(ctx context.Context, texts string) error {
	if err := v.trail.each(ctx, v.receipt); err != nil {
		return err
	}
	ends := v.chain.Ends()
	heads, err := v.heads(ctx, ends)
	if err != nil {
		return err
	}
	if texts != "" {
		if err := v.texts(ctx, texts); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(v.out, "%d receipts in %d chains, %d faults\n%s\n", v.receipts, len(ends), v.faults, heads)
	return err
}

// fault prints what is wrong.
func (v *verifier) fault(where, what string) {
	if v.faults++; v.faults == 1 {
		v.first = where + ": " + what
	}
	switch {
	case v.faults <= maxFaults:
		_, _ = fmt.Fprintf(v.out, "fault: %s: %s\n", where, what)
	case v.faults == maxFaults+1:
		_, _ = fmt.Fprintln(v.out, "fault: more follow, which are only counted")
	}
}

// receipt checks one entry. A broken one takes its place in the chain, so that
// its successor is not blamed.
func (v *verifier) receipt(ctx context.Context, where string, entry store.Receipt) error {
	v.receipts++
	r, err := kernel.OpenReceipt(entry.JSON)
	if err == nil && entry.ID != "" && entry.ID != r.ID {
		err = fmt.Errorf("%w: it stands under the id of another", kernel.ErrReceiptID)
	}
	if err != nil {
		v.fault(where, err.Error())
	}
	if errors.Is(err, kernel.ErrReceipt) {
		return nil
	}
	k, failed := v.kernel(ctx, r.Policy)
	switch {
	case errors.Is(failed, store.ErrNotFound), errors.Is(failed, kernel.ErrPolicy):
		v.fault(where, "its policy "+r.Policy+" is not known; a file holds it on a line of its own, as export writes it")
		return nil
	case failed != nil:
		return failed
	}
	if err == nil {
		if err := k.Replay(r); err != nil {
			v.fault(where, err.Error())
		}
	}
	if chained := v.chain.Add(k, r); chained != nil && err == nil {
		v.fault(where, chained.Error())
	}
	return nil
}

func (v *verifier) kernel(ctx context.Context, hash string) (*kernel.Kernel, error) {
	if k, known := v.kernels[hash]; known {
		return k, nil
	}
	k, err := kernelOf(ctx, v.trail, hash)
	if err == nil {
		v.kernels[hash] = k
	}
	return k, err
}

// heads compares the ends of the chains with the heads of their sessions.
func (v *verifier) heads(ctx context.Context, ends []string) (string, error) {
	unknown := 0
	for _, id := range ends {
		head, err := v.trail.head(ctx, id)
		if errors.Is(err, errNoHeads) {
			return "cut tails: unknown; a file cannot show whether later receipts were cut off", nil
		}
		if err != nil {
			return "", err
		}
		if head.isFault() {
			v.fault(id, "head: "+head.detail)
		}
		if head.ok == nil {
			unknown++
		}
	}
	return fmt.Sprintf("cut tails: looked for in %d chains, not known of %d whose sessions are gone", len(ends)-unknown, unknown), nil
}

// spoken is one line of --texts.
type spoken struct {
	ID     string  `json:"id"`
	Prompt *string `json:"prompt"`
	Output *string `json:"output"`
}

func (v *verifier) texts(ctx context.Context, name string) error {
	file, err := os.Open(name) //nolint:gosec // G304: whoever runs the command names the file
	if err != nil {
		return fmt.Errorf("reading the texts: %w", err)
	}
	defer file.Close()
	return eachLine(file, func(n int, line []byte) error {
		var s spoken
		if err := json.Unmarshal(line, &s); err != nil || s.ID == "" {
			return fmt.Errorf("reading the texts: line %d is not {\"id\", \"prompt\", \"output\"}", n)
		}
		verdicts, err := v.trail.compare(ctx, s)
		if err != nil {
			return err
		}
		for _, verdict := range verdicts {
			if verdict.ok == nil || !*verdict.ok {
				v.fault(s.ID, verdict.detail)
			}
		}
		return nil
	})
}

// maxLine bounds a line of JSON and what a proxy answers: a receipt that lists
// every part of the largest request is far under it.
const maxLine = 32 << 20

// tooLong is what is over maxLine.
var tooLong = fmt.Sprintf("over %d MiB", maxLine>>20)

// eachLine visits the lines that are not blank, counted from 1.
func eachLine(r io.Reader, visit func(n int, line []byte) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	n := 1
	for ; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		if err := visit(n, lines.Bytes()); err != nil {
			return err
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("line %d is %s, more than a line may have", n, tooLong)
	case err != nil:
		return fmt.Errorf("reading line %d: %w", n, err)
	}
	return nil
}
