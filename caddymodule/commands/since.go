package commands

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/note"

	"github.com/caddy-lex/lex/audit"
	"github.com/caddy-lex/lex/store"
)

func sinceFlags(cmd *cobra.Command) {
	cmd.Flags().String("since", "", "A signed head that the log must extend, as \"caddy lex head --sign\" writes it")
	cmd.Flags().String("key", "", "The verifier key of --since; {file.X} and {env.X} are replaced")
}

// A signedHead is what the flags --since and --key name, and what is read to compare with
// it. A nil one compares nothing.
type signedHead struct {
	head   audit.Head
	reader *audit.HeadReader
}

// openSince returns the head of the flags, nil if there is none.
func openSince(fl caddycmd.Flags) (*signedHead, error) {
	name, key := fl.String("since"), fl.String("key")
	switch {
	case name == "" && key == "":
		return nil, nil
	case name == "" || key == "":
		return nil, errors.New("give --since and --key together: a head that is not verified shows nothing")
	}
	verifier, err := note.NewVerifier(strings.TrimSpace(caddy.NewReplacer().ReplaceAll(key, "")))
	if err != nil {
		return nil, errors.New("--key: it is not the verifier key that \"caddy lex head --keygen\" printed")
	}
	signed, err := os.ReadFile(name) //nolint:gosec // G304: the user of the command names the file
	if err != nil {
		return nil, fmt.Errorf("--since: %w", err)
	}
	head, err := audit.OpenHead(signed, verifier)
	if err != nil {
		return nil, fmt.Errorf("--since: %w", err)
	}
	return &signedHead{head, audit.NewHeadReader(head.Size)}, nil
}

// watch returns the source with every receipt that is read from it taken into the head.
func (s *signedHead) watch(source audit.Source) audit.Source {
	if s == nil {
		return source
	}
	return watch(source, func(entry store.Receipt) {
		_ = s.reader.Add(entry) // what does not follow is a fault of the log; here it makes another root
	})
}

// compare says that the log extends the head, or reports the fault that it does not.
func (s *signedHead) compare(faults *faultPrinter) {
	if s == nil {
		return
	}
	if err := s.reader.Extends(s.head); err != nil {
		faults.print("the log", audit.Check{Name: "since", Detail: err.Error()})
		return
	}
	_, _ = fmt.Fprintf(faults.out, "since: the log extends the signed head of %d receipts at %s\n", s.head.Size, s.head.Time.Format(time.RFC3339))
}
