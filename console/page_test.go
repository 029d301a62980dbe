package console

import (
	"crypto/sha256"
	"encoding/base64"
	"os"
	"regexp"
	"strings"
	"testing"
)

// What the policy of a page allows is what a browser hashes: the text of each script and
// style, to the byte.
func TestPolicyOfAPage(t *testing.T) {
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	for html, want := range map[string][2]string{
		"<p>nothing": {"'none'", "'none'"},
		"<style>a{}</style><script>\nlet a = '<style>b{}<\\/style>'\n</script>":             {hash("\nlet a = '<style>b{}<\\/style>'\n"), hash("a{}")},
		`<STYLE media="all">a{}</STYLE ><script type="module">1</script><script>2</script>`: {hash("1") + " " + hash("2"), hash("a{}")},
		"<script></script>": {hash(""), "'none'"},
	} {
		policy := newPage([]byte(html)).Policy
		for i, directive := range []string{"script-src ", "style-src "} {
			_, rest, _ := strings.Cut(policy, directive)
			if got, _, _ := strings.Cut(rest, ";"); got != want[i] {
				t.Errorf("%s: %s%s, want %s", html, directive, got, want[i])
			}
		}
	}
}

// The page in the repository works under its policy: nothing of it needs more.
func TestThePageKeepsItsPolicy(t *testing.T) {
	text, err := os.ReadFile("console.html")
	if err != nil {
		t.Fatal(err)
	}
	outside := inlined.ReplaceAllString(string(text), "")
	for _, bad := range []string{"<script", "<style", " style=", " src=", "<link", "<base", "<iframe", "javascript:", "http://", "https://"} {
		if strings.Contains(strings.ToLower(outside), bad) {
			t.Errorf("the page has %s", bad)
		}
	}
	if m := regexp.MustCompile(`(?i)<[^>]*\son\w+\s*=`).FindString(outside); m != "" {
		t.Errorf("the page has a handler: %s", m)
	}
	page := ThePage()
	for _, part := range []string{"default-src 'none'", "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'"} {
		if !strings.Contains(page.Policy, part) {
			t.Errorf("no %s in %s", part, page.Policy)
		}
	}
	if strings.Contains(page.Policy, "unsafe") || string(page.HTML) != string(text) {
		t.Error("the policy is lax, or the page is another")
	}
}
