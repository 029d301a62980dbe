package detect

import (
	"strings"
	"unicode/utf8"
)

// minHidden is how many invisible characters in a row make a hidden text.
// Flags of regions and emoji have fewer (UTS 51, annex C).
const minHidden = 8

// unhide shows what tag characters (U+E0020 to U+E007E, a mirror of ASCII) and
// variation selectors (one for each value of a byte) spell: no reader sees
// them and some models obey. It returns nil when there is nothing.
func unhide(d *derived) *derived {
	if !strings.Contains(d.text, "\U000E0020"[:2]) && !strings.Contains(d.text, "\uFE00"[:2]) {
		return nil
	}
	if shown := replaceAll(d, &hiding, new(int), hidden); shown != d {
		return shown
	}
	return nil
}

// hiding are the first bytes of hidden characters.
var hiding = bytesOf("\U000E0020"[:1] + "\uFE00"[:1])

// hidden replaces a run that is long enough to be a text.
func hidden(s string, i int) (text string, end int) {
	if text, end = hiddenText(s, i); len(text) < minHidden {
		return "", i
	}
	return text, end
}

// hiddenText reads the run of hidden characters at s[i:].
func hiddenText(s string, i int) (string, int) {
	var out []byte
	end := i
	for end < len(s) {
		r, size := utf8.DecodeRuneInString(s[end:])
		b, ok := hiddenByte(r)
		if !ok {
			break
		}
		out = append(out, b)
		end += size
	}
	return string(out), end
}

func hiddenByte(r rune) (byte, bool) {
	switch {
	case 0xe0020 <= r && r <= 0xe007e:
		return byte(r - 0xe0000), true
	case 0xfe00 <= r && r <= 0xfe0f:
		return byte(r - 0xfe00), true
	case 0xe0100 <= r && r <= 0xe01ef:
		return byte(r - 0xe0100 + 16), true
	}
	return 0, false
}

// unglue reads invisible characters between two ASCII letters as spaces, for a
// text whose words they part; Normalise, which removes them, serves the text
// whose words they split. It returns nil when there are fewer than two.
func unglue(d *derived) *derived {
	s, kept := d.text, 0
	var w *rewriter
	n := 0
	for i := 1; i < len(s); {
		if s[i] < utf8.RuneSelf || !asciiLetter(s[i-1]|0x20) {
			i++
			continue
		}
		end := i
		for end < len(s) {
			r, size := utf8.DecodeRuneInString(s[end:])
			if !invisible(r) || r < utf8.RuneSelf {
				break
			}
			end += size
		}
		if end == i || end == len(s) || !asciiLetter(s[end]|0x20) {
			i = max(end, i+1)
			continue
		}
		if w == nil {
			w = rewrite(d)
		}
		w.keepSome(kept, i)
		w.put(" ", i, end)
		i, kept = end, end
		n++
	}
	if n < 2 {
		return nil
	}
	w.keepSome(kept, len(s))
	return w.done()
}
