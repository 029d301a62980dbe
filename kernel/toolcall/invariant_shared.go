package toolcall

import (
	"strings"

	"github.com/caddy-lex/lex/kernel/file"
	"github.com/caddy-lex/lex/kernel/regex"
)

// loses judges places that a command takes away with all that is in them. What nobody knows of
// a name is not its beginning: the rest of a path is told by that.
func (s *shell) loses(names []string) {
	for _, n := range names {
		if p := s.resolve(n); file.IsShared(p) {
			s.breaks(DestructiveCommand)
		}
	}
}

// losesEach judges files that a command spoils one by one: patterns of them, and databases.
func (s *shell) losesEach(names []string) {
	for _, n := range names {
		if p := s.resolve(n); (strings.ContainsAny(p, "*?[") || file.HoldsData(p)) && file.IsShared(p) {
			s.breaks(DestructiveCommand)
		}
	}
}

// found are the files that a search finds below its folders, as places.
func found(roots []string, argv []string) []string {
	if aged(argv) {
		return nil
	}
	last := ""
	for i, w := range argv {
		if w == "-name" || w == "-iname" {
			last = "/" + wordAt(argv, i+1)
		}
	}
	out := make([]string, 0, len(roots))
	for _, root := range roots {
		out = append(out, strings.TrimSuffix(root, "/")+last)
	}
	return out
}

// aged reports whether a search finds only what is old enough to go, or empty.
func aged(argv []string) bool {
	for i, w := range argv {
		next := wordAt(argv, i+1)
		if w == "-empty" || aging[w] && !younger.MatchString(next) || w == "-size" && next == "0" {
			return true
		}
	}
	return false
}

var (
	aging   = words("-mtime -ctime -atime -mmin -cmin -amin")
	younger = regex.New(`^(?:-|\+0*$)`)
)
