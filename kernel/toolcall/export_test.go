package toolcall

import (
	"context"
	"regexp"
)

// MaxWork is the budget of one call.
const MaxWork = maxWork

// Invariants is the closed set, in the order of precedence.
var Invariants = precedence

// Work decides a call and tells what it took, in the budget's units.
func Work(c Call) (Decision, int) {
	b := &budget{ctx: context.Background()}
	d, err := decide(c, b)
	if err != nil {
		panic(err) // only a context that ends gives one
	}
	return d, b.used
}

// Screens are the patterns behind a screen, and whether each may match a text as the
// screen tells.
func Screens(text string) (patterns []*regexp.Regexp, possible []bool) {
	for _, s := range []*screen{codeScreen, windowsScreen, tokenScreen, credentialFile, secret, sqlVerb, starter, removal, changing, requesting, decoder, executing, evaluates, startsShell, sending, governedFile, startsCode, accountFile, localName, collector, dropSite} {
		mask := s.possible(text)
		for i, p := range s.patterns {
			patterns, possible = append(patterns, p), append(possible, mask&(1<<i) != 0)
		}
	}
	return patterns, possible
}
