package wire

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// LooseParts reads the texts of a body in UTF-8 that belongs to no dialect, or that
// its dialect cannot read. It is as lenient as the most lenient server: members
// may occur twice, values may follow one another, and a body that is not JSON is
// read for its quoted strings and for the words between them. All strings count,
// at any depth, and so do names that hold a space. A part has no path. Its role
// is the one that the members around it give in known APIs (role, system,
// instructions, tools, …), or else [User]. Message numbers the array whose element
// the part is, from 1, and is 0 for any other part.
//
// What JSON only refers to, and text as the numbers of a tokenizer, is silent: parts of
// their kinds, without a text, as far as the names of known APIs tell. A reference is among
// the texts too, for somebody may have written words there.
//
// The time is linear in the size of the body.
func LooseParts(body []byte) (texts, silent []Part) {
	body = bytes.TrimPrefix(body, byteOrderMark)
	trimmed := bytes.TrimLeft(body, " \t\r\n")
	if len(trimmed) == 0 {
		return nil, nil
	}
	if !strings.ContainsRune(`{["`, rune(trimmed[0])) {
		return []Part{{Role: User, Kind: Text, Text: string(body), Bytes: len(body)}}, nil
	}
	if texts, silent, ok := looseJSON(body); ok {
		return texts, silent
	}
	return looseStrings(body), nil
}

// looseRoles are the members and values that say who speaks below or beside
// them, in any API.
var (
	looseMembers = map[string]Role{
		"system:": System, "systeminstruction:": System, "instructions:": System, "developer:": System,
		"tools:": Definition, "functions:": Definition, "responseformat:": Definition, "toolconfig:": Definition,
		"functionresponse:": Tool,
	}
	looseSpeakers = map[string]Role{
		"system": System, "developer": System, "assistant": Assistant, "model": Assistant, "tool": Tool, "function": Tool,
	}
	looseTypes = map[string]Role{
		"tool_result": Tool, "function_call_output": Tool, "tool_response": Tool,
	}
)

// looseReferences are the members, in any API, that refer to what is not in the body. The
// value is an id or an address, a list of them, or an object with one.
var looseReferences = map[string]Kind{
	"imageurl:": Image, "audiourl:": Audio, "videourl:": File, "fileurl:": File, "fileuri:": File, "gcsuri:": File,
	"fileid:": File, "fileids:": File, "inputfileid:": File, "trainingfile:": File, "validationfile:": File,
	"previousresponseid:": Stored, "previousinteractionid:": Stored, "conversation:": Stored, "conversationid:": Stored,
	"cachedcontent:": Stored, "encryptedcontent:": Stored, "vectorstoreids:": Stored, "assistantid:": Stored, "threadid:": Stored,
	"agentid:": Stored, "previousmessageid:": Stored, "libraryids:": File, "filesearchstorenames:": File,
}

// looseAddresses are the members that refer to what is not in the body if the value is an
// address.
var looseAddresses = map[string]Kind{
	"image:": Image, "images:": Image, "audio:": Audio, "video:": File, "file:": File, "document:": File, "media:": File, "uri:": File,
}

// looseTokens are the members whose lists of numbers are text, in any API.
var looseTokens = []string{
	"input:", "inputs:", "prompt:", "prompts:", "tokens:", "tokenids:", "context:", "inputids:", "inputtokens:", "inputembeds:", "prompttokenids:",
}

// A looseLevel is an object or array that is being read.
type looseLevel struct {
	object  bool
	first   int    // the first part below it
	list    int    // the array's number, from 1; 0 for an object
	role    Role   // that its own role or type member gives
	name    string // of the member being read
	member  int    // the first part of that member
	of      string // the member that it is the value of, or in whose list it stands
	numbers int    // bytes of the elements of an array, as long as all are numbers
	other   bool   // an element of an array is no number
}

// refersTo is the kind of what a string refers to that is the next value of a level, or "".
func (l *looseLevel) refersTo(s string) Kind {
	if s == "" || strings.HasPrefix(s, "data:") { // which brings what it refers to
		return ""
	}
	name := l.of
	if l.object {
		name = l.name
	}
	if kind := looseAddresses[name]; kind != "" && strings.Contains(s[:min(len(s), 16)], "://") {
		return kind
	}
	switch {
	case l.object && l.name == "url:" && l.of == "source:":
		return File
	case l.object && l.name == "id:" && l.of == "prompt:": // OpenAI's, beside its variables
		return Stored
	case !l.object, l.name == "url:", l.name == "id:":
		return looseReferences[l.of]
	}
	return looseReferences[l.name]
}

