package code

import (
	"regexp"
	"strings"

	"github.com/caddy-lex/lex/kernel/prose"
)

const (
	maxMembers = 24 // of an expression that is read for a place
	maxNesting = 6  // of such expressions
)

// member is one step of an expression: a name, a call of it, or an element.
type member struct {
	name    string
	args    []string
	called  bool
	element bool
}

// Place tells which folder or file an expression of a followed program names, where
// its text tells it: "~/*" is all that is in the home. What lists a folder names all that is
// in it.
func Place(e string) (place string, known bool) { return placeOf(e, 0) }

func placeOf(e string, depth int) (string, bool) {
	if depth > maxNesting || len(e) > 2*MaxValue {
		return "", false
	}
	e = strings.TrimSpace(e)
	for _, prefix := range []string{"await ", "new ", "...", "*", "@", "my ", "async "} {
		e = strings.TrimSpace(strings.TrimPrefix(e, prefix))
	}
	if parts := Operands(e); len(parts) > 1 {
		return joinedPlace(parts, "", depth)
	}
	switch {
	case IsLiteral(e):
		return Bare(e), true
	case wrapped(e):
		return placeOf(e[1:len(e)-1], depth+1)
	}
	return placeOfMembers(membersOf(e), depth)
}

// joinedPlace joins what the parts name. The first has to be known.
func joinedPlace(parts []string, by string, depth int) (string, bool) {
	out := ""
	for n, part := range parts {
		p, known := placeOf(part, depth+1)
		if !known && n == 0 {
			return "", false
		}
		if !known { // some name in a place that is known
			p = "?"
		}
		if n > 0 && (strings.HasPrefix(p, "~") || strings.HasPrefix(p, "/")) && strings.HasSuffix(p, "*") {
			p = "*" // the name of what a listing found, behind its folder
		}
		if n > 0 && by != "" && !strings.HasSuffix(out, by) {
			out += by
		}
		out += p
	}
	return out, true
}

// membersOf cuts an expression into its members, nil if it is none.
func membersOf(e string) []member {
	var out []member
	for i := 0; i < len(e) && len(out) < maxMembers; {
		switch c := e[i]; {
		case c == '.' || c == '?' || c == ':' || c == '>' || c == '-' || c == ' ' || c == '!':
			i++
		case isLetter(c) || c == '$':
			end := i + 1
			for end < len(e) && IsWordByte(e[end]) {
				end++
			}
			out = append(out, member{name: e[i:end]})
			i = end
		case c == '\'' || c == '"':
			end := strings.IndexByte(e[i+1:], c)
			if end < 0 || len(out) > 0 {
				return nil
			}
			out = append(out, member{name: e[i : i+end+2]})
			i += end + 2
		case c == '(' || c == '[' || c == '{' && len(out) > 0:
			end := closing(e, i)
			if end < 0 {
				return nil
			}
			args := argumentsIn(e[i+1 : end])
			switch {
			case len(out) == 0:
				out = append(out, member{args: args, called: true})
			case c == '(' && !out[len(out)-1].called:
				out[len(out)-1].args, out[len(out)-1].called = args, true
			default:
				out = append(out, member{args: args, element: true})
			}
			i = end + 1
		default:
			return nil
		}
	}
	return out
}

var (
	homes      = prose.Set("home homedir user_home NSHomeDirectory UserHomeDir get_home expanduser")
	listings   = prose.Set("listdir scandir walk fwalk readdirSync readdir opendirSync opendir children each_child entries foreach glob iglob ReadDir Readdir WalkDir Walk Glob RecursiveDirectoryIterator DirectoryIterator FilesystemIterator dir listFiles list newDirectoryStream globSync files dir_ls")
	listsSelf  = prose.Set("iterdir children each_child entries")
	joinsPath  = prose.Set("path join Join joinpath Path PurePath PosixPath resolve File catfile")
	keepsPlace = prose.Set("expand str list sorted set iter tuple reversed String abspath realpath normpath normalize fspath as_posix absolute expanduser expandvars getPathname getRealPath toString forEach map filter then iterator_to_array RecursiveIteratorIterator from Array fsencode resolve to_s to_path values each")
)

// placeOfMembers follows the members from left to right.
func placeOfMembers(members []member, depth int) (string, bool) {
	place, known := "", false
	for n, m := range members {
		first := ""
		if len(m.args) > 0 {
			first = m.args[0]
		}
		switch {
		case n == 0 && IsLiteral(m.name):
			place, known = Bare(m.name), true
		case m.name == "" && n == 0: // brackets around the first
			place, known = placeOf(first, depth+1)
		case !known && (m.name == "HOME" || m.name == "USERPROFILE" || homes[m.name] && m.name != "expanduser" && (m.called && len(m.args) == 0 || n > 0 && members[n-1].name == "Dir")):
			place, known = "~", true
		case !known && m.name == "expanduser":
			place, known = placeOf(first, depth+1)
		case !known && (m.element || m.called) && homeVariable.MatchString(first):
			place, known = "~", true
		case known && m.called && listsSelf[m.name] && len(m.args) == 0:
			place = strings.TrimSuffix(place, "/") + "/*"
		case known && m.called && (m.name == "glob" || m.name == "rglob"):
			p, is := placeOf(first, depth+1)
			if !is {
				return "", false
			}
			place = strings.TrimSuffix(place, "/") + "/" + p
		case known && m.called && m.name == "joinpath":
			p, _ := joinedPlace(m.args, "/", depth)
			place += "/" + p
		case !known && m.called && listings[m.name]:
			if place, known = placeOf(first, depth+1); known && !strings.Contains(place, "*") {
				place = strings.TrimSuffix(place, "/") + "/*"
			}
		case !known && m.called && joinsPath[m.name]:
			place, known = joinedPlace(m.args, "/", depth)
		case !known && m.called && m.name == "paste0": // of R
			place, known = joinedPlace(m.args, "", depth)
		case !known && m.called && keepsPlace[m.name]:
			place, known = placeOf(first, depth+1)
		}
	}
	return place, known
}

var homeVariable = regexp.MustCompile(`^\s*['"]?(?:HOME|USERPROFILE)['"]?\s*$`)
