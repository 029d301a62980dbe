package detect

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.mau.fi/util/confusable"
)

// imitation says when a lookalike is read as the Latin letter it imitates.
type imitation int

const (
	never     imitation = iota
	inContext           // a letter of another script: where the word or the text is Latin
	always              // an odd form of a Latin letter, a typographic sign
)

// latinForms maps lower-case Latin letters with strokes, turned or dotless
// ones, small capitals, and typographic signs. Fullwidth, mathematical and
// circled letters need no entry, NFKC has them.
var latinForms = pairs(
	"\u0131i\u0237j\u0142l\u0111d\u0127h\u0167t\u0180b\u019al\u0199k\u0192f\u0251a\u0253b\u0256d\u0257d\u0261g\u0260g\u0268i\u0269i\u0273n\u0288t\u0289u\u028bv\u0290z\u00f8o\u0275o\u0111d\u00f0d\u024dr\u0247e\u0249j\u024fy\u1d7dp\ua743k\ua751p\ua757q\u01b6z\u0223u",
	"\u01dde\u0250a\u0254o\u0279r\u027er\u0287t\u028cv\u028dw\u028ey\u0265h\u026fm\u0270m\u029ek\u1d09i\u0183b\u018cd\u1d91d\u0266h\u0282s\u0291z\u026bl\u026dl\u0272n\u014bn\u0280r\u0283s\u0292z",
	"\u1d00a\u0299b\u1d04c\u1d05d\u1d07e\ua730f\u0262g\u029ch\u026ai\u1d0aj\u1d0bk\u029fl\u1d0dm\u0274n\u1d0fo\u1d18p\ua7afq\u0280r\ua731s\u1d1bt\u1d1cu\u1d20v\u1d21w\u028fy\u1d22z",
	"\u2801a\u2803b\u2809c\u2819d\u2811e\u280bf\u281bg\u2813h\u280ai\u281aj\u2805k\u2807l\u280dm\u281dn\u2815o\u280fp\u281fq\u2817r\u280es\u281et\u2825u\u2827v\u283aw\u282dx\u283dy\u2835z", // Braille
	"\u2018'\u2019'\u201b'\u02bc'\u02b9'\u2032'\u201c\"\u201d\"\u201e\"\u2010-\u2012-\u2013-\u2014-\u2212-\u2044/\u2215/\u2217*\u2223|",
)

// ownForms maps lower-case letters of other scripts where Unicode's table does
// not help: only the capitals look alike (Cyrillic Н; case is folded before), or
// it leads to l what also stands for a capital I.
var ownForms = pairs(
	"\u0430a\u0432b\u0435e\u043ak\u043cm\u043dh\u043eo\u0440p\u0441c\u0442t\u0443y\u0445x\u0455s\u0456i\u0458j\u04bbh\u04cfl\u0501d\u051bq\u051dw\u0475v\u0433r\u044cb\u0454e\u04afy\u04b1y\u0491r\u0461w\u04a1k\u049bk\u043fn\u050dg\u0438u\u0457i\u0451e",
	"\u03b1a\u03b2b\u03b3y\u03b5e\u03b6z\u03b7n\u03b9i\u03bak\u03bcm\u03bdv\u03bfo\u03c1p\u03c2c\u03c3o\u03c4t\u03c5u\u03c7x\u03c9w\u03f2c\u03f3j",
	"\u0561w\u0563q\u0566q\u0570h\u0578n\u057du\u0581g\u0585o\u0575j",
	"\ua4f2i\u2d4fi\U00010309i\U0001028ai\u16c1i",
)

// twoFaced are the capitals that imitate another letter than their small forms do, H, N and
// Y and not n, v and u. They keep their case until it is known what is imitated.
const twoFaced = "\u0397\u039d\u03a5"

func pairs(tables ...string) map[rune]rune {
	out := make(map[rune]rune)
	for _, table := range tables {
		runes := []rune(table)
		for i := 0; i+1 < len(runes); i += 2 {
			out[runes[i]] = runes[i+1]
		}
	}
	return out
}

// A likeness is the ASCII character that another one imitates, and when, and whether the
// other one stands in words and in Latin ones.
type likeness struct {
	to              rune
	when            imitation
	ofWord, ofLatin bool
}

// lowForms are the likenesses up to the end of Armenian, where they are asked
// for often.
var lowForms = func() (table [0x590]likeness) {
	for r := range rune(len(table)) {
		table[r] = newLikeness(r)
	}
	return table
}()

// newLikeness looks a character up.
func newLikeness(r rune) (l likeness) {
	l.to, l.when = imitated(r)
	l.ofWord, l.ofLatin = unicode.IsLetter(r) || unicode.IsMark(r), unicode.Is(unicode.Latin, r)
	return l
}

// likenessOf is newLikeness, read from the table where the table has it.
func likenessOf(r rune) likeness {
	if r < rune(len(lowForms)) {
		return lowForms[r]
	}
	return newLikeness(r)
}

// skeleton returns the ASCII character that one in lower case imitates, or one of
// twoFaced, and when it is to be read so.
func skeleton(r rune) (rune, imitation) {
	if r < rune(len(lowForms)) {
		return lowForms[r].to, lowForms[r].when
	}
	return imitated(r)
}

// imitated looks into the tables above and those of Unicode Technical
// Standard 39 (confusables.txt, Unicode 17.0.0).
func imitated(r rune) (rune, imitation) {
	switch {
	case r < 0x80 || 0x2e80 <= r && r < 0xa4d0 || 0xac00 <= r && r < 0xd800:
		return r, never // ASCII, Han, kana, Hangul
	case 0x1f150 <= r && r <= 0x1f169: // negative circled letters
		return 'a' + r - 0x1f150, always
	case 0x1f170 <= r && r <= 0x1f189: // negative squared letters
		return 'a' + r - 0x1f170, always
	}
	if to, ok := latinForms[r]; ok {
		return to, always
	}
	if to, ok := ownForms[r]; ok {
		return to, inContext
	}
	if to, ok := prototype(r); ok {
		return to, inContext
	}
	return r, never
}

