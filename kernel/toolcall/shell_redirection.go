package toolcall

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caddy-lex/lex/kernel/file"
	"github.com/caddy-lex/lex/kernel/regex"
)

// redirects reads where output goes and input comes from.
func (s *shell) redirects(n *syntax.Stmt) {
	for _, d := range n.Redirs {
		if d.Word == nil || d.Hdoc != nil || d.Op == syntax.WordHdoc {
			continue
		}
		name := s.literal(d.Word)
		switch {
		case strings.HasPrefix(name, "/dev/tcp/") || strings.HasPrefix(name, "/dev/udp/"):
			if !ownPort.MatchString(name) || !s.saysNothing(n) {
				s.breaks(RemoteCodeExecution)
			}
		case d.Op == syntax.RdrIn:
			s.reads(name)
		case d.Op == syntax.RdrOut || d.Op == syntax.AppOut || d.Op == syntax.RdrAll || d.Op == syntax.AppAll || d.Op == syntax.RdrClob:
			if !s.writesEveryday(n, d, name) {
				s.writes(name)
			}
			if d.Op == syntax.RdrOut && file.HoldsData(name) && s.saysNothing(n) {
				s.losesEach([]string{name})
			}
		}
	}
}

// writesEveryday reports whether a statement writes into a file that starts code only what such
// a file has on any day.
func (s *shell) writesEveryday(n *syntax.Stmt, d *syntax.Redirect, name string) bool {
	form := everydayForm(s.resolve(name))
	if form == nil || d.Op == syntax.RdrOut && form == profileLine {
		return false // the rest of a start file would be lost
	}
	text, known := s.output(n, 0)
	return known && everydayLines(text, form)
}

// ownPort is a port of this machine, or the ports that a loop goes through.
var ownPort = regex.New(`^/dev/tcp/(?:localhost|127\.\d+\.\d+\.\d+|::1)/[^/]+$`)

// saysNothing reports whether a statement only tries whether somebody listens.
func (s *shell) saysNothing(n *syntax.Stmt) bool {
	call, is := n.Cmd.(*syntax.CallExpr)
	if n.Cmd == nil || !is {
		return n.Cmd == nil
	}
	argv := s.argv(call)
	switch {
	case len(argv) == 0:
		return true
	case len(argv) > 1:
		return false
	case argv[0] == "cat":
		return slices.ContainsFunc(n.Redirs, func(d *syntax.Redirect) bool {
			return d.Op == syntax.RdrIn && d.Word != nil && s.literal(d.Word) == "/dev/null"
		})
	}
	return argv[0] == "echo" || argv[0] == ":" || argv[0] == "true"
}
