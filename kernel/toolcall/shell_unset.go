package toolcall

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caddy-lex/lex/kernel/regex"
)

// emptied finds rm -rf "$X"/* where nothing in the text says what X is: unset, it
// is the root. Names that build systems set for a folder of their own are trusted.
func (s *shell) emptied(inner []string, n *syntax.CallExpr) {
	if len(inner) == 0 || programName(inner[0]) != "rm" || !hasFlag(inner, 'r', "--recursive") && !hasFlag(inner, 'R', "") {
		return
	}
	for _, w := range n.Args {
		if name, rest := leadingVariable(w); name != "" && emptyRest[rest] && !ownFolder.MatchString(name) {
			if _, known := s.vars[name]; !known && (environment{shell: s}).Get(name).Str == unknownText {
				s.breaks(DestructiveCommand)
			}
		}
	}
}

var (
	emptyRest = words("/ /* /.* /** /{*,.*}")
	ownFolder = regex.New(`(?i)tmp|temp|build|out|dist|cache|work|target|artifact|coverage|stag|pwd|bin|gen|src|test|log|^\d$`)
)

// leadingVariable returns the plain variable that a word begins with, and the
// literal rest of the word.
func leadingVariable(w *syntax.Word) (name, rest string) {
	parts := slices.Clone(w.Parts)
	if len(parts) > 0 {
		if q, quoted := parts[0].(*syntax.DblQuoted); quoted {
			parts = append(slices.Clone(q.Parts), parts[1:]...)
		}
	}
	if root, is := fromRoot(parts); is && len(parts) < 4 {
		parts = append(slices.Clone(parts[1:]), &syntax.Lit{Value: root})[:2] // "/$X" is the root as "$X/" is
	}
	if len(parts) != 2 {
		return "", ""
	}
	p, is := parts[0].(*syntax.ParamExp)
	lit, literal := parts[1].(*syntax.Lit)
	if !is || !literal || p.Param == nil || p.Exp != nil || p.Repl != nil || p.Slice != nil || p.Index != nil || p.Excl || p.Length {
		return "", ""
	}
	return p.Param.Value, lit.Value
}

// fromRoot returns the root that a word of several parts begins with.
func fromRoot(parts []syntax.WordPart) (string, bool) {
	if len(parts) < 2 {
		return "", false
	}
	lit, is := parts[0].(*syntax.Lit)
	if q, quoted := parts[1].(*syntax.DblQuoted); is && quoted && len(q.Parts) == 1 {
		parts[1] = q.Parts[0]
	}
	return "/", is && lit.Value == "/"
}
