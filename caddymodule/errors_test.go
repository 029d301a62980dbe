package caddymodule_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-lex/lex/caddymodule"
	"github.com/caddy-lex/lex/store"
)

// documentedErrors are the rows of the error table in docs/http.md: the
// statuses of each code.
func documentedErrors(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| ([^|`]*\\d{3}[^|`]*|[^|]*`refuse_with status`[^|]*) \\| ([^|]*`[a-z_]+`[^|]*) \\|")
	code, status := regexp.MustCompile("`([a-z_]+)`"), regexp.MustCompile(`\d{3}`)
	found := make(map[string][]string)
	_, table, _ := strings.Cut(string(text), "\n## Errors")
	for _, m := range row.FindAllStringSubmatch(table, -1) {
		for _, c := range code.FindAllStringSubmatch(m[2], -1) {
			found[c[1]] = append(found[c[1]], status.FindAllString(m[1], -1)...)
		}
	}
	return found
}

// Clients act on codes, so each is documented with its status, and none that
// does not exist.
func TestEveryCodeIsDocumented(t *testing.T) {
	documented := documentedErrors(t)
	defined := make(map[string]bool)
	for _, e := range caddymodule.DefinedErrors() {
		defined[e.Code] = true
		if !slices.Contains(documented[e.Code], strconv.Itoa(e.Status)) {
			t.Errorf("%s with status %d is not in docs/http.md, which has it with %v", e.Code, e.Status, documented[e.Code])
		}
	}
	for code := range documented {
		if !defined[code] {
			t.Errorf("docs/http.md has %s, which no error is defined with", code)
		}
	}
	if len(defined) < 30 {
		t.Errorf("only %d codes", len(defined))
	}
}

// The description lists the codes of our own endpoints, and no other. Every
// answer of every test is held against it, so that no error goes by the table.
func TestEveryCodeIsDescribed(t *testing.T) {
	doc, err := described()
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, e := range caddymodule.DefinedErrors() {
		if e.OnEndpoints && !slices.Contains(want, e.Code) {
			want = append(want, e.Code)
		}
	}
	for _, code := range doc.Components.Schemas["Error"].Value.Properties["code"].Value.Enum {
		got = append(got, fmt.Sprint(code))
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("described are %q, defined %q", got, want)
	}
}

// unreadable holds the paths of the stores that cannot be read.
var unreadable sync.Map

func (f *faulty) unreadable() error {
	if _, down := unreadable.Load(f.path); down {
		return errDisk
	}
	return nil
}

func (f *faulty) Key(ctx context.Context, hash string) (store.Key, error) {
	if err := f.unreadable(); err != nil {
		return store.Key{}, err
	}
	return f.Store.Key(ctx, hash)
}

func (f *faulty) Stats(ctx context.Context) (store.Stats, error) {
	if err := f.unreadable(); err != nil {
		return store.Stats{}, err
	}
	return f.Store.Stats(ctx)
}

func (f *faulty) Document(ctx context.Context, hash string) ([]byte, error) {
	if err := f.unreadable(); err != nil {
		return nil, err
	}
	return f.Store.Document(ctx, hash)
}

func (f *faulty) Keys(ctx context.Context) ([]store.Key, error) {
	if err := f.unreadable(); err != nil {
		return nil, err
	}
	return f.Store.Keys(ctx)
}

func (f *faulty) ReceiptOfTurn(ctx context.Context, id string) (store.Receipt, error) {
	if err := f.unreadable(); err != nil {
		return store.Receipt{}, err
	}
	return f.Store.ReceiptOfTurn(ctx, id)
}

func (f *faulty) Summaries(ctx context.Context, before string, limit int) ([]store.Summary, error) {
	if err := f.unreadable(); err != nil {
		return nil, err
	}
	return f.Store.Summaries(ctx, before, limit)
}

func (f *faulty) Benchmarks(ctx context.Context, now time.Time) ([]store.Benchmark, error) {
	if err := f.unreadable(); err != nil {
		return nil, err
	}
	return f.Store.Benchmarks(ctx, now)
}

// unwritable holds the paths of the stores of which only the turns can be written.
var unwritable sync.Map

func (f *faulty) unwritable() error {
	if _, down := unwritable.Load(f.path); down {
		return errDisk
	}
	return nil
}

func (f *faulty) PutKey(ctx context.Context, key store.Key) error {
	if err := f.unwritable(); err != nil {
		return err
	}
	return f.Store.PutKey(ctx, key)
}

func (f *faulty) Erase(ctx context.Context, key string) error {
	if err := f.unwritable(); err != nil {
		return err
	}
	return f.Store.Erase(ctx, key)
}

func (f *faulty) Publish(ctx context.Context, rows []store.Benchmark) error {
	if err := f.unwritable(); err != nil {
		return err
	}
	return f.Store.Publish(ctx, rows)
}

// uncounted holds the paths of the stores that count nothing, or read no counts, by what fails.
var uncounted sync.Map

func (f *faulty) Consumed(ctx context.Context, subject string) (int, error) {
	if what, down := uncounted.Load(f.path); down && what == "Consumed" {
		return 0, errDisk
	}
	return f.Store.Consumed(ctx, subject)
}

