package caddymodule_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// hostileBodies are what clients send by mistake or on purpose.
var hostileBodies = []string{
	``, ` `, `{`, `[]`, `null`, `true`, `7`, `"a"`, `{}`, question, harmlessCall, destructiveCall, row, `[` + row + `]`, `{"name":"a"}`,
	`{"prompt":"a","session_id":"s","turn":1e400}`, `{"prompt":"a","session_id":"s","turn":-0}`, `{"prompt":"\u0000","session_id":"s"}`,
	`{"prompt":"\ud800","session_id":"s"}`, "{\"prompt\":\"\xff\",\"session_id\":\"s\"}", `{"prompt":"a","PROMPT":"b","session_id":"s"}`,
	`{"prompt":"a","prompt":"b","session_id":"s"}`, `{"ſession_id":"s","prompt":"a"}`, strings.Repeat("[", 20000), strings.Repeat(`{"a":`, 20000),
	`{"session_id":"s","tool":{"name":"a","arguments":"{\"a\":{\"a\":1,\"a\":2}}"}}`, `{"session_id":"s","tool":{"name":{},"arguments":[]}}`,
	`{"session_id":"s","tool":{"name":"a"},"context":[[[]]]}`, `{"session_id":"s","tool":{"name":"a","arguments":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}}`,
	`{"benchmark":"b","metric":"m","n_total":1e9,"bare_successes":0,"governed_successes":0}`, `{"benchmark":"b","metric":"m","n_total":1,"bare_pct":-0,"governed_pct":1e-400,"bare_ci95":[0,0],"governed_ci95":[0,1e2]}`,
	`{"name":"a","expires_at":"9999-12-31T23:59:59Z"}`, `{"name":"a","plan":""}`, `{"receipt_id":"KRN-00000000000000000000000000000000"}`, `{"receipt":{"id":7}}`,
	"\xef\xbb\xbf" + question, question + "\n\x00", strings.ReplaceAll(question, "s", "\\u0073"),
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"}

var ownPaths = []string{
	"/lex/govern", "/lex/govern/stream", "/lex/tools/check", "/lex/health", "/lex/openapi.json", "/lex/docs", "/audits/recent", "/audits/recent?limit=3&before=x",
	"/audits/verify", "/audits/KRN-00000000000000000000000000000000", "/lex/policies/0", "/lex/setups/0", "/benchmarks", "/stats", "/agentic-sim",
	"/admin/keys", "/admin/keys/key_0", "/admin/benchmarks", "/admin/sessions/0", "/", "//lex/govern", "/lex/govern/", "/LEX/govern", "/lex/%67overn", "/lex/../lex/govern", "/v1/chat/completions",
}

// Whatever the request, the handler answers: without a panic, without a status
// of 500 or above, and in JSON where it is an answer of ours.
func FuzzHandler(f *testing.F) {
	for i, body := range hostileBodies {
		for j, path := range ownPaths {
			if i < 2 || j%7 == i%7 {
				f.Add(uint8(2), path, body, "", "")
			}
		}
	}
	for i := range methods {
		for _, path := range ownPaths {
			f.Add(uint8(i), path, "", "Origin", "https://app.example")
		}
	}
	f.Add(uint8(2), "/lex/govern", question, "X-Lex-Api-Key", "lex_sk_")
	f.Add(uint8(2), "/lex/govern", question, "Authorization", "Bearer \x00")
	f.Add(uint8(0), "/audits/recent?limit=9999999999999999999999&before=%00", "", "X-Forwarded-For", "1.2.3.4, ::1")
	f.Setenv("LEX_TEST_ADMIN", password)
	s := newSite(f, `{"baseline":"never","cors":["https://app.example"]}`, answering("application/json", completion("Paris.")))
	f.Fuzz(func(t *testing.T, method uint8, path, body, name, value string) {
		s.t = t
		target, err := url.ParseRequestURI(path)
		if err != nil || !strings.HasPrefix(path, "/") || target.Host != "" {
			return // net/http itself refuses it
		}
		r := httptest.NewRequest(methods[int(method)%len(methods)], "http://site.test/", io.NopCloser(strings.NewReader(body)))
		r.URL.Path, r.URL.RawPath, r.URL.RawQuery, r.ContentLength = target.Path, target.RawPath, target.RawQuery, -1
		r.Header.Set(asAdmin, password)
		if name != "" {
			r.Header[http.CanonicalHeaderKey(name)] = []string{value}
		}
		w := httptest.NewRecorder()
		if cut := s.serve(w, r); cut {
			t.Fatal("the connection was cut")
		}
		if w.Code >= http.StatusInternalServerError {
			t.Fatalf("%s %q %q: %d %s", r.Method, path, body, w.Code, w.Body)
		}
		if w.Code >= http.StatusBadRequest && w.Header().Get("Content-Type") == "application/json" && !json.Valid(w.Body.Bytes()) {
			t.Fatalf("not JSON: %q", w.Body)
		}
	})
}

// The decoders of tool calls and benchmarks take their limits seriously.
func FuzzToolsCheck(f *testing.F) {
	for _, body := range hostileBodies {
		f.Add(body)
	}
	s := newSite(f, `{}`, answering("application/json", completion("Paris.")))
	f.Fuzz(func(t *testing.T, body string) {
		s.t = t
		w := s.post("/lex/tools/check", body)
		switch w.Code {
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
			return
		case http.StatusOK:
		default:
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		var a toolAnswer
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || (a.Decision == "blocked") != (a.Invariant != nil) || (a.Invariant == nil) != (a.Reason == nil) {
			t.Fatalf("%v %s", err, w.Body)
		}
	})
}

// What is published is what the interface promises of a row.
func FuzzBenchmarks(f *testing.F) {
	for _, body := range hostileBodies {
		f.Add(body)
	}
	f.Setenv("LEX_TEST_ADMIN", password)
	s := newSite(f, `{}`, answering("application/json", completion("Paris.")))
	f.Fuzz(func(t *testing.T, body string) {
		s.t = t
		w := s.send(http.MethodPost, "/admin/benchmarks", body, asAdmin, password)
		if w.Code != http.StatusBadRequest && w.Code != http.StatusRequestEntityTooLarge && w.Code != http.StatusCreated {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if w.Code == http.StatusCreated {
			s.send(http.MethodGet, "/benchmarks", "") // held against the description
		}
	})
}
