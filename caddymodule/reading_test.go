package caddymodule_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/caddymodule"
	"github.com/caddy-lex/lex/store"
)

var readPaths = []string{"/audits/recent", "/audits/log", "/audits/KRN-" + strings.Repeat("0", 32), "/stats", "/benchmarks", "/agentic-sim", "/lex/policies/" + strings.Repeat("0", 64), "/lex/setups/" + strings.Repeat("0", 64)}

func readSite(t *testing.T, read string, limit int) *site {
	t.Helper()
	t.Setenv("LEX_TEST_ADMIN", password)
	s := newSiteWith(t, `{"read":"`+read+`"}`, map[string]any{"limits": map[string]any{
		"read": map[string]any{"requests": limit, "window": 60e9},
	}}, answering("application/json", completion("Paris.")))
	<-caddymodule.FirstSelfTest(s.handler) // until then the health is 503
	return s
}

// Who may read is as configured; the admin secret always may.
func TestWhoMayRead(t *testing.T) {
	for read, may := range map[string]struct{ anonymous, keyed bool }{
		"public": {true, true}, "keyed": {false, true}, "admin": {false, false},
	} {
		s := readSite(t, read, 1000)
		key := newKey(s, `{"name":"app"}`)
		for _, c := range []struct {
			who     string
			headers []string
			may     bool
		}{
			{"nobody", nil, may.anonymous},
			{"unknown key", []string{"X-Lex-Api-Key", "lex_sk_unknown"}, may.anonymous},
			{"key", []string{"X-Lex-Api-Key", key}, may.keyed},
			{"bearer key", []string{"Authorization", "Bearer " + key}, may.keyed},
			{"admin", []string{asAdmin, password}, true},
			{"bearer admin", []string{"Authorization", "Bearer " + password}, true},
		} {
			for _, path := range readPaths {
				w := s.send(http.MethodGet, path, "", c.headers...)
				if got := w.Code == http.StatusOK || w.Code == http.StatusNotFound; got != c.may {
					t.Errorf("%s, %s, %s: %d %s", read, c.who, path, w.Code, w.Body)
				}
				if !c.may && (w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") == "") {
					t.Errorf("%s, %s, %s: %d %v", read, c.who, path, w.Code, w.Header())
				}
			}
			w := s.send(http.MethodPost, "/audits/verify", `{"receipt_id":"KRN-`+strings.Repeat("0", 32)+`"}`, c.headers...)
			if (w.Code == http.StatusNotFound) != c.may {
				t.Errorf("%s, %s, verify: %d %s", read, c.who, w.Code, w.Body)
			}
		}
		for _, path := range []string{"/lex/health", "/lex/openapi.json"} {
			if w := s.send(http.MethodGet, path, ""); w.Code != http.StatusOK {
				t.Errorf("%s, %s: %d", read, path, w.Code)
			}
		}
	}
}

