package caddymodule_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

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

// sender answers what a webhook sends.
type sender func(*http.Request) (*http.Response, error)

func (s sender) RoundTrip(r *http.Request) (*http.Response, error) { return s(r) }

// silence is an address that takes events and never answers.
var silence = sender(func(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
})

// lostEvents adds up the numbers of lost events in the log.
func lostEvents(logs *observer.ObservedLogs) (sum int64, lines int) {
	for _, line := range logs.FilterMessage("events for the webhook were lost").All() {
		if n, ok := line.ContextMap()["events"].(int64); ok {
			sum, lines = sum+n, lines+1
		}
	}
	return sum, lines
}

// Webhooks whose addresses do not answer end side by side, each in the time of one event, the
// one on its way included, and say how many were lost.
func TestWebhooksStopInTime(t *testing.T) {
	const hooks, events = 3, 100
	synctest.Test(t, func(t *testing.T) {
		ended := make([]*caddymodule.Webhook, hooks)
		logs := make([]*observer.ObservedLogs, hooks)
		for i := range ended {
			core, seen := observer.New(zap.WarnLevel)
			ended[i], logs[i] = newWebhook(t, "http://hooks.example/"), seen
			ended[i].Instrument(silence, zap.New(core))
			for n := range events {
				if err := ended[i].Handle(t.Context(), event(t, n)); err != nil {
					t.Fatal(err)
				}
			}
		}
		synctest.Wait() // the first events are on their way
		began := time.Now()
		for _, h := range ended {
			if err := h.Cleanup(); err != nil {
				t.Fatal(err)
			}
		}
		for i, h := range ended {
			<-h.Stopped()
			if lost, lines := lostEvents(logs[i]); lost != events || lines != 1 {
				t.Errorf("%d events are lost in %d lines", lost, lines)
			}
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// What an address refuses is lost, and counted when it is back.
func TestWebhookCountsWhatIsRefused(t *testing.T) {
	const refused, taken = 10, 5
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		core, logs := observer.New(zap.WarnLevel)
		h := newWebhook(t, "http://hooks.example/")
		h.Instrument(sender(func(*http.Request) (*http.Response, error) {
			status := http.StatusNoContent
			if asked++; asked <= refused {
				status = http.StatusInternalServerError
			}
			return &http.Response{StatusCode: status, Body: http.NoBody}, nil
		}), zap.New(core))
		for n := range refused + taken {
			if err := h.Handle(t.Context(), event(t, n)); err != nil {
				t.Fatal(err)
			}
		}
		if err := h.Cleanup(); err != nil {
			t.Fatal(err)
		}
		<-h.Stopped()
		lost, lines := lostEvents(logs)
		if lost != refused || lines != 1 || logs.Len() != 3 { // it fails, it is back, the number
			t.Errorf("%d lost in %d lines of %d", lost, lines, logs.Len())
		}
	})
}

// The cause in the log is that of the failure, whatever words the address has.
func TestWebhookSaysWhyItFails(t *testing.T) {
	for address, c := range map[string]struct {
		err  error
		want string
	}{
		"http://hooks.example/timeout":         {syscall.ECONNREFUSED, "refused"},
		"http://hooks.example/lookup%20/tls:/": {syscall.ECONNREFUSED, "refused"},
		"http://hooks.example/refused":         {os.ErrDeadlineExceeded, "timeout"},
		"http://hooks.example/file":            {syscall.EMFILE, "open_files"},
		"http://hooks.example/name":            {&net.DNSError{Err: syscall.EMFILE.Error(), Name: "hooks.example"}, "open_files"},
	} {
		synctest.Test(t, func(t *testing.T) {
			core, logs := observer.New(zap.WarnLevel)
			h := newWebhook(t, address)
			h.Instrument(sender(func(*http.Request) (*http.Response, error) { return nil, c.err }), zap.New(core))
			if err := h.Handle(t.Context(), event(t, 1)); err != nil {
				t.Fatal(err)
			}
			if err := h.Cleanup(); err != nil {
				t.Fatal(err)
			}
			<-h.Stopped()
			if told := logs.FilterMessage("the webhook is failing").All(); len(told) != 1 || told[0].ContextMap()["cause"] != c.want {
				t.Errorf("%s, %v: %v", address, c.err, told)
			}
		})
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
