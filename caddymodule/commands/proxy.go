package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/caddy-lex/lex/audit"
	"github.com/caddy-lex/lex/store"
)

// The environment variables that hold the secrets of the commands. A flag would show
// a secret in the list of processes.
const (
	adminVariable = "ADMIN_PASSWORD"
	benchVariable = "BENCH_SECRET"
)

// proxyTimeout bounds one request to a running proxy.
const proxyTimeout = 30 * time.Second

// A proxy is a running proxy that the commands ask over HTTP. It follows no
// redirect, so a secret is only sent to the proxy that was named.
type proxy struct {
	base   string
	secret http.Header // for its protected endpoints; may be empty
	client *http.Client
}

// newProxy returns the proxy at a base URL. flag is the flag that gave the URL, for
// the error.
func newProxy(flag, base string) (*proxy, error) {
	u, err := url.Parse(strings.TrimSuffix(base, "/"))
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, errors.New(flag + ": give the proxy's base URL, such as http://localhost:8080")
	}
	return &proxy{base: u.String(), secret: make(http.Header), client: &http.Client{
		Timeout:       proxyTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// open reads a secret from the environment and adds it to every later request, in
// the header with the given name. It reports whether the variable was set.
func (p *proxy) open(variable, header string) bool {
	secret := os.Getenv(variable)
	if secret != "" {
		p.secret.Set(header, secret)
	}
	return secret != ""
}

// ask sends a request and decodes the answer into answer. A body that is not nil is
// sent as JSON. If answer is nil the answer is dropped; if it is a *[]byte it gets the
// bytes as they are. A 404 is [store.ErrNotFound].
func (p *proxy) ask(ctx context.Context, method, path string, body, answer any) error {
	r, err := p.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	resp, err := p.client.Do(r)
	if err != nil {
		return fmt.Errorf("asking the proxy: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, audit.MaxLine+1))
	switch {
	case err != nil:
		err = fmt.Errorf("the answer broke off: %w", err)
	case resp.StatusCode >= http.StatusMultipleChoices:
		err = refusedBy(resp.StatusCode, text)
	case len(text) > audit.MaxLine:
		err = fmt.Errorf("the answer is over %d MiB, the most that is read", audit.MaxLine>>20)
	default:
		err = decodeAnswer(text, answer)
	}
	if err != nil {
		return fmt.Errorf("asking the proxy for %s: %w", path, err)
	}
	return nil
}

func (p *proxy) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var encoded []byte
	if body != nil {
		var err error
		if encoded, err = encodeJSON(body); err != nil {
			return nil, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, p.base+path, bytes.NewReader(encoded))
	if err != nil {
		return nil, fmt.Errorf("asking the proxy: %w", err)
	}
	r.Header = p.secret.Clone()
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return r, nil
}

func decodeAnswer(text []byte, answer any) error {
	switch to := answer.(type) {
	case nil:
		return nil
	case *[]byte:
		*to = text
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("the answer is not the JSON that a Lex proxy gives: %w", err)
	}
	return nil
}

// refusedBy returns the error for an answer with an error status.
func refusedBy(status int, body []byte) error {
	var e struct {
		Message string `json:"error"`
		Code    string `json:"code"`
	}
	if status == http.StatusNotFound {
		return store.ErrNotFound
	}
	if json.Unmarshal(body, &e) != nil || e.Message == "" {
		return fmt.Errorf("it answered %d %s", status, http.StatusText(status))
	}
	return fmt.Errorf("it answered %d %s: %s", status, e.Code, e.Message)
}
