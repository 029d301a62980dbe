package resemblance

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-lex/lex/kernel/regex"
)

// Named tells which of the names that a request has a call has.
type Named string

// The request has none; the call has all of them, some, or none.
const (
	Unnamed Named = "unnamed"
	All     Named = "all"
	Some    Named = "some"
	Others  Named = "others"
)

// NamedIn tells which names of a request are in a call: of the marked ones, such as orders_old,
// web-sp-02 or 7f1c-22, a request seldom has another than that of the thing meant.
func NamedIn(request string, arguments []byte) Named {
	call := ""
	names, found := 0, 0
	for name := range markedNames(ends(request, MaxArguments)) {
		if names++; names == 1 {
			call = strings.ToLower(string(arguments))
		}
		if strings.Contains(call, name) {
			found++
		}
	}
	switch {
	case names == 0:
		return Unnamed
	case found == names:
		return All
	case found > 0:
		return Some
	}
	return Others
}

// minName is how long a name is at least that tells anything.
const minName = 3

// markedNames are the names in a text that have figures, or parts, in small letters. Numbers, times
// and the numbers of tickets are none.
func markedNames(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for w := range strings.FieldsFuncSeq(text, func(c rune) bool {
			return c >= utf8.RuneSelf || !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("./@:-_", c)
		}) {
			w = strings.Trim(w, ".:-/_")
			if len(w) >= minName && strings.ContainsAny(w, "0123456789._/@-") && !ticketOrNumber.MatchString(w) && !yield(strings.ToLower(w)) {
				return
			}
		}
	}
}

var ticketOrNumber = regex.New(`^(?:[A-Z]{2,6}-\d+|[\d.:,/-]+[A-Za-z]{0,3})$`)
