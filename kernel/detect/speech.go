package detect

import (
	"slices"
	"unicode/utf8"
)

// A speech is what an answer says, while the answer grows: " " and the result of
// [spoken]. It settles up to the last place at which no text that follows can change
// what was made of the text before, so that each byte of an answer is normalised about
// once, and what settled need not be searched again.
type speech struct {
	said    []byte
	settled int // bytes of said that stay
	read    int // bytes of the answer that these were made of

	// After what settled: something was said, and a space is due before what follows.
	begun, gap bool

	// Letters that imitate those of another script are read by what most of the text is.
	// Nothing is counted before there are some, then from the beginning.
	counting bool
	letters  scripts // of what settled
	among    bool    // the text is mostly Latin
}

// hear reads an answer that begins with the one that was read before. It reports whether
// what had settled changed after all, which only takes a text that changes its script.
func (s *speech) hear(answer string) (changed bool) {
	end, unbroken := s.lastBreak(answer)
	settling, imitated := foldedPart(answer[s.read:end])
	open, openImitated := foldedPart(answer[end:])
	counting := s.counting || imitated || openImitated
	letters, among := s.letters, false
	if counting {
		letters.count(settling)
		all := letters
		all.count(open)
		among = all.mostlyLatin()
	}
	if s.settled > 0 && (counting != s.counting || among != s.among) || unbroken && counting {
		*s = speech{said: s.said, counting: counting}
		s.hear(answer)
		return true
	}
	s.counting, s.letters, s.among = counting, letters, among
	s.said = append(slices.Grow(s.said[:s.settled], len(settling)+len(open)+4), " "[min(1, s.settled):]...)
	s.add(settling)
	s.settled, s.read = len(s.said), end
	begun, gap := s.begun, s.gap
	s.add(open)
	s.said = append(s.said, ' ')
	s.begun, s.gap = begun, gap
	return false
}

// lastBreak returns the last place after what was read at which an answer can be cut into
// parts that are normalised one by one: before a sign or space of ASCII, or before the usual
// signs between sentences of Chinese and Japanese. Nothing composes with these, and they
// part words. An apostrophe does not. A text without any is cut before an ideograph, unless
// it matters to which word that belongs.
func (s *speech) lastBreak(answer string) (at int, unbroken bool) {
	for i := len(answer) - 1; i > s.read; i-- {
		if breaksWords(answer, i) {
			return i, false
		}
	}
	for i := len(answer) - 1; i > s.read && !s.counting; i-- {
		if r, _ := utf8.DecodeRuneInString(answer[i:]); standsAlone(r) {
			return i, true
		}
	}
	return s.read, false
}

func breaksWords(s string, i int) bool {
	switch c := s[i]; {
	case c < utf8.RuneSelf:
		return cleanByte(c) && !asciiAlnum(c) && c != '\''
	case c == 0xe3 || c == 0xef: // of the signs below
		r, _ := utf8.DecodeRuneInString(s[i:])
		return r == '、' || r == '。' || r == '，'
	}
	return false
}

// standsAlone reports letters that never compose with what stands before.
func standsAlone(r rune) bool {
	const virama = 0x94d                                                       // the only one of the plain characters with a combining class
	return r < utf8.RuneSelf && asciiAlnum(byte(r)) || plain(r) && r != virama //nolint:gosec // G115: below utf8.RuneSelf
}

// foldedPart normalises a part of a text, but for letters that imitate others, and keeps
// a space at its edges. Of a part in ASCII it leaves the rest to add.
func foldedPart(s string) (_ string, imitated bool) {
	if isClean(s) {
		return s, false
	}
	whole := clean(newText(s))
	folded, imitated := foldCase(whole)
	out := folded.text
	if n := len(whole.text); n > 0 {
		if foldedASCII[whole.text[0]] == ' ' {
			out = " " + out
		}
		if foldedASCII[whole.text[n-1]] == ' ' {
			out += " "
		}
	}
	return out, imitated
}

// add says a part of the text: in small letters, with one space between two words, and
// without apostrophes.
func (s *speech) add(part string) {
	if s.counting && !isClean(part) {
		part = unmask(newText(part), s.among).text
	}
	n, begun, gap := len(s.said), s.begun, s.gap
	out := slices.Grow(s.said, len(part)+1)[:n+len(part)+1] // a space may be due before it
	for i := range len(part) {
		c := foldedASCII[part[i]]
		if c == ' ' {
			gap = begun
			continue
		}
		if gap {
			out[n] = ' '
			n++
			gap = false
		}
		begun = true
		if c != '\'' {
			out[n] = c
			n++
		}
	}
	s.said, s.begun, s.gap = out[:n], begun, gap
}
