package code

import (
	"bytes"
	"strings"
)

// Call is where a program calls something.
type Call struct {
	Name, On    string // what is called, and the word and mark in front of it: "", or "os."
	Start, Open int    // in the program, of all that is called, and of its bracket
}

// maxCalls bounds the calls that are found in a program.
const maxCalls = 4096

// Calls finds the calls in a program, in its order.
func Calls(text string) []Call {
	var out []Call
	for i := 0; i < len(text) && len(out) < maxCalls; i++ {
		if text[i] != '(' {
			continue
		}
		end := len(strings.TrimSuffix(text[:i], "!")) // of a name in Ruby, Elixir and Rust
		start := wordBefore(text, end)
		if start == end {
			continue
		}
		c := Call{Name: text[start:end], Start: start, Open: i}
		for _, mark := range []string{".", "->", "::"} {
			if strings.HasSuffix(text[:start], mark) {
				end := start - len(mark)
				c.On, c.Start = text[wordBefore(text, end):end]+mark, end
			}
		}
		out = append(out, c)
	}
	return out
}

// wordBefore is where the word begins that ends at i.
func wordBefore(text string, i int) int {
	for i > 0 && IsWordByte(text[i-1]) {
		i--
	}
	return i
}

// Arguments are those of the call whose bracket stands at i; nil if it closes too far
// away, or not.
func Arguments(text string, i int) []string {
	text = text[i:min(len(text), i+2*MaxValue)]
	if end := closing(text, 0); end > 0 {
		return argumentsIn(text[1:end])
	}
	return nil
}

// argumentsIn cuts the text between the brackets of a call. In Julia a semicolon stands in front
// of the arguments that have names.
func argumentsIn(text string) []string {
	var out []string
	depth, from := 0, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\'' || c == '"':
			if end := strings.IndexByte(text[i+1:], c); end >= 0 {
				i += end + 1
			}
		case c == '(' || c == '[' || c == '{':
			depth++
		case c == ')' || c == ']' || c == '}':
			depth--
		case (c == ',' || c == ';') && depth == 0:
			out = append(out, text[from:i])
			from = i + 1
		}
	}
	if strings.TrimSpace(text[from:]) != "" || len(out) > 0 {
		out = append(out, text[from:])
	}
	return out
}

// closing is where the bracket at i closes, or -1.
func closing(e string, i int) int {
	depth := 0
	for ; i < len(e); i++ {
		switch c := e[i]; c {
		case '\'', '"':
			end := strings.IndexByte(e[i+1:], c)
			if end < 0 {
				return -1
			}
			i += end + 1
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// wrapped reports whether one pair of brackets holds all of an expression.
func wrapped(e string) bool {
	return len(e) > 1 && (e[0] == '(' || e[0] == '[') && closing(e, 0) == len(e)-1
}

// Operands cuts an expression at the operators that join texts and paths; nil if a literal
// in it does not end.
func Operands(e string) []string {
	var out []string
	depth, from := 0, 0
	for i := 0; i < len(e); i++ {
		switch c := e[i]; {
		case c == '\'' || c == '"':
			end := strings.IndexByte(e[i+1:], c)
			if end < 0 {
				return nil
			}
			i += end + 1
		case c == '(' || c == '[' || c == '{':
			depth++
		case c == ')' || c == ']' || c == '}':
			depth--
		case depth > 0:
		case c == '/' && i > 0: // of pathlib
			out = append(out, e[from:i], "'/'")
			from = i + 1
		case c == '+', c == '.' && i > 0 && (e[i-1] == ' ' || e[i-1] == '\'' || e[i-1] == '"') && i+1 < len(e) && (e[i+1] == ' ' || e[i+1] == '\'' || e[i+1] == '"'):
			out = append(out, e[from:i])
			from = i + 1
		}
	}
	return append(out, e[from:])
}

// Receiver is what a call that starts at i is made on: the members and calls in front of
// it, or nothing.
func Receiver(text string, i int) string {
	return chainBefore([]byte(text[max(0, i-MaxValue):i]))
}

// Elements are those of a list, if an expression is one in square brackets; otherwise nil.
func Elements(e string) []string {
	if !strings.HasPrefix(e, "[") || !wrapped(e) {
		return nil
	}
	return argumentsIn(e[1 : len(e)-1])
}

// chainBefore is the expression of members and calls that a text ends with.
func chainBefore(out []byte) string {
	end := len(bytes.TrimRight(out, " \t\r\n"))
	i, depth := end, 0
	for i > 0 && end-i <= MaxValue {
		c := out[i-1]
		switch {
		case c == ')' || c == ']':
			depth++
		case c == '(' || c == '[':
			if depth == 0 {
				return string(out[i:end])
			}
			depth--
		case depth > 0 || IsWordByte(c) || c == '.' || c == '\'' || c == '"':
		default:
			return string(out[i:end])
		}
		i--
	}
	return string(out[i:end])
}
