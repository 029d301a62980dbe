package caddymodule

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-lex/lex/store"
)

// proxyTimeout bounds one request to a running proxy.
const proxyTimeout = 30 * time.Second

// A proxyTrail reads the receipts of a running proxy over HTTP.
type proxyTrail struct {
	base   *url.URL
	admin  string
	client *http.Client
}

func newProxyTrail(base, admin string) (trail, error) {
	u, err := proxyURL("--url", base)
	if err != nil {
		return nil, err
	}
	return &proxyTrail{base: u, admin: admin, client: proxyClient()}, nil
}

// proxyURL parses the base URL that a flag gives.
func proxyURL(flag, base string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSuffix(base, "/"))
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, errors.New(flag + ": give the proxy's base URL, such as http://localhost:8080")
	}
	return u, nil
}

// proxyClient follows no redirect: a secret goes to the named proxy only.
func proxyClient() *http.Client {
	return &http.Client{
		Timeout:       proxyTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// do sends a request and returns the body of a 200; a 404 is [store.ErrNotFound].
func (t *proxyTrail) do(ctx context.Context, method, path string, body []byte) ([]byte, http.Header, error) {
	r, err := http.NewRequestWithContext(ctx, method, t.base.String()+path, bytes.NewReader(body)) //nolint:gosec // G704: whoever runs the command names the proxy
	if err != nil {
		return nil, nil, fmt.Errorf("asking the proxy: %w", err)
	}
	if t.admin != "" && method == http.MethodPost {
		r.Header.Set("X-Lex-Admin-Password", t.admin)
	}
	resp, err := t.client.Do(r) //nolint:gosec // G704: as above
	if err != nil {
		return nil, nil, fmt.Errorf("asking the proxy: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxLine))
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("asking the proxy: %w", err)
	case resp.StatusCode == http.StatusNotFound:
		return nil, nil, fmt.Errorf("asking the proxy for %s: %w", path, store.ErrNotFound)
	case resp.StatusCode != http.StatusOK:
		var e apiError
		_ = json.Unmarshal(answer, &e)
		return nil, nil, fmt.Errorf("asking the proxy for %s: status %d %s", path, resp.StatusCode, e.Message)
	}
	return answer, resp.Header, nil
}

func (t *proxyTrail) each(ctx context.Context, visit func(context.Context, string, store.Receipt) error) error {
	ids, err := t.ids(ctx)
	if err != nil {
		return err
	}
	for _, id := range slices.Backward(ids) {
		record, _, err := t.do(ctx, http.MethodGet, auditPrefix+id, nil)
		if err != nil {
			return err
		}
		if err := visit(ctx, id, store.Receipt{ID: id, JSON: record}); err != nil {
			return err
		}
	}
	return nil
}

// ids pages through the list, newest first.
func (t *proxyTrail) ids(ctx context.Context) ([]string, error) {
	var ids []string
	for path := "/audits/recent?limit=" + strconv.Itoa(maxRecent); path != ""; {
		body, header, err := t.do(ctx, http.MethodGet, path, nil)
		if err != nil {
			return nil, err
		}
		var page struct {
			Receipts []publicReceipt `json:"receipts"`
		}
		if err := json.Unmarshal(body, &page); err != nil {
			return nil, fmt.Errorf("reading the proxy's list: %w", err)
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

func (t *proxyTrail) Policy(ctx context.Context, hash string) ([]byte, error) {
	if !policyHash.MatchString(hash) {
		return nil, store.ErrNotFound
	}
	text, _, err := t.do(ctx, http.MethodGet, policiesPrefix+hash, nil)
	return text, err
}

// verify asks the proxy about one receipt.
func (t *proxyTrail) verify(ctx context.Context, question map[string]any) (report, error) {
	body, err := json.Marshal(question)
	if err != nil {
		return report{}, err
	}
	answer, _, err := t.do(ctx, http.MethodPost, "/audits/verify", body)
	if err != nil {
		return report{}, err
	}
	var out report
	if err := json.Unmarshal(answer, &out); err != nil {
		return report{}, fmt.Errorf("reading the proxy's report: %w", err)
	}
	return out, nil
}

func (t *proxyTrail) head(ctx context.Context, id string) (verdict, error) {
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

func (t *proxyTrail) compare(ctx context.Context, s spoken) ([]verdict, error) {
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

func (*proxyTrail) close() error { return nil }