// While wrong secrets cannot be counted, no secret is taken: whoever guesses would have as many
// tries as they like. Nor is a request that cannot be counted said to be one too many.
func TestSecretsThatCannotBeCounted(t *testing.T) {
	for what, secrets := range map[string][]string{"Consumed": {"wrong", password}, "Consume": {"wrong"}} {
		s := adminSite(t)
		uncounted.Store(s.path, what)
		for _, secret := range secrets {
			if w := s.send(http.MethodGet, "/admin/keys", "", asAdmin, secret); w.Code < 500 || !strings.Contains(w.Body.String(), `"governor_unavailable"`) || strings.Contains(w.Body.String(), "canary") {
				t.Errorf("%s fails, %s: %d %s", what, secret, w.Code, w.Body)
			}
		}
		if w := s.post("/lex/govern", question); (w.Code == http.StatusInternalServerError) != (what == "Consume") {
			t.Errorf("%s fails, a question: %d %s", what, w.Code, w.Body)
		}
	}
}

// What could not be written is not answered as if it had been: a key that nobody has, one that
// still lets callers in, a session that is still there.
func TestFailuresOfTheAdministration(t *testing.T) {
	s := adminSite(t)
	kept := newKey(s, `{"name":"kept"}`)
	govern(s, question)
	session := "/admin/sessions/" + sessionKeyOf(local, "s")
	var list struct{ Keys []struct{ ID string } }
	if err := json.Unmarshal(s.send(http.MethodGet, "/admin/keys", "", asAdmin, password).Body.Bytes(), &list); err != nil || len(list.Keys) != 1 {
		t.Fatalf("%v %v", list, err)
	}
	unwritable.Store(s.path, true)
	for _, c := range []struct{ method, path, body string }{
		{http.MethodPost, "/admin/keys", `{"name":"app"}`},
		{http.MethodDelete, "/admin/keys/" + list.Keys[0].ID, ""},
		{http.MethodDelete, session, ""},
		{http.MethodPost, "/admin/benchmarks", row},
	} {
		if w := s.send(c.method, c.path, c.body, asAdmin, password); w.Code < 500 || !strings.Contains(w.Body.String(), `"governor_unavailable"`) || strings.Contains(w.Body.String(), "canary") {
			t.Errorf("%s %s: %d %s", c.method, c.path, w.Code, w.Body)
		}
	}
	unwritable.Delete(s.path)
	if w := s.send(http.MethodGet, session, "", asAdmin, password); w.Code != http.StatusOK {
		t.Errorf("the session: %d", w.Code)
	}
	if w := s.post("/lex/govern", question, "X-Lex-Api-Key", kept); w.Code != http.StatusOK {
		t.Errorf("the key: %d", w.Code)
	}
}

// A failure of the store is answered without its cause, and counted once, on
// the operation that failed, wherever it happens.
func TestFailuresAreCountedOnce(t *testing.T) {
	s := adminSite(t)
	unreadable.Store(s.path, true)
	for _, c := range []struct{ operation, method, path, body, key string }{
		{"read", http.MethodGet, "/lex/policies/" + strings.Repeat("0", 64), "", ""},
		{"read", http.MethodGet, "/lex/setups/" + strings.Repeat("0", 64), "", ""},
		{"read", http.MethodGet, "/stats", "", ""},
		{"read", http.MethodGet, "/audits/recent", "", ""},
		{"read", http.MethodGet, "/audits/turn/" + strings.Repeat("A", 26), "", ""},
		{"read", http.MethodGet, "/benchmarks", "", ""},
		{"read", http.MethodGet, "/admin/keys", "", ""},
		{"read", http.MethodDelete, "/admin/keys/key_0", "", ""},
		{"key", http.MethodGet, "/stats", "", "lex_sk_unknown"},
		{"key", http.MethodPost, "/lex/govern", question, "lex_sk_unknown"},
		{"key", http.MethodPost, "/lex/govern/stream", question, "lex_sk_unknown"},
		{"key", http.MethodPost, "/lex/tools/check", harmlessCall, "lex_sk_unknown"},
		{"key", http.MethodPost, "/v1/chat/completions", chatQuestion, "lex_sk_unknown"},
		{"key", http.MethodPost, "/v1/other", chatQuestion, "lex_sk_unknown"},
	} {
		all, counted := metric(t, "lex_store_errors_total"), metric(t, "lex_store_errors_total", "operation", c.operation)
		w := s.send(c.method, c.path, c.body, "X-Lex-Api-Key", c.key, asAdmin, password)
		all, counted = metric(t, "lex_store_errors_total")-all, metric(t, "lex_store_errors_total", "operation", c.operation)-counted
		if w.Code < 500 || !strings.Contains(w.Body.String(), `"governor_unavailable"`) || strings.Contains(w.Body.String(), "canary") {
			t.Errorf("%s %s: %d %s", c.method, c.path, w.Code, w.Body)
		}
		if all != 1 || counted != 1 {
			t.Errorf("%s %s: counted %v, %v of them on %s", c.method, c.path, all, counted, c.operation)
		}
	}
}
