package detect

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Normalise maps a text to the form that every rule and feature reads: NFKC
// (Unicode Standard Annex 15), lower case, accents and other attached marks
// stripped, lookalike letters replaced by the Latin letter they imitate where
// they stand for one, invisible characters removed, runs of white space
// collapsed to one space and trimmed. Invalid UTF-8 becomes U+FFFD.
//
// It is idempotent, linear in time, and its result is at most six times as long
// as its input. The one larger expansion of NFKC, U+FDFA (a blessing in eighteen
// letters), gives its usual abbreviation instead.
func Normalise(s string) string {
	switch {
	case isNormal(s):
		return s
	case isClean(s):
		return foldASCII(s)
	}
	return normalised(newText(s)).text
}

// foldASCII is fold for a text that isClean, without the way back.
func foldASCII(s string) string {
	var out strings.Builder
	out.Grow(len(s))
	gap := true
	for i := range len(s) {
		c := foldedASCII[s[i]]
		if c != ' ' || !gap {
			out.WriteByte(c)
		}
		gap = c == ' '
	}
	return strings.TrimSuffix(out.String(), " ")
}

// foldedASCII maps capitals to small letters and white space to a space.
var foldedASCII = func() (table [256]byte) {
	for c := range table {
		switch {
		case '\t' <= c && c <= '\r':
			table[c] = ' '
		case 'A' <= c && c <= 'Z':
			table[c] = byte(c) + 'a' - 'A'
		default:
			table[c] = byte(c)
		}
	}
	return table
}()

// normalised is Normalise with the way back to the original.
func normalised(d *derived) *derived { return folded(clean(d)) }

// folded is fold, but for texts that it would leave as they are.
func folded(d *derived) *derived {
	if isNormal(d.text) {
		return d
	}
	return fold(d)
}

// isNormal recognises the ASCII texts that Normalise leaves alone, so that
// they cost no allocation.
func isNormal(s string) bool {
	gap := true // a space may not come first, nor after a space
	for i := range len(s) {
		c := s[i]
		if c < ' ' || c >= 0x7f || 'A' <= c && c <= 'Z' || c == ' ' && gap {
			return false
		}
		gap = c == ' '
	}
	return len(s) == 0 || !gap
}

// clean is the half of Normalise that keeps case and white space, so that what
// is encoded in the text survives it.
func clean(d *derived) *derived {
	if isClean(d.text) {
		return d
	}
	s, w := d.text, rewrite(d)
	for i := 0; i < len(s); {
		end := i + plainPrefix(s[i:])
		if end > i {
			w.keep(i, end)
		} else {
			end = cleanRune(w, s, i)
		}
		i = end
	}
	out := w.done()
	if plainPrefix(out.text) == len(out.text) || norm.NFKC.IsNormalString(out.text) {
		return out
	}
	return compose(out)
}

// isClean reports whether s is ASCII without control characters, white space
// but carriage returns aside.
func isClean(s string) bool {
	for i := range len(s) {
		if traits[s[i]]&(beyond|control) != 0 {
			return false
		}
	}
	return true
}

func cleanByte(c byte) bool { return ' ' <= c && c < 0x7f || '\t' <= c && c < '\r' }

// cleanRune writes the character of s that starts at i, decomposed and without
// its marks, and returns its end.
func cleanRune(w *rewriter, s string, i int) int {
	r, size := utf8.DecodeRuneInString(s[i:])
	end := i + size
	switch {
	case r == utf8.RuneError && size == 1:
		return badBytes(w, s, i)
	case r == '\r' && end < len(s) && s[end] == '\n':
		w.drop(i) // lines end in one way
		return end
	case unicode.IsSpace(r):
		w.put(" ", i, end)
		return end
	case invisible(r):
		w.drop(i)
		return end
	case r == 0xfdfa:
		w.put("صلعم", i, end)
		return end
	case 0x1f1e6 <= r && r <= 0x1f1ff: // regional indicators, before letters that stand apart are joined
		w.putBytes([]byte{byte(r - 0x1f1e6 + 'a')}, i, end)
		return end
	case r == 0x2800: // Braille's space
		w.put(" ", i, end)
		return end
	case 0x249c <= r && r <= 0x24b5: // NFKC leaves the brackets of parenthesised letters
		w.putBytes([]byte{byte(r - 0x249c + 'a')}, i, end)
		return end
	}
	known := norm.NFKD.PropertiesString(s[i:end])
	parts := known.Decomposition()
	switch {
	case parts == nil && attached(r, known):
		w.drop(i)
	case parts == nil:
		w.keep(i, end)
	default:
		cleanParts(w, parts, s, i, end)
	}
	return end
}

