package toolcall

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxArgumentDepth bounds the nesting of arguments, counting JSON that is quoted
// inside a string. It is lower than the depth at which a body is refused, because
// each level of arguments is judged; real calls need a handful.
const maxArgumentDepth = 32

var (
	errNotObject = errors.New("arguments are not one object")
	errDepth     = errors.New("arguments are nested too deeply")
)

// maxKey bounds what is kept of a member's name; those that mean something to
// a reader are shorter.
const maxKey = 64

// leaf is one scalar of the arguments.
type leaf struct {
	key      string // folded name of the nearest member
	above    ancestors
	value    string // the text of a string; "true", "false" or a number otherwise
	text     bool   // the scalar is a string
	composed bool   // a command line made of other leaves
	part     bool   // one of several elements of an array
	variable string // of the environment that the scalar is the value of
	typed    bool   // the object around it says that it is typed, see embedded_typing.go
}

// ancestors is what the names of the members around a leaf tell of it.
type ancestors struct {
	named   bool // some member has a name
	headers bool // the nearest one holds headers, or all of them credentials
	roleRef bool // one of them refers to a role
	filter  bool // one of them picks what an operation changes
	// one of them says to whom mail goes on, or how a payment is approved
	forwards, approval bool
}

func (a ancestors) under(key string) ancestors {
	if key == "" {
		return a
	}
	headed := strings.HasSuffix(key, "header") || strings.HasSuffix(key, "headers")
	if !a.named {
		headed = headers.MatchString(key)
	}
	return ancestors{named: true, headers: headed, roleRef: a.roleRef || strings.Contains(key, "roleref"), filter: a.filter || filterKeys[key], forwards: a.forwards || forwardKey.MatchString(key), approval: a.approval || strings.HasPrefix(key, "approval")}
}

// argumentReader collects the leaves of a call in document order.
type argumentReader struct {
	*budget
	leaves []leaf
}

// noArguments reports whether a call has none: models and clients write nothing, white
// space or null for them.
func noArguments(raw []byte) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}

// readArguments reads one JSON object strictly: jsontext refuses duplicate
// names, invalid UTF-8 and unpaired surrogates (RFC 7493), about which lenient
// parsers disagree.
func readArguments(raw []byte, b *budget) ([]leaf, error) {
	if noArguments(raw) {
		return nil, nil
	}
	r := argumentReader{budget: b}
	b.spend(costSearch * len(raw))
	d := jsontext.NewDecoder(bytes.NewBuffer(raw)) // which is read where it stands
	if d.PeekKind() != '{' {
		return nil, fmt.Errorf("reading arguments: %w", errNotObject)
	}
	if _, err := r.value(d, "", ancestors{}, 0); err != nil {
		return nil, fmt.Errorf("reading arguments: %w", err)
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading arguments: %w", errNotObject)
	}
	return r.leaves, nil
}

// value reads the next value and returns its text when it is a string.
func (r *argumentReader) value(d *jsontext.Decoder, key string, up ancestors, depth int) (string, error) {
	if depth > maxArgumentDepth || !r.spend(costLeaf) {
		return "", errDepth
	}
	token, err := d.ReadToken()
	if err != nil {
		return "", err
	}
	switch token.Kind() {
	case '{':
		return "", r.object(d, key, up, depth)
	case '[':
		return "", r.array(d, key, up, depth)
	case '"':
		s := token.String()
		r.text(s, key, up, depth)
		return s, nil
	default:
		r.leaves = append(r.leaves, leaf{key: key, above: up, value: token.String()})
		return "", nil
	}
}

func (r *argumentReader) object(d *jsontext.Decoder, key string, up ancestors, depth int) error {
	up = up.under(key)
	var command, rest string
	types, typed := false, -1
	if d.PeekKind() == '}' {
		r.leaves = append(r.leaves, leaf{key: key, above: up, value: "{}"})
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		written := name.String()
		member := fold(written)
		before := len(r.leaves)
		s, err := r.value(d, member, up, depth+1)
		if err != nil {
			return err
		}
		types = types || s == "type" && (member == "type" || member == "action")
		if s != "" && member == "text" {
			typed = before
		}
		switch {
		case s != "" && (member == "command" || member == "cmd" || member == "program" || member == "executable"):
			command = s
		case s != "" && environmentKeys[key]:
			for i := range r.leaves[before:] {
				r.leaves[before+i].variable = written
			}
		case member == "args" || member == "argv" || member == "arguments" || member == "params" || member == "parameters":
			rest = r.joined(r.leaves[before:], s)
		}
	}
	if types && typed >= 0 {
		r.leaves[typed].typed = true
	}
	if command != "" && rest != "" {
		r.leaves = append(r.leaves, leaf{key: "command", above: up, value: command + " " + rest, text: true, composed: true})
	}
	_, err := d.ReadToken()
	return err
}

// environmentKeys are what the member is called that holds the environment of a command.
var environmentKeys = words("env environment envvars environmentvariables envs")

