package address

import (
	"encoding/base64"
	"net/url"
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

var inText = regex.New(`(?i)\b[a-z][a-z0-9+.-]{1,15}://[^\s"'<>\x60|]+`)

// In finds at most n addresses in a text, with their schemes: what inText matches. In a text of ASCII the signs behind
// the scheme tell where.
func In(text string, n int) (found []string) {
	if !isASCII(text) {
		return inText.FindAllString(text, n)
	}
	for from := 0; len(found) < n; {
		signs := strings.Index(text[from:], "://")
		if signs < 0 {
			return found
		}
		signs += from
		end := signs + 3
		for end < len(text) && !strings.ContainsRune(" \t\n\f\r\"'<>`|", rune(text[end])) {
			end++
		}
		begin, is := schemeAt(text, from, signs)
		if from = signs + 3; is && end > from {
			found, from = append(found, text[begin:end]), end
		}
	}
	return found
}

// schemeAt returns where the scheme begins that ends at a place, and not before from.
func schemeAt(text string, from, end int) (int, bool) {
	begin := end
	for begin > max(from, end-maxScheme) && (alphanumeric(text[begin-1]) || strings.IndexByte("+.-", text[begin-1]) >= 0) {
		begin--
	}
	for ; begin < end-1; begin++ {
		if alphanumeric(text[begin]) && !isDigit(text[begin]) && (begin == 0 || !alphanumeric(text[begin-1]) && text[begin-1] != '_') {
			return begin, true
		}
	}
	return 0, false
}

// maxScheme is the length of the longest scheme.
const maxScheme = 16

// All finds the addresses of an argument: the whole of it, those within,
// and those a redirecting service is asked to go to.
func All(text string) []string {
	found := In(text, 64)
	if whole := ignored.Replace(strings.TrimSpace(text)); !strings.Contains(whole, " ") && len(text) < 4096 && (len(found) != 1 || found[0] != text) {
		found = append(found, text)
	}
	for _, f := range found[:min(len(found), maxRedirects)] {
		found = append(found, Redirected(f)...)
	}
	return found
}

// maxRedirects bounds the addresses of one argument that are searched for others.
const maxRedirects = 8

// Redirected finds the addresses that an address carries in its query or its path,
// for a service that will go there: encoded once, twice, or in base64.
func Redirected(text string) []string {
	_, after, found := strings.Cut(text, "://")
	if !found || len(text) > 4096 || !strings.ContainsAny(after, "/?") {
		return nil
	}
	rest := after[strings.IndexAny(after, "/?"):]
	var out []string
	for range 3 {
		out = append(out, In(strings.TrimLeft(rest, "/?"), maxRedirects)...)
		for _, m := range relativeTarget.FindAllStringSubmatch(rest, maxRedirects) {
			out = append(out, "http:"+m[1])
		}
		for _, m := range packedTarget.FindAllString(rest, maxRedirects) {
			for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
				if raw, err := encoding.DecodeString(strings.TrimRight(m, "=")); err == nil {
					out = append(out, In(string(raw), 1)...)
					break
				}
			}
		}
		next, err := url.PathUnescape(rest)
		if err != nil || next == rest {
			break
		}
		rest = next
	}
	return out
}

var (
	// relativeTarget is an address without its scheme as a parameter's value.
	relativeTarget = regex.New(`[?&][\w.-]+=(//[^&/\s]+[^&\s]*)`)

	// packedTarget is base64 that begins with http.
	packedTarget = regex.New(`aHR0c[A-Za-z0-9+/_-]{8,}=*`)
)

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}
