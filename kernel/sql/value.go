package sql

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/caddy-lex/lex/kernel/regex"
)

// Values are the texts that a script gives to its variables, by their names.
type Values map[string]string

// Texts that are made are followed up to these lengths, in bytes: one that a variable holds, and any other.
const (
	maxValue = 400
	maxText  = 1 << 13
)

// maxValues bounds the variables of one script that are followed.
const maxValues = 64

// Assign notes what the statements give to variables: SET @a = …, v := …, DECLARE v text =
// …, SELECT … INTO v. A text that a variable adds to itself grows.
func (v Values) Assign(all []Statement) {
	for _, s := range all {
		if s.Is(0, "SELECT") && len(s) > 1 && len(v) < maxValues {
			value, end, known := v.joined(s, 1)
			if known && len(value) <= maxValue && s.Is(end, "INTO") && end+1 < len(s) {
				v[s[end+1].Text] = value
			}
		}
		for i := range s {
			if len(v) >= maxValues || i == 0 || !s.Is(i, "=", ":=", "+=") {
				continue
			}
			name := s[i-1].Text
			if s.Is(0, "DECLARE", "SET") && len(s) > 1 && i > 2 && i < 8 && !s.Is(i, "+=") {
				if name = s[1].Text; s.Is(1, "GLOBAL", "SESSION", "LOCAL", "VAR", "VARIABLE") {
					name = s[2].Text
				}
			}
			if name == "" || name[0] != '@' && !s.Is(i, ":=") && !s.Is(0, "DECLARE", "SET") {
				continue
			}
			value, _, known := v.joined(s, i+1)
			if !known || len(value) > maxValue {
				continue
			}
			if s.Is(i, "+=") {
				value = v[name] + value
			}
			v[name] = value
		}
	}
}

// joined is the text that operands make from token i on, the place behind them, and whether
// a literal is among them. What the statement does not tell is a name.
func (v Values) joined(s Statement, i int) (text string, end int, known bool) {
	for i < len(s) {
		operand, next, is := v.operand(s, i)
		text, i, known = text+operand, next, known || is
		if i >= len(s) || len(text) > maxText || !s.Is(i, "||", "+") {
			break
		}
		i++
	}
	return text, i, known
}

// operand is what one operand says: a literal, a variable, or a call that joins, formats or
// changes literals.
func (v Values) operand(s Statement, i int) (text string, end int, known bool) {
	switch {
	case s[i].Quoted:
		return s[i].written(), i + 1, true
	case s.Is(i, "N", "E", "X") && i+1 < len(s) && s[i+1].Quoted:
		text, known = marked(s[i].Text, s[i+1].written())
		return text, i + 2, known
	case s.Is(i, "U") && s.Is(i+1, "&") && i+2 < len(s) && s[i+2].Quoted:
		text, known = marked("U", s[i+2].written())
		return text, i + 3, known
	case strings.HasPrefix(s[i].Text, "0X"):
		text, known = hexText(s[i].Text[2:])
		return text, i + 1, known
	case IsNumber(s[i].Text):
		return s[i].Text, i + 1, false
	case !s.Is(i+1, "("):
		value, is := v[s[i].Text]
		if !is {
			value = Unnamed
		}
		return value, i + 1, is
	}
	end = i + 2
	for end < len(s) && s[end].Depth > s[i].Depth {
		end++
	}
	end = min(end+1, len(s)) // behind the parenthesis
	inside := s[min(i+2, end-1) : end-1]
	if s.Is(i, "CHAR", "CHR", "NCHAR") {
		if text, known = inside.spelled(); known {
			return text, end, true
		}
		return Unnamed, end, false
	}
	arguments, known := v.arguments(inside)
	if !known {
		return Unnamed, end, false
	}
	return assembled(s[i].Name(), arguments), end, true
}

