package toolcall

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// parse makes the tree of a text.
func (r *reading) parse(text string) (*syntax.File, error) {
	if r.parser == nil {
		r.parser = syntax.NewParser(syntax.Variant(syntax.LangBash))
	}
	return r.parser.Parse(strings.NewReader(text), "")
}

// plainCommand returns the words of a text that is one command of plain words, and nil of
// any other. Most texts that may be commands are such, and need neither a tree nor a walk
// through it.
func plainCommand(text string) []string {
	for i := range len(text) {
		if c := text[i]; !alphanumeric(c) && strings.IndexByte(" _./:,@%+-", c) < 0 {
			return nil
		}
	}
	if fields := strings.Fields(text); len(fields) > 0 && !shellKeywords[fields[0]] {
		return fields
	}
	return nil
}

// shellKeywords are the words that are no command's name where they begin one.
var shellKeywords = words("if then elif else fi while until for in case esac select do done function time coproc let declare local export readonly typeset nameref")

// openParentheses tells how many parentheses are open at once at most.
func openParentheses(text string) int {
	most, now := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(':
			now++
			most = max(most, now)
		case ')':
			now = max(now-1, 0)
		}
	}
	return most
}

// openExpansions tells how many expansions such as ${a are open at once at most.
func openExpansions(text string) int {
	most, now := 0, 0
	for i := range len(text) {
		switch {
		case text[i] == '{' && i > 0 && text[i-1] == '$':
			now++
			most = max(most, now)
		case text[i] == '}':
			now = max(now-1, 0)
		}
	}
	return most
}

// nesting tells how deeply a text nests what the shell reads on its own, or that its
// tree is too deep, and how many commands it has.
func nesting(file *syntax.File) (most, calls int) {
	var at struct {
		path             []bool // of the nodes above, those that count
		memory           [32]bool
		most, now, calls int
	}
	at.path = at.memory[:0]
	syntax.Walk(file, func(n syntax.Node) bool {
		if n == nil { // the end of the last node
			if at.path[len(at.path)-1] {
				at.now--
			}
			at.path = at.path[:len(at.path)-1]
			return true
		}
		counts := false
		switch n := n.(type) {
		case *syntax.Word:
			// Nothing in there counts but variables, and three levels more are none too many.
			if m := makeupOf(n); m.simple && len(at.path)+3 <= maxTree {
				if m.variables {
					at.most = max(at.most, at.now+1)
				}
				return false
			}
		case *syntax.CallExpr:
			at.calls++
		case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ParamExp, *syntax.ArithmExp, *syntax.Subshell, *syntax.Block, *syntax.FuncDecl, *syntax.ExtGlob:
			counts = true
			at.now++
			at.most = max(at.most, at.now)
		}
		at.path = append(at.path, counts)
		if len(at.path) > maxTree {
			at.most = maxSyntax + 1
		}
		if at.most > maxSyntax { // the walk would call the end of this node too
			if counts {
				at.now--
			}
			at.path = at.path[:len(at.path)-1]
			return false
		}
		return true
	})
	return at.most, at.calls
}
