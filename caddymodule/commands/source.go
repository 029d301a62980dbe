package commands

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
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
		s, err := openStore(ctx, caddy.NewReplacer().ReplaceAll(place, ""))
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
		s, err := redis.Open(ctx, []string{place}, redis.Options{})
		if err != nil {
			return nil, fmt.Errorf("opening the store: %w", err)
		}
		return s, nil
	}
	if _, err := os.Stat(place); err != nil { // opening would create it
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	return bolt.Open(place, bolt.Options{})
}

// A proxySource reads the receipts of a running proxy over HTTP.
type proxySource struct{ *proxy }

var (
	_ audit.Source        = proxySource{}
	_ audit.SessionSource = proxySource{}
)

// recentLimit is the most receipts that a page of the proxy's list can have.
const recentLimit = 200

func (s proxySource) Each(ctx context.Context, visit audit.Visit) error {
	list := func(place string) ([]string, string, error) { return s.list(ctx, place) }
	return audit.OldestFirst(list, func(id string) error {
		var record []byte
		_, err := s.ask(ctx, http.MethodGet, "/audits/"+id, nil, &record)
		if errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("%s is in the list of receipts but is not there: it was removed, or another proxy answered at %s: %w", id, s.base, err)
		}
		if err != nil {
			return err
		}
		return visit(ctx, id, store.Receipt{ID: id, JSON: record})
	})
}

// list reads the page of the list at a place ("" is the newest page) and returns the
// place of the next page. An answer that is no list is an error, and so is a full page
// without a link to the next.
func (s proxySource) list(ctx context.Context, place string) (ids []string, next string, err error) {
	if place == "" {
		place = "/audits/recent?limit=" + strconv.Itoa(recentLimit)
	}
	var page struct {
		Receipts *[]struct {
			ID string `json:"id"`
		} `json:"receipts"`
	}
	header, err := s.ask(ctx, http.MethodGet, place, nil, &page)
	if err != nil {
		return nil, "", err
	}
	if page.Receipts == nil {
		return nil, "", fmt.Errorf("asking the proxy for %s: %w", place, errNoList)
	}
	for _, r := range *page.Receipts {
		if !kernel.IsReceiptID(r.ID) {
			return nil, "", fmt.Errorf("asking the proxy for %s: %w", place, errNoList)
		}
		ids = append(ids, r.ID)
	}
	if next, err = nextPage(header.Values("Link")); err == nil && next == "" && len(ids) >= recentLimit {
		err = errors.New("the list breaks off: a full page has no link to the next one; something between here and the proxy removes the header Link")
	}
	if err != nil {
		return nil, "", fmt.Errorf("asking the proxy for %s: %w", place, err)
	}
	return ids, next, nil
}

var errNoList = errors.New("the answer is no list of receipts; is this the base URL of a Lex proxy?")

// nextPage returns the target of the Link header with rel="next" (RFC 8288), or "" if
// there is none. The header must have the form in which the proxy writes it; Link
// headers that others added are skipped.
func nextPage(links []string) (string, error) {
	for _, link := range links {
		if !strings.Contains(link, `rel="next"`) {
			continue
		}
		target, found := strings.CutSuffix(link, `>; rel="next"`)
		if !found || !strings.HasPrefix(target, "</audits/recent?") {
			return "", errors.New("its header Link does not lead to the next page of this list")
		}
		return target[1:], nil
	}
	return "", nil
}

// Document asks for a policy and, if there is none with the hash, for a setup.
func (s proxySource) Document(ctx context.Context, hash string) ([]byte, error) {
	if !kernel.IsPolicyHash(hash) {
		return nil, store.ErrNotFound
	}
	var text []byte
	_, err := s.ask(ctx, http.MethodGet, "/lex/policies/"+hash, nil, &text)
	if errors.Is(err, store.ErrNotFound) {
		_, err = s.ask(ctx, http.MethodGet, "/lex/setups/"+hash, nil, &text)
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
	_, err := s.ask(ctx, http.MethodPost, "/audits/verify", question, &report)
	return report, err
}
