package toolcall

import (
	"fmt"
	"iter"
	"path"
	"strings"
)

// globs is a list of patterns over the names of tools.
type globs []glob

// A glob keeps the operator's spelling beside the one that is matched.
type glob struct{ written, matched string }

// newGlobs checks patterns. path.Match matches them: it knows classes, works in time
// linear in the name for each star, and finds every mistake in a pattern when it is
// asked once.
func newGlobs(patterns []string) (globs, error) {
	out := make(globs, 0, len(patterns))
	for _, p := range patterns {
		g := glob{p, foldName(p)}
		if _, err := path.Match(g.matched, ""); err != nil || p == "" {
			return nil, fmt.Errorf("%q is not a glob such as db_* or file.[rw]*", p)
		}
		for first, last := range ranges(g.matched) {
			switch {
			case last < first: // path.Match takes it and matches nothing with it, so the rule would never hold
				return nil, fmt.Errorf("the glob %q has a range that no character is in, such as [z-a]", p)
			case first < last && last == foldedSlash:
				return nil, fmt.Errorf("the glob %q has a range that ends with a slash; name the characters", p)
			}
		}
		out = append(out, g)
	}
	return out, nil
}

// ranges are those in the classes of a valid pattern; a character alone is one of itself.
func ranges(pattern string) iter.Seq2[rune, rune] {
	return func(yield func(first, last rune) bool) {
		chars := []rune(pattern)
		for i := 0; i < len(chars); i++ {
			switch chars[i] {
			case '\\':
				i++
			case '[':
				i++
				if chars[i] == '^' {
					i++
				}
				for chars[i] != ']' {
					var first, last rune
					first, i = classChar(chars, i)
					if last = first; chars[i] == '-' {
						last, i = classChar(chars, i+1)
					}
					if !yield(first, last) {
						return
					}
				}
			}
		}
	}
}

// classChar returns the character of a class at a place, and the place behind it.
func classChar(chars []rune, at int) (char rune, behind int) {
	if chars[at] == '\\' {
		at++
	}
	return chars[at], at + 1
}

// match returns the first glob that matches one of a tool's names.
func (gs globs) match(names ...string) (written string, ok bool) {
	if len(gs) == 0 {
		return "", false
	}
	for _, name := range names {
		name = foldName(name)
		for _, g := range gs {
			if ok, _ := path.Match(g.matched, name); ok { // newGlobs has checked the pattern
				return g.written, true
			}
		}
	}
	return "", false
}

// foldName makes names comparable. The slash, at which a star of path.Match stops, becomes
// a character that no text has (Unicode calls it a noncharacter).
func foldName(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "/", string(foldedSlash))
}

const foldedSlash = '\U0010FFFF'
