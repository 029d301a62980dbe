package sql

import (
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

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
// …. A text that a variable adds to itself grows.
func (v Values) Assign(all []Statement) {
	for _, s := range all {
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
	if s.Is(i, "N", "E", "U&") && i+1 < len(s) && s[i+1].Quoted {
		i++
	}
	switch {
	case s[i].Quoted:
		return s[i].Value(), i + 1, true
	case strings.HasPrefix(s[i].Text, "0X"):
		text, known = hexText(s[i].Text)
		return text, i + 1, known
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
	switch {
	case s.Is(i, "CONCAT", "CONCAT_WS", "FORMAT", "FORMATMESSAGE", "PRINTF"):
		var parts []string
		for at := i + 2; at < end-1; at++ {
			part, next, is := v.joined(s[:end-1], at)
			parts, at, known = append(parts, part), max(next, at), known || is
		}
		if len(parts) == 0 {
			return Unnamed, end, false
		}
		if s.Is(i, "CONCAT", "CONCAT_WS") {
			by := ""
			if s.Is(i, "CONCAT_WS") {
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
		return Filled(parts[0], parts[1:]), end, known
	case i+2 < len(s) && s[i+2].Quoted:
		return s.Made(i + 2), end, true
	case s.Is(i, "CONVERT", "TRY_CONVERT"): // the type, and then the value
		for at := i + 2; at < end-1; at++ {
			if s.Is(at, ",") && s[at].Depth == s[i].Depth+1 {
				text, _, known = v.joined(s[:end-1], at+1)
				return text, end, known
			}
		}
	case s.Is(i, "UPPER", "LOWER", "TRIM", "CAST", "TO_CHAR") && i+2 < len(s):
		text, _, known = v.joined(s[:end-1], i+2)
		return text, end, known
	}
	return Unnamed, end, false
}

// hexText is what a number in hexadecimal digits says, as text of one or of two bytes a sign.
func hexText(number string) (string, bool) {
	if len(number) > maxText {
		return "", false
	}
	raw, err := hex.DecodeString(strings.ToLower(number[2:]))
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
	text := s[i].Value()
	if !s.Is(i-1, "(") {
		return text
	}
	next := func(n int) string { // the literal or the number so many arguments later
		if at := i + 2*n; at < len(s) && s.Is(at-1, ",") {
			return s[at].Value()
		}
		return ""
	}
	switch {
	case s.Is(i-2, "REVERSE"):
		runes := []rune(text)
		slices.Reverse(runes)
		return string(runes)
	case s.Is(i-2, "REPLACE") && next(1) != "":
		return strings.ReplaceAll(text, next(1), next(2))
	case s.Is(i-2, "TRANSLATE"):
		return translate(text, next(1), next(2))
	case s.Is(i-2, "LEFT"):
		if n, err := strconv.Atoi(next(1)); err == nil && n >= 0 && n < len(text) {
			return text[:n]
		}
	case s.Is(i-2, "RIGHT"):
		if n, err := strconv.Atoi(next(1)); err == nil && n >= 0 && n < len(text) {
			return text[len(text)-n:]
		}
	case s.Is(i-2, "SUBSTR", "SUBSTRING", "MID"):
		from, err := strconv.Atoi(next(1))
		n, err2 := strconv.Atoi(next(2))
		if err == nil && err2 == nil && from > 0 && n >= 0 && from-1+n <= len(text) {
			return text[from-1 : from-1+n]
		}
	case s.Is(i-2, "UNHEX", "DECODE", "HEXTORAW", "HEX_DECODE_STRING", "FROM_HEX"):
		if raw, err := hex.DecodeString(strings.ToLower(text)); err == nil {
			return strings.ToUpper(string(raw))
		}
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

var formatPlace = regex.New(`%(?:\d\$)?[-\d]*[SIL]|\{\}`)

// Unnamed stands for a name that a program makes.
const Unnamed = "unnamed"
