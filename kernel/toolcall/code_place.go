package toolcall

import (
	"regexp"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// maxMembers bounds the members and calls of an expression that is read for a place.
const maxMembers = 24

// member is one step of an expression: a name, a call of it, or an element.
type member struct {
	name    string
	args    []string
	called  bool
	element bool
}

// placeOf tells which folder or file an expression of a followed program names, where
// its text tells it. What lists a folder names all that is in it.
func placeOf(e string, depth int) (string, bool) {
	if depth > maxNested || len(e) > 2*maxValueOf {
		return "", false
	}
	e = strings.TrimSpace(e)
	for _, prefix := range []string{"await ", "new ", "...", "*", "@", "my ", "async "} {
		e = strings.TrimSpace(strings.TrimPrefix(e, prefix))
	}
	if parts := summands(e); len(parts) > 1 {
		return joinedPlace(parts, "", depth)
	}
	switch {
	case isLiteral(e):
		return bare(e), true
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

// summands cuts an expression at the operators that join texts and paths.
func summands(e string) []string {
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

// wrapped reports whether one pair of brackets holds all of an expression.
func wrapped(e string) bool {
	return len(e) > 1 && (e[0] == '(' || e[0] == '[') && closing(e, 0) == len(e)-1
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

// membersOf cuts an expression into its members, nil if it is none.
func membersOf(e string) []member {
	var out []member
	for i := 0; i < len(e) && len(out) < maxMembers; {
		switch c := e[i]; {
		case c == '.' || c == '?' || c == ':' || c == '>' || c == '-' || c == ' ' || c == '!':
			i++
		case isLetter(c) || c == '$':
			end := i + 1
			for end < len(e) && isWordByte(e[end]) {
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

// argumentsIn cuts the text between the brackets of a call.
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
		case c == ',' && depth == 0:
			out = append(out, text[from:i])
			from = i + 1
		}
	}
	if strings.TrimSpace(text[from:]) != "" || len(out) > 0 {
		out = append(out, text[from:])
	}
	return out
}

var (
	homes      = words("home homedir UserHomeDir get_home expanduser")
	listings   = words("listdir scandir walk fwalk readdirSync readdir opendirSync opendir children each_child entries foreach glob iglob ReadDir Readdir WalkDir Walk Glob RecursiveDirectoryIterator DirectoryIterator FilesystemIterator dir listFiles list newDirectoryStream globSync")
	listsSelf  = words("iterdir children each_child entries")
	joinsPath  = words("join Join joinpath Path PurePath PosixPath resolve File catfile")
	keepsPlace = words("str list sorted set iter tuple reversed String abspath realpath normpath normalize fspath as_posix absolute expanduser expandvars getPathname getRealPath toString forEach map filter then iterator_to_array RecursiveIteratorIterator from Array fsencode resolve to_s to_path values each")
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
		case n == 0 && isLiteral(m.name):
			place, known = bare(m.name), true
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
		case !known && m.called && keepsPlace[m.name]:
			place, known = placeOf(first, depth+1)
		}
	}
	return place, known
}

var homeVariable = regexp.MustCompile(`^\s*['"]?(?:HOME|USERPROFILE)['"]?\s*$`)

// everything collapses patterns that stand for all that is below a folder.
var everything = regexp.MustCompile(`/\*+\.?\*?(?:/[*?]+)*$`)

// irreplaceable reports whether a place is one that a machine, a person or others
// cannot lose as a whole.
func irreplaceable(place string) bool {
	p := everything.ReplaceAllString(slashed(place), "/*")
	if strings.ContainsRune(p, '?') || p == "" {
		return false
	}
	return isVital(cleanPath(p)) || strings.HasSuffix(p, "/*") && sharedData.MatchString(p) && !passing.MatchString(p)
}

var (
	// sharedData is where others keep theirs: what is served, mounted or backed up.
	sharedData = regex.New(`^(?:/(?:mnt|media|srv|net|nfs|nas|Volumes|shares?|data|backups?|var/www|var/backups)/[^/*]+(?:/[^/*]+){0,2}|(?:/home/[^/*]+|/Users/[^/*]+|~)/(?:Documents|Pictures|Photos|Music|Movies|Videos|Desktop|Finance|Projects|Dropbox|OneDrive|Google Drive|Library|Mail|Backups?))/\*$`)
	// passing is what such a folder is called when it may go.
	passing = regex.New(`(?i)tmp|temp|cache|build|dist|out\b|test|scratch|trash|old|staging|session|thumb|preview|log|download|artifact|release`)
)

// What takes away the file or the folder that its first argument names: by its name alone,
// and as a member of what handles files. The last take away what they are called on.
var (
	removers       = words("rmtree rmSync rmdirSync unlinkSync removeSync emptyDirSync emptyDir RemoveAll rm_rf rm_r remove_tree remove_dir_all remove_entry_secure rimraf unlink rmdir removedirs send2trash deleteDirectory deleteRecursively")
	fileRemovers   = words("remove remove_file removeFile Remove rm delete deleteIfExists removeSync")
	fileHandlers   = words("os fs fsp fse promises Deno lfs sftp File Files FileUtils Dir")
	removalMethods = words("unlink rmdir rmtree remove delete deleteRecursively remove_p rmtree_p deleteDir")
)

// site is where a program calls something.
type site struct {
	name, on    string // what is called, and the word in front of it
	start, open int    // of the name, and its bracket
}

// maxSites bounds the calls of a program that are judged.
const maxSites = 4096

// sitesOf finds the calls in a program.
func sitesOf(text string) []site {
	var out []site
	for i := 0; i < len(text) && len(out) < maxSites; i++ {
		if text[i] != '(' {
			continue
		}
		start := wordBefore(text, i)
		if start == i {
			continue
		}
		s := site{name: text[start:i], start: start, open: i}
		for _, mark := range []string{".", "->", "::"} {
			if strings.HasSuffix(text[:start], mark) {
				end := start - len(mark)
				s.on, s.start = text[wordBefore(text, end):end]+mark, end
			}
		}
		out = append(out, s)
	}
	return out
}

// wordBefore is where the word begins that ends at i.
func wordBefore(text string, i int) int {
	for i > 0 && isWordByte(text[i-1]) {
		i--
	}
	return i
}

// removals judges what a followed program takes away.
func (r *reading) removals(text string, sites []site) {
	for _, s := range sites {
		on := strings.TrimRight(s.on, ".:->")
		args := argumentsAt(text, s.open)
		switch {
		case len(args) > 0 && (removers[s.name] || fileRemovers[s.name] && fileHandlers[on]) && r.spend(costJudge*len(args[0])):
			r.takesAway(text[:s.start], args[0])
		case s.name == "map" && len(args) > 1 && mapped.MatchString(args[0]):
			r.takesAway(text[:s.start], args[1])
		}
		if s.on == "" || !removalMethods[s.name] || len(args) > 0 && !strings.HasPrefix(args[0], "missing_ok") && !strings.HasPrefix(strings.TrimSpace(args[0]), "recursive") {
			continue
		}
		receiver := chainBefore([]byte(text[max(0, s.start-maxValueOf):s.start]))
		if r.spend(costJudge * len(receiver)) {
			r.takesAway(text[:s.start], receiver)
		}
	}
}

// mapped finds a removal that is handed to what calls it for each.
var mapped = regexp.MustCompile(`^\s*(?:shutil\.rmtree|os\.(?:remove|unlink|rmdir))\s*$`)

// maxCalls bounds the places where one rule is compared.
const maxCalls = 64

// argumentsAt are the arguments of the call whose bracket stands at i.
func argumentsAt(text string, i int) []string {
	text = text[i:min(len(text), i+2*maxValueOf)]
	if end := closing(text, 0); end > 0 {
		return argumentsIn(text[1:end])
	}
	return nil
}

func (r *reading) takesAway(before, e string) {
	if e = strings.TrimSpace(e); strings.HasPrefix(e, "[") && wrapped(e) { // each of a list
		if all := argumentsIn(e[1 : len(e)-1]); len(all) > 1 {
			for _, one := range all[:min(len(all), maxMembers)] {
				if !strings.HasPrefix(strings.TrimSpace(one), "[") {
					r.takesAway(before, one)
				}
			}
			return
		}
	}
	if place, known := placeOf(e, 0); known && irreplaceable(place) && !picksSome(before) {
		r.breaks(DestructiveCommand)
	}
}

// picksSome reports whether the condition in front of a removal picks some of the files: by
// their names or their age, and not all but some.
func picksSome(before string) bool {
	before = before[max(0, len(before)-300):]
	at := someFiles.FindAllStringIndex(before, -1)
	return len(at) > 0 && !slices.ContainsFunc(at, func(m []int) bool { return excepts.MatchString(before[max(0, m[0]-60):m[0]]) })
}

var (
	someFiles = regexp.MustCompile(`endswith|startswith|endsWith|startsWith|\.suffix\b|mtime|\bfnmatch|\.match\(|extname|\.test\(|\.includes\(|getExtension|end_with|start_with|HasSuffix|HasPrefix|pathinfo|\bexists\b.{0,40}\.(?:tmp|bak)`)
	excepts   = regexp.MustCompile(`(?:\bnot\b|!|unless)[^\n;]*$`)
)