// array adds, beside its elements, the command line that an array of strings
// spells: {"command": ["rm", "-rf", "/"]} is harmless element by element.
func (r *argumentReader) array(d *jsontext.Decoder, key string, up ancestors, depth int) error {
	before := len(r.leaves)
	texts := 0
	for d.PeekKind() != ']' {
		s, err := r.value(d, key, up, depth+1)
		if err != nil {
			return err
		}
		if s != "" {
			texts++
		}
	}
	if texts > 1 {
		for i := before; i < len(r.leaves); i++ {
			r.leaves[i].part = true
		}
	}
	if texts > 1 && texts == len(r.leaves)-before && (key == "source" || key == "cell") { // the lines of a notebook's cell
		r.leaves = append(r.leaves, leaf{key: key, above: up, value: r.lines(r.leaves[before:]), text: true, composed: true})
	}
	if texts > 1 && texts == len(r.leaves)-before && (roleOfKey(key) == roleShell || key == "args" && namesProgram[r.leaves[before].value]) {
		r.leaves = append(r.leaves, leaf{key: key, above: up, value: r.joined(r.leaves[before:], ""), text: true, composed: true})
	}
	if texts > 1 && texts == len(r.leaves)-before && (key == "args" || key == "arguments" || key == "params") && startsProgram(r.leaves[before].value) {
		r.leaves = append(r.leaves, leaf{key: "argv", above: up, value: r.joined(r.leaves[before:], ""), text: true, composed: true})
	}
	_, err := d.ReadToken()
	return err
}

// startsProgram reports whether a word is the name of a command that is known by what it does.
func startsProgram(word string) bool {
	if len(word) > maxKey || strings.ContainsAny(word, " \n") {
		return false
	}
	name := programName(word)
	return remoteCommands[name] != nil || wordRules[name] != nil || isShell(name) || isInterpreter(name) || isSQLClient(name) || isWrapper(name) || ordinaryTools[name]
}

var ordinaryTools = words("rm dd find shred truncate curl wget chmod chown tar rsync scp cat cp mv ln sed awk")

// text adds a string and, when it quotes JSON itself, what is inside.
func (r *argumentReader) text(s, key string, up ancestors, depth int) {
	r.leaves = append(r.leaves, leaf{key: key, above: up, value: s, text: true})
	if !quotesJSON(s) || roleOfKey(key) == roleProse && key != "data" && key != "payload" {
		return
	}
	inner := argumentReader{budget: r.budget}
	r.spend(costSearch * len(s))
	d := jsontext.NewDecoder(bytes.NewBufferString(strings.TrimSpace(s)), jsontext.AllowDuplicateNames(true))
	if _, err := inner.value(d, key, up, depth+1); err == nil {
		r.leaves = append(r.leaves, inner.leaves...)
	}
}

// quotesJSON reports whether a text begins as a JSON object or array does, or one quoted once more.
func quotesJSON(s string) bool {
	s = strings.TrimPrefix(strings.TrimSpace(s), `"`)
	return strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[")
}

// joined spells leaves as one command line; a single string stays as it is.
// What is composed of leaves is left out, or each level would double it.
func (r *argumentReader) joined(leaves []leaf, single string) string {
	if single != "" {
		return single
	}
	words := make([]string, 0, len(leaves))
	for _, l := range leaves {
		if l.composed || !r.spend(costSearch*len(l.value)) {
			continue
		}
		words = append(words, "'"+strings.ReplaceAll(l.value, "'", `'\''`)+"'")
	}
	return strings.Join(words, " ")
}

// lines puts the lines of a program together, which have their ends or do not.
func (r *argumentReader) lines(leaves []leaf) string {
	var all strings.Builder
	for _, l := range leaves {
		if !r.spend(costSearch * len(l.value)) {
			break
		}
		all.WriteString(strings.TrimSuffix(l.value, "\n") + "\n")
	}
	return all.String()
}

// fold makes member names comparable: filePath, file_path and FILE-PATH are
// one name to a reader.
func fold(name string) string {
	name = name[:min(len(name), 4*maxKey)]
	folded := strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c == ' ' || c == '.' {
			return -1
		}
		return c
	}, strings.ToLower(name))
	return folded[:min(len(folded), maxKey)]
}

// emptyLists are the names of the members that hold an empty list.
func emptyLists(raw []byte) []string {
	var out []string
	for at := 0; len(out) < maxRecipes; {
		open := bytes.IndexByte(raw[at:], '[')
		if open < 0 {
			break
		}
		open += at
		at = open + 1
		before, named := bytes.CutSuffix(bytes.TrimRight(raw[max(0, open-maxKey-8):open], " \t\n"), []byte{':'})
		if !named || !bytes.HasPrefix(bytes.TrimLeft(raw[at:min(len(raw), at+8)], " \t\n"), []byte{']'}) {
			continue
		}
		before = bytes.TrimRight(bytes.TrimRight(before, " \t\n"), `\"`)
		out = append(out, fold(string(before[bytes.LastIndexByte(before, '"')+1:])))
	}
	return out
}