// arguments are those of a call, of what stands between its parentheses, or in the array that
// it begins with, and whether a literal is among them.
func (v Values) arguments(inside Statement) (out []string, known bool) {
	if inside.Is(0, "ARRAY") && inside.Is(1, "[") {
		inside = inside[2:]
	}
	for at := 0; at < len(inside); at++ {
		text, next, is := v.joined(inside, at)
		out, known = append(out, text), known || is
		for at = max(next, at); at < len(inside) && (!inside.Is(at, ",") || inside[at].Depth > inside[0].Depth); {
			at++
		}
	}
	return out, known
}

// marked is what a literal says that a letter stands before: N for any signs, E for those
// that a backslash gives by their codes, U for those by four or six digits, X for
// hexadecimal digits.
func marked(letter, text string) (string, bool) {
	switch letter {
	case "X":
		return hexText(text)
	case "E":
		text = escaped.ReplaceAllStringFunc(text, func(sign string) string {
			code, base := sign[1:], 8
			if code[0] == 'x' || code[0] == 'u' || code[0] == 'U' {
				code, base = code[1:], 16
			}
			return signOf(code, base, sign)
		})
	case "U":
		text = unicodeEscaped.ReplaceAllStringFunc(text, func(sign string) string {
			return signOf(strings.TrimPrefix(sign[1:], "+"), 16, sign)
		})
	}
	return text, true
}

var (
	escaped        = regex.New(`\\(?:x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})`)
	unicodeEscaped = regex.New(`\\(?:[0-9A-Fa-f]{4}|\+[0-9A-Fa-f]{6})`)
)

// signOf is the sign of a code, or otherwise if there is none.
func signOf(code string, base int, otherwise string) string {
	n, err := strconv.ParseInt(code, base, 32)
	if err != nil || n == 0 || n > unicode.MaxRune {
		return otherwise
	}
	return string(rune(n))
}

// spelled is the text that a list of codes gives, if all of them are those of ASCII text.
func (s Statement) spelled() (text string, known bool) {
	for i, t := range s {
		switch code, err := strconv.ParseInt(strings.ToLower(t.Text), 0, 32); {
		case s.Is(i, "USING"): // CHAR(68 USING utf8mb4)
			return text, text != ""
		case s.Is(i, ","):
		case t.Quoted || err != nil || code < '\t' || code > '~':
			return "", false
		default:
			text += string(rune(code))
		}
	}
	return text, text != ""
}

// hexText is what hexadecimal digits say, as text of one or of two bytes a sign.
func hexText(digits string) (string, bool) {
	if len(digits) > maxText {
		return "", false
	}
	raw, err := hex.DecodeString(digits)
	text := strings.ReplaceAll(string(raw), "\x00", "")
	return text, err == nil && text != "" && strings.IndexFunc(text, func(c rune) bool { return c < '\t' || c > '~' }) < 0
}

// Chains are the texts that a statement joins of several operands, and what the variables
// hold that it runs.
func (v Values) Chains(s Statement) []string {
	var out []string
	for i := 0; i < len(s); {
		if !s[i].Quoted && !s.Is(i+1, "||", "+") && (v[s[i].Text] != "" && s.Is(i-1, "EXEC", "EXECUTE", "IMMEDIATE", "SP_EXECUTESQL", "(", "FROM")) {
			out = append(out, v[s[i].Text])
		}
		if !s[i].Quoted && !IsName(s[i].Text) && s[i].Text[:min(1, len(s[i].Text))] != "@" {
			i++
			continue
		}
		text, end, known := v.joined(s, i)
		if known && end > i+1 {
			out = append(out, text)
		}
		if s.Is(i+1, "(") && end > i+2 && !known { // a call that joins nothing: its arguments may
			end = i + 2
		}
		i = max(end, i+1)
	}
	return out
}

