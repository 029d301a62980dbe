package caddymodule_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Everything that goes on has the prefix, once more if it was there, and is
// otherwise what the client wrote.
func TestUpstreamPath(t *testing.T) {
	var seen []string
	s := newSite(t, `{"upstream_path":"/gateway/openai","baseline":"never"}`, func(w http.ResponseWriter, r *http.Request) error {
		if r.RequestURI != r.URL.RequestURI() {
			t.Errorf("RequestURI %s, URL %s", r.RequestURI, r.URL.RequestURI())
		}
		seen = append(seen, r.RequestURI)
		return answering("application/json", completion("Paris."))(w, r)
	})
	for _, c := range []struct{ method, path, body, want string }{
		{http.MethodPost, "/v1/chat/completions", chatQuestion, "/gateway/openai/v1/chat/completions"},
		{http.MethodPost, "/v1/chat/completions?a=%2F&b", chatQuestion, "/gateway/openai/v1/chat/completions?a=%2F&b"},
		{http.MethodPost, "/lex/govern?a=b", question, "/gateway/openai/v1/chat/completions"},
		{http.MethodPost, "/v1/messages", chatQuestion, "/gateway/openai/v1/messages"},
		{http.MethodPost, "/v1/files/a%2Fb;c?d", `no JSON`, "/gateway/openai/v1/files/a%2Fb;c?d"},
		{http.MethodGet, "/v1/models/%6Da", "", "/gateway/openai/v1/models/%6Da"},
		{http.MethodGet, "/gateway/openai/v1/models", "", "/gateway/openai/gateway/openai/v1/models"},
		{http.MethodGet, "//v1/../models", "", "/gateway/openai//v1/../models"},
		{http.MethodGet, "/audits/recent", "", ""},
	} {
		seen = nil
		w := s.send(c.method, c.path, c.body)
		if want := []string{c.want}; w.Code != http.StatusOK || c.want != "" && !slices.Equal(seen, want) || c.want == "" && len(seen) > 0 {
			t.Errorf("%s: %d, the upstream saw %v, want %q", c.path, w.Code, seen, c.want)
		}
	}
}

// The documented arrangements load without a warning and keep Lex's own
// endpoints; a rewrite that Caddy sorts before lex is warned of.
func TestRewriteBeforeLex(t *testing.T) {
	seen := new(recorder)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen.record(r) }))
	defer srv.Close()
	proxy := "reverse_proxy " + srv.Listener.Addr().String()
	for name, c := range map[string]struct {
		site string
		warn bool
	}{
		"option":          {"lex {\nupstream_path /openai\n}\n" + proxy, false},
		"route":           {"route {\nlex\nrewrite * /openai{uri}\n" + proxy + "\n}", false},
		"mounted":         {"handle_path /llm/* {\nlex {\nupstream_path /openai\n}\n" + proxy + "\n}\nhandle {\nlex {\nupstream_path /openai\n}\n" + proxy + "\n}", false},
		"rewrite":         {"rewrite * /openai{uri}\nlex\n" + proxy, true},
		"uri":             {"uri replace /v1 /openai/v1\nlex\n" + proxy, true},
		"in a handle":     {"handle {\nrewrite * /openai{uri}\nlex\n" + proxy + "\n}", true},
		"before a handle": {"rewrite * /openai{uri}\nhandle {\nlex\n" + proxy + "\n}", true},
		"elsewhere":       {"handle /old {\nrewrite * /new\nrespond old\n}\nhandle {\nlex {\nupstream_path /openai\n}\n" + proxy + "\n}", false},
	} {
		t.Run(name, func(t *testing.T) {
			p := runCaddy(t, "lex {\nstore bolt ${store}\n}", c.site)
			status, health := p.health()
			if !c.warn && (status != http.StatusOK || !strings.Contains(health, `"status":"ok"`)) {
				t.Errorf("health: %d %s", status, health)
			}
			if p.send(http.MethodGet, "/v1/models", "", nil); seen.last().path != "/openai/v1/models" {
				t.Errorf("the upstream saw %s", seen.last().path)
			}
			if logged := p.stop(); strings.Contains(logged, "a rewrite stands before lex") != c.warn {
				t.Errorf("warned: %v, want %v", !c.warn, c.warn)
			}
		})
	}
}

