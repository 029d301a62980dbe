package console

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"strings"
	"sync"
)

// pageHTML is made from the folder page by `make console`.
//
//go:embed console.html
var pageHTML []byte

// A Page is a page that needs nothing from anywhere else.
type Page struct {
	HTML []byte
	// Policy is its Content-Security-Policy: its own scripts and style sheets run, by their
	// hashes, and it asks its own origin. Scripts write no HTML (Trusted Types).
	Policy string
	ETag   string // by content
}

// ThePage returns the page at /lex/console.
var ThePage = sync.OnceValue(func() Page { return newPage(pageHTML) })

// inlined finds the elements whose text a browser hashes. A page has no end tag of another
// element inside one of them.
var inlined = regexp.MustCompile(`(?is)<(script|style)\b[^>]*>(.*?)</(?:script|style)\s*>`)

func newPage(html []byte) Page {
	hashes := map[string]string{}
	for _, m := range inlined.FindAllSubmatch(html, -1) {
		sum := sha256.Sum256(m[2])
		hashes[strings.ToLower(string(m[1]))] += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	source := func(element string) string {
		if hashes[element] == "" {
			return " 'none'"
		}
		return hashes[element]
	}
	return Page{
		HTML: html,
		Policy: "default-src 'none'; script-src" + source("script") + "; style-src" + source("style") + "; connect-src 'self'; base-uri 'none'; " +
			"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
		ETag: ETag(html),
	}
}

// ETag tags a body by its content.
func ETag(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}
