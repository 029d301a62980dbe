package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
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

// errNoLex is why an answer is not believed that Lex does not give. Where Lex's own
// endpoints are not served, or no Lex is, the model or any other service answers, often
// with 200 and whatever was asked.
var errNoLex = errors.New("no Lex of this version answers at this URL; give the base URL of a site with lex whose own endpoints are served (the option endpoints)")

// A call is a request to an endpoint and the answer that its documentation promises.
type call struct {
	method, path string
	body         any    // sent as JSON, unless it is nil
	status       int    // of the answer
	media        string // type of the answer's body; "" if it has none
}

// The types of the answers' bodies.
const (
	mediaJSON  = "application/json"
	mediaLines = "application/x-ndjson"
)

// reading is the call that reads what is at a path.
func reading(path string) call {
	return call{http.MethodGet, path, nil, http.StatusOK, mediaJSON}
}

// ask makes a call and decodes the answer into answer, which is nil where it has no body;
// if it is a *[]byte it gets the bytes as they are. An answer that is not as promised is
// [errNoLex], and Lex's own 404 is [store.ErrNotFound].
func (p *proxy) ask(ctx context.Context, c call, answer any) error {
	r, err := p.request(ctx, c)
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
		err = c.decode(resp, text, answer)
	}
	if err != nil {
		return fmt.Errorf("asking the proxy for %s: %w", c.path, err)
	}
	return nil
}

func (p *proxy) request(ctx context.Context, c call) (*http.Request, error) {
	var encoded []byte
	if c.body != nil {
		var err error
		if encoded, err = encodeJSON(c.body); err != nil {
			return nil, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, c.method, p.base+c.path, bytes.NewReader(encoded))
	if err != nil {
		return nil, fmt.Errorf("asking the proxy: %w", err)
	}
	r.Header = p.secret.Clone()
	if c.body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return r, nil
}

// decode decodes an answer that is no error.
func (c call) decode(resp *http.Response, text []byte, answer any) error {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode != c.status:
		return fmt.Errorf("it answered %d, and Lex answers %d: %w", resp.StatusCode, c.status, errNoLex)
	case c.media == "":
		return nil
	case media != c.media:
		return fmt.Errorf("the answer has the content type %q, and Lex's has %s: %w", media, c.media, errNoLex)
	}
	if to, raw := answer.(*[]byte); raw {
		*to = text
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("the answer is not the JSON that a Lex proxy gives: %w (%w)", errNoLex, err)
	}
	return nil
}

// refusedBy returns the error for an answer with an error status. One of 500 and more that
// is not in Lex's form may come from whatever stands before Lex while it is down.
func refusedBy(status int, body []byte) error {
	var e struct {
		Message string `json:"error"`
		Code    string `json:"code"`
	}
	inForm := json.Unmarshal(body, &e) == nil && e.Message != "" && e.Code != ""
	switch {
	case !inForm && status < http.StatusInternalServerError:
		return fmt.Errorf("it answered %d %s: %w", status, http.StatusText(status), errNoLex)
	case !inForm:
		return fmt.Errorf("it answered %d %s", status, http.StatusText(status))
	case status == http.StatusNotFound:
		return store.ErrNotFound
	case e.Code == "receipt_damaged":
		return fmt.Errorf("it answered %d %s: %s: %w", status, e.Code, e.Message, store.ErrInvalid)
	}
	return fmt.Errorf("it answered %d %s: %s", status, e.Code, e.Message)
}
