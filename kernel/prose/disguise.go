package prose

import (
	"encoding/base64"
	"encoding/hex"
	"html"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/caddy-lex/lex/kernel/regex"
)

// Undisguised writes an observation as it looks: without invisible characters, and with
// Latin letters for those of other alphabets that stand for them within Latin words.
// The detector of the package detect reads many more disguises; a model that obeys one
// speaks of what it hides in its call.
func Undisguised(text string) string {
	if IsASCII(text) {
		return text
	}
	return mixedWord.ReplaceAllStringFunc(visible.write(text), func(w string) string {
		if !strings.ContainsAny(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
			return w
		}
		return lookalikes.Replace(w)
	})
}

// visible writes a text without its invisible characters.
var visible = newFolding(func(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.Is(unicode.Cf, c) || c >= 0xFE00 && c <= 0xFE0F {
			return -1
		}
		return c
	}, norm.NFC.String(s))
})

var mixedWord = regex.New(`[\p{Latin}\p{Cyrillic}\p{Greek}]*[\p{Cyrillic}\p{Greek}][\p{Latin}\p{Cyrillic}\p{Greek}]*`)

// Decoded reads what an observation has in base64, in hexadecimal digits, as escapes, in
// ROT13 or backwards. Nobody hides an honest instruction.
func (r *Reader) Decoded(text string) (out [][]Sentence) {
	var plain []string
	for _, code := range codedIn(text) {
		for _, decode := range []func(string) ([]byte, error){base64.RawStdEncoding.DecodeString, base64.RawURLEncoding.DecodeString, hex.DecodeString} {
			if p, err := decode(code); err == nil {
				plain = append(plain, string(p))
			}
		}
	}
	if strings.Contains(text, "%20") {
		if p, err := url.PathUnescape(text); err == nil {
			plain = append(plain, p)
		}
	}
	if strings.Contains(text, "&#") {
		plain = append(plain, html.UnescapeString(text))
	}
	if r.spend(len(text)) {
		for line := range strings.Lines(text) {
			if strings.Count(line, " ") < 3 {
				continue
			}
			if apart.MatchString(line) {
				plain = append(plain, together(line))
			}
			for _, turn := range turned(line) {
				plain = append(plain, turn(line))
			}
		}
	}
	for _, p := range plain {
		if utf8.ValidString(p) && strings.Contains(p, " ") && !strings.ContainsFunc(p, func(c rune) bool { return unicode.IsControl(c) && !unicode.IsSpace(c) }) {
			sentences := r.Sentences(p)
			for i := range sentences {
				sentences[i].Hostile = sentences[i].Instructs
			}
			out = append(out, sentences)
		}
	}
	return out
}

// apart finds words that are spelt with spaces between their letters, and more of them
// between words.
var apart = regex.New(`(?:[\pL\d] ){3}[\pL\d](?: |$|\W)`)

// together takes the single spaces between letters out.
func together(line string) string {
	return gaps.ReplaceAllStringFunc(line, func(s string) string {
		if strings.Count(s, " ") > 1 {
			return " "
		}
		return ""
	})
}

var gaps = regex.New(` +`)

// everyday are words that nearly every English sentence has some of.
const everyday = "the and to of in for it this all with send please from you your my a is are"

// A guise is a way in which a line may be written.
type guise uint8

const (
	asIs guise = 1 << iota
	rotated
	backwards
)

// everydayIn tells in which guises a text is one of the everyday words.
var everydayIn = func() map[string]guise {
	out := make(map[string]guise)
	for w := range strings.FieldsSeq(everyday) {
		out[w] |= asIs
		out[ROT13(w)] |= rotated
		out[Reversed(w)] |= backwards
	}
	return out
}()

// turned returns what makes a line plain that is in ROT13 or backwards, as its everyday
// words tell.
func turned(line string) (ways []func(string) string) {
	var words [backwards + 1]int // of each guise
	for w := range strings.FieldsSeq(line) {
		in := guisesOf(w)
		for g := asIs; g <= in; g <<= 1 {
			if in&g != 0 {
				words[g]++
			}
		}
		if words[asIs] > 1 {
			return nil
		}
	}
	if words[rotated] > 2 {
		ways = append(ways, ROT13)
	}
	if words[backwards] > 2 {
		ways = append(ways, Reversed)
	}
	return ways
}

// maxEveryday is the length below which a word with the signs around it may be everyday.
const maxEveryday = 8

// guisesOf tells in which guises a word of a line is an everyday one.
func guisesOf(w string) (in guise) {
	if len(w) >= maxEveryday {
		return 0
	}
	if IsASCII(w) {
		var memory [maxEveryday]byte
		return everydayIn[string(appendLowered(memory[:0], withoutSigns(w)))]
	}
	if !strings.ContainsAny(w, "İ\u212a") { // which alone are letters of ASCII if they are small
		return 0
	}
	for i, plain := range [...]string{w, ROT13(w), Reversed(w)} {
		if everydayIn[strings.ToLower(withoutSigns(plain))]&asIs != 0 {
			in |= asIs << i
		}
	}
	return in
}

// withoutSigns takes the signs from around a word.
func withoutSigns(w string) string {
	for w != "" && isSign(w[0]) {
		w = w[1:]
	}
	for w != "" && isSign(w[len(w)-1]) {
		w = w[:len(w)-1]
	}
	return w
}

func isSign(c byte) bool {
	return c == '.' || c == ',' || c == ';' || c == ':' || c == '!' || c == '?'
}

// Reversed writes a text backwards.
func Reversed(s string) string {
	r := []rune(s)
	slices.Reverse(r)
	return string(r)
}

// codedIn returns the long runs of a text that may be base64 or hexadecimal digits. Where a
// run is too short, its end tells so.
func codedIn(text string) (out []string) {
	for start := 0; start+minCoded <= len(text) && len(out) < maxCoded; {
		end := start + minCoded
		for end > start && coded(text[end-1]) {
			end--
		}
		if end > start {
			start = end
			continue
		}
		for end = start + minCoded; end < len(text) && coded(text[end]); end++ {
		}
		out = append(out, text[start:end])
		start = end + 1
	}
	return out
}

// coded reports whether a byte may stand in base64.
func coded(c byte) bool {
	return alphanumeric(c) || c == '+' || c == '/' || c == '_' || c == '-'
}

// minCoded is the length of the shortest text in base64 that is read.
const minCoded = 24

// maxCoded bounds the texts in base64 that are read of one observation.
const maxCoded = 16

// ROT13 turns each letter of ASCII by half of the alphabet.
func ROT13(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z':
			return 'a' + (c-'a'+13)%26
		case c >= 'A' && c <= 'Z':
			return 'A' + (c-'A'+13)%26
		}
		return c
	}, s)
}