// cleanParts writes what is left of the parts of s[i:end]. A character that
// loses none stays as it is if NFKC has it so.
func cleanParts(w *rewriter, parts []byte, s string, i, end int) {
	var buf [64]byte
	out := buf[:0]
	for k := 0; k < len(parts); {
		r, size := utf8.DecodeRune(parts[k:])
		part := parts[k : k+size]
		switch {
		case unicode.IsSpace(r):
			out = append(out, ' ')
		case !invisible(r) && !attached(r, norm.NFKD.Properties(part)):
			out = append(out, part...)
		}
		k += size
	}
	if len(out) == len(parts) && norm.NFKC.QuickSpanString(s[i:end]) == end-i {
		w.keep(i, end)
		return
	}
	w.putBytes(out, i, end)
}

// badBytes writes one U+FFFD for a run of bytes that are not UTF-8.
func badBytes(w *rewriter, s string, i int) int {
	end := i + 1
	for end < len(s) {
		if r, size := utf8.DecodeRuneInString(s[end:]); r != utf8.RuneError || size != 1 {
			break
		}
		end++
	}
	w.put("\uFFFD", i, end)
	return end
}

// compose joins what became neighbours when something between was removed.
func compose(d *derived) *derived {
	w := rewrite(d)
	for i := 0; i < len(d.text); {
		next := i + norm.NFKC.NextBoundaryInString(d.text[i:], true)
		w.put(norm.NFKC.String(d.text[i:next]), i, next)
		i = next
	}
	return w.done()
}

// fold is the other half of Normalise: lower case, lookalikes, white space.
func fold(d *derived) *derived {
	out, imitated := foldCase(d)
	if imitated {
		return unmask(out, mostlyLatin(out.text))
	}
	return out
}

// foldCase is fold, but for the letters that imitate those of another script. It reports
// whether there may be some, and leaves the case of twoFaced to unmask.
func foldCase(d *derived) (_ *derived, imitated bool) {
	s, w := d.text, rewrite(d)
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			i = w.fold(i)
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		lower := unicode.ToLower(r)
		to, sort := skeleton(lower)
		switch {
		case sort == always:
			w.put(string(to), i, i+size)
		case lower != r && !strings.ContainsRune(twoFaced, r):
			w.put(string(lower), i, i+size)
		default:
			w.keep(i, i+size)
		}
		imitated = imitated || sort == inContext
		i += size
	}
	w.trim()
	return w.done(), imitated
}

// fold writes the ASCII characters from source[i] on up to a space that is left out, or
// drops that, and returns their end.
func (d *rewriter) fold(i int) int {
	s, n := d.from.text, len(d.out)
	gap := n == 0 || d.out[n-1] == ' '
	if gap && foldedASCII[s[i]] == ' ' {
		d.drop(i)
		return i + 1
	}
	d.mark(kept, i)
	end, stop := i, min(len(s), i+contextInterval)
	out := slices.Grow(d.out, stop-i)[:n+stop-i]
	for ; end < stop && s[end] < utf8.RuneSelf; end++ {
		c := foldedASCII[s[end]]
		if c == ' ' && gap {
			break
		}
		gap = c == ' '
		out[n] = c
		n++
	}
	d.out = out[:n]
	d.from.checkContextAt(i, end)
	return end
}

// trim leaves out the space that the text ends with, one byte of the source. What
// followed it there, if anything, was left out as well: one mark stands for both, so
// that the marks stay in order.
func (d *rewriter) trim() {
	n := len(d.out) - 1
	if n < 0 || d.out[n] != ' ' {
		return
	}
	d.out = d.out[:n]
	if d.last == dropped {
		last := &d.marks[len(d.marks)-1]
		last.out--
		last.src -= 1 << 1
		return
	}
	d.drop(len(d.from.text) - 1)
}
