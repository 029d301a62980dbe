package caddymodule_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-lex/lex/caddymodule"
)

// Where callers of models put credentials: the APIs of providers, clouds and
// gateways, and Lex itself.
var (
	credentialHeaders = []string{
		"Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "Api-Key", "Apikey", "X-Apikey",
		"X-Goog-Api-Key", "X-Goog-Iam-Authorization-Token", "Ocp-Apim-Subscription-Key", "X-Auth-Token", "X-Auth-Key",
		"X-Access-Token", "X-Amz-Security-Token", "X-Functions-Key", "X-Rapidapi-Key", "X-Subscription-Token",
		"Xi-Api-Key", "Private-Token", "X-Vault-Token", "Helicone-Auth", "Cf-Aig-Authorization", "X-Portkey-Api-Key",
		"X-Portkey-Virtual-Key", "X-Litellm-Api-Key", "X-Watson-Authorization-Token", "X-Forwarded-Access-Token",
		"X-Client-Secret", "X-Secret", "X-Password", "X-Csrf-Token", "X-Session-Id", "Sec-Websocket-Protocol",
		"Mcp-Session-Id", "Last-Event-Id", "Mcp-Param-Account",
		"X-Lex-Api-Key", "X-Lex-Admin-Password", "X-Lex-Bench-Secret",
	}
	credentialParameters = []string{
		"key", "api_key", "apikey", "api-key", "apiKey", "token", "access_token", "accessToken", "auth", "auth_token",
		"subscription-key", "client_secret", "secret", "password", "sig", "signature", "X-Amz-Signature",
		"X-Amz-Security-Token", "X-Goog-Signature", "%6bey", "jwt", "session_token",
	}
)

const canary = "canary-"

// planted are headers and a query with a canary under every known name, and
// with addresses that hold one.
func planted() (http.Header, string) {
	header := http.Header{}
	for i, name := range credentialHeaders {
		header.Set(name, fmt.Sprint(canary, "header-", i))
	}
	header.Set("Authorization", "Bearer "+canary+"authorization")
	header.Set("Cookie", "session="+canary+"cookie")
	header.Set("Referer", "https://user:"+canary+"referer@app.example/?a=b&api_key="+canary+"referer")
	var query []string
	for i, name := range credentialParameters {
		query = append(query, fmt.Sprint(name, "=", canary, "query-", i))
	}
	return header, "a=b&" + strings.Join(query, "&")
}

// failing are providers as they fail, as the arguments of reverse_proxy.
func failing(t *testing.T) map[string]string {
	t.Helper()
	serve := func(f http.HandlerFunc) string {
		srv := httptest.NewServer(f)
		t.Cleanup(srv.Close)
		return srv.Listener.Addr().String()
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := l.Addr().String()
	l.Close()
	cut := func(contentType, body string) string {
		return serve(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", contentType)
			w.Header().Set("Content-Length", "100000")
			_, _ = io.WriteString(w, body)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})
	}
	done := make(chan struct{})
	slow := serve(func(http.ResponseWriter, *http.Request) { <-done })
	t.Cleanup(func() { close(done) })
	return map[string]string{
		"refused": refused,
		"timeout": slow + " {\ntransport http {\nresponse_header_timeout 50ms\n}\n}",
		"reset":   serve(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
		"tls":     "https://" + serve(func(http.ResponseWriter, *http.Request) {}),
		"dns":     "nowhere.invalid:80",
		"500":     serve(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) }),
		"cut":     cut("application/json", `{"choices":[`),
		"cut stream": cut("text/event-stream",
			"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Par\"},\"finish_reason\":null}]}\n\n"),
		"retries": refused + " {\nlb_retries 2\n}",
		"headers": refused + " {\nheader_up X-Copied-Key {http.request.header.X-Api-Key}\n}",
	}
}

