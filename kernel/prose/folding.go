package prose

import (
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"

	"github.com/caddy-lex/lex/kernel/regex"
)

// folding writes a text in a form in which texts are compared. Normalizing a whole text
// takes long; but most characters are written alike whatever stands around them, and are
// written once and kept.
type folding struct {
	whole func(string) string              // writes any text
	ascii [utf8.RuneSelf]int16             // what is written for a character, or -1 for nothing
	pages [256]atomic.Pointer[[256]string] // what is written for one that stands alone, or ""
}

func newFolding(whole func(string) string) *folding {
	f := &folding{whole: whole}
	for c := range f.ascii {
		f.ascii[c] = -1
		if s := whole(string(rune(c))); s != "" {
			f.ascii[c] = int16(s[0])
		}
	}
	return f
}

// write does what whole does. What does not stand alone is written with the character
// before it, which it may change; behind a byte that is no character, that is unknown.
func (f *folding) write(text string) string {
	if !utf8.ValidString(text) {
		return f.whole(text)
	}
	var memory [128]byte
	out := memory[:0]
	if len(text) > len(memory) {
		out = make([]byte, 0, len(text))
	}
	last, before := 0, 0 // the last character that stands alone, and what was written before it
	for i := 0; i < len(text); {
		if b := text[i]; b < utf8.RuneSelf {
			if last, before = i, len(out); f.ascii[b] >= 0 {
				out = append(out, byte(f.ascii[b])) //nolint:gosec // G115: it is one
			}
			i++
			continue
		}
		c, size := utf8.DecodeRuneInString(text[i:])
		if s := f.alone(c); s != "" {
			last, before = i, len(out)
			out = append(out, s...)
			i += size
			continue
		}
		i += f.together(text[i:])
		out = append(out[:before], f.whole(text[last:i])...)
	}
	return string(out)
}

// together returns the length of what stands alone nowhere at the beginning of a text.
func (f *folding) together(text string) int {
	for i, c := range text {
		if c < utf8.RuneSelf || f.alone(c) != "" {
			return i
		}
	}
	return len(text)
}

// alone returns what is written for a character that changes none before it and vanishes
// nowhere, and "" for others.
func (f *folding) alone(c rune) string {
	if c > 0xFFFF {
		return ""
	}
	at := &f.pages[c>>8]
	page := at.Load()
	if page == nil {
		page = f.page(c &^ 0xFF)
		at.Store(page)
	}
	return page[c&0xFF]
}

func (f *folding) page(from rune) *[256]string {
	var page [256]string
	for i := range page {
		c := from + rune(i)
		if c == utf8.RuneError || !utf8.ValidRune(c) {
			continue
		}
		parts := norm.NFKD.String(string(c))
		if joinsNone(string(c)) && joinsNone(parts) && !unmarked(firstRune(parts)) {
			page[i] = f.whole(string(c))
		}
	}
	return &page
}

// joinsNone reports whether the first character of a text stays as it is whatever stands
// before it.
func joinsNone(text string) bool { return norm.NFC.PropertiesString(text).BoundaryBefore() }

func firstRune(s string) rune {
	c, _ := utf8.DecodeRuneInString(s)
	return c
}

// folded writes text in lower case, without accents, in the compatible forms of its letters.
var folded = newFolding(func(s string) string {
	return strings.ToLower(norm.NFC.String(strings.Map(func(c rune) rune {
		if unmarked(c) {
			return -1
		}
		return c
	}, norm.NFKD.String(s))))
})

// unmarked reports whether folding takes a character out: a mark, or what is invisible.
func unmarked(c rune) bool { return c >= 0x300 && c < 0x370 || unicode.Is(unicode.Cf, c) }

// Fold writes text in lower case, without accents, in the compatible forms of its
// letters.
func Fold(s string) string {
	if IsASCII(s) {
		return lowered(s)
	}
	return folded.write(s)
}

// formed writes destinations without spaces, dashes and what is invisible.
var formed = newFolding(func(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) || unicode.Is(unicode.Cf, c) || unicode.Is(unicode.Pd, c) {
			return -1
		}
		return c
	}, strings.ToLower(norm.NFKC.String(s)))
})

// DestinationForm makes spellings of one destination equal: case, width,
// spaces, dashes and invisible characters go, international names are written as people do; "[at]" and "(dot)" become signs.
func DestinationForm(s string) string {
	if strings.Contains(s, "--") {
		s = punycoded.ReplaceAllStringFunc(s, unicodeLabel)
	}
	s = formed.write(s)
	if !strings.ContainsAny(s, "[({") && !strings.Contains(s, "hxxp") {
		return s
	}
	return spelledSigns.Replace(s)
}

// punycoded is a label of an international domain name as it is on the wire (RFC 5890).
var punycoded = regex.New(`(?i)\bxn--[a-z0-9-]{1,59}`)

// unicodeLabel writes a label of a domain name as people do. What is no label stays as it is.
func unicodeLabel(label string) string {
	if written, err := idna.Punycode.ToUnicode(strings.ToLower(label)); err == nil {
		return written
	}
	return label
}

var spelledSigns = strings.NewReplacer("[at]", "@", "(at)", "@", "{at}", "@", "[dot]", ".", "(dot)", ".", "{dot}", ".", "[.]", ".", "[@]", "@", "hxxp", "http")

// lookalikes are the letters that are drawn as Latin ones (Unicode TR 39).
var lookalikes = strings.NewReplacer(
	"\u0430", "a", "\u0435", "e", "\u043e", "o", "\u0440", "p", "\u0441", "c", "\u0445", "x", "\u0443", "y", "\u0456", "i", "\u0458", "j",
	"\u0455", "s", "\u0501", "d", "\u04bb", "h", "\u051b", "q", "\u051d", "w", "\u0475", "v", "\u043c", "m", "\u0442", "t", "\u043a", "k", "\u043d", "h", "\u0432", "b", "\u0433", "r",
	"\u0410", "A", "\u0412", "B", "\u0415", "E", "\u041a", "K", "\u041c", "M", "\u041d", "H", "\u041e", "O", "\u0420", "P", "\u0421", "C", "\u0422", "T", "\u0425", "X", "\u0406", "I", "\u0405", "S", "\u0408", "J",
	"\u03bf", "o", "\u03b1", "a", "\u03c1", "p", "\u03bd", "v", "\u03b9", "i", "\u03ba", "k", "\u03c5", "u", "\u03c4", "t",
	"\u0391", "A", "\u0392", "B", "\u0395", "E", "\u0396", "Z", "\u0397", "H", "\u0399", "I", "\u039a", "K", "\u039c", "M", "\u039d", "N", "\u039f", "O", "\u03a1", "P", "\u03a4", "T", "\u03a5", "Y", "\u03a7", "X",
	"\u0585", "o", "\u057d", "u", "\u0570", "h", "\u0578", "n",
)

// IsASCII reports whether a text has no other characters than those of ASCII.
func IsASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}

// LatinOf writes the Latin letters for those of other alphabets that are drawn as they are.
func LatinOf(word string) string { return lookalikes.Replace(word) }