// Two lex that one request would pass are an error where the configuration
// tells, and where only the request does, the request is.
func TestTwice(t *testing.T) {
	const twice = "a request would pass lex twice"
	const governed = "\n}\n&(governed) {\nroute {\nlex\nrespond here\n}"
	for site, fails := range map[string]bool{
		"lex\nlex":                                 true,
		"route {\nlex\nlex\n}":                     true,
		"lex\nhandle /a {\nlex\n}":                 true,
		"lex\nroute {\nroute {\nlex\n}\n}":         true,
		"lex /a\nlex":                              true,
		"handle {\nlex\nhandle /a {\nlex\n}\n}":    true,
		"handle /a {\nlex\n}\nhandle {\nlex\n}":    false,
		"lex /a\nlex /b":                           false,
		"handle_path /a/* {\nlex\n}\nlex /b":       false,
		"handle /a {\nlex\n}\nhandle /b {\nlex\n}": false,

		"lex\ninvoke governed" + governed:                                          true,
		"route {\ninvoke governed\ninvoke governed\n}" + governed:                  true,
		"route {\ninvoke governed\nlex\n}" + governed:                              true,
		"invoke twice\n}\n&(twice) {\nroute {\nlex\nlex\n}":                        true,
		"lex\ninvoke outer\n}\n&(outer) {\ninvoke governed" + governed:             true,
		"handle /a {\nlex\n}\nhandle {\ninvoke governed\n}" + governed:             false,
		"handle /a {\ninvoke governed\n}\nhandle {\ninvoke governed\n}" + governed: false,
		"lex /a\ninvoke /b governed" + governed:                                    false,
		"lex\ninvoke a\n}\n&(a) {\ninvoke b\n}\n&(b) {\ninvoke a":                  false, // without end, as Caddy has it
	} {
		err := validSite(t, "", site)
		if got := err != nil && strings.Contains(err.Error(), twice); got != fails || !fails && err != nil {
			t.Errorf("%q: %v", site, err)
		}
	}
	p := runCaddy(t, "lex {\nstore bolt ${store}\n}", "lex /v1/*\nlex /v1/chat/*\nrespond here")
	if status, _, body := p.send(http.MethodGet, "/v1/models", "", nil); status != http.StatusOK || body != "here" {
		t.Errorf("once: %d %s", status, body)
	}
	status, _, body := p.send(http.MethodPost, "/v1/chat/completions", chatQuestion, nil)
	if status < 500 {
		t.Errorf("twice: %d %s", status, body)
	}
	if status, _, body := p.send(http.MethodGet, "/v1/chat/completions", "", nil); status != http.StatusInternalServerError || !strings.Contains(body, "governed_twice") {
		t.Errorf("twice: %d %s", status, body)
	}
	if logged := p.stop(); !strings.Contains(logged, twice) {
		t.Error("nothing was logged")
	}
}