// prototype looks a letter up in Unicode's table. Letters that run from right
// to left are left alone: no reader takes them for Latin inside a word.
func prototype(r rune) (rune, bool) {
	if r < 0x100 || 0x590 <= r && r < 0x900 || 0xfb1d <= r && r < 0xff00 || 0x10800 <= r && r < 0x11000 || !unicode.IsLetter(r) {
		return 0, false
	}
	if to, ok := listed(r); ok {
		return to, true
	}
	if upper := unicode.ToUpper(r); upper != r {
		return listed(upper)
	}
	return 0, false
}

func listed(r rune) (rune, bool) {
	found := confusable.GetReplacement(r)
	switch {
	case found == "rn": // what the table has in the place of m
		return 'm', true
	case len(found) != 1:
		return 0, false
	}
	to := unicode.ToLower(rune(found[0]))
	return to, 'a' <= to && to <= 'z'
}

// unmask undoes lookalikes between scripts: those that stand for Latin letters
// in words that also hold Latin ones, and, in a text that is mostly Latin, in
// words of nothing but lookalikes; and Latin letters that stand for Cyrillic or
// Greek ones in texts of these. So Russian stays Russian, though many of its
// letters look Latin. Undone words leave the judgement of the text as it is,
// which makes it idempotent. The letters of twoFaced become small ones. among says whether the text is mostly Latin.
func unmask(d *derived, among bool) *derived {
	w := rewrite(d)
	for i := 0; i < len(d.text); {
		end, kind := word(d.text, i)
		switch back := returning(d.text[i:end]); {
		case kind == mixed && !among && back != nil:
			replaceRunes(w, i, end, func(r rune) rune { return cmp.Or(back[r], unicode.ToLower(r)) })
		case kind == mixed || kind == masked && among:
			replaceRunes(w, i, end, func(r rune) rune { to, _ := skeleton(r); return to })
		case strings.ContainsAny(d.text[i:end], twoFaced):
			replaceRunes(w, i, end, unicode.ToLower)
		default:
			w.keep(i, end)
		}
		i = end
	}
	return w.done()
}

// replaceRunes writes the characters of the source from i to end, mapped.
func replaceRunes(w *rewriter, i, end int, mapped func(rune) rune) {
	for i < end {
		r, size := utf8.DecodeRuneInString(w.from.text[i:])
		if to := mapped(r); to != r {
			w.put(string(to), i, i+size)
		} else {
			w.keep(i, i+size)
		}
		i += size
	}
}

// What Latin letters stand for in words of other scripts, small or capital.
var (
	asCyrillic = pairs("aаbвeеhнkкmмoоpрcсtтyуxх")
	asGreek    = pairs("aαbβeεhηiιkκmμnνoοpρtτvνxχyυzζ")
)

// returning gives the table by which the Latin letters of a word go back to
// Cyrillic or Greek, or nil when they are no fewer than the others or some
// have no likeness there.
func returning(word string) map[rune]rune {
	var back map[rune]rune
	latin, others := 0, 0
	for _, r := range word {
		switch {
		case r < utf8.RuneSelf:
			latin++
			continue
		case 0x370 <= r && r < 0x400:
			back = asGreek
		case 0x400 <= r && r < 0x530:
			back = asCyrillic
		}
		others++
	}
	for _, r := range word {
		if r < utf8.RuneSelf && back[r] == 0 || latin >= others {
			return nil
		}
	}
	return back
}

// script is what the letters of a word are.
type script int

const (
	between script = iota // no word
	latin                 // with a Latin letter
	mixed                 // with a Latin letter and lookalikes of another script
	masked                // nothing but lookalikes
	foreign               // no Latin letter, and some that none looks like
)

// fewLetters is what a text needs to have a script: "она там" might be
// anything, and is left alone.
const fewLetters = 16

// mostlyLatin reports whether the words that may be Latin outweigh those that
// cannot be.
func mostlyLatin(s string) bool {
	var letters scripts
	letters.count(s)
	return letters.mostlyLatin()
}

// scripts counts the letters of a text by what their words may be.
type scripts struct{ latin, possible, other int }

// count adds the words of a text to those before.
func (c *scripts) count(s string) {
	for i := 0; i < len(s); {
		end, kind := word(s, i)
		switch n := utf8.RuneCountInString(s[i:end]); {
		case kind == masked || kind == mixed && returning(s[i:end]) != nil:
			c.possible += n
		case kind == latin || kind == mixed:
			c.latin += n
		case kind == foreign:
			c.other += n
		}
		i = end
	}
}

func (c *scripts) mostlyLatin() bool {
	return c.latin > c.other || c.latin+c.possible >= fewLetters && c.latin+c.possible > 3*c.other
}

// word returns the end of the word that starts at i, or of what stands between
// two words, and the script of its letters.
func word(s string, i int) (int, script) {
	var plain, alike, other bool
	end := i
	for end < len(s) {
		r, size := rune(s[end]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[end:])
		}
		like := likenessOf(r)
		if !like.ofWord {
			if end == i {
				end += size
			}
			break
		}
		alike = alike || like.when == inContext
		plain = plain || like.when != inContext && like.ofLatin
		other = other || like.when != inContext && !like.ofLatin
		end += size
	}
	switch {
	case plain && alike:
		return end, mixed
	case plain:
		return end, latin
	case alike && !other:
		return end, masked
	case other:
		return end, foreign
	}
	return end, between
}