// Wrong secrets are counted on the read endpoints as everywhere, one a request.
func TestReadingIsBehindTheGate(t *testing.T) {
	for _, read := range []string{"keyed", "admin"} {
		s := readSite(t, read, 1000)
		for i := range 12 {
			want := map[bool]int{true: http.StatusUnauthorized, false: http.StatusTooManyRequests}[i < 10]
			if w := s.send(http.MethodGet, "/stats", "", asAdmin, "wrong"); w.Code != want {
				t.Errorf("%s: try %d: %d, want %d", read, i+1, w.Code, want)
			}
		}
		if w := s.send(http.MethodGet, "/stats", "", asAdmin, password); w.Code != http.StatusTooManyRequests {
			t.Errorf("%s: nobody should listen: %d", read, w.Code)
		}
	}
	s := readSite(t, "public", 1000)
	for range 9 {
		if w := s.send(http.MethodPost, "/audits/verify", `{"receipt_id":"x","prompt":"y"}`, asAdmin, "wrong"); w.Code >= 500 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	if w := s.send(http.MethodGet, "/admin/keys", "", asAdmin, password); w.Code != http.StatusOK {
		t.Errorf("nine tries: %d", w.Code)
	}
}

// Reads are counted on their own, verifications on theirs, and the admin
// secret's are not.
func TestReadingIsCounted(t *testing.T) {
	s := readSite(t, "public", 3)
	verify := func() int {
		return s.send(http.MethodPost, "/audits/verify", `{"receipt_id":"KRN-`+strings.Repeat("0", 32)+`"}`).Code
	}
	for i, left := range []string{"2", "1", "0"} {
		if w := s.send(http.MethodGet, readPaths[i], ""); w.Header().Get("X-RateLimit-Remaining") != left || w.Header().Get("X-RateLimit-Limit") != "3" {
			t.Errorf("%s: %d %v", readPaths[i], w.Code, w.Header())
		}
	}
	if w := s.send(http.MethodGet, "/stats", ""); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "60" {
		t.Errorf("the fourth: %d %v", w.Code, w.Header())
	}
	if w := s.postFrom("198.51.100.7", "/audits/verify", `{}`); w.Code != http.StatusBadRequest || w.Header().Get("X-RateLimit-Remaining") != "2" {
		t.Errorf("from another address: %d %v", w.Code, w.Header())
	}
	for range 3 {
		if code := verify(); code != http.StatusNotFound {
			t.Errorf("a verification: %d", code)
		}
	}
	if code := verify(); code != http.StatusTooManyRequests {
		t.Errorf("the fourth verification: %d", code)
	}
	if w := s.postFrom("198.51.100.7", "/audits/verify", `{}`); w.Code != http.StatusBadRequest || w.Header().Get("X-RateLimit-Remaining") != "1" {
		t.Errorf("from another address then: %d %v", w.Code, w.Header())
	}
	for range 5 {
		if w := s.send(http.MethodGet, "/stats", "", asAdmin, password); w.Code != http.StatusOK || w.Header().Get("X-RateLimit-Limit") != "" {
			t.Errorf("the admin: %d %v", w.Code, w.Header())
		}
	}
	if w := s.post("/lex/govern", question); w.Code != http.StatusOK {
		t.Errorf("governing: %d", w.Code)
	}
}

// The list says what became of each turn, in pages of any size.
func TestRecentShowsDecisions(t *testing.T) {
	for mode, want := range map[string]struct{ refused, would bool }{"enforce": {true, false}, "observe": {false, true}} {
		s := newSite(t, `{"mode":"`+mode+`"}`, answering("application/json", completion("Paris.")))
		s.post("/v1/chat/completions", chatAttack)
		for range 22 {
			s.post("/v1/chat/completions", chatQuestion)
		}
		seen := make(map[string]bool)
		for path, last := "/audits/recent?limit=11", (map[string]any)(nil); path != ""; {
			w := s.send(http.MethodGet, path, "")
			var page struct{ Receipts []map[string]any }
			if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
				t.Fatalf("%v: %s", err, w.Body)
			}
			for _, r := range page.Receipts {
				last, seen[r["id"].(string)] = r, true
			}
			path = nextPage(t, path, w.Header())
			if path == "" && (last["refused"] != want.refused || last["would_refuse"] != want.would || last["attack_type"] != "identity" || last["severity"].(float64) < 0.7) {
				t.Errorf("%s: the attack is listed as %v", mode, last)
			}
		}
		if len(seen) != 23 {
			t.Errorf("%s: %d receipts are listed", mode, len(seen))
		}
	}
}

// nextPage is where the link of a page leads from there (RFC 8288, section 3.1), "" behind the last.
func nextPage(t *testing.T, page string, header http.Header) string {
	t.Helper()
	target, rest, linked := strings.Cut(strings.TrimPrefix(header.Get("Link"), "<"), ">")
	if !linked {
		return ""
	}
	at, err := url.Parse(page)
	if err == nil {
		at, err = at.Parse(target)
	}
	if err != nil || rest != `; rel="next"` {
		t.Fatalf("%q: %v", header.Get("Link"), err)
	}
	return at.RequestURI()
}

