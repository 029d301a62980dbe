package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// A request is what a case sends.
type request struct {
	Method string // POST when there is a body, else GET
	Path   string
	Body   string
	Header map[string]string
	// Anonymous sends no API key, also where one was given.
	Anonymous bool
	// Unpaced leaves a 429 as it is instead of waiting for the rate limit.
	Unpaced bool
}

// A response is an answer read to its end.
type response struct {
	Status int
	Header http.Header
	Body   []byte
}

// maxAnswer bounds what is read of an answer.
const maxAnswer = 16 << 20

// A client sends the requests of one run. It is not safe for concurrent use.
type client struct {
	target Target
	base   string
	// basePath is the path in base.
	basePath string
	// address begins anywhere, so that no run waits for the limits that an earlier one has used.
	address int
	console bool // there is one that may be read
}

func newClient(t Target) (*client, error) {
	u, err := url.Parse(t.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, errors.New("give the base URL of the service, such as http://localhost:8080")
	}
	if t.Client == nil {
		t.Client = &http.Client{
			Timeout:       3 * time.Minute,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	if t.Wait == nil {
		t.Wait = sleep
	}
	return &client{target: t, base: strings.TrimSuffix(t.URL, "/"), basePath: strings.TrimSuffix(u.EscapedPath(), "/"), address: rand.IntN(1 << 30)}, nil //nolint:gosec // G404: no secret
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// nextAddress makes the next case come from another address, where the service
// is told so. The addresses are of the block for documentation (RFC 3849).
func (c *client) nextAddress() { c.address++ }

// governed are the paths that the rate limit covers.
func governed(path string) bool {
	return strings.HasPrefix(path, "/lex/govern") || strings.HasPrefix(path, "/lex/tools/")
}

// maxWaits bounds how often one request waits for the rate limit.
const maxWaits = 3

// do sends a request; governance requests wait for the rate limit.
func (c *client) do(ctx context.Context, q request) (response, error) {
	for range maxWaits {
		r, err := c.send(ctx, q)
		if err != nil || q.Unpaced || r.Status != http.StatusTooManyRequests || r.code() != "rate_limited" {
			return r, err
		}
		seconds, err := strconv.Atoi(r.Header.Get("Retry-After"))
		if err != nil {
			return r, fmt.Errorf("a 429 without Retry-After in seconds: %q", r.Header.Get("Retry-After"))
		}
		if err := c.target.Wait(ctx, time.Duration(seconds)*time.Second); err != nil {
			return r, err
		}
	}
	return response{}, errors.New("the rate limit does not end")
}

func (c *client) send(ctx context.Context, q request) (response, error) {
	method := q.Method
	if method == "" {
		method = http.MethodGet
		if q.Body != "" {
			method = http.MethodPost
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+q.Path, strings.NewReader(q.Body))
	if err != nil {
		return response{}, err
	}
	c.setHeader(r, q)
	resp, err := c.target.Client.Do(r)
	if err != nil {
		return response{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return response{resp.StatusCode, resp.Header, body}, err
}

func (c *client) setHeader(r *http.Request, q request) {
	if q.Body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.target.Key != "" && !q.Anonymous && governed(q.Path) {
		r.Header.Set("X-Lex-Api-Key", c.target.Key)
	}
	if c.target.ForwardedFor {
		r.Header.Set("X-Forwarded-For", fmt.Sprintf("2001:db8:%x:%x::1", c.address>>16, c.address&0xffff))
	}
	for name, value := range q.Header {
		r.Header.Set(name, value)
	}
}

// asAdmin is the request with the admin secret.
func (c *client) asAdmin(q request) request {
	header := map[string]string{"Authorization": "Bearer " + c.target.Admin}
	for name, value := range q.Header {
		header[name] = value
	}
	q.Header = header
	return q
}

// asBench is the request with the bench secret, or the admin secret.
func (c *client) asBench(q request) request {
	if c.target.Bench == "" {
		return c.asAdmin(q)
	}
	q.Header = map[string]string{"X-Lex-Bench-Secret": c.target.Bench}
	return q
}

// borrowKey makes an API key for the run.
func (c *client) borrowKey(ctx context.Context) (id string, err error) {
	r, err := c.do(ctx, c.asAdmin(request{Path: "/admin/keys", Body: `{"name":"lex conformance"}`}))
	if err != nil {
		return "", err
	}
	var made struct {
		ID  string `json:"id"`
		Key string `json:"key"`
	}
	if err := json.Unmarshal(r.Body, &made); err != nil || r.Status != http.StatusCreated || made.Key == "" {
		return "", fmt.Errorf("status %d: %s", r.Status, r.excerpt())
	}
	c.target.Key = made.Key
	return made.ID, nil
}

// returnKey revokes the key of the run. If that fails, its name in the list of keys
// tells where it comes from.
func (c *client) returnKey(ctx context.Context, id string) {
	_, _ = c.do(ctx, c.asAdmin(request{Method: http.MethodDelete, Path: "/admin/keys/" + id}))
}

// object decodes the body as one JSON object.
func (r response) object() (map[string]any, error) {
	var m map[string]any
	if err := json.Unmarshal(r.Body, &m); err != nil || m == nil {
		return nil, fmt.Errorf("the body is not one JSON object: %s", r.excerpt())
	}
	return m, nil
}

// code is the code of an error answer, "" when there is none.
func (r response) code() string {
	var e struct {
		Code string `json:"code"`
	}
	_ = json.Unmarshal(r.Body, &e) // no JSON has no code
	return e.Code
}

// excerpt is the beginning of the body, for messages.
func (r response) excerpt() string {
	const most = 300
	if len(r.Body) > most {
		return string(r.Body[:most]) + "…"
	}
	return string(r.Body)
}
