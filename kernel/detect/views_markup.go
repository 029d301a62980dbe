package detect

import (
	"html"
	"strings"
)

// longestEntity bounds the names of HTML entities, "&CounterClockwise
// ContourIntegral;" being the longest.
const longestEntity = 34

// entity decodes one entity; the semicolon may be missing after digits.
func entity(s string, i int) (string, int) {
	end := i + 1
	for end < len(s) && end < i+longestEntity && (asciiAlnum(s[end]) || s[end] == '#') {
		end++
	}
	if end < len(s) && s[end] == ';' {
		end++
	} else if end == i+1 || s[i+1] != '#' {
		return "", i
	}
	text := html.UnescapeString(s[i:end])
	if text == s[i:end] {
		return "", i
	}
	return text, end
}

// longestTag bounds how far the end of a tag is looked for.
const longestTag = 128

// inline are the tags that may stand inside a word without parting it.
var inline = map[string]bool{
	"a": true, "b": true, "i": true, "u": true, "s": true, "em": true, "strong": true, "span": true, "font": true,
	"wbr": true, "mark": true, "small": true, "big": true, "sub": true, "sup": true, "tt": true, "code": true,
}

// tag removes an inline tag or a comment that follows a letter or another tag:
// "ig<b></b>nore". Tags that part words are as good as spaces.
func tag(s string, i int) (string, int) {
	if i == 0 || !asciiAlnum(s[i-1]) && s[i-1] != '>' {
		return "", i
	}
	name := i + 1
	if name < len(s) && s[name] == '/' {
		name++
	}
	end := name
	for end < len(s) && end < name+len("strong") && asciiAlnum(s[end]) {
		end++
	}
	if !strings.HasPrefix(s[name:], "!--") && !inline[strings.ToLower(s[name:end])] {
		return "", i
	}
	for ; end < len(s) && end < i+longestTag && s[end] != '<' && s[end] != '\n'; end++ {
		if s[end] == '>' {
			return "", end + 1
		}
	}
	return "", i
}

// longestPlain bounds the words that a query is taken to be made of.
const longestPlain = 16

// plus reads the plus signs of a query as spaces, where three words or more
// stand so. s[i] is the first of them.
func plus(s string, i int) (string, int) {
	start := i
	for start > 0 && i-start <= longestPlain && asciiLetter(s[start-1]|0x20) {
		start--
	}
	if start > 0 && alphanumeric[s[start-1]] || !plainWord(s[start:i]) {
		return "", i
	}
	words, end := 1, i
	for end < len(s) && s[end] == '+' {
		to := end + 1
		for to < len(s) && asciiLetter(s[to]|0x20) {
			to++
		}
		if !plainWord(s[end+1 : to]) {
			break
		}
		words, end = words+1, to
	}
	if words < 3 || end < len(s) && alphanumeric[s[end]] {
		return "", i
	}
	return strings.ReplaceAll(s[i:end], "+", " "), end
}

// plainWord reports whether a word of letters is written in small letters, but
// for the first, or in capitals.
func plainWord(w string) bool {
	return w != "" && len(w) <= longestPlain && (w[1:] == strings.ToLower(w[1:]) || w == strings.ToUpper(w))
}
