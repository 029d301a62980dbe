package sql

import (
	"slices"
	"strings"

	"github.com/DataDog/go-sqllexer"

	"github.com/caddy-lex/lex/kernel/regex"
)

// plainComments are those that no quote can begin or end in.
var plainComments = regex.New(`/\*[^'"*!]*\*/`)

// dashedName is a quoted name of a project, which the lexer takes for a subtraction.
var dashedName = regex.New("`[A-Za-z][\\w-]*(?:\\.[\\w-]+)*`")

// Token is a word, a sign or a literal, in upper case.
type Token struct {
	Text   string
	Quoted bool // it is a literal, with its quotes
	Depth  int  // of the parentheses that it is in

	literal string // of a literal: as it was written, with its quotes
}

// Name returns the token without the schema and the table before a name.
func (t Token) Name() string { return t.Text[strings.LastIndexByte(t.Text, '.')+1:] }

// Value returns what a literal holds, of a dollar quote as of an apostrophe, in upper case.
func (t Token) Value() string { return unquoted(t.Text) }

// written returns what a literal holds, in the case in which it was written.
func (t Token) written() string { return unquoted(t.literal) }

func unquoted(literal string) string {
	literal = strings.TrimLeft(literal, "NEnel")
	if strings.HasPrefix(literal, "$") {
		if end := strings.IndexByte(literal[1:], '$'); end >= 0 {
			tag := literal[:end+2]
			return strings.TrimSuffix(strings.TrimPrefix(literal, tag), tag)
		}
	}
	return strings.ReplaceAll(strings.Trim(literal, "'"), "''", "'")
}

// Statement is the tokens of one statement, or of a part of one.
type Statement []Token

// Statements splits a text at its semicolons, without comments and spaces.
func Statements(text string) []Statement {
	all := make([]Token, 0, len(text)/usualToken) // of all statements, one behind the other
	var ends []int
	depth := 0
	negative := false // the lexer takes id>-1 for id, >- and 1
	if strings.Contains(text, "/*") {
		text = plainComments.ReplaceAllString(text, " ") // the lexer loses what follows SCHEMA/**/
	}
	if strings.Contains(text, "`") {
		text = dashedName.ReplaceAllStringFunc(text, func(name string) string { return strings.ReplaceAll(name, "-", "_") })
	}
	lexer := sqllexer.New(text)
	for n := 0; n <= len(text); n++ {
		t := lexer.Scan()
		switch t.Type {
		case sqllexer.EOF:
			return cutAt(all, ends)
		case sqllexer.SPACE, sqllexer.COMMENT, sqllexer.MULTILINE_COMMENT:
			continue
		}
		written := strings.TrimSpace(t.Value)
		value := strings.ToUpper(written)
		switch value {
		case "":
			continue
		case "(":
			depth++
		case ")":
			depth--
		case ";":
			ends, depth = append(ends, len(all)), 0
			continue
		}
		quoted := t.Type == sqllexer.STRING || t.Type == sqllexer.INCOMPLETE_STRING || t.Type == sqllexer.DOLLAR_QUOTED_STRING
		if t.Type == sqllexer.QUOTED_IDENT {
			value = strings.Trim(value, "\"`[]")
		}
		if !quoted {
			written = ""
		}
		if comparison, signed := strings.CutSuffix(value, "-"); signed && slices.Contains(comparisons, comparison) {
			value, negative = comparison, true
		} else if negative {
			value, negative = "-"+value, false
		}
		all = append(all, Token{value, quoted, depth, written})
	}
	return cutAt(all, ends)
}

// comparisons may stand right in front of a number with a sign.
var comparisons = strings.Fields("= < > <= >= <> != == <=>")

// usualToken is how long the tokens of most queries are, with the space behind them.
const usualToken = 4

// cutAt cuts tokens into statements at the places where some end.
func cutAt(all []Token, ends []int) []Statement {
	out := make([]Statement, 0, len(ends)+1)
	begin := 0
	for _, end := range ends {
		out = append(out, all[begin:end:end])
		begin = end
	}
	return append(out, all[begin:])
}

// Is reports whether token i is one of the words, unquoted.
func (s Statement) Is(i int, wanted ...string) bool {
	if i < 0 || i >= len(s) || s[i].Quoted {
		return false
	}
	for _, word := range wanted {
		if s[i].Text == word {
			return true
		}
	}
	return false
}

// HasAfter reports whether one of the words stands after token i.
func (s Statement) HasAfter(i int, wanted ...string) bool {
	for j := i + 1; j < len(s); j++ {
		if s.Is(j, wanted...) {
			return true
		}
	}
	return false
}
