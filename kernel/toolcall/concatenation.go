package toolcall

import (
	"encoding/hex"
	"strings"
)

// sqlValues are the texts that a script gives to its variables, by their names.
type sqlValues map[string]string

// maxSQLValues bounds the variables of one script that are followed.
const maxSQLValues = 64

// assign notes what the statements give to variables: SET @a = …, v := …, DECLARE v text =
// …. A text that a variable adds to itself grows.
func (v sqlValues) assign(all [][]token) {
	for _, s := range all {
		for i := range s {
			if len(v) >= maxSQLValues || i == 0 || !isWord(s, i, "=", ":=", "+=") {
				continue
			}
			name := s[i-1].text
			if isWord(s, 0, "DECLARE", "SET") && len(s) > 1 && i > 2 && i < 8 && !isWord(s, i, "+=") {
				if name = s[1].text; isWord(s, 1, "GLOBAL", "SESSION", "LOCAL", "VAR", "VARIABLE") {
					name = s[2].text
				}
			}
			if name == "" || name[0] != '@' && !isWord(s, i, ":=") && !isWord(s, 0, "DECLARE", "SET") {
				continue
			}
			value, _, known := v.joined(s, i+1)
			if !known || len(value) > maxValueOf {
				continue
			}
			if isWord(s, i, "+=") {
				value = v[name] + value
			}
			v[name] = value
		}
	}
}

// joined is the text that operands make from token i on, the place behind them, and whether
// a literal is among them. What the statement does not tell is a name.
func (v sqlValues) joined(s []token, i int) (text string, end int, known bool) {
	for i < len(s) {
		operand, next, is := v.operand(s, i)
		text, i, known = text+operand, next, known || is
		if i >= len(s) || len(text) > maxWritten || !isWord(s, i, "||", "+") {
			break
		}
		i++
	}
	return text, i, known
}

// operand is what one operand says: a literal, a variable, or a call that joins, formats or
// changes literals.
func (v sqlValues) operand(s []token, i int) (text string, end int, known bool) {
	if isWord(s, i, "N", "E", "U&") && i+1 < len(s) && s[i+1].quoted {
		i++
	}
	switch {
	case s[i].quoted:
		return unquoted(s[i].text), i + 1, true
	case strings.HasPrefix(s[i].text, "0X"):
		text, known = hexText(s[i].text)
		return text, i + 1, known
	case !isWord(s, i+1, "("):
		value, is := v[s[i].text]
		if !is {
			value = unnamed
		}
		return value, i + 1, is
	}
	end = i + 2
	for end < len(s) && s[end].depth > s[i].depth {
		end++
	}
	end = min(end+1, len(s)) // behind the parenthesis
	switch {
	case isWord(s, i, "CONCAT", "CONCAT_WS", "FORMAT", "FORMATMESSAGE", "PRINTF"):
		var parts []string
		for at := i + 2; at < end-1; at++ {
			part, next, is := v.joined(s[:end-1], at)
			parts, at, known = append(parts, part), max(next, at), known || is
		}
		if len(parts) == 0 {
			return unnamed, end, false
		}
		if isWord(s, i, "CONCAT", "CONCAT_WS") {
			by := ""
			if isWord(s, i, "CONCAT_WS") {
				by, parts = parts[0], parts[1:]
			}
			for n, part := range parts {
				if n > 0 {
					text += by
				}
				text += part
			}
			return text, end, known
		}
		return filled(parts[0], parts[1:]), end, known
	case i+2 < len(s) && s[i+2].quoted:
		return madeOf(s, i+2), end, true
	case isWord(s, i, "CONVERT", "TRY_CONVERT"): // the type, and then the value
		for at := i + 2; at < end-1; at++ {
			if isWord(s, at, ",") && s[at].depth == s[i].depth+1 {
				text, _, known = v.joined(s[:end-1], at+1)
				return text, end, known
			}
		}
	case isWord(s, i, "UPPER", "LOWER", "TRIM", "CAST", "TO_CHAR") && i+2 < len(s):
		text, _, known = v.joined(s[:end-1], i+2)
		return text, end, known
	}
	return unnamed, end, false
}

// hexText is what a number in hexadecimal digits says, as text of one or of two bytes a sign.
func hexText(number string) (string, bool) {
	if len(number) > maxWritten {
		return "", false
	}
	raw, err := hex.DecodeString(strings.ToLower(number[2:]))
	text := strings.ReplaceAll(string(raw), "\x00", "")
	return text, err == nil && printable([]byte(text))
}

// chains are the texts that a statement joins of several operands, and what the variables
// hold that it runs.
func (v sqlValues) chains(s []token) []string {
	var out []string
	for i := 0; i < len(s); {
		if !s[i].quoted && !isWord(s, i+1, "||", "+") && (v[s[i].text] != "" && isWord(s, i-1, "EXEC", "EXECUTE", "IMMEDIATE", "SP_EXECUTESQL", "(", "FROM")) {
			out = append(out, v[s[i].text])
		}
		if !s[i].quoted && !isName(s[i].text) && s[i].text[:min(1, len(s[i].text))] != "@" {
			i++
			continue
		}
		text, end, known := v.joined(s, i)
		if known && end > i+1 {
			out = append(out, text)
		}
		if isWord(s, i+1, "(") && end > i+2 && !known { // a call that joins nothing: its arguments may
			end = i + 2
		}
		i = max(end, i+1)
	}
	return out
}