// Behind a reverse_proxy that answers every request lex governs nothing, and the self-test,
// which asks the handler itself, does not see it.
func TestLexThatNoRequestReaches(t *testing.T) {
	const proxy, auth = "reverse_proxy 127.0.0.1:1", "forward_auth 127.0.0.1:1 {\nuri /auth\n}"
	const models, governed = "\n}\n&(models) {\n" + proxy, "\n}\n&(governed) {\nroute {\nlex\n" + proxy + "\n}"
	for site, fails := range map[string]bool{
		"route {\n" + proxy + "\nlex\n}":                                                     true,
		"route {\n" + proxy + "\nlex /v1/*\n}":                                               true,
		"route {\n" + proxy + "\nroute {\nlex\n}\n}":                                         true,
		"route {\nhandle {\n" + proxy + "\n}\nlex\n}":                                        true,
		"route {\nhandle /a {\nrespond a\n}\nhandle {\nroute {\n" + proxy + "\nlex\n}\n}\n}": true,
		"handle /a {\nlex\n" + proxy + "\n}\nhandle {\nroute {\n" + proxy + "\nlex\n}\n}":    true,
		"lex\n" + proxy:                                                                 false,
		"route {\n" + proxy + "\n}\nlex":                                                false, // Caddy sorts it
		"route {\n" + auth + "\nlex\n" + proxy + "\n}":                                  false,
		"route {\nreverse_proxy /files/* 127.0.0.1:1\nlex\n" + proxy + "\n}":            false,
		"handle /files/* {\n" + proxy + "\n}\nhandle {\nlex\n" + proxy + "\n}":          false,
		"route {\nhandle /a {\nheader X-A b\n}\nhandle {\n" + proxy + "\n}\nlex\n}":     false,
		"route {\nlex\n" + proxy + "\n}\nhandle_errors {\nroute {\n" + proxy + "\n}\n}": false,
		"route {\nhandle /a {\n" + proxy + "\n}\nhandle /b {\nlex\n" + proxy + "\n}\n}": false,

		"route {\ninvoke models\nlex\n" + proxy + "\n}" + models:                                  true,
		"route {\n" + proxy + "\ninvoke governed\n}" + governed:                                   true,
		"route {\ninvoke models\ninvoke governed\n}" + models + governed:                          true,
		"handle {\nroute {\ninvoke outer\n}\n}\n}\n&(outer) {\nroute {\n" + proxy + "\nlex\n}":    true,
		"lex\ninvoke models" + models:                                                             false,
		"invoke governed" + governed:                                                              false,
		"route {\ninvoke /files/* models\nlex\n" + proxy + "\n}" + models:                         false,
		"route {\ninvoke auth\nlex\n" + proxy + "\n}\n}\n&(auth) {\n" + auth:                      false,
		"handle /a {\ninvoke models\n}\nhandle {\ninvoke governed\n}" + models + governed:         false,
		"route {\ninvoke a\nlex\n" + proxy + "\n}\n}\n&(a) {\nroute {\nheader X-A b\ninvoke a\n}": false,
	} {
		err := validSite(t, "", site)
		if got := err != nil && strings.Contains(err.Error(), "no request comes to lex"); got != fails || !fails && err != nil {
			t.Errorf("%q: %v", site, err)
		}
	}
	// In JSON, and through the admin API, each handler may have a route of its own.
	for routes, fails := range map[string]bool{
		`{"handle":[PROXY]},{"handle":[LEX,PROXY]}`:                                                           true,
		`{"handle":[{"handler":"headers"}]},{"handle":[PROXY]},{"match":[{"path":["/v1/*"]}],"handle":[LEX]}`: true,
		`{"handle":[LEX]},{"handle":[PROXY]}`:                                                                 false,
		`{"match":[{"path":["/a/*"]}],"handle":[PROXY]},{"handle":[LEX]},{"handle":[PROXY]}`:                  false,
	} {
		routes = strings.NewReplacer("LEX", `{"handler":"lex"}`, "PROXY", `{"handler":"reverse_proxy","upstreams":[{"dial":"127.0.0.1:1"}]}`).Replace(routes)
		err := validate([]byte(`{"admin":{"disabled":true},"apps":{"lex":{"store":{"engine":"bolt","path":` + strconv.Quote(t.TempDir()+"/lex.db") + `}},` +
			`"http":{"servers":{"s":{"listen":["127.0.0.1:0"],"routes":[` + routes + `]}}}}}`))
		if got := err != nil && strings.Contains(err.Error(), "no request comes to lex"); got != fails || !fails && err != nil {
			t.Errorf("%s: %v", routes, err)
		}
	}
	for _, order := range []string{"order lex last", "order lex after reverse_proxy"} {
		if err := validSite(t, order+"\n", "lex\n"+proxy); err == nil || !strings.Contains(err.Error(), "no request comes to lex") {
			t.Errorf("%s: %v", order, err)
		}
	}
}

// validSite returns why a configuration with a site is not loaded.
func validSite(t *testing.T, global, site string) error {
	t.Helper()
	p := &proxy{t: t, url: "http://127.0.0.1:0", log: t.TempDir() + "/log", data: t.TempDir() + "/lex.db"}
	config, err := p.adapt(global+"lex {\nstore bolt ${store}\n}", site)
	if err != nil {
		t.Fatal(err)
	}
	return validate(config)
}

// A secret whose placeholder comes to nothing opens nothing, and says so.
func TestSecretThatIsNotSet(t *testing.T) {
	t.Setenv("LEX_TEST_EMPTY", "")
	p := runCaddy(t, "lex {\nstore bolt ${store}\nsecrets {\nadmin a-{env.LEX_TEST_EMPTY}b\nbench {env.LEX_TEST_UNKNOWN}\n}\n}", "lex")
	for _, given := range []string{"x", "a-b"} { // nor does what stands around the placeholder
		if status, _, body := p.send(http.MethodGet, "/admin/keys", "", http.Header{"X-Lex-Admin-Password": {given}}); status != http.StatusServiceUnavailable {
			t.Errorf("%s: %d %s", given, status, body)
		}
	}
	if logged := p.stop(); strings.Count(logged, "what it names is empty") != 2 || !strings.Contains(logged, `"secret":"bench"`) {
		t.Errorf("no warning: %s", logged)
	}
}
