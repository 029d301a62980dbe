package caddymodule_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/caddymodule"
)

// Only exact paths are ours, in whatever spelling. Every other request reaches
// the upstream as it came: never an answer or a redirect of the mux.
func TestOwnPaths(t *testing.T) {
	var seen string
	upstream := func(w http.ResponseWriter, r *http.Request) error {
		seen = r.URL.RequestURI()
		w.WriteHeader(http.StatusTeapot)
		return nil
	}
	sites := make(map[string]*site)
	for _, group := range []string{"all", "govern", "read", "off"} {
		sites[group] = newSite(t, `{"endpoints":"`+group+`"}`, upstream)
		<-caddymodule.FirstSelfTest(sites[group].handler) // until then the health is 503
	}
	for _, c := range []struct {
		endpoints, method, uri string
		status                 int
		allow                  string
	}{
		{"all", "GET", "/stats", 200, ""},
		{"all", "HEAD", "/stats", 200, ""},
		{"all", "GET", "/stats?a=b", 200, ""},
		{"all", "POST", "/stats", 405, "GET, HEAD"},
		{"all", "DELETE", "/stats", 405, "GET, HEAD"},
		{"all", "CONNECT", "/stats", 405, "GET, HEAD"},
		{"all", "OPTIONS", "/lex/govern", 405, "POST"},
		{"all", "GET", "/audits/verify", 405, "POST"},
		{"all", "PUT", "/audits/verify", 405, "POST"},
		{"all", "PATCH", "/admin/keys", 405, "GET, POST"},
		{"all", "HEAD", "/admin/keys", 405, "GET, POST"},
		{"all", "GET", "/admin/keys/key_0", 405, "DELETE"},
		{"all", "GET", "/audits/recent", 200, ""},
		{"all", "GET", "/audits/log", 200, ""},
		{"all", "HEAD", "/audits/log", 200, ""},
		{"all", "POST", "/audits/log", 405, "GET, HEAD"},
		{"all", "GET", "/audits/KRN-00000000000000000000000000000000", 404, ""},
		{"all", "GET", "/audits/turn", 404, ""},
		{"all", "GET", "/audits/turn/x", 404, ""},

		// a name that is empty or escaped
		{"all", "GET", "/audits/", 404, ""},
		{"all", "GET", "/lex/policies/", 404, ""},
		{"all", "GET", "/lex/setups/", 404, ""},
		{"all", "POST", "/audits/", 405, "GET, HEAD"},
		{"all", "GET", "/audits/%C3%A9%20%25", 404, ""},
		{"all", "GET", "/lex/%68ealth", 200, ""},
		{"all", "GET", "/lex%2Fhealth", 200, ""},

		// a name of dots, with which a secret may come as with any other
		{"all", "GET", "/audits/.", 404, ""},
		{"all", "GET", "/audits/..", 404, ""},
		{"all", "GET", "/audits/%2e%2E", 404, ""},
		{"all", "GET", "/audits/turn/..", 404, ""},
		{"all", "GET", "/admin/keys/..", 405, "DELETE"},
		{"all", "GET", "/lex/..", 418, ""},
		{"all", "GET", "/audits/../audits/x", 418, ""},

		// paths that are not ours
		{"all", "GET", "/", 418, ""},
		{"all", "GET", "/audits", 418, ""},
		{"all", "GET", "/audits/a/b", 418, ""},
		{"all", "GET", "/audits/a%2Fb", 418, ""},
		{"all", "GET", "/stats/", 418, ""},
		{"all", "GET", "/STATS", 418, ""},
		{"all", "GET", "//stats", 418, ""},
		{"all", "GET", "/./stats", 418, ""},
		{"all", "GET", "/lex/../stats", 418, ""},
		{"all", "GET", "/lex//health", 418, ""},
		{"all", "GET", "/lex/health/..", 418, ""},
		{"all", "OPTIONS", "*", 418, ""},
		{"all", "CONNECT", "//stats", 418, ""},
		{"all", "CONNECT", "", 418, ""},
		{"all", "GET", "", 418, ""},

		// groups that are off
		{"off", "GET", "/stats", 418, ""},
		{"off", "GET", "/lex/docs", 418, ""},
		{"off", "GET", "/lex/health", 418, ""},
		{"govern", "GET", "/stats", 418, ""},
		{"govern", "GET", "/lex/health", 200, ""},
		{"govern", "PUT", "/admin/keys", 405, "GET, POST"},
		{"govern", "GET", "/audits/recent", 418, ""},
		{"read", "GET", "/stats", 200, ""},
		{"read", "GET", "/lex/openapi.json", 200, ""},
		{"read", "GET", "/admin/keys", 418, ""},
		{"read", "GET", "/lex/health", 200, ""},
		{"all", "GET", "/lex/console", 418, ""}, // an option of its own
		{"read", "GET", "/lex/console/about", 418, ""},
	} {
		seen = ""
		r := httptest.NewRequest(c.method, "http://site.test/", nil)
		target, err := url.Parse(c.uri)
		if err != nil || strings.HasPrefix(c.uri, "//") { // which would be a host
			target = &url.URL{Path: c.uri}
		}
		r.URL.Path, r.URL.RawPath, r.URL.RawQuery = target.Path, target.RawPath, target.RawQuery
		w := httptest.NewRecorder()
		sites[c.endpoints].serve(struct{ http.ResponseWriter }{w}, r) // most of these are not described
		if w.Code != c.status || w.Header().Get("Allow") != c.allow {
			t.Errorf("%s: %s %s: %d, Allow %q, want %d, %q", c.endpoints, c.method, c.uri, w.Code, w.Header().Get("Allow"), c.status, c.allow)
		}
		if want := r.URL.RequestURI(); (seen != "") != (c.status == http.StatusTeapot) || seen != "" && seen != want {
			t.Errorf("%s: %s %s: the upstream saw %q of %q", c.endpoints, c.method, c.uri, seen, want)
		}
		if c.status == http.StatusMethodNotAllowed && c.method != http.MethodHead && !strings.Contains(w.Body.String(), `"method_not_allowed"`) {
			t.Errorf("%s %s: %s", c.method, c.uri, w.Body)
		}
	}
}
