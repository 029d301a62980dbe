package commands

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/caddy-lex/lex/audit"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

func exportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export (--url <proxy> | --store <store>)",
		Short: "Writes all receipts as JSON lines, oldest first",
		Long: `
Writes every receipt on one line, byte for byte as it is stored, oldest first. Each
policy is written before the first receipt that names it. "caddy lex verify" reads
these lines. Only a few receipts are held in memory at a time.

The exit status is 1 if the export is incomplete. The export stops at a receipt
that cannot be read. It goes on after a receipt that does not match its id or
whose policy is not known, and names the first of these at the end.`,
	}
	sourceFlags(cmd)
	run(exportReceipts, cmd)
	return cmd
}

func exportReceipts(cmd *cobra.Command, fl caddycmd.Flags) error {
	source, shut, err := openSource(cmd.Context(), fl)
	if err != nil {
		return err
	}
	e := &exporter{documents: source, out: bufio.NewWriter(cmd.OutOrStdout()), written: make(map[string]bool)}
	err = source.Each(cmd.Context(), e.receipt)
	return errors.Join(err, e.out.Flush(), shut(), e.damage())
}

// An exporter writes receipts as lines.
type exporter struct {
	documents audit.Documents
	out       *bufio.Writer
	written   map[string]bool // by the hash of a policy, unknown policies included
	receipts  int
	damaged   int
	first     error // of the damage
}

// receipt writes one entry. A damaged record is evidence, so it is written too, if it
// is JSON on one line.
func (e *exporter) receipt(ctx context.Context, where string, entry store.Receipt) error {
	e.receipts++
	if len(entry.JSON) > audit.MaxLine {
		return fmt.Errorf("%s is over %d MiB, more than a line of an export may have; \"caddy lex verify --store\" checks it in the store", where, audit.MaxLine>>20)
	}
	r, err := kernel.OpenReceipt(entry.JSON)
	if err == nil && entry.ID != "" && entry.ID != r.ID {
		err = fmt.Errorf("%w: it is stored under the id of another", kernel.ErrReceiptID)
	}
	if err == nil {
		err = e.policy(ctx, r.Policy)
	}
	switch {
	case errors.Is(err, kernel.ErrReceipt), errors.Is(err, kernel.ErrReceiptID), errors.Is(err, store.ErrNotFound):
		e.note(where, err)
	case err != nil:
		return err
	}
	valid := jsontext.Value(entry.JSON).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if bytes.ContainsAny(entry.JSON, "\r\n") || !valid {
		return nil
	}
	_, err = fmt.Fprintf(e.out, "%s\n", entry.JSON)
	return err
}

// policy writes the policy before its first receipt.
func (e *exporter) policy(ctx context.Context, hash string) error {
	if e.written[hash] {
		return nil
	}
	e.written[hash] = true
	text, err := e.documents.Document(ctx, hash)
	if err != nil {
		return fmt.Errorf("reading the policy %s: %w", hash, err)
	}
	_, err = fmt.Fprintf(e.out, "{\"policy\":%s}\n", text)
	return err
}

func (e *exporter) note(where string, err error) {
	if e.damaged++; e.first == nil {
		e.first = fmt.Errorf("%s: %w", where, err)
	}
}

// damage returns the error for an export with damaged records, or nil.
func (e *exporter) damage() error {
	if e.damaged == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d receipts are damaged or have no policy; \"caddy lex verify\" names them; the first: %w", e.damaged, e.receipts, e.first)
}
