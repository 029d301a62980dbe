package detect

import (
	"html"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	viewDepth = 2       // an encoding inside an encoding is opened, no deeper
	viewBytes = 1 << 16 // bytes of decoded text per text, so that work stays linear
)

// Views returns the normalised text, first, and the normalised texts that are
// hidden in it: behind percent escapes, HTML entities, base64, hexadecimal,
// rot13, leetspeak, letters set apart by spaces or dots, and tag characters. A
// text is scored by its worst view, so a decoding that fails to look like text
// is left out, and a harmless one changes nothing.
func Views(s string) []string {
	o := opener{left: viewBytes}
	o.open(s, 0)
	return o.views
}

type opener struct {
	views []string
	left  int
}

// decodings map a raw text to hidden texts.
var decodings = []func(raw string) []string{unescape, base64Texts, hexTexts, tagText, unspace}

func (o *opener) open(raw string, depth int) {
	normal := Normalise(raw)
	if depth > 0 && !o.spend(normal) {
		return
	}
	o.views = append(o.views, normal)
	for _, decode := range []func(string) string{unrot13, unleet} {
		if v := decode(normal); v != "" && o.spend(v) {
			o.views = append(o.views, v)
		}
	}
	if depth == viewDepth {
		return
	}
	for _, decode := range decodings {
		for _, hidden := range decode(raw) {
			o.open(hidden, depth+1)
		}
	}
}

// spend books a further view and refuses what was seen or is over the bound.
func (o *opener) spend(view string) bool {
	if view == "" || len(view) > o.left || slices.Contains(o.views, view) {
		return false
	}
	o.left -= len(view)
	return true
}

// bounded cuts s to the bound before an expensive decoding sees it.
func bounded(s string) string { return s[:min(len(s), viewBytes)] }

// unescape opens percent escapes and HTML entities.
func unescape(raw string) (out []string) {
	if strings.Contains(raw, "%") {
		if v := unpercent(bounded(raw)); v != bounded(raw) {
			out = append(out, v)
		}
	}
	if strings.Contains(raw, "&") {
		if v := html.UnescapeString(bounded(raw)); v != bounded(raw) {
			out = append(out, v)
		}
	}
	return out
}

// unpercent decodes %XX and leaves malformed escapes, which net/url refuses.
func unpercent(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			hi, lo := hexDigit(s[i+1]), hexDigit(s[i+2])
			if hi >= 0 && lo >= 0 {
				b.WriteByte(byte(hi<<4 | lo))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// tagText reads the tag characters U+E0020 to U+E007E, which no reader sees
// and some models obey, as the ASCII that they mirror.
func tagText(raw string) []string {
	if !strings.Contains(raw, "\U000E0020"[:3]) && !strings.Contains(raw, "\U000E0041"[:3]) {
		return nil
	}
	hidden := strings.Map(func(r rune) rune {
		if 0xe0020 <= r && r <= 0xe007e {
			return r - 0xe0000
		}
		return -1
	}, bounded(raw))
	if hidden == "" {
		return nil
	}
	return []string{hidden}
}

// unspace joins letters that a single separator holds apart ("i g n o r e",
// "i.g.n.o.r.e"), and returns nothing when no four letters stand so.
func unspace(raw string) []string {
	if !setApart(bounded(raw), 4) {
		return nil
	}
	runes := []rune(bounded(raw))
	var b strings.Builder
	for i := 0; i < len(runes); {
		end := spaced(runes, i)
		if end-i < 3 { // fewer than two letters
			b.WriteRune(runes[i])
			i++
			continue
		}
		for ; i < end; i += 2 {
			b.WriteRune(runes[i])
		}
		i = end
		b.WriteByte(' ')
	}
	return []string{b.String()}
}

// setApart reports whether n letters may stand in a row with one character
// between each two. It spares ordinary texts the copy that unspace makes.
func setApart(s string, n int) bool {
	run, before := 0, false // how long letters and others have taken turns
	for _, r := range s {
		letter := isLetter(r)
		if letter == before {
			run = 0
		}
		if run++; run >= 2*n {
			return true
		}
		before = letter
	}
	return run >= 2*n-1
}

// spaced returns the end of the run of single letters that starts at i.
func spaced(runes []rune, i int) int {
	single := func(j int) bool {
		return j < len(runes) && isLetter(runes[j]) && (j+1 == len(runes) || !isLetter(runes[j+1]))
	}
	if i > 0 && isLetter(runes[i-1]) || !single(i) {
		return i
	}
	end := i + 1
	for end+1 < len(runes) && strings.ContainsRune(" .-_*|/", runes[end]) && runes[end] == runes[i+1] && single(end+1) {
		end += 2
	}
	return end
}

func isLetter(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9'
	}
	return letter(r)
}

var leet = [utf8.RuneSelf]byte{'0': 'o', '1': 'i', '3': 'e', '4': 'a', '5': 's', '7': 't', '@': 'a', '$': 's', '!': 'i'}

// unleet spells leetspeak out, and returns "" unless two words need it.
func unleet(normal string) string {
	if !leetWords(normal, 2) {
		return ""
	}
	b := []byte(bounded(normal))
	for i, c := range b {
		if c < utf8.RuneSelf && leet[c] != 0 && besideLetter(b, i) {
			b[i] = leet[c]
		}
	}
	return string(b)
}

func besideLetter(b []byte, i int) bool {
	return i > 0 && asciiLetter(b[i-1]) || i+1 < len(b) && asciiLetter(b[i+1])
}

// leetWords reports whether n words hold a leet sign between two letters.
func leetWords(normal string, n int) bool {
	for i := 1; i+1 < len(normal); i++ {
		if c := normal[i]; c < utf8.RuneSelf && leet[c] != 0 && asciiLetter(normal[i-1]) && asciiLetter(normal[i+1]) {
			if n--; n == 0 {
				return true
			}
		}
	}
	return false
}

func asciiLetter(c byte) bool { return 'a' <= c && c <= 'z' }

// rot13 marks: frequent English words as rot13 writes them. None is a word of
// a language that is common in prompts.
var rotated = map[string]bool{
	"gur": true, "naq": true, "lbh": true, "lbhe": true, "nyy": true, "sbe": true, "ubj": true,
	"jung": true, "guvf": true, "gung": true, "jvgu": true, "vtaber": true, "cerivbhf": true,
	"vafgehpgvbaf": true, "ehyrf": true, "flfgrz": true, "cebzcg": true, "znxr": true, "gryy": true,
	"abg": true, "ner": true, "abj": true,
}

// unrot13 turns the text when at least two of its words are rotated ones.
func unrot13(normal string) string {
	found := 0
	for word := range strings.FieldsSeq(bounded(normal)) {
		if rotated[strings.Trim(word, ".,:;!?\"'()")] {
			found++
		}
	}
	if found < 2 {
		return ""
	}
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' {
			return 'a' + (r-'a'+13)%26
		}
		return r
	}, bounded(normal))
}