// Made is what the function around literal i makes of it, where the statement tells.
func (s Statement) Made(i int) string {
	text := s[i].written()
	if i < 2 || !s.Is(i-1, "(") || s[i-2].Quoted {
		return text
	}
	arguments := []string{text}
	for at := i + 2; at < len(s) && s.Is(at-1, ","); at += 2 {
		argument := s[at].Text
		if s[at].Quoted {
			argument = s[at].written()
		}
		arguments = append(arguments, argument)
	}
	return made(s[i-2].Name(), arguments)
}

// assembled is what a function makes of several texts; one that assembles nothing changes the
// first of them.
func assembled(function string, texts []string) string {
	first, others := texts[0], texts[1:]
	switch {
	case function == "CONCAT":
		return strings.Join(texts, "")
	case function == "CONCAT_WS":
		return strings.Join(others, first)
	case function == "ARRAY_TO_STRING" && len(others) > 0:
		last := len(others)
		return strings.Join(texts[:last], texts[last])
	case function == "FORMAT" || function == "FORMATMESSAGE" || function == "PRINTF":
		return Filled(first, others)
	case (function == "CONVERT" || function == "TRY_CONVERT") && first == Unnamed && len(others) > 0:
		return others[0] // the type comes first, in SQL Server
	}
	return made(function, texts)
}

// made is what a function makes of its first argument; an unknown one makes nothing of it.
func made(function string, arguments []string) string {
	text, others := arguments[0], arguments[1:]
	other := func(n int) string { // the argument so many places behind the first
		if n > len(others) {
			return ""
		}
		return others[n-1]
	}
	number := func(n int) int {
		if number, err := strconv.Atoi(other(n)); err == nil {
			return number
		}
		return -1
	}
	switch function {
	case "REVERSE":
		runes := []rune(text)
		slices.Reverse(runes)
		return string(runes)
	case "REPLACE":
		if other(1) != "" {
			return strings.ReplaceAll(text, other(1), other(2))
		}
	case "TRANSLATE":
		return translate(text, other(1), other(2))
	case "LEFT":
		if n := number(1); n >= 0 && n < len(text) {
			return text[:n]
		}
	case "RIGHT":
		if n := number(1); n >= 0 && n < len(text) {
			return text[len(text)-n:]
		}
	case "SUBSTR", "SUBSTRING", "MID":
		from, n := number(1)-1, number(2)
		if len(others) == 1 {
			n = len(text) - from
		}
		if from >= 0 && n >= 0 && from+n <= len(text) {
			return text[from : from+n]
		}
	case "UNHEX", "DECODE", "HEXTORAW", "HEX_DECODE_STRING", "FROM_HEX":
		if other(1) == "base64" {
			return fromBase64(text)
		}
		if raw, err := hex.DecodeString(text); err == nil {
			return string(raw)
		}
	case "FROM_BASE64", "BASE64_DECODE", "BASE64_DECODE_STRING", "UNBASE64":
		return fromBase64(text)
	}
	return text
}

// fromBase64 is what a text in base64 says; one that is not stays.
func fromBase64(text string) string {
	if raw, err := base64.StdEncoding.DecodeString(text); err == nil {
		return string(raw)
	}
	return text
}

// translate writes each sign of from as the one at its place in to, and drops those without one.
func translate(text, from, to string) string {
	signs, others := []rune(from), []rune(to)
	return strings.Map(func(c rune) rune {
		switch i := slices.Index(signs, c); {
		case i < 0:
			return c
		case i < len(others):
			return others[i]
		}
		return -1
	}, text)
}

// Filled puts values into the places of a format; what no literal fills is a name.
func Filled(format string, values []string) string {
	return formatPlace.ReplaceAllStringFunc(format[:min(len(format), maxText)], func(string) string {
		if len(values) == 0 {
			return Unnamed
		}
		value := values[0]
		values = values[1:]
		return value
	})
}

var formatPlace = regex.New(`%(?:\d\$)?[-\d]*[sSIL]|\{\}`)

// Unnamed stands for a name that a program makes.
const Unnamed = "unnamed"
