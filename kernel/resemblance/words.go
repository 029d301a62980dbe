package resemblance

import (
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-lex/lex/kernel/prose"
)

// wordSet is the set of the words of a text.
func wordSet(text string) map[string]bool {
	set := make(map[string]bool)
	for _, w := range wordsOf(ends(text, MaxArguments)) {
		set[w] = true
	}
	return set
}

// ends returns the beginning and the end of a text.
func ends(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most/2] + "\n" + text[len(text)-most/2:]
}

// wordsOf cuts a text into its words, figures and signs. What is written together
// (camelCase, snake_case) is cut, capitals are small, of figures only their length counts
// beyond one digit, and all names of hosts and public addresses are one word: whose they are
// says nothing of a call that somebody else makes.
func wordsOf(text string) (out []string) {
	inside := false // a name, so that no host begins here
	for len(text) > 0 {
		c, size := utf8.DecodeRuneInString(text)
		letter, digit := unicode.IsLetter(c), unicode.IsDigit(c)
		if (letter || digit) && !inside {
			if w, end := hostIn(text); end > 0 {
				out, text = append(out, w), text[end:]
				continue
			}
		}
		inside = letter || digit || c == '-' || c == '.'
		switch {
		case letter:
			size = wordEnd(text)
			out = append(out, strings.ToLower(text[:size]))
		case digit:
			size = len(text) - len(strings.TrimLeftFunc(text, unicode.IsDigit))
			if w := text[:size]; len(w) > 1 {
				out = append(out, "0000"[:min(4, utf8.RuneCountInString(w))])
			} else {
				out = append(out, w)
			}
		case !unicode.IsSpace(c) && !unicode.IsControl(c) && !strings.ContainsRune(`"{},:_`, c):
			out = append(out, text[:size])
		}
		text = text[size:]
	}
	return out
}

// wordEnd is where the word ends that a text begins with: where the letters end, or where a
// capital follows a small one.
func wordEnd(text string) int {
	small := false
	for n, c := range text {
		if !unicode.IsLetter(c) || small && unicode.IsUpper(c) {
			return n
		}
		small = unicode.IsLower(c)
	}
	return len(text)
}

// hostIn returns the word for the name of a host, or the public address, that a text begins
// with, and where that ends; 0 if it begins with none.
func hostIn(text string) (word string, end int) {
	labels, figures := 1, true
	last := 0
	for end < len(text) {
		c := text[end]
		if c == '.' {
			labels++
			last = end + 1
		} else if isLetter := c|0x20 >= 'a' && c|0x20 <= 'z'; isLetter || c == '-' {
			figures = false
		} else if c < '0' || c > '9' {
			break
		}
		end++
	}
	for end > 0 && (text[end-1] == '.' || text[end-1] == '-') {
		end--
	}
	switch {
	case labels < 2 || last >= end:
		return "", 0
	case figures && labels == 4:
		a, err := netip.ParseAddr(text[:end])
		if err != nil || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified() {
			return "", 0
		}
		return "<host>", end
	case hostEndings[strings.ToLower(text[last:end])]:
		return "<host>", end
	}
	return "", 0
}

// hostEndings are what names of hosts end in.
var hostEndings = prose.Set("example test invalid com net org io dev internal local lan corp home de co app cloud ai eu uk fr jp br pl nl it es ch at us ca au in info biz me gov edu")