// sendPlanted sends a request of every kind.
func sendPlanted(p *proxy) {
	header, query := planted()
	stream := strings.Replace(chatQuestion, "{", `{"stream":true,`, 1)
	upgrade := header.Clone()
	upgrade.Set("Connection", "Upgrade")
	upgrade.Set("Upgrade", "websocket")
	for _, r := range []struct {
		method, path, body string
		header             http.Header
	}{
		{http.MethodPost, "/v1/chat/completions", chatQuestion, header},
		{http.MethodPost, "/v1/chat/completions", stream, header},
		{http.MethodPost, "/lex/govern", question, http.Header{"X-Api-Key": {canary + "govern"}}},
		{http.MethodPost, "/lex/govern", question, header},
		{http.MethodPost, "/v1/other", `{"a":"b"}`, header},
		{http.MethodPost, "/v1/embeddings", `{"input":"Hello there."}`, header},
		{http.MethodPost, "/v1/moderations", `{"input":"Hello there."}`, header},
		{http.MethodPost, "/v1beta/models/m:embedContent", `{"content":{"parts":[{"text":"Hello there."}]}}`, header},
		{http.MethodPost, "/model/m/converse", `{"inputText":"Hello there."}`, header},
		{http.MethodGet, "/v1/chat/completions/chatcmpl-1", "", header},
		{http.MethodGet, "/ungoverned", "", header},
		{http.MethodGet, "/realtime", "", upgrade},
	} {
		r.header.Del("X-Lex-Api-Key") // one that is not known is refused before the model
		p.send(r.method, r.path+"?"+query, r.body, r.header)
		r.header.Set("X-Lex-Api-Key", canary+"lex-key")
		p.send(r.method, r.path+"?"+query, r.body, r.header)
	}
}

// checkNoCanary reports every credential in a log.
func checkNoCanary(t *testing.T, logged string) {
	t.Helper()
	for line := range strings.Lines(logged) {
		if i := strings.Index(line, canary); i >= 0 {
			t.Errorf("%s in the log: …%s", line[i:min(len(line), i+20)], line[max(0, i-600):min(len(line), i+60)])
			return
		}
	}
}

// With no configuration beyond the README's, nothing that Caddy logs at debug
// level holds a credential, however the provider fails.
func TestNoCredentialInLogs(t *testing.T) {
	t.Setenv("LEX_TEST_PROVIDER", canary+"provider-key")
	for name, upstream := range failing(t) {
		t.Run(name, func(t *testing.T) {
			p := runCaddy(t, "lex {\nstore bolt ${store}\n}", "lex {\nprovider_key {env.LEX_TEST_PROVIDER}\n}\nreverse_proxy "+upstream)
			sendPlanted(p)
			logged := p.stop()
			checkNoCanary(t, logged)
			if !strings.Contains(logged, "upstream roundtrip") || !strings.Contains(logged, "a=b") {
				t.Error("reverse_proxy logged no request")
			}
		})
	}
}

