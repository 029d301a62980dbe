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

// parting are the tags that part words: they are as good as spaces.
var parting = func() map[string]bool {
	out := make(map[string]bool)
	for _, name := range strings.Fields("p br div li ul ol dl dt dd td th tr table tbody thead hr h1 h2 h3 h4 h5 h6 pre section article header footer nav main body html head title option select blockquote form script style") {
		out[name] = true
	}
	return out
}()

// tag removes a tag or a comment at a letter or another tag: "ig<b></b>nore",
// "<i>i</i><i>g</i>nore".
func tag(s string, i int) (string, int) {
	name := i + 1
	if name < len(s) && s[name] == '/' {
		name++
	}
	end := name
	for end < len(s) && end < name+longestPlain && asciiAlnum(s[end]) {
		end++
	}
	if end == name && !strings.HasPrefix(s[name:], "!--") {
		return "", i
	}
	word := s[name:end]
	for ; end < len(s) && end < i+longestTag && s[end] != '<' && s[end] != '\n'; end++ {
		if s[end] != '>' {
			continue
		}
		end++
		touches := i > 0 && (asciiAlnum(s[i-1]) || s[i-1] == '>') || end < len(s) && (asciiAlnum(s[end]) || s[end] == '<')
		switch {
		case !touches:
			return "", i
		case parting[strings.ToLower(word)]:
			return " ", end
		}
		return "", end
	}
	return "", i
}

// longestPlain bounds the words that a query is taken to be made of.
const longestPlain = 16

// plusForSpace reads the plus signs of a query as spaces, where three words or more
// stand so. s[i] is the first of them.
func plusForSpace(s string, i int) (string, int) {
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