// looseJSON reads values that follow one another; ok is false when they are not
// all JSON.
func looseJSON(body []byte) (parts, silent []Part, ok bool) {
	d := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	levels, lists := []looseLevel{{}}, 0
	var rest looseRest
	var open []int // parts without a role yet, in order
	assignRole := func(from int, role Role) {
		for n := len(open) - 1; role != "" && n >= 0 && open[n] >= from; n-- {
			parts[open[n]].Role = role // each part once, however deep it lies
			open = open[:n]
		}
	}
	for {
		token, err := d.ReadToken()
		if errors.Is(err, io.EOF) && len(levels) == 1 {
			assignRole(0, User)
			return rest.appendTo(parts), silent, true
		}
		if err != nil {
			return nil, nil, false
		}
		at := &levels[len(levels)-1]
		switch kind := token.Kind(); kind {
		case '{', '[':
			next := looseLevel{object: kind == '{', first: len(parts), of: at.of}
			if at.object {
				next.of = at.name
			}
			if kind == '[' {
				lists++
				next.list = lists
			}
			at.other = true
			levels = append(levels, next)
			continue
		case '}', ']':
			if at.numbers > 0 && !at.other && slices.Contains(looseTokens, at.of) {
				silent = appendSilent(silent, Part{Role: User, Kind: Tokens, Bytes: at.numbers})
			}
			assignRole(at.first, at.role)
			levels = levels[:len(levels)-1]
			at = &levels[len(levels)-1]
		case '"':
			s := token.String()
			if at.object && at.name == "" { // a name
				at.name, at.member = nameKey(s), len(parts)
				if strings.Contains(s, " ") && !rest.takes(parts, s) {
					parts = append(parts, Part{Role: User, Kind: Text, Text: s, Bytes: len(s)})
				}
				continue
			}
			switch at.name {
			case "role:":
				at.role = looseSpeakers[strings.ToLower(s)]
			case "type:":
				if r := looseTypes[s]; r != "" {
					at.role = r
				}
			}
			if s != "" && !rest.takes(parts, s) {
				open = append(open, len(parts))
				parts = append(parts, Part{Kind: Text, Text: s, Bytes: len(s), Message: at.list})
			}
			if kind := at.refersTo(s); kind != "" {
				silent = appendSilent(silent, Part{Role: User, Kind: kind, Bytes: len(s)})
			}
			at.other = true
		case '0':
			at.numbers += len(token.String()) + 1 // and a comma
		default:
			at.other = true
		}
		assignRole(at.member, looseMembers[at.name])
		at.name = ""
	}
}

// maxLooseParts is how many texts of a body are parts of their own. A part takes hundreds of
// bytes of memory, and a body can have a text in every four.
const maxLooseParts = 1 << 18

// looseRest gathers the texts behind as many as are parts of their own.
type looseRest struct{ text strings.Builder }

// takes reports whether it has taken a text that is the next part.
func (r *looseRest) takes(parts []Part, s string) bool {
	if len(parts) < maxLooseParts {
		return false
	}
	r.text.WriteString(s)
	r.text.WriteByte('\n')
	return true
}

func (r *looseRest) appendTo(parts []Part) []Part {
	if r.text.Len() == 0 {
		return parts
	}
	return append(parts, Part{Role: User, Kind: Text, Text: r.text.String(), Bytes: r.text.Len()})
}

// appendSilent appends a part without a text. Behind as many as that there is one of each kind,
// which stands for all of them.
func appendSilent(silent []Part, p Part) []Part {
	if len(silent) > maxLooseParts {
		gathered := silent[maxLooseParts:]
		if i := slices.IndexFunc(gathered, func(q Part) bool { return q.Kind == p.Kind }); i >= 0 {
			gathered[i].Bytes += p.Bytes
			return silent
		}
	}
	return append(silent, p)
}

// nameKey is a name without regard to its spelling. It is never "", which stands
// for no name.
func nameKey(name string) string {
	return strings.ToLower(strings.ReplaceAll(name, "_", "")) + ":"
}

// looseStrings reads what only looks like JSON: each quoted string, and the words
// between the strings as one text.
func looseStrings(body []byte) []Part {
	var parts []Part
	var between strings.Builder
	var rest looseRest
	for len(body) > 0 {
		i := bytes.IndexByte(body, '"')
		if i < 0 {
			i = len(body)
		}
		for _, c := range string(bytes.ToValidUTF8(body[:i], []byte(" "))) {
			if strings.ContainsRune("{}[],:", c) {
				c = ' '
			}
			between.WriteRune(c)
		}
		if i == len(body) {
			break
		}
		var s string
		s, body = unquote(body[i+1:])
		if s != "" && !rest.takes(parts, s) {
			parts = append(parts, Part{Role: User, Kind: Text, Text: s, Bytes: len(s)})
		}
	}
	parts = rest.appendTo(parts)
	words := strings.Join(strings.Fields(between.String()), " ")
	if strings.ContainsFunc(words, unicode.IsLetter) {
		parts = append(parts, Part{Role: User, Kind: Text, Text: words, Bytes: len(words)})
	}
	return parts
}

// unquote reads a string up to its closing quote, or to the end, and opens the
// escapes that it can.
func unquote(b []byte) (s string, rest []byte) {
	var out strings.Builder
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return strings.ToValidUTF8(out.String(), "\uFFFD"), b[i+1:]
		case c == '\\' && i+1 < len(b):
			i += unescape(&out, b[i+1:])
		default:
			out.WriteByte(c)
		}
	}
	return strings.ToValidUTF8(out.String(), "\uFFFD"), nil
}

// unescape writes what stands behind a backslash and returns how many bytes that
// took. What is no escape stands for itself.
func unescape(out *strings.Builder, b []byte) int {
	switch b[0] {
	case 'n', 'r', 't', 'b', 'f':
		out.WriteByte(' ')
	case 'u':
		r, ok := hex4(b[1:])
		if !ok {
			out.WriteByte('u')
			return 1
		}
		if low, ok := secondHalf(b[5:]); ok && utf16.IsSurrogate(r) {
			out.WriteRune(utf16.DecodeRune(r, low))
			return 11
		}
		out.WriteRune(r) // a lone surrogate becomes U+FFFD
		return 5
	default:
		out.WriteByte(b[0])
	}
	return 1
}

func secondHalf(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	return hex4(b[2:])
}

func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return utf8.RuneError, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
