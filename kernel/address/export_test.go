package address

import (
	"strings"

	whatwg "github.com/nlnwa/whatwg-url/url"
)

// Plain returns the host, the path and the query of an address that is not given to
// the parser of the URL standard, and what that says; nil where it is given or refuses it.
func Plain(text string) (cut, parsed []string) {
	if p, is := plain(text); is {
		cut = []string{p.Host, p.Port, p.Path, p.Query, ""}
	}
	if u, err := whatwg.Parse(text); err == nil {
		parsed = []string{strings.TrimSuffix(u.Hostname(), "."), u.Port(), u.Pathname(), u.Query(), u.Username()}
	}
	return cut, parsed
}

// InWithExpression finds the addresses in a text, and by the expression for them.
func InWithExpression(text string, n int) (found, matched []string) {
	return In(text, n), inText.FindAllString(text, n)
}
