package caddymodule_test

import (
	"net/http"
	"testing"
)

const app = "https://app.example"

func TestCORSIsOffByDefault(t *testing.T) {
	s := newSite(t, `{}`, answering("application/json", completion("Paris.")))
	w := s.send(http.MethodOptions, "/lex/govern", "", "Origin", app, "Access-Control-Request-Method", "POST")
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("preflight: %d %v", w.Code, w.Header())
	}
	if w := s.post("/lex/govern", question, "Origin", app); w.Code != http.StatusOK || w.Header().Get("Access-Control-Allow-Origin") != "" || w.Header().Get("Vary") != "" {
		t.Errorf("request: %d %v", w.Code, w.Header())
	}
}

func TestCORS(t *testing.T) {
	s := newSite(t, `{"cors":["`+app+`"]}`, answering("application/json", completion("Paris.")))
	preflight := func(path, origin string) http.Header {
		w := s.send(http.MethodOptions, path, "", "Origin", origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type")
		if (w.Code == http.StatusNoContent) != (w.Header().Get("Access-Control-Allow-Origin") != "") {
			t.Errorf("preflight of %s from %s: %d %v", path, origin, w.Code, w.Header())
		}
		return w.Header()
	}
	for path, methods := range map[string]string{
		"/lex/govern": "POST", "/lex/govern/stream": "POST", "/lex/tools/check": "POST", "/stats": "GET, HEAD", "/audits/KRN-1": "GET, HEAD",
	} {
		h := preflight(path, app)
		if h.Get("Access-Control-Allow-Origin") != app || h.Get("Access-Control-Allow-Methods") != methods || h.Get("Vary") != "Origin" || h.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: %v", path, h)
		}
	}
	for _, foreign := range []string{"https://evil.example", "https://app.example.evil.example", "http://app.example", "null"} {
		if h := preflight("/lex/govern", foreign); h.Get("Access-Control-Allow-Origin") != "" || h.Get("Vary") != "Origin" {
			t.Errorf("%s: %v", foreign, h)
		}
	}
	if h := preflight("/admin/keys", app); h.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("the administration: %v", h)
	}
	for _, c := range []struct{ path, body string }{{"/lex/govern", question}, {"/lex/govern", `{}`}, {"/lex/govern/stream", question}} {
		w := s.post(c.path, c.body, "Origin", app)
		if w.Header().Get("Access-Control-Allow-Origin") != app || w.Header().Get("Access-Control-Expose-Headers") == "" {
			t.Errorf("%s %s: %v", c.path, c.body, w.Header())
		}
	}
	every := newSite(t, `{"cors":["*"]}`, answering("application/json", completion("Paris.")))
	if w := every.post("/lex/govern", question, "Origin", app); w.Header().Get("Access-Control-Allow-Origin") != "*" || w.Header().Get("Vary") != "" {
		t.Errorf("every origin: %v", w.Header())
	}
	if w := every.post("/v1/chat/completions", chatQuestion, "Origin", app); w.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("another API's answer: %v", w.Header())
	}
}
