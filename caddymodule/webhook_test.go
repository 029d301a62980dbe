package caddymodule_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-lex/lex/caddymodule"
)

// newWebhook provisions a webhook of an address.
func newWebhook(t *testing.T, address string) *caddymodule.Webhook {
	t.Helper()
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	t.Cleanup(cancel)
	h := &caddymodule.Webhook{URL: address}
	if err := h.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	return h
}

func event(t *testing.T, n int) caddy.Event {
	t.Helper()
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	defer cancel()
	e, err := caddy.NewEvent(ctx, "lex_refused", map[string]any{"n": n})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// An address that does not answer delays nobody and holds no more than so many events.
func TestWebhookNeverWaits(t *testing.T) {
	asked, goOn := make(chan struct{}, 1000), make(chan struct{})
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-goOn
	}))
	defer hook.Close()
	h, e := newWebhook(t, hook.URL), event(t, 0)
	for n := range 1000 {
		if n == 1 {
			<-asked // the first is on its way
		}
		if err := h.Handle(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	close(goOn)
	for range 256 { // those that waited
		<-asked
	}
	if err := h.Cleanup(); err != nil {
		t.Error(err)
	}
	<-h.Stopped()
	if len(asked) > 0 {
		t.Errorf("%d events more were taken", len(asked))
	}
}

// What waits when the configuration ends is sent.
func TestWebhookSendsWhatWaits(t *testing.T) {
	got := make(chan string, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- string(body)
	}))
	defer hook.Close()
	h := newWebhook(t, hook.URL)
	for n := range 5 {
		if err := h.Handle(t.Context(), event(t, n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Cleanup(); err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		select {
		case body := <-got:
			var e struct{ Data struct{ N int } }
			if err := json.Unmarshal([]byte(body), &e); err != nil || e.Data.N != n {
				t.Errorf("%v: %s", err, body)
			}
		case <-time.After(time.Minute):
			t.Fatalf("only %d events came", n)
		}
	}
}

// A configuration with an address that is none does not load, and the error does not repeat it.
func TestWebhookAddresses(t *testing.T) {
	for _, address := range []string{"", "{env.LEX_NO_SUCH_VARIABLE}", "hooks.example/canary", "ftp://hooks.example/canary", "http://", "http://canary\x00"} {
		ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
		err := (&caddymodule.Webhook{URL: address}).Provision(ctx)
		cancel()
		if err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), "give an http or https address") {
			t.Errorf("%q: %v", address, err)
		}
	}
}