// Where reverse_proxy stands, it is found.
func TestEveryReverseProxyIsSafe(t *testing.T) {
	for name, site := range map[string]string{
		"beside lex":     "lex\nreverse_proxy %s",
		"in a handle":    "lex\nhandle {\nreverse_proxy %s\n}",
		"lex in a route": "route {\nlex\nreverse_proxy %s\n}",
		"both nested":    "handle /v1/* {\nroute {\nlex\n}\nreverse_proxy %s\n}\nhandle {\nlex\nreverse_proxy %[1]s\n}",
		"authenticated":  "route {\nlex\nforward_auth %s {\nuri /auth\n}\nreverse_proxy %[1]s\n}",
		"named route":    "lex\ninvoke proxy",
		"intercept":      "lex\nintercept {\n@failed status 5xx\nhandle_response @failed {\nreverse_proxy %s\n}\n}\nrespond 502",
		// What a request comes to when the handlers after lex have failed.
		"errors":              "lex\nerror 502\nhandle_errors {\nreverse_proxy %s\n}",
		"errors in a handle":  "handle {\nroute {\nlex\nerror 502\n}\n}\nhandle_errors 502 {\nhandle {\nroute {\nreverse_proxy %s\n}\n}\n}",
		"errors, named route": "lex\nerror 502\nhandle_errors {\ninvoke proxy\n}",
		// The server that is asked first stands before lex and is given nothing to log.
		"lex behind a response": "reverse_proxy %s {\nrewrite /auth?\nheader_up -*\n@ok status 2xx\nhandle_response @ok {\nlex\nreverse_proxy %[1]s\n}\n}",
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, completion("Paris."))
			}))
			defer srv.Close()
			if strings.Contains(site, "%") {
				site = fmt.Sprintf(site, srv.Listener.Addr())
			}
			p := runCaddy(t, "lex {\nstore bolt ${store}\n}", site+"\n}\n&(proxy) {\nreverse_proxy "+srv.Listener.Addr().String())
			sendPlanted(p)
			logged := p.stop()
			checkNoCanary(t, logged)
			if !strings.Contains(logged, "upstream roundtrip") {
				t.Error("reverse_proxy logged no request")
			}
		})
	}
}

// The upstream gets what the caller sent, also on a retry, and what handlers
// between lex and it made of it.
func TestCredentialsReachTheProvider(t *testing.T) {
	seen := new(recorder)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.record(r)
		if seen.count.Load() == 1 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, completion("Paris."))
	}))
	defer srv.Close()
	p := runCaddy(t, "lex {\nstore bolt ${store}\n}", `lex
		@keyed header X-Api-Key *
		handle @keyed {
			reverse_proxy `+srv.Listener.Addr().String()+` {
				request_buffers 1MiB
				lb_retries 2
				lb_retry_match {
					method POST
				}
				header_up X-Copied {http.request.header.X-Api-Key}
			}
		}
		handle {
			respond 404
		}`)
	status, _, body := p.send(http.MethodPost, "/v1/chat/completions?key=q", chatQuestion, http.Header{"X-Api-Key": {"k"}, "Authorization": {"Bearer b"}})
	if status != http.StatusOK {
		t.Fatalf("%d %s\n%s", status, body, p.stop())
	}
	if n := len(seen.requests); n != 2 {
		t.Fatalf("%d tries", n)
	}
	for _, r := range seen.requests {
		if h := r.header; h.Get("X-Api-Key") != "k" || h.Get("X-Copied") != "k" || h.Get("Authorization") != "Bearer b" || r.query != "key=q" {
			t.Errorf("the provider saw %v %s", h, r.query)
		}
	}
	p.stop()
}

// The shipped filter hides all known names in Caddy's access log as well.
func TestFilterOfTheAccessLog(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	p := runCaddy(t, "lex {\nstore bolt ${store}\n}\nlog {\noutput file ${log}\nformat filter {\nrequest lex\nuri lex\n}\n}",
		"log\nlex\nrewrite /ungoverned /elsewhere\nreverse_proxy "+srv.Listener.Addr().String())
	sendPlanted(p)
	logged := p.stop()
	checkNoCanary(t, logged)
	if !strings.Contains(logged, "handled request") || !strings.Contains(logged, "a=b") || !strings.Contains(logged, `"X-Api-Key":["REDACTED"]`) {
		t.Error("no access log")
	}
}

// Every shipped and documented configuration that filters a log does it by the
// one filter that knows all names.
func TestShippedFilters(t *testing.T) {
	files, _ := filepath.Glob("../examples/*/Caddyfile")
	more, _ := filepath.Glob("../docs/*.md")
	for _, name := range append(append(files, more...), "../Caddyfile") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "format filter") != strings.Contains(string(text), "request lex\n") {
			t.Errorf("%s filters a log by names of its own", name)
		}
	}
	if text, _ := os.ReadFile("../Caddyfile"); !strings.Contains(string(text), "request lex\n") {
		t.Error("the Caddyfile has no filter")
	}
}

