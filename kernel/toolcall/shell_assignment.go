package toolcall

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caddy-lex/lex/kernel/regex"
)

func (s *shell) declare(n *syntax.DeclClause) {
	refers := slices.ContainsFunc(n.Args, func(a *syntax.Assign) bool { return a.Name == nil && s.literal(a.Value) == "-n" })
	for _, a := range n.Args {
		if a.Name != nil && refers && a.Value != nil {
			note(&s.references, a.Name.Value, s.literal(a.Value))
			continue
		}
		if a.Name != nil {
			s.assign(a)
		}
	}
	dumps := len(n.Args) == 0 || len(n.Args) == 1 && n.Args[0].Name == nil && (s.literal(n.Args[0].Value) == "-p" || s.literal(n.Args[0].Value) == "-x")
	if dumps && n.Variant.Value != "local" {
		s.breaks(CredentialAccess)
	}
}

func (s *shell) assign(a *syntax.Assign) {
	if a.Name == nil || s.assignArray(a) || a.Naked || a.Value == nil && a.Append {
		return
	}
	value := ""
	if a.Value != nil {
		value = s.literal(unescapedWord(a.Value))
	}
	if value == unknownText {
		value = s.origin(a.Value)
	}
	if a.Append {
		value = s.vars[a.Name.Value] + value
	}
	s.set(a.Name.Value, value)
	s.startsLater(a.Name.Value, value)
	if a.Name.Value == "HISTFILE" && (value == "" || value == "/dev/null") || a.Name.Value == "HISTSIZE" && value == "0" {
		s.breaks(ConstraintTampering)
	}
}

// unescapedWord is a word without the backslashes outside of its quotes, which the library
// leaves in a value.
func unescapedWord(w *syntax.Word) *syntax.Word {
	if !slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		lit, is := p.(*syntax.Lit)
		return is && strings.Contains(lit.Value, `\`) && !strings.Contains(lit.Value, `:\`)
	}) {
		return w
	}
	out := &syntax.Word{Parts: slices.Clone(w.Parts)}
	for i, p := range out.Parts {
		if lit, is := p.(*syntax.Lit); is {
			plain := *lit
			plain.Value = backslashed.ReplaceAllString(lit.Value, "$1")
			out.Parts[i] = &plain
		}
	}
	return out
}

var backslashed = regex.New(`\\([A-Za-z0-9/._-])`)

// gathers reads a loop round by round if a round adds to what the one before has made, and
// reports whether it did: what is put together so is known only then.
func (s *shell) gathers(n *syntax.ForClause) bool {
	each, is := n.Loop.(*syntax.WordIter)
	if !is || !s.addsUp(n.Do) {
		return false
	}
	items, made := s.fields(each.Items)
	if len(items) < 2 || len(items) > maxBlocks {
		return false
	}
	for _, m := range made {
		s.set(m.name, m.value)
	}
	for _, w := range each.Items {
		syntax.Walk(w, s.visit)
	}
	for _, item := range items {
		s.set(each.Name.Value, item)
		for _, st := range n.Do {
			syntax.Walk(st, s.visit)
		}
	}
	return true
}

// addsUp reports whether statements make a variable of itself and something else.
func (s *shell) addsUp(statements []*syntax.Stmt) bool {
	adds := false
	for _, st := range statements {
		call, is := st.Cmd.(*syntax.CallExpr)
		if !is || len(call.Args) > 0 {
			continue
		}
		for _, a := range call.Assigns {
			adds = adds || a.Append || a.Index != nil
			if a.Value == nil || a.Name == nil || adds {
				continue
			}
			syntax.Walk(a.Value, func(node syntax.Node) bool {
				p, is := node.(*syntax.ParamExp)
				adds = adds || is && p.Param != nil && p.Param.Value == a.Name.Value
				return !adds && s.spend(1)
			})
		}
	}
	return adds
}

// origin tells of a value that is not known what it was made of.
func (s *shell) origin(w *syntax.Word) string {
	switch f := s.factsOf(w); {
	case f.fetches:
		return fetchedText
	case f.reads:
		return contentsText
	}
	return unknownText
}
