package file

import (
	"regexp"

	"github.com/caddy-lex/lex/kernel/regex"
)

// Screens are the patterns behind the screens, and whether each matches a name as its screen
// tells.
func Screens(name string) (patterns []*regexp.Regexp, matches []bool) {
	for _, s := range []*regex.Screen{secretFiles, starters, granters} {
		mask := s.Matching(name, false)
		for i, p := range s.Patterns() {
			patterns, matches = append(patterns, p.Regexp()), append(matches, mask&(1<<i) != 0)
		}
	}
	return patterns, matches
}