// No credential of a provider is in an answer, a receipt or a metric, whatever is asked
// and however it ends.
func TestNoCredentialLeavesOtherwise(t *testing.T) {
	header, query := planted()
	for _, name := range []string{"X-Lex-Api-Key", "X-Lex-Admin-Password", "X-Lex-Bench-Secret"} {
		header.Del(name)
	}
	models := map[string]caddyhttp.HandlerFunc{
		"answers": answering("application/json", completion("Paris.")),
		"fails": func(http.ResponseWriter, *http.Request) error {
			return caddyhttp.Error(http.StatusBadGateway, errors.New(canary+"address"))
		},
	}
	for name, model := range models {
		for _, broken := range []bool{false, true} {
			s := newSite(t, `{"headers":"full"}`, model)
			if broken {
				s.breakStore()
			}
			s.left = []error{nil}
			for _, call := range append(slices.Clone(calls), struct {
				path, endpoint, family, carries, body string
				headers                               []string
			}{path: "/v1/chat/completions", body: `{"model":"m","messages":[{"role":"user","content":"TEXT"}]}`}) {
				for _, text := range []string{"What is the capital of France?", attack} {
					r := httptest.NewRequest(http.MethodPost, "http://site.test"+call.path+"?"+query, strings.NewReader(strings.Replace(call.body, "TEXT", text, 1)))
					r.Header = header.Clone()
					w := httptest.NewRecorder()
					s.serve(w, r)
					if answer := fmt.Sprint(w.Header(), w.Body); strings.Contains(answer, canary) {
						t.Errorf("%s, %s: %s", name, call.path, answer)
					}
				}
			}
			s.mendStore()
			receipts := s.receipts()
			if text := fmt.Sprint(receipts); strings.Contains(text, canary) || !broken && len(receipts) < len(calls) {
				t.Errorf("%s: %d receipts: %s", name, len(receipts), text)
			}
		}
	}
	ctx, err := provision(t, map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	families, err := ctx.GetMetricsRegistry().Gather()
	if err != nil || len(families) == 0 || strings.Contains(fmt.Sprint(families), canary) {
		t.Errorf("%d metrics, %v", len(families), err)
	}
}

// What is no credential stays byte for byte.
func TestSafeURI(t *testing.T) {
	for uri, want := range map[string]string{
		"":                                  "",
		"*":                                 "*",
		"/v1/models":                        "/v1/models",
		"/a?b=c&&d;e=%zz":                   "/a?b=c&&d;e=%zz",
		"/a?key=k&b=c;token=t&x":            "/a?key=REDACTED&b=c;token=REDACTED&x",
		"/a?%4bEY=k":                        "/a?%4bEY=REDACTED",
		"/a?%zz=k":                          "/a?%zz=REDACTED",
		"/a?q=x?key=k":                      "/a?q=x?key=k",
		"http://u:p@host/a?api_key=k#f":     "http://REDACTED@host/a?api_key=REDACTED",
		"https://host/@a?b":                 "https://host/@a?b",
		"/a?key=":                           "/a?key=REDACTED",
		"/a?redirect=https%3A%2F%2Fh%3Fk=1": "/a?redirect=https%3A%2F%2Fh%3Fk=1",
	} {
		if got := caddymodule.SafeURI(uri); got != want {
			t.Errorf("%q: %q, want %q", uri, got, want)
		}
	}
	for _, name := range credentialParameters {
		if plain, _ := url.QueryUnescape(name); caddymodule.SafeURI("/?"+plain+"=v") != "/?"+plain+"="+"REDACTED" {
			t.Errorf("%s is shown", plain)
		}
	}
}

// What is known for no credential has no word of one in its name.
func TestUsualHeaders(t *testing.T) {
	for _, name := range caddymodule.UsualHeaders {
		if http.CanonicalHeaderKey(name) != name || caddymodule.IsCredential(strings.ToLower(name)) {
			t.Errorf("%s", name)
		}
	}
}
