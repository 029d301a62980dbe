package caddymodule_test

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/tidwall/gjson"
)

func init() { caddy.RegisterModule(eventKeeper{}) }

// An eventKeeper is a handler of events that keeps them.
type eventKeeper struct{}

var keptEvents struct {
	sync.Mutex
	all []caddy.Event
}

func (eventKeeper) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "events.handlers.keep", New: func() caddy.Module { return new(eventKeeper) }}
}

func (*eventKeeper) UnmarshalCaddyfile(*caddyfile.Dispenser) error { return nil }

func (*eventKeeper) Handle(_ context.Context, e caddy.Event) error {
	keptEvents.Lock()
	defer keptEvents.Unlock()
	keptEvents.all = append(keptEvents.all, e)
	return nil
}

// takeEvents returns the events of lex that were kept, and forgets them.
func takeEvents() (events []caddy.Event) {
	keptEvents.Lock()
	defer keptEvents.Unlock()
	for _, e := range keptEvents.all {
		if strings.HasPrefix(e.Name(), "lex_") {
			events = append(events, e)
		}
	}
	keptEvents.all = nil
	return events
}

// Each event comes once, with the data that docs/configuration.md lists.
func TestEvents(t *testing.T) {
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		contentType, answer := "application/json", completion("Paris.")
		if strings.Contains(string(body), "clean up") {
			contentType, answer = callingAPIs[0].answer(wipe)
		}
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, answer)
	}))
	defer model.Close()
	p := runCaddy(t, "events {\non * keep\n}\nlex {\nstore bolt ${store}\n}", "lex\nreverse_proxy "+model.Listener.Addr().String())
	takeEvents()
	chat := func(text string) string {
		return `{"model":"m","messages":[{"role":"user","content":` + quoted(text) + `}]}`
	}
	for _, test := range []struct {
		path, body string
		want       map[string][]string // the names of the data, by event
	}{
		{"/v1/chat/completions", chat("What is the capital of France?"), nil},
		{"/v1/chat/completions", chat(attack), map[string][]string{
			"lex_refused":    {"attack_type", "endpoint", "reason", "receipt_id"},
			"lex_intervened": {"attack_type", "endpoint", "reason", "receipt_id"},
		}},
		{"/v1/chat/completions", chat("Please clean up."), map[string][]string{"lex_tool_blocked": {"endpoint", "invariant", "receipt_id", "rule"}}},
		{"/lex/tools/check", `{"session_id":"s","tool":{"name":"bash","arguments":` + wipeArguments + `}}`, map[string][]string{"lex_tool_blocked": {"endpoint", "invariant", "receipt_id", "rule"}}},
	} {
		status, _, answer := p.send(http.MethodPost, test.path, test.body, nil)
		if status != http.StatusOK {
			t.Fatalf("%d %s", status, answer)
		}
		got := make(map[string][]string)
		for _, e := range takeEvents() {
			if got[e.Name()] != nil {
				t.Errorf("%s came twice", e.Name())
			}
			got[e.Name()] = slices.Sorted(maps.Keys(e.Data))
			id, _ := e.Data["receipt_id"].(string)
			if _, _, record := p.send(http.MethodGet, "/audits/"+id, "", nil); gjson.Get(record, "endpoint").Str != e.Data["endpoint"] {
				t.Errorf("%s: %v, and the receipt %s", e.Name(), e.Data, record)
			}
		}
		if !maps.EqualFunc(got, test.want, slices.Equal) {
			t.Errorf("%s: got %v, want %v", test.body, got, test.want)
		}
	}
}

// A store that begins to fail is one event, however many requests fail then.
func TestStoreDegradedEvent(t *testing.T) {
	p := runCaddy(t, "lex {\nstore bolt ${store}\n}", "lex")
	if err := p.loadFaulty("events {\non lex_store_degraded keep\n}\nlex {\nstore bolt ${store}2\n}", "lex"); err != nil {
		t.Fatal(err)
	}
	takeEvents()
	broken.Store(p.data+"2", true)
	defer broken.Delete(p.data + "2")
	for range 3 {
		if status, _, answer := p.send(http.MethodPost, "/lex/tools/check", `{"session_id":"s","tool":{"name":"read","arguments":{}}}`, nil); status != http.StatusInternalServerError {
			t.Fatalf("%d %s", status, answer)
		}
	}
	if events := takeEvents(); len(events) != 1 || events[0].Data["operation"] != "commit" {
		t.Errorf("%v", events)
	}
}

// The placeholders have values of their types from the moment lex runs, also for what it does
// not govern, since an expression over one that is not set is an error.
func TestPlaceholders(t *testing.T) {
	for name, test := range map[string]struct {
		method, path, body string
		before, after      map[string]any // what the model's matchers see, and the access log; the id and the session as whether there is one
	}{
		"not governed": {
			http.MethodGet, "/index.html", "",
			map[string]any{"receipt_id": false, "health_band": "", "margin": 0.0, "attack_type": "none", "severity": 0.0, "refused": false, "session": false},
			map[string]any{"receipt_id": false, "health_band": "", "margin": 0.0, "attack_type": "none", "severity": 0.0, "refused": false, "session": false},
		},
		"a question": {
			http.MethodPost, "/v1/chat/completions", chatQuestion,
			map[string]any{"receipt_id": false, "health_band": "OPTIMAL", "attack_type": "none", "refused": false, "session": true},
			map[string]any{"receipt_id": true, "health_band": "OPTIMAL", "attack_type": "none", "refused": false, "session": true},
		},
		"an attack": {
			http.MethodPost, "/v1/chat/completions", chatAttack, nil,
			map[string]any{"receipt_id": true, "health_band": "CRITICAL", "margin": 0.08, "attack_type": "identity", "refused": true, "session": true},
		},
	} {
		var before map[string]any
		see := func(repl *caddy.Replacer) map[string]any {
			seen := make(map[string]any)
			for _, name := range []string{"receipt_id", "health_band", "margin", "attack_type", "severity", "refused", "session"} {
				value, known := repl.Get("http.lex." + name)
				if !known {
					t.Errorf("%s is not set", name)
				}
				if text, isText := value.(string); isText && (name == "receipt_id" || name == "session") {
					value = text != ""
				}
				seen[name] = value
			}
			return seen
		}
		s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
			before = see(r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer))
			return answering("application/json", completion("Paris."))(w, r)
		})
		repl, w := caddy.NewReplacer(), httptest.NewRecorder()
		r := caddyhttp.PrepareRequest(httptest.NewRequest(test.method, "http://site.test"+test.path, strings.NewReader(test.body)), repl, w, new(caddyhttp.Server))
		if err := s.handler.ServeHTTP(w, r, s.model); err != nil {
			t.Fatal(err)
		}
		after := see(repl)
		for moment, compared := range map[string]struct{ got, want map[string]any }{"before": {before, test.before}, "after": {after, test.after}} {
			for member, want := range compared.want {
				if compared.got[member] != want {
					t.Errorf("%s, %s the model: %s is %v, want %v", name, moment, member, compared.got[member], want)
				}
			}
			if (compared.got == nil) != (compared.want == nil) {
				t.Errorf("%s, %s the model: %v", name, moment, compared.got)
			}
		}
	}
}
