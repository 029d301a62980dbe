package commands

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
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
Writes every receipt on one line, with its place in the log, oldest first:
{"seq":1,"log_prev":"…","receipt":{…}}. The receipt is there byte for byte as it is
stored. Each policy and setup is written before the first receipt that names it.
"caddy lex verify" reads these lines. Only a few receipts are held in memory at a
time.

The exit status is 1 if the export is incomplete. The export stops at a receipt
that cannot be read. It goes on after a receipt that does not match its id, does not
follow the one before it in the log, or whose policy or setup is not known, and names
the first of these at the end.`,
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
	log       audit.HeadReader
	line      []byte          // room for the next
	written   map[string]bool // by the hash of a document, unknown ones included
	receipts  int
	damaged   int
	first     error // of the damage
}

// receipt writes one entry. A damaged record is evidence, so it is written too, if it
// is JSON on one line, and otherwise as null.
func (e *exporter) receipt(ctx context.Context, where string, entry store.Receipt) error {
	e.receipts++
	if len(entry.JSON) > maxRecord {
		return fmt.Errorf("%s is over %d MiB, more than a line of an export may have; \"caddy lex verify --store\" checks it in the store", where, maxRecord>>20)
	}
	damage := e.follows(entry)
	r, err := kernel.OpenReceipt(entry.JSON)
	if err == nil && entry.ID != "" && entry.ID != r.ID {
		err = fmt.Errorf("%w: it is stored under the id of another", kernel.ErrReceiptID)
	}
	if damage = cmp.Or(err, damage); err == nil {
		missing, err := e.documentsOf(ctx, r)
		if err != nil {
			return err
		}
		damage = cmp.Or(damage, missing)
	}
	e.note(where, damage)
	e.line = audit.AppendLogLine(e.line[:0], entry)
	_, err = e.out.Write(e.line)
	return err
}

// follows returns what is wrong with the place of an entry in the log. A line of an older
// export has no place.
func (e *exporter) follows(entry store.Receipt) error {
	if err := e.log.Add(entry); entry.Seq > 0 {
		return err
	}
	return nil
}

// maxRecord leaves room for the place in the log on a line of an export.
const maxRecord = audit.MaxLine - 1<<10

// documentsOf writes the policy and the setup of a receipt, unless they were written
// before. missing says that one of them is not known.
func (e *exporter) documentsOf(ctx context.Context, r kernel.Receipt) (missing, err error) {
	for _, d := range []struct{ kind, hash string }{{"policy", r.Policy}, {"setup", r.Setup}} {
		err := e.document(ctx, d.kind, d.hash)
		if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrInvalid) {
			return nil, err
		}
		missing = cmp.Or(missing, err)
	}
	return missing, nil
}

// document writes a policy or setup before the first receipt that names it.
func (e *exporter) document(ctx context.Context, kind, hash string) error {
	if hash == "" || e.written[hash] {
		return nil
	}
	e.written[hash] = true
	text, err := audit.DocumentOf(ctx, e.documents, hash)
	if err != nil {
		return fmt.Errorf("reading the %s %s: %w", kind, hash, err)
	}
	_, err = fmt.Fprintf(e.out, "{%q:%s}\n", kind, text)
	return err
}

// note counts a receipt that is damaged, unless damage is nil.
func (e *exporter) note(where string, damage error) {
	if damage == nil {
		return
	}
	if e.damaged++; e.first == nil {
		e.first = fmt.Errorf("%s: %w", where, damage)
	}
}

// damage returns the error for an export with damaged records, or nil.
func (e *exporter) damage() error {
	if e.damaged == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d receipts are damaged, not in their place, or lack a policy or setup; \"caddy lex verify\" names them; the first: %w", e.damaged, e.receipts, e.first)
}
