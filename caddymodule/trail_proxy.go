package caddymodule

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-lex/lex/store"
)

// A proxyTrail reads the receipts of a running proxy over HTTP.
type proxyTrail struct{ *proxy }

func newProxyTrail(base string) (trail, error) {
	p, err := newProxy("--url", base)
	if err != nil {
		return nil, err
	}
	p.open(adminVariable, "X-Lex-Admin-Password") // for comparing texts, and where reading is not public
	return proxyTrail{p}, nil
}

func (t proxyTrail) each(ctx context.Context, visit func(context.Context, string, store.Receipt) error) error {
	ids, err := t.ids(ctx)
	if err != nil {
		return err
	}
	for _, id := range slices.Backward(ids) {
		var record []byte
		if _, err := t.ask(ctx, http.MethodGet, auditPrefix+id, nil, &record); err != nil {
			return err
		}
		if err := visit(ctx, id, store.Receipt{ID: id, JSON: record}); err != nil {
			return err
		}
	}
	return nil
}

// ids pages through the list, newest first.
func (t proxyTrail) ids(ctx context.Context) ([]string, error) {
	var ids []string
	for path := "/audits/recent?limit=" + strconv.Itoa(maxRecent); path != ""; {
		var page struct {
			Receipts []publicReceipt `json:"receipts"`
		}
		header, err := t.ask(ctx, http.MethodGet, path, nil, &page)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Receipts {
			ids = append(ids, r.ID)
		}
		path = nextPage(header.Get("Link"))
	}
	return ids, nil
}

// nextPage is the target of a Link header as this interface writes it.
func nextPage(link string) string {
	target, found := strings.CutSuffix(link, `>; rel="next"`)
	if !found {
		return ""
	}
	return strings.TrimPrefix(target, "<")
}

func (t proxyTrail) Policy(ctx context.Context, hash string) ([]byte, error) {
	if !policyHash.MatchString(hash) {
		return nil, store.ErrNotFound
	}
	var text []byte
	_, err := t.ask(ctx, http.MethodGet, policiesPrefix+hash, nil, &text)
	return text, err
}

// verify asks the proxy about one receipt.
func (t proxyTrail) verify(ctx context.Context, question map[string]any) (out report, err error) {
	_, err = t.ask(ctx, http.MethodPost, "/audits/verify", question, &out)
	return out, err
}

func (t proxyTrail) head(ctx context.Context, id string) (verdict, error) {
	out, err := t.verify(ctx, map[string]any{"receipt_id": id})
	if err != nil {
		return verdict{}, err
	}
	for _, c := range out.Checks {
		if c.Name == "head" {
			return verdict{c.OK, c.Detail}, nil
		}
	}
	return unmade("the proxy did not get that far"), nil
}

func (t proxyTrail) compare(ctx context.Context, s spoken) ([]verdict, error) {
	question := map[string]any{"receipt_id": s.ID}
	if s.Prompt != nil {
		question["prompt"] = *s.Prompt
	}
	if s.Output != nil {
		question["output"] = *s.Output
	}
	out, err := t.verify(ctx, question)
	if errors.Is(err, store.ErrNotFound) {
		return []verdict{failed("there is no such receipt")}, nil
	}
	var verdicts []verdict
	for _, c := range out.Checks {
		if strings.HasSuffix(c.Name, "_commitment") || c.OK != nil && !*c.OK {
			verdicts = append(verdicts, verdict{c.OK, c.Name + ": " + c.Detail})
		}
	}
	return verdicts, err
}

func (proxyTrail) close() error { return nil }
