package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The canaries stand where users put keys and secrets. None may turn up again.
var canaries = []string{
	"canary-authorization", "canary-x-api-key", "canary-azure-key", "canary-apim-key", "canary-auth-token", "canary-lex-key", "canary-goog-key", "canary-query", "canary-prompt", "canary-provider-key",
	"canary-admin", "canary-upstream-body",
}

const hostileCaddyfile = `{
	admin 127.0.0.1:${admin}
	debug
	metrics
	lex {
		limits {
			anonymous 10000/1m
		}
		secrets {
			admin {env.CANARY_ADMIN}
		}
	}
%s}
:${site} {
	%s
	lex {
		provider_key {env.CANARY_PROVIDER_KEY}
	}
	reverse_proxy %s
}
`

// What Caddy logs by itself shows credentials, unless it is told otherwise.
const filteredLog = `	log {
		format filter {
			request lex
			uri lex
		}
	}
`

// brokenUpstreams are providers as they fail.
func brokenUpstreams(t *testing.T) map[string]string {
	t.Helper()
	serve := func(f http.HandlerFunc) string {
		srv := httptest.NewServer(f)
		t.Cleanup(srv.Close)
		return srv.Listener.Addr().String()
	}
	return map[string]string{
		"down": "127.0.0.1:" + reserve(t),
		"500": serve(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"error":{"message":"failed"}}`, http.StatusInternalServerError)
		}),
		"bad JSON": serve(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"choices":[{`)
		}),
		"cut": serve(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"choices":[`)
			panic(http.ErrAbortHandler)
		}),
		"cut stream": serve(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Par\"},\"finish_reason\":null}]}\n\n")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}),
	}
}

func TestNoCredentialLeaks(t *testing.T) {
	t.Parallel()
	for name, upstream := range brokenUpstreams(t) {
		t.Run(name, func(t *testing.T) { checkNoCredentialLeaks(t, fmt.Sprintf(hostileCaddyfile, "", "", upstream)) })
		t.Run(name+" with an access log", func(t *testing.T) {
			checkNoCredentialLeaks(t, fmt.Sprintf(hostileCaddyfile, filteredLog, "log", upstream))
		})
	}
}

func checkNoCredentialLeaks(t *testing.T, caddyfile string) {
	t.Helper()
	p := freePorts(t)
	config := writeCaddyfile(t, p, caddyfile)
	s := start(t, config, "", p, "CANARY_ADMIN=canary-admin", "CANARY_PROVIDER_KEY=canary-provider-key")
	answers := hostileRequests(t, s)
	metrics, err := s.client.Get("http://127.0.0.1:" + p.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer metrics.Body.Close()
	exposed, err := io.ReadAll(metrics.Body)
	if err != nil || !strings.Contains(string(exposed), "lex_requests_total") {
		t.Fatalf("no metrics: %v", err)
	}
	for where, text := range map[string]string{"log": s.logs.String(), "metrics": string(exposed), "answers": answers} {
		for _, c := range canaries {
			if strings.Contains(text, c) {
				t.Errorf("%s shows up in the %s: %s", c, where, around(text, c))
			}
		}
	}
}

// around returns the text near what must not be in it.
func around(text, what string) string {
	i := strings.Index(text, what)
	return text[max(0, i-300):min(len(text), i+100)]
}

// hostileRequests sends planted credentials to every kind of endpoint and
// returns all that came back.
func hostileRequests(t *testing.T, s *server) string {
	t.Helper()
	planted := []string{
		"Authorization", "Basic canary-authorization", "X-Api-Key", "canary-x-api-key", "X-Goog-Api-Key", "canary-goog-key",
		"Api-Key", "canary-azure-key", "Ocp-Apim-Subscription-Key", "canary-apim-key", "X-Auth-Token", "canary-auth-token",
	}
	provider := append([]string{"Authorization", "Bearer canary-authorization"}, planted[2:]...)
	lexKey := append([]string{"X-Lex-Api-Key", "canary-lex-key", "X-Lex-Admin-Password", "canary-admin"}, provider...)
	chat := `{"model":"m","messages":[{"role":"user","content":"canary-prompt: what is 2 + 2?"}]}`
	stream := strings.Replace(chat, `{`, `{"stream":true,`, 1)
	requests := []struct {
		path, body string
		headers    []string
	}{
		{"/lex/govern?key=canary-query&api_key=canary-query&token=canary-query", governBody("canary-prompt: what is 2 + 2?", "s1"), planted},
		{"/lex/govern/stream?key=canary-query&api_key=canary-query&token=canary-query", governBody("canary-prompt: what is 2 + 2?", "s1"), planted},
		{"/lex/govern?key=canary-query&api_key=canary-query&token=canary-query", governBody("canary-prompt", "s1"), lexKey},
		{"/lex/govern?key=canary-query&api_key=canary-query&token=canary-query", `{"prompt":"canary-prompt`, planted},
		{"/v1/chat/completions?key=canary-query&api_key=canary-query&token=canary-query", chat, provider},
		{"/v1/chat/completions?key=canary-query&api_key=canary-query&token=canary-query", stream, provider},
		{"/v1/chat/completions?key=canary-query&api_key=canary-query&token=canary-query", chat, lexKey},
		{"/v1/chat/completions?key=canary-query&api_key=canary-query&token=canary-query", `{"messages":[{"role":"canary-prompt"`, provider},
		{"/v1/completions?key=canary-query&api_key=canary-query&token=canary-query", `{"model":"m","prompt":"canary-prompt"}`, provider},
		{"/v1/embeddings?key=canary-query&api_key=canary-query&token=canary-query", `{"model":"m","dimensions":"canary-prompt"}`, provider},
		{"/v1/other?key=canary-query", `{"text":"canary-prompt"}`, provider},
		{"/audits/none?key=canary-query&api_key=canary-query&token=canary-query", "", planted},
	}
	var answers strings.Builder
	for _, r := range requests {
		req, err := http.NewRequest(http.MethodPost, s.URL+r.path, strings.NewReader(r.body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(r.headers); i += 2 {
			req.Header.Set(r.headers[i], r.headers[i+1])
		}
		resp, err := s.client.Do(req)
		if err != nil {
			continue // a cut answer
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Fprintf(&answers, "%s %d %v %s\n", r.path[:5], resp.StatusCode, resp.Header, body)
	}
	return answers.String()
}
