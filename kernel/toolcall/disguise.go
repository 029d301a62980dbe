package toolcall

import (
	"encoding/base64"
	"encoding/hex"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// undisguised writes an observation as it looks: without invisible characters, and with
// Latin letters for those of other alphabets that stand for them within Latin words.
// The detector of the package detect reads many more disguises; a model that obeys one
// speaks of what it hides in its call.
func undisguised(text string) string {
	if isASCII(text) {
		return text
	}
	text = strings.Map(func(c rune) rune {
		if unicode.Is(unicode.Cf, c) || c >= 0xFE00 && c <= 0xFE0F {
			return -1
		}
		return c
	}, norm.NFC.String(text))
	return mixedWord.ReplaceAllStringFunc(text, func(w string) string {
		if !strings.ContainsAny(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
			return w
		}
		return lookalikes.Replace(w)
	})
}

var mixedWord = regexp.MustCompile(`[\p{Latin}\p{Cyrillic}\p{Greek}]*[\p{Cyrillic}\p{Greek}][\p{Latin}\p{Cyrillic}\p{Greek}]*`)

// decoded reads what an observation has in base64, in hexadecimal digits, as escapes, in
// ROT13 or backwards. Nobody hides an honest instruction.
func (b *budget) decoded(text string) (out [][]sentence) {
	var plain []string
	var codes []string
	if longestWord(text) >= minCoded {
		codes = codedText.FindAllString(text, maxCoded)
	}
	for _, code := range codes {
		code = strings.TrimRight(code, "=")
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
	if b.spend(len(text)) {
		for line := range strings.Lines(text) {
			if strings.Count(line, " ") < 3 || plainWords(line) > 1 {
				continue
			}
			for _, p := range []string{rot13(line), reversed(line)} {
				if plainWords(p) > 2 {
					plain = append(plain, p)
				}
			}
		}
	}
	for _, p := range plain {
		if utf8.ValidString(p) && strings.Contains(p, " ") && !strings.ContainsFunc(p, func(c rune) bool { return unicode.IsControl(c) && !unicode.IsSpace(c) }) {
			sentences := b.sentences(p)
			for i := range sentences {
				sentences[i].hostile = sentences[i].instructs
			}
			out = append(out, sentences)
		}
	}
	return out
}

// everyday are words that nearly every English sentence has some of.
var everyday = wordSet("the and to of in for it this all with send please from you your my a is are")

func plainWords(line string) (n int) {
	for w := range strings.FieldsSeq(line) {
		if len(w) < 8 && everyday[strings.ToLower(strings.Trim(w, ".,;:!?"))] {
			n++
		}
	}
	return n
}

func reversed(s string) string {
	r := []rune(s)
	slices.Reverse(r)
	return string(r)
}

// longestWord returns the length of the longest run without a space.
func longestWord(text string) (longest int) {
	start := 0
	for i := range len(text) {
		if text[i] <= ' ' {
			start = i + 1
		}
		longest = max(longest, i+1-start)
	}
	return longest
}

// minCoded is the length of the shortest text in base64 that is read.
const minCoded = 24

// maxCoded bounds the texts in base64 that are read of one observation.
const maxCoded = 16

var codedText = regexp.MustCompile(`[A-Za-z0-9+/_-]{24,}={0,2}`)
