package toolcall

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

var mixedWord = newExpression(`[\p{Latin}\p{Cyrillic}\p{Greek}]*[\p{Cyrillic}\p{Greek}][\p{Latin}\p{Cyrillic}\p{Greek}]*`)

// decoded reads what an observation has in base64, in hexadecimal digits, as escapes, in
// ROT13 or backwards. Nobody hides an honest instruction.
func (b *budget) decoded(text string) (out [][]sentence) {
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
const everyday = "the and to of in for it this all with send please from you your my a is are"

var everydayWords = wordSet(everyday)

func plainWords(line string) (n int) {
	for w := range strings.FieldsSeq(line) {
		if len(w) < 8 && everydayWords[strings.ToLower(strings.Trim(w, ".,;:!?"))] {
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

// codedIn returns the long runs of a text that may be base64 or hexadecimal digits.
func codedIn(text string) (out []string) {
	start := 0
	for i := 0; i <= len(text) && len(out) < maxCoded; i++ {
		if i < len(text) && (alphanumeric(text[i]) || strings.IndexByte("+/_-", text[i]) >= 0) {
			continue
		}
		if i-start >= minCoded {
			out = append(out, text[start:i])
		}
		start = i + 1
	}
	return out
}

// minCoded is the length of the shortest text in base64 that is read.
const minCoded = 24

// maxCoded bounds the texts in base64 that are read of one observation.
const maxCoded = 16
