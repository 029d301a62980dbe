package caddymodule_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// redirecting answers with a redirect.
func redirecting(status int, location string) caddyhttp.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Location", location)
		w.WriteHeader(status)
		return nil
	}
}

// A redirect that SDKs would follow to where nothing is governed does not reach them.
func TestRedirectsAwayAreNotPassedOn(t *testing.T) {
	for _, api := range attackedAPIs {
		for location, status := range map[string]int{
			"http://other.example" + api.path: 301, "//other.example" + api.path: 302, "/raw": 303, "file:///etc/passwd": 307, "http://exa mple/": 308,
		} {
			s := newSite(t, `{}`, redirecting(status, location))
			w := s.post(api.path, api.request)
			if w.Code != http.StatusBadGateway || w.Header().Get("Location") != "" || !strings.Contains(w.Body.String(), "model provider could not be reached") {
				t.Errorf("%s, %d to %s: %d %v %s", api.name, status, location, w.Code, w.Header(), w.Body)
			}
			if r := s.receipts()[0]; r["outcome"] != "provider_failed" {
				t.Errorf("%s, %d to %s: %v", api.name, status, location, r["outcome"])
			}
		}
		for _, location := range []string{api.path + "/", "http://site.test" + api.path, "?a=b"} {
			s := newSite(t, `{}`, redirecting(http.StatusTemporaryRedirect, location))
			if w := s.post(api.path, api.request); w.Code != http.StatusTemporaryRedirect || w.Header().Get("Location") != location {
				t.Errorf("%s to %s: %d %v", api.name, location, w.Code, w.Header())
			}
		}
	}
	// What some parsers take for another host (the WHATWG URL standard) and others for a path.
	for _, location := range []string{
		"https:///other.example", `/\other.example`, `\\other.example`, "/\t/other.example", "http:other.example", `http:\\other.example`, "///other.example",
		"http://site.test@other.example", "http://site.test:80@other.example", `http://site.test\@other.example`, "http://site.test.other.example", "http://site.test:8080",
	} {
		s := newSite(t, `{}`, redirecting(http.StatusTemporaryRedirect, location+"/v1/chat/completions"))
		if w := s.post("/v1/chat/completions", chatQuestion); w.Code != http.StatusBadGateway || w.Header().Get("Location") != "" {
			t.Errorf("%q: %d %v", location, w.Code, w.Header())
		}
	}
	s := newSite(t, `{"mode":"observe"}`, redirecting(http.StatusTemporaryRedirect, "http://other.example/"))
	if w := s.post("/v1/chat/completions", chatQuestion); w.Code != http.StatusTemporaryRedirect {
		t.Errorf("observed: %d", w.Code)
	}
	s = newSite(t, `{}`, redirecting(http.StatusFound, "http://other.example/"))
	if w := s.send(http.MethodGet, "/v1/chat/completions/chatcmpl-1", ""); w.Code != http.StatusBadGateway {
		t.Errorf("a stored answer: %d", w.Code)
	}
	s = newSite(t, `{}`, redirecting(http.StatusTemporaryRedirect, "http://other.example/mcp"))
	if w := s.post("/mcp", mcpCall("1", "get_weather", weatherArguments)); w.Header().Get("Location") != "" || !strings.Contains(w.Body.String(), `"error"`) {
		t.Errorf("a server of tools: %d %v %s", w.Code, w.Header(), w.Body)
	}
	s = newSite(t, `{}`, redirecting(http.StatusTemporaryRedirect, "http://site.test/mcp/")) // as Starlette answers
	if w := s.post("/mcp", mcpCall("1", "get_weather", weatherArguments)); w.Code != http.StatusTemporaryRedirect {
		t.Errorf("a server of tools with a slash: %d %v %s", w.Code, w.Header(), w.Body)
	}
}

// Below a path that the operator names for calls, stored answers are judged as below the known
// paths.
func TestStoredAnswersBelowNamedPaths(t *testing.T) {
	stored := `{"id":"resp_9","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"m1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"` + capitulation + `","annotations":[]}]}]}`
	for _, c := range []struct{ dialect, named, method, path, answer string }{
		{"openai_responses", "/ai/resp", http.MethodGet, "/ai/resp/resp_9", stored},
		{"openai_responses", "/ai/resp", http.MethodGet, "/AI//resp/resp_9/", stored},
		{"openai_responses", "/ai/resp", http.MethodPost, "/ai/resp/resp_9/cancel", stored},
		{"openai_responses", "*/ai/resp", http.MethodGet, "/x/ai/resp/resp_9", stored},
		{"openai_chat", "/ai/chat", http.MethodGet, "/ai/chat/chatcmpl-1", completion(capitulation)},
	} {
		s := newSite(t, `{"dialects":[{"path":"`+c.named+`","dialect":"`+c.dialect+`"}]}`, answering("application/json", c.answer))
		w := s.send(c.method, c.path, "")
		if strings.Contains(w.Body.String(), "restrictions") || w.Code != http.StatusOK {
			t.Errorf("%s %s: %d %s", c.method, c.path, w.Code, w.Body)
		}
		if all := s.receipts(); len(all) != 1 || all[0]["outcome"] != "refused" || all[0]["dialect"] != c.dialect {
			t.Errorf("%s %s: %v", c.method, c.path, all)
		}
	}
	s := newSite(t, `{"dialects":[{"path":"/ai/*","dialect":"openai_chat"}]}`, answering("application/json", `{"data":[]}`))
	if w := s.send(http.MethodGet, "/ai/v1/models", ""); w.Code != http.StatusOK || len(s.receipts()) != 0 {
		t.Errorf("a list of models: %d, %d receipts", w.Code, len(s.receipts()))
	}
}
