package toolcall

import (
	"encoding/base64"
	"regexp"
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

// decoded reads what an observation has in base64. Nobody hides an honest instruction.
func (b *budget) decoded(text string) (out [][]sentence) {
	for _, code := range codedText.FindAllString(text, maxCoded) {
		plain, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(code, "="))
		if err != nil || !utf8.Valid(plain) || strings.ContainsFunc(string(plain), unicode.IsControl) || !strings.Contains(string(plain), " ") {
			continue
		}
		sentences := b.sentences(string(plain))
		for i := range sentences {
			sentences[i].hostile = sentences[i].instructs
		}
		out = append(out, sentences)
	}
	return out
}

// maxCoded bounds the texts in base64 that are read of one observation.
const maxCoded = 16

var codedText = regexp.MustCompile(`[A-Za-z0-9+/]{24,}={0,2}`)
