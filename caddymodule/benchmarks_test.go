package caddymodule_test

import (
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func benchSite(t *testing.T) *site {
	t.Helper()
	t.Setenv("LEX_TEST_ADMIN", password)
	return newSiteWith(t, `{}`, map[string]any{"secrets": map[string]any{"admin": "{env.LEX_TEST_ADMIN}", "bench": "battery staple"}},
		answering("application/json", completion("Paris.")))
}

const row = `{"benchmark":"refusals","metric":"attack success","n_total":200,"bare_pct":41.5,"governed_pct":1.5,` +
	`"bare_ci95":[34.9,48.4],"governed_ci95":[0.5,4.3],"notes":"first","created_at":"2026-11-01T10:00:00Z"}`

func publish(s *site, body string) *httptest.ResponseRecorder {
	s.t.Helper()
	return s.send(http.MethodPost, "/admin/benchmarks", body, "X-Lex-Bench-Secret", "battery staple")
}

func results(s *site) []map[string]any {
	s.t.Helper()
	var out []map[string]any
	for _, r := range s.get("/benchmarks")["results"].([]any) {
		out = append(out, r.(map[string]any))
	}
	return out
}

func TestPublishBenchmarks(t *testing.T) {
	s := benchSite(t)
	empty := s.send(http.MethodGet, "/benchmarks", "")
	if strings.TrimSpace(empty.Body.String()) != `{"results":[]}` {
		t.Errorf("at first: %s", empty.Body)
	}
	if w := publish(s, row); w.Code != http.StatusCreated || strings.TrimSpace(w.Body.String()) != `{"published":1}` {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	full := s.send(http.MethodGet, "/benchmarks", "", "If-None-Match", empty.Header().Get("ETag"))
	if full.Code != http.StatusOK || full.Header().Get("Cache-Control") != "public, max-age=60, s-maxage=60" || full.Header().Get("Etag") == empty.Header().Get("Etag") {
		t.Errorf("the cached list outlived a publication: %d %v", full.Code, full.Header())
	}
	for _, match := range []string{full.Header().Get("Etag"), "W/" + full.Header().Get("Etag"), `"x", ` + full.Header().Get("Etag"), "*"} {
		if w := s.send(http.MethodGet, "/benchmarks", "", "If-None-Match", match); w.Code != http.StatusNotModified || w.Body.Len() != 0 {
			t.Errorf("If-None-Match %s: %d %s", match, w.Code, w.Body)
		}
	}
	newer := strings.NewReplacer("first", "second", "2026-11-01", "2026-11-02").Replace(row)
	older := strings.NewReplacer("first", "third", "2026-11-01", "2026-10-02").Replace(row)
	another := strings.Replace(row, "refusals", "agents", 1)
	if w := publish(s, "["+newer+","+older+","+another+"]"); strings.TrimSpace(w.Body.String()) != `{"published":3}` {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	got := results(s)
	if len(got) != 2 || got[0]["benchmark"] != "agents" || got[1]["notes"] != "second" {
		t.Fatalf("%v", got)
	}
	if got[1]["delta_pct"] != 1.5-41.5 || got[1]["created_at"] != "2026-11-02T10:00:00Z" || len(got[1]) != 10 {
		t.Errorf("%v", got[1])
	}
}

// What only some may read, no shared cache keeps.
func TestClosedBenchmarksAreNotCached(t *testing.T) {
	for _, read := range []string{"keyed", "admin"} {
		t.Setenv("LEX_TEST_ADMIN", password)
		s := newSite(t, `{"read":"`+read+`"}`, answering("application/json", completion("Paris.")))
		w := s.send(http.MethodGet, "/benchmarks", "", asAdmin, password)
		if got := w.Header().Get("Cache-Control"); w.Code != http.StatusOK || got != "private, no-cache" {
			t.Errorf("read %s: %d, %q", read, w.Code, got)
		}
	}
}

// Of the conditions of a request If-None-Match is known and nothing else: the list
// is answered whole, and never with an error that is not JSON.
func TestBenchmarksAreAnsweredWhole(t *testing.T) {
	s := adminSite(t)
	for name, value := range map[string]string{
		"Range": "bytes=0-3", "range": "bytes=9999-", "If-Match": `"x"`, "If-Unmodified-Since": "Thu, 01 Jan 1970 00:00:01 GMT",
	} {
		if w := s.send(http.MethodGet, "/benchmarks", "", name, value); w.Code != http.StatusOK || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

// Wilson's interval, against the roots of (p - k/n)² = z² p (1 - p)/n found by
// bisection with 40 digits.
func TestWilsonIntervals(t *testing.T) {
	s := benchSite(t)
	for _, c := range []struct {
		n, k              int
		low, high, centre float64
	}{{200, 83, 34.894285450, 48.426085099, 41.5}, {200, 3, 0.511423779, 4.316572879, 1.5}, {10, 0, 0, 27.753279986, 0}, {10, 10, 72.246720014, 100, 100}, {1, 1, 20.654931438, 100, 100}} {
		body, err := json.Marshal(map[string]any{"benchmark": "b", "metric": "m", "n_total": c.n, "bare_successes": c.k, "governed_successes": c.k})
		if err != nil {
			t.Fatal(err)
		}
		if w := publish(s, string(body)); w.Code != http.StatusCreated {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		got := results(s)[0]
		ci := got["bare_ci95"].([]any)
		if math.Abs(ci[0].(float64)-c.low) > 1e-6 || math.Abs(ci[1].(float64)-c.high) > 1e-6 || got["bare_pct"] != c.centre || got["delta_pct"] != 0.0 {
			t.Errorf("%d of %d: %v", c.k, c.n, got)
		}
	}
}

func TestBenchmarkValidation(t *testing.T) {
	s := benchSite(t)
	change := func(old, with string) string { return strings.Replace(row, old, with, 1) }
	for name, body := range map[string]string{
		"no rows":              `[]`,
		"a number":             `7`,
		"a row of a type":      `[7]`,
		"no name":              change(`"benchmark":"refusals",`, ``),
		"blank name":           change(`"refusals"`, `" "`),
		"name of a type":       change(`"refusals"`, `7`),
		"no metric":            change(`"metric":"attack success",`, ``),
		"n_total 0":            change(`200`, `0`),
		"n_total -1":           change(`200`, `-1`),
		"n_total 2.5":          change(`200`, `2.5`),
		"n_total text":         change(`200`, `"200"`),
		"no n_total":           change(`"n_total":200,`, ``),
		"over 100 %":           change(`41.5`, `100.1`),
		"under 0 %":            change(`"governed_pct":1.5`, `"governed_pct":-0.1`),
		"huge":                 change(`41.5`, `1e999`),
		"percentage of type":   change(`41.5`, `"41.5"`),
		"no percentage":        change(`"bare_pct":41.5,`, ``),
		"interval turned":      change(`[34.9,48.4]`, `[48.4,34.9]`),
		"interval of three":    change(`[34.9,48.4]`, `[34.9,41.5,48.4]`),
		"interval of texts":    change(`[34.9,48.4]`, `["34.9","48.4"]`),
		"interval elsewhere":   change(`[34.9,48.4]`, `[42,48.4]`),
		"interval over 100":    change(`[34.9,48.4]`, `[34.9,148.4]`),
		"no interval":          change(`"bare_ci95":[34.9,48.4],`, ``),
		"notes of a type":      change(`"first"`, `7`),
		"long notes":           change(`first`, strings.Repeat("a", 2001)),
		"created_at no zone":   change(`2026-11-01T10:00:00Z`, `2026-11-01T10:00:00`),
		"created_at elsewhere": change(`2026-11-01T10:00:00Z`, `2026-11-01T10:00:00+01:00`),
		"created_at to come":   change(`2026-11-01`, `2226-11-01`),
		"created_at tomorrow":  change(`2026-11-01T10:00:00Z`, time.Now().Add(24*time.Hour).UTC().Format(time.RFC3339)),
		"created_at a number":  change(`"2026-11-01T10:00:00Z"`, `1790000000`),
		"too many successes":   change(`"bare_ci95":[34.9,48.4]`, `"bare_successes":201`),
		"successes of a type":  change(`"bare_ci95":[34.9,48.4]`, `"bare_successes":"83"`),
		"successes elsewhere":  change(`"bare_ci95":[34.9,48.4]`, `"bare_successes":10`),
		"one bad row":          "[" + row + "," + change(`200`, `0`) + "]",
	} {
		t.Run(name, func(t *testing.T) {
			w := publish(s, body)
			var got struct{ Error, Code string }
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusBadRequest || got.Code != "invalid_benchmark" || got.Error == "" {
				t.Errorf("%d %v %s", w.Code, err, w.Body)
			}
			if name == "one bad row" && !strings.HasPrefix(got.Error, "row 2: n_total") {
				t.Errorf("error %q", got.Error)
			}
		})
	}
	for name, body := range map[string]string{"empty": ``, "cut": `[{`, "duplicate": change(`"notes"`, `"metric":"m","notes"`), "case variant": change(`"notes"`, `"Metric":"m","notes"`)} {
		if w := publish(s, body); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "invalid_json") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	if got := results(s); len(got) != 0 {
		t.Errorf("an invalid publication left %v", got)
	}
}

// Clocks may differ a little.
func TestBenchmarksFromAClockThatIsAhead(t *testing.T) {
	s := benchSite(t)
	ahead := strings.Replace(row, "2026-11-01T10:00:00Z", time.Now().Add(time.Minute).UTC().Format(time.RFC3339), 1)
	if w := publish(s, ahead); w.Code != http.StatusCreated || len(results(s)) != 1 {
		t.Errorf("%d %s, then %v", w.Code, w.Body, results(s))
	}
}

// Either secret publishes, in any of its headers, and only the admin secret
// makes keys.
func TestBenchSecret(t *testing.T) {
	s := benchSite(t)
	for _, header := range [][]string{
		{"X-Lex-Bench-Secret", "battery staple"},
		{"Authorization", "Bearer battery staple"},
		{asAdmin, password},
		{"Authorization", "Bearer " + password},
		{"X-Lex-Bench-Secret", password},
	} {
		if w := s.send(http.MethodPost, "/admin/benchmarks", row, header...); w.Code != http.StatusCreated {
			t.Errorf("%v: %d %s", header, w.Code, w.Body)
		}
	}
	if w := s.send(http.MethodPost, "/admin/benchmarks", row); w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") == "" {
		t.Errorf("no secret: %d %v", w.Code, w.Header())
	}
	for _, header := range [][]string{{"Authorization", "Bearer battery staple"}, {asAdmin, "battery staple"}} {
		if w := s.send(http.MethodPost, "/admin/keys", `{"name":"a"}`, header...); w.Code != http.StatusUnauthorized {
			t.Errorf("the bench secret for keys: %d", w.Code)
		}
	}
	t.Setenv("LEX_TEST_ADMIN", "")
	none := newSite(t, `{}`, answering("application/json", completion("x")))
	if w := none.send(http.MethodPost, "/admin/benchmarks", row, "X-Lex-Bench-Secret", ""); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "not_configured") {
		t.Errorf("no secret configured: %d %s", w.Code, w.Body)
	}
}
