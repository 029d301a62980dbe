package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/caddy-lex/lex/govern"
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
	return oldestFirst(func(place string) ([]string, string, error) { return t.list(ctx, place) }, func(id string) error {
		var record []byte
		_, err := t.ask(ctx, http.MethodGet, auditPrefix+id, nil, &record)
		if errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("%s is in the list of receipts, but not there: it was removed, or %s answers for another proxy: %w", id, t.base, err)
		}
		if err != nil {
			return err
		}
		return visit(ctx, id, store.Receipt{ID: id, JSON: record})
	})
}

// list reads the page of the list at a place, "" for the newest, and says where
// the next one is. What is no list, or a list that breaks off, is an error.
func (t proxyTrail) list(ctx context.Context, place string) (ids []string, next string, err error) {
	if place == "" {
		place = "/audits/recent?limit=" + strconv.Itoa(maxRecent)
	}
	var page struct {
		Receipts *[]govern.Summary `json:"receipts"`
	}
	header, err := t.ask(ctx, http.MethodGet, place, nil, &page)
	if err != nil {
		return nil, "", err
	}
	if page.Receipts == nil {
		return nil, "", fmt.Errorf("asking the proxy for %s: %w", place, errNoList)
	}
	for _, r := range *page.Receipts {
		if !receiptID.MatchString(r.ID) {
			return nil, "", fmt.Errorf("asking the proxy for %s: %w", place, errNoList)
		}
		ids = append(ids, r.ID)
	}
	if next, err = nextPage(header.Values("Link")); err == nil && next == "" && len(ids) >= maxRecent {
		err = errors.New("the list breaks off: a full page without a link to the next; something in between takes the header Link away")
	}
	if err != nil {
		return nil, "", fmt.Errorf("asking the proxy for %s: %w", place, err)
	}
	return ids, next, nil
}

var errNoList = errors.New("the answer is no list of receipts; is this the base URL of a Lex proxy?")

// nextPage is the target of the Link header with rel="next" as this interface
// writes it (RFC 8288), among those that others may have added.
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