// The link to the next page leads there under a prefix, too, even under one that a proxy in
// front has taken away: it has no path.
func TestRecentLinksUnderAPrefix(t *testing.T) {
	p := runCaddy(t, "lex {\nstore bolt ${store}\n}", "handle_path /llm/* {\nlex\n}\nrespond 404")
	for range 3 {
		p.send(http.MethodPost, "/llm/lex/govern", question, nil) // nobody answers it, and there is a receipt
	}
	pages := 0
	for path := "/llm/audits/recent?limit=1"; path != ""; pages++ {
		status, header, body := p.send(http.MethodGet, path, "", nil)
		if status != http.StatusOK || pages < 3 && !strings.Contains(body, `"id"`) {
			t.Fatalf("%s: %d %s", path, status, body)
		}
		if link := header.Get("Link"); link != "" && !strings.HasPrefix(link, "<?") {
			t.Errorf("the link has a path: %s", link)
		}
		path = nextPage(t, path, header)
	}
	if pages != 4 {
		t.Errorf("%d pages", pages)
	}
}

// A page of the list costs its summaries, whatever the size of the records. Only
// for a receipt that was written before there were summaries is the record read,
// one at a time, and it is listed as it always was.
func TestRecentReadsSummaries(t *testing.T) {
	s := newSite(t, `{}`, answering("application/json", completion("Paris.")))
	unsummarised, written := map[any]bool{}, 0
	s.meddle(func(ctx context.Context, turn store.Change, commit func(context.Context, store.Change) error) error {
		if written++; written%3 == 0 { // an old receipt, and a huge one
			turn.Receipt.Summary = nil
			turn.Receipt.JSON = append([]byte("{"+strings.Repeat(" ", 8<<20)), turn.Receipt.JSON[1:]...)
			unsummarised[turn.Receipt.ID] = true
		}
		return commit(ctx, turn)
	})
	for i := range 8 {
		question := strings.Replace([]string{chatQuestion, chatAttack}[i%2], `"content":"`, fmt.Sprintf(`"content":"Question %d. `, i), 1)
		s.post("/v1/chat/completions", question)
	}
	checkTool(s, destructiveCall)
	read := map[string]int{}
	storeHooks.Store(s.path, func(operation string) { read[operation]++ })
	w := s.send(http.MethodGet, "/audits/recent", "")
	storeHooks.Delete(s.path)
	if len(unsummarised) == 0 || read["Recent"] != 0 || read["Receipt"] != len(unsummarised) {
		t.Errorf("for %d receipts without a summary the list read %v", len(unsummarised), read)
	}
	var page struct{ Receipts []map[string]any }
	if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || len(page.Receipts) != 9 || w.Body.Len() > 9*1000 {
		t.Fatalf("%d receipts in %d bytes: %v", len(page.Receipts), w.Body.Len(), err)
	}
	for _, shown := range page.Receipts {
		record := s.get("/audits/" + shown["id"].(string))
		for member, value := range shown {
			if record[member] != value {
				t.Errorf("%s lists %s as %v, the record says %v", shown["id"], member, value, record[member])
			}
		}
		if len(shown) != 16 {
			t.Errorf("%s lists %d members, want 16: %v", shown["id"], len(shown), shown)
		}
	}
}

// A receipt that is listed and cannot be read is listed as damaged.
func TestRecentOfAMissingRecord(t *testing.T) {
	s := newSite(t, `{}`, answering("application/json", completion("Paris.")))
	var id string
	s.meddle(func(ctx context.Context, turn store.Change, commit func(context.Context, store.Change) error) error {
		turn.Receipt.Summary, id = nil, turn.Receipt.ID
		return commit(ctx, turn)
	})
	s.post("/v1/chat/completions", chatQuestion)
	for name, record := range map[string][]byte{"removed": nil, "cut": []byte(`{"id":`)} {
		tampered.Store(id, record)
		if w := s.send(http.MethodGet, "/audits/recent", ""); w.Code != http.StatusOK || strings.TrimSpace(w.Body.String()) != `{"receipts":[{"id":"`+id+`","damaged":true}]}` {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}
