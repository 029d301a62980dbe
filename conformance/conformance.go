// Package conformance checks a running service against the HTTP interface that
// it promises: a table of requests with the status, headers and body that must
// come back, and a few flows of several requests.
//
// It speaks only HTTP, so it can check any deployment, whatever proxies stand in
// between. It respects the rate limit and waits as long as the service says; an
// API key or the admin secret gives it a higher limit. A run leaves receipts of
// its own sessions and, with the secrets, API keys that are revoked again and a
// benchmark row named lex-conformance.
//
// [Run] sends the cases of a [Target] one after the other and reports a [Result]
// for each. To add a case, add it to the list of its endpoint (govern.go,
// stream.go, tools.go, read.go, verify.go, console.go, admin.go, limits.go); expect.go has the
// checks, client.go sends the requests.
package conformance

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// A Target is the service to check and what may be used to do so.
type Target struct {
	// URL is the base URL, such as http://localhost:8080.
	URL string

	// Admin and Bench are the secrets. Without one, the cases that need it are
	// left out.
	Admin, Bench string

	// Key is an API key for the governance requests; they then have the keyed
	// rate. With Admin one is made for the run.
	Key string

	// ForwardedFor sends every case with an X-Forwarded-For of its own, for
	// services that trust this client to tell addresses (trusted_proxies).
	ForwardedFor bool

	// Client sends the requests; nil is one that follows no redirects and waits
	// at most three minutes.
	Client *http.Client

	// Wait waits for the rate limit; nil sleeps. It returns early with the
	// context's error when that ends.
	Wait func(ctx context.Context, d time.Duration) error
}

// A Result is the outcome of one case.
type Result struct {
	Name string
	// Skipped names what the case needs and was not given; the case did not run.
	Skipped string
	// Err says what is not as promised; nil means that the case passed.
	Err error
}

// A testCase is one request and what must come back.
type testCase struct {
	Name    string
	Needs   need
	Request request
	// Status that must come back.
	Status int
	// Header fields that must come back; an empty value stands for any.
	Header map[string]string
	// Body is what must hold of the body; nil expects nothing of it.
	Body func(response) error
	// Flow runs instead of Request, for cases of several requests.
	Flow func(ctx context.Context, c *client) error
}

// need is what a case needs besides the service.
type need string

// The needs of cases.
const (
	needsAdmin need = "the admin secret"
	needsBench need = "the bench or admin secret"

	needsConsole need = "the console, open or with the admin secret"
)

// cases returns all cases, in the order in which they run.
func cases() []testCase {
	var all []testCase
	for _, group := range [][]testCase{
		governCases(), streamCases(), toolCases(), methodCases(), readCases(), verifyCases(), consoleCases(), adminCases(), limitCases(),
	} {
		all = append(all, group...)
	}
	return all
}

// Run runs all cases one after the other, reports each, and returns how many
// failed. An error means that the run could not be begun or was interrupted.
func Run(ctx context.Context, t Target, report func(Result)) (failed int, err error) {
	c, err := newClient(t)
	if err != nil {
		return 0, err
	}
	if t.Key == "" && t.Admin != "" {
		id, err := c.borrowKey(ctx)
		if err != nil {
			return 0, fmt.Errorf("making an API key for the run: %w", err)
		}
		defer c.returnKey(context.WithoutCancel(ctx), id)
	}
	c.console = c.showsConsole(ctx)
	for _, k := range cases() {
		r := c.runCase(ctx, k)
		if ctx.Err() != nil {
			return failed, ctx.Err()
		}
		if r.Err != nil {
			failed++
		}
		report(r)
	}
	return failed, nil
}

func (c *client) runCase(ctx context.Context, k testCase) Result {
	r := Result{Name: k.Name}
	if !c.has(k.Needs) {
		r.Skipped = string(k.Needs)
		return r
	}
	c.nextAddress()
	if k.Flow != nil {
		r.Err = k.Flow(ctx, c)
		return r
	}
	got, err := c.do(ctx, k.Request)
	if err == nil {
		err = got.matches(k)
	}
	r.Err = err
	return r
}

func (c *client) has(n need) bool {
	switch n {
	case needsAdmin:
		return c.target.Admin != ""
	case needsBench:
		return c.target.Bench != "" || c.target.Admin != ""
	case needsConsole:
		return c.console
	}
	return true
}

// matches checks an answer against a case.
func (r response) matches(k testCase) error {
	if r.Status != k.Status {
		return fmt.Errorf("status %d, want %d: %s", r.Status, k.Status, r.excerpt())
	}
	for name, want := range k.Header {
		if got := r.Header.Get(name); got == "" || (want != "" && got != want) {
			return fmt.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
	if k.Body == nil {
		return nil
	}
	return k.Body(r)
}

// newSession returns a session id that nobody has used.
func newSession() string { return "conformance-" + strings.ToLower(rand.Text()[:16]) }
