package detect

import (
	"encoding/base64"
	"strconv"
	"strings"
)

// longestComment bounds how far the end of a comment is looked for.
const longestComment = 64

// comment removes a comment at a letter: "ig/**/nore".
func comment(s string, i int) (string, int) {
	if i+1 == len(s) || s[i+1] != '*' {
		return "", i
	}
	length := strings.Index(s[i+2:min(len(s), i+2+longestComment)], "*/")
	if length < 0 {
		return "", i
	}
	end := i + 2 + length + 2
	if (i == 0 || !asciiAlnum(s[i-1])) && (end == len(s) || !asciiAlnum(s[end])) {
		return "", i
	}
	return "", end
}

// literalEnd joins two literals: it removes the mark that closes one, the
// operator, and the mark that opens the next, or the call that follows.
func literalEnd(s string, i int) (string, int) {
	at, ok := operator(s, i+1)
	switch {
	case i == 0 || !ok || at == len(s):
		return "", i
	case s[at] == s[i]:
		return "", at + 1
	case s[at]|0x20 == 'c':
		if text, end := call(s, at); end > at {
			return text, end
		}
	}
	return "", i
}

// operator returns the end of an operator that joins strings, and of the
// spaces around it.
func operator(s string, i int) (end int, ok bool) {
	at := spaces(s, i)
	from := at
	for at < len(s) && at < from+2 && strings.IndexByte("+.&|", s[at]) >= 0 {
		at++
	}
	return spaces(s, at), at > from
}

// spaces returns the end of at most four spaces or line ends.
func spaces(s string, i int) int {
	end := i
	for end < len(s) && end < i+4 && (s[end] == ' ' || s[end] == '\n' || s[end] == '\r') {
		end++
	}
	return end
}

// call decodes chr(105), char(105), ChrW(0x69) and joins what is concatenated
// with it.
func call(s string, i int) (string, int) {
	if i > 0 && asciiAlnum(s[i-1]) {
		return "", i
	}
	var out []rune
	end := i
	for {
		r, to := charCall(s, end)
		if to == end {
			break
		}
		out, end = append(out, r), to
		at, ok := operator(s, end)
		switch {
		case !ok || at == len(s):
			return string(out), end
		case s[at] == '"' || s[at] == '\'':
			return string(out), at + 1
		case s[at]|0x20 != 'c':
			return string(out), end
		}
		if _, to := charCall(s, at); to == at {
			return string(out), end
		}
		end = at
	}
	return string(out), end
}

func charCall(s string, i int) (rune, int) {
	from := i
	for from < len(s) && from < i+5 && asciiLetter(s[from]|0x20) {
		from++
	}
	switch strings.ToLower(s[i:from]) {
	case "chr", "chrw", "char", "chrb":
	default:
		return 0, i
	}
	if from == len(s) || s[from] != '(' {
		return 0, i
	}
	from = spaces(s, from+1)
	to := from
	for to < len(s) && to < from+8 && asciiAlnum(s[to]) {
		to++
	}
	n, err := strconv.ParseUint(s[from:to], 0, 21)
	end := spaces(s, to)
	if err != nil || n < ' ' || n > 0x10ffff || end == len(s) || s[end] != ')' {
		return 0, i
	}
	return rune(n), end + 1
}

// utf7 decodes what stands between "+" and "-" in UTF-7 (RFC 2152): UTF-16 in
// base64. Half of it must be ASCII, or every sum would be one.
func utf7(s string, i int) (string, int) {
	var out []byte
	end := i
	for end < len(s) && s[end] == '+' {
		to := end + 1
		for to < len(s) && alphanumeric[s[to]] && s[to] != '-' && s[to] != '_' && s[to] != '+' {
			to++
		}
		part := utf7Part(s[end+1 : to])
		if part == "" {
			break
		}
		out = append(out, part...)
		if end = to; end < len(s) && s[end] == '-' {
			end++
		}
	}
	return string(out), end
}

func utf7Part(part string) string {
	wide, err := base64.RawStdEncoding.DecodeString(part)
	if err != nil || len(wide) < 2 {
		return ""
	}
	var units []rune
	plain := 0
	for k := 0; k+1 < len(wide); k += 2 {
		r := rune(wide[k])<<8 | rune(wide[k+1])
		if r < ' ' && r != '\n' || 0xd800 <= r && r < 0xe000 {
			return ""
		}
		if r < 0x7f {
			plain++
		}
		units = append(units, r)
	}
	if plain*2 < len(units) {
		return ""
	}
	return string(units)
}
