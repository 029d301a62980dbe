package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/caddy-lex/lex/audit"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/store/bolt"
	"github.com/caddy-lex/lex/store/redis"
)

func sourceFlags(cmd *cobra.Command) {
	cmd.Flags().String("url", "", "Base URL of a running proxy")
	cmd.Flags().String("store", "", "redis:// URL, or path of an embedded database; {env.X} is replaced")
}

// openSource opens the source of receipts that the flags and arguments name. The
// caller calls shut when it has finished reading.
func openSource(ctx context.Context, fl caddycmd.Flags) (source audit.Source, shut func() error, err error) {
	nothing := func() error { return nil }
	url, place, files := fl.String("url"), fl.String("store"), fl.Args()
	switch {
	case url != "" && place == "" && len(files) == 0:
		p, err := newProxy("--url", url)
		if err != nil {
			return nil, nil, err
		}
		p.open(adminVariable, "X-Lex-Admin-Password") // needed to compare texts, and if reading is not public
		return proxySource{p}, nothing, nil
	case url == "" && place != "" && len(files) == 0:
		path := caddy.NewReplacer().ReplaceAll(place, "")
		if path == "" {
			return nil, nil, fmt.Errorf("--store %s is empty: set what it names", place) // placeholders alone, and no password
		}
		s, err := openStore(ctx, path)
		if err != nil {
			return nil, nil, err
		}
		return audit.NewStoreSource(s), s.Close, nil
	case url == "" && place == "" && len(files) > 0:
		return audit.NewFileSource(files...), nothing, nil
	}
	return nil, nil, errors.New("name one source: --url <proxy>, --store <store>, or files of JSON lines")
}

// openStore opens a Redis by its URL, or an embedded database by its path.
func openStore(ctx context.Context, place string) (store.Store, error) {
	if strings.HasPrefix(place, "redis://") || strings.HasPrefix(place, "rediss://") {
		s, err := redis.Open(ctx, []string{place}, redis.Options{ReadOnly: true})
		if err != nil {
			return nil, fmt.Errorf("opening the store: %w", err)
		}
		return s, nil
	}
	s, err := bolt.Open(place, bolt.Options{MustExist: true})
	if err != nil {
		return nil, err
	}
	if s.JournalLost() {
		_, _ = fmt.Fprintf(os.Stderr, "%s was not closed, and %s.journal is missing, cut or overwritten: the last turns may be lost\n", place, place)
	}
	return s, nil
}

// watch returns the source; see is shown each receipt that is read from it, before the
// reader is.
func watch(source audit.Source, see func(store.Receipt)) audit.Source {
	watched := watchedSource{source, see}
	if sessions, known := source.(audit.SessionSource); known {
		return struct {
			watchedSource
			audit.SessionSource
		}{watched, sessions}
	}
	return watched
}

type watchedSource struct {
	audit.Source
	see func(store.Receipt)
}

func (w watchedSource) Each(ctx context.Context, visit audit.Visit) error {
	return w.Source.Each(ctx, func(ctx context.Context, where string, entry store.Receipt) error {
		w.see(entry)
		return visit(ctx, where, entry)
	})
}

// A proxySource reads the receipts of a running proxy over HTTP.
type proxySource struct{ *proxy }

var (
	_ audit.Source        = proxySource{}
	_ audit.SessionSource = proxySource{}
)

// logLimit is the most receipts that a page of the proxy's log can have.
const logLimit = 1000

// Each reads the log page by page until one is empty.
func (s proxySource) Each(ctx context.Context, visit audit.Visit) error {
	for after := uint64(0); ; {
		path := fmt.Sprintf("/audits/log?after=%d&limit=%d", after, logLimit)
		var page []byte
		err := s.ask(ctx, call{http.MethodGet, path, nil, http.StatusOK, mediaLines}, &page)
		if errors.Is(err, store.ErrNotFound) { // an older Lex
			return fmt.Errorf("%w: %w", err, errNoLex)
		}
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return nil
		}
		if after, err = eachOfPage(ctx, page, after, visit); err != nil {
			return fmt.Errorf("asking the proxy for %s: %w", path, err)
		}
	}
}

// eachOfPage visits the receipts of a page and returns the place of the last. Places that
// do not grow would never end.
func eachOfPage(ctx context.Context, page []byte, after uint64, visit audit.Visit) (uint64, error) {
	for line := range bytes.Lines(page) {
		line, whole := bytes.CutSuffix(line, []byte("\n"))
		entry, known := audit.ParseLogLine(line)
		switch {
		case !whole:
			return after, errors.New("its last line is cut")
		case !known:
			return after, fmt.Errorf("the answer is no page of a log: %w", errNoLex)
		case entry.Seq <= after:
			return after, fmt.Errorf("the log goes back from place %d to %d", after, entry.Seq)
		}
		if err := visit(ctx, fmt.Sprintf("place %d of the log", entry.Seq), entry); err != nil {
			return after, err
		}
		after = entry.Seq
	}
	return after, nil
}

// Document asks for a policy and, if there is none with the hash, for a setup.
func (s proxySource) Document(ctx context.Context, hash string) ([]byte, error) {
	if !kernel.IsHex256(hash) {
		return nil, store.ErrNotFound
	}
	var text jsontext.Value
	err := s.ask(ctx, reading("/lex/policies/"+hash), &text)
	if errors.Is(err, store.ErrNotFound) {
		err = s.ask(ctx, reading("/lex/setups/"+hash), &text)
	}
	return text, err
}

func (s proxySource) Head(ctx context.Context, id string) (audit.Check, error) {
	report, err := s.verify(ctx, audit.Texts{ID: id})
	if err != nil {
		return audit.Check{}, err
	}
	for _, c := range report.Checks {
		if c.Name == "chain" {
			return c, nil
		}
	}
	return audit.Check{Name: "chain", Detail: "the proxy did not make this check"}, nil
}

func (s proxySource) CompareTexts(ctx context.Context, t audit.Texts) ([]audit.Check, error) {
	report, err := s.verify(ctx, t)
	if err != nil {
		return nil, err
	}
	var checks []audit.Check
	for _, c := range report.Checks {
		if strings.HasSuffix(c.Name, "_commitment") || c.Failed() {
			checks = append(checks, c)
		}
	}
	return checks, nil
}

// verify asks the proxy to verify a receipt, and its texts if there are any.
func (s proxySource) verify(ctx context.Context, t audit.Texts) (audit.Report, error) {
	question := struct {
		ID        string         `json:"receipt_id"`
		Prompt    *string        `json:"prompt,omitzero"`
		Output    *string        `json:"output,omitzero"`
		Arguments *string        `json:"arguments,omitzero"`
		Openings  audit.Openings `json:"openings,omitzero"`
	}{t.ID, t.Prompt, t.Output, t.Arguments, t.Openings}
	var report audit.Report
	err := s.ask(ctx, call{http.MethodPost, "/audits/verify", question, http.StatusOK, mediaJSON}, &report)
	if err == nil && len(report.Checks) == 0 {
		err = fmt.Errorf("asking the proxy for /audits/verify: the answer names no check: %w", errNoLex)
	}
	return report, err
}
