package e2e

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// The example of the console: on its own address with its secret, and nowhere else.
func TestConsoleExample(t *testing.T) {
	t.Parallel()
	readme := read(t, "../examples/console/README.md")
	p, own := freePorts(t), reserve(t)
	text := strings.NewReplacer(":8080 ", ":"+p.site+" ", ":2020 ", ":"+own+" ", "127.0.0.1:11434", "127.0.0.1:"+p.demo).Replace(read(t, "../examples/console/Caddyfile"))
	s := start(t, writeCaddyfile(t, p, withAdmin(text)+demoSite), "", p, "READ_SECRET=sesame")
	call := example.FindStringSubmatch(readme)
	s.do(t, http.MethodPost, call[1], call[3])
	if resp := s.do(t, http.MethodGet, "/lex/console", ""); resp.Header.Get("Content-Security-Policy") != "" { // it is the model's
		t.Errorf("on the site of the application: %d %s", resp.Status, resp.Body)
	}

	console := server{URL: "http://localhost:" + own}
	if resp := console.do(t, http.MethodGet, "/lex/console", ""); resp.Status != http.StatusOK || resp.Header.Get("Content-Security-Policy") == "" {
		t.Errorf("the page: %d %v", resp.Status, resp.Header)
	}
	asked := regexp.MustCompile(`(?m)^curl -s -H "Authorization: Bearer \$READ_SECRET" 'localhost:2020(/\S+)'$`).FindStringSubmatch(readme)
	if asked == nil {
		t.Fatal("the README asks for no data")
	}
	if resp := console.do(t, http.MethodGet, asked[1], ""); resp.Status != http.StatusUnauthorized {
		t.Errorf("without the secret: %d %s", resp.Status, resp.Body)
	}
	resp := console.do(t, http.MethodGet, asked[1], "", "Authorization", "Bearer sesame")
	if resp.Status != http.StatusOK || strings.Count(resp.Body, `"verdict":"refused"`) != 1 {
		t.Errorf("with it: %d %s", resp.Status, resp.Body)
	}
}
