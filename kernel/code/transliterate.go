package code

import (
	"slices"
	"strings"
)

// Transliterate replaces the characters of one set by those of another, as tr does in a
// shell, in Perl and in Ruby: the last one of a shorter set stands for all that follow. A
// set may have ranges and the classes of POSIX. Without anything to replace them by there is
// no result.
func Transliterate(text, from, to string) (string, bool) {
	old, made := Characters(from), Characters(to)
	if len(made) == 0 {
		return "", false
	}
	return strings.Map(func(c rune) rune {
		if i := slices.Index(old, c); i >= 0 {
			return made[min(i, len(made)-1)]
		}
		return c
	}, text), true
}

// maxCharacters bounds the characters of one set.
const maxCharacters = 1 << 10

var charClasses = strings.NewReplacer("[:upper:]", "A-Z", "[:lower:]", "a-z", "[:digit:]", "0-9", "[:space:]", " ", `\n`, "\n", `\t`, "\t")

// Characters lists the characters of a set of tr.
func Characters(set string) []rune {
	var out []rune
	text := []rune(charClasses.Replace(set))
	for i := 0; i < len(text) && len(out) < maxCharacters; i++ {
		if i+2 < len(text) && text[i+1] == '-' && text[i] <= text[i+2] && text[i+2]-text[i] < 128 {
			for c := text[i]; c <= text[i+2]; c++ {
				out = append(out, c)
			}
			i += 2
			continue
		}
		out = append(out, text[i])
	}
	return out
}
