package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"
)

// A walk takes a body apart along a schema of what its dialect knows.
type walk struct {
	path    []byte // of the value being read
	role    Role   // of the message being read
	message int    // its number; 0 outside messages
	result  int    // of the result of a tool being read; 0 outside them
	results int    // so far
	roles   []Role // of the messages so far
	parts   []Part
	toModel bool // a model gets what is read: it is a call, or what a server of tools says
	called  bool // a value was read that calls tools
	calling bool // the value that is read does
	hosted  responsesHosted
	unread  []freeValue
	err     error
}

// inMessage reads the next message.
func (w *walk) inMessage(role Role, v gjson.Result, read schema) {
	w.roles = append(w.roles, role)
	w.message = len(w.roles)
	as(role, read)(w, v)
	w.message = 0
}

// inTurn reads the next message with the role that it names.
func (w *walk) inTurn(v gjson.Result, read schema) {
	if !v.IsObject() {
		w.err = invalid("a message is not an object")
		return
	}
	role := Other
	switch v.Get("role").Str {
	case "user":
		role = User
	case "assistant":
		role = Assistant
	case "system":
		role = System
	}
	w.inMessage(role, v, read)
}

// message reads a value as the next message.
func message(role Role, read schema) schema {
	return func(w *walk, v gjson.Result) { w.inMessage(role, v, read) }
}

// first reads a member before all others. APIs have what the application says outside the
// conversation, but it is the first message there, wherever in the body it stands: as part of
// the newest turn it would part that from its history.
func (w *walk) first(root gjson.Result, name string, read schema) {
	root.ForEach(func(key, value gjson.Result) bool {
		if key.Str == name && value.Type != gjson.Null {
			w.in(name, value, read)
		}
		return true
	})
}

// inChoice reads the next choice of an answer.
func inChoice(read schema) schema {
	return func(w *walk, v gjson.Result) { w.inMessage(w.role, v, read) }
}

// markEarlier marks the parts of the history, see Part.Earlier.
func (w *walk) markEarlier() {
	newest := len(w.roles)
	for newest > 0 && w.roles[newest-1] == Assistant {
		newest-- // a prefill
	}
	for newest > 0 && w.roles[newest-1] != Assistant {
		newest--
	}
	for i := range w.parts {
		p := &w.parts[i]
		p.Earlier = p.Message > 0 && (p.Message <= newest || p.Role == Assistant)
		p.Ours = p.Ours || p.emptied() && p.Message < len(w.roles) // the last begins an answer
	}
}

// A schema reads one value. Schemas are values: the whole of a dialect's
// knowledge is written down as tables of them.
type schema func(w *walk, v gjson.Result)

// members is the closed world of an object: the schema of each member it may
// have. Any other member is an unknown part, and one whose name differs from a
// known one only by case is an error, because readers in Go take it for the
// known one.
type members map[string]schema

func object(known members) schema {
	return func(w *walk, v gjson.Result) {
		if !v.IsObject() {
			w.other(v)
			return
		}
		v.ForEach(func(key, value gjson.Result) bool {
			read, ok := known[key.Str]
			name := key.Str
			if !ok {
				w.checkName(known, key.Str)
				read, name = unknown, pathName(key.Str)
				if role := looseMembers[nameKey(key.Str)]; role == System || role == Definition {
					read = as(Definition, unknown) // the application's, as Anthropic's system
				}
			}
			w.in(name, value, read)
			return w.err == nil
		})
	}
}

// checkName refuses a case variant of a known name. EqualFold folds as
// encoding/json does.
func (w *walk) checkName(known members, name string) {
	for k := range known {
		if strings.EqualFold(k, name) {
			w.err = invalid("a member name differs from a known one by case only")
		}
	}
}

// pathName stands in a path, and so in receipts, for the name of a member that
// the schema does not know: the caller may have written any text there.
func pathName(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "sha256:" + hex.EncodeToString(sum[:8])
}

// in reads a value one step further down the path.
func (w *walk) in(step string, v gjson.Result, read schema) {
	n := len(w.path)
	if n > 0 {
		w.path = append(w.path, '.')
	}
	w.path = append(w.path, step...)
	read(w, v)
	w.path = w.path[:n]
}

// twins is object for messages of protocol buffers, whose JSON may name a member in
// lowerCamelCase or in snake_case (https://protobuf.dev/programming-guides/json/). Of
// a member in both, each reader takes another, so that is an error. The names are
// given in lowerCamelCase.
func twins(known members) schema {
	both, camelCase := make(members, 2*len(known)), make(map[string]string)
	for name, read := range known {
		both[name], both[snakeCase(name)] = read, read
		if other := snakeCase(name); other != name {
			camelCase[other] = name
		}
	}
	read := object(both)
	return func(w *walk, v gjson.Result) {
		if strings.Contains(v.Raw, "_") || strings.Contains(v.Raw, `\u005`) {
			v.ForEach(func(key, _ gjson.Result) bool {
				if name, ok := camelCase[key.Str]; ok && v.Get(name).Exists() {
					w.err = invalid("a member occurs both in camelCase and in snake_case")
				}
				return w.err == nil
			})
		}
		read(w, v)
	}
}

// snakeCase is a name in lowerCamelCase as protocol buffers write it.
func snakeCase(name string) string {
	var b strings.Builder
	for _, c := range name {
		if unicode.IsUpper(c) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// oneOrMore reads an array's elements, or the one element that stands for it.
func oneOrMore(element schema) schema {
	return func(w *walk, v gjson.Result) {
		if v.IsArray() {
			list(element)(w, v)
			return
		}
		element(w, v)
	}
}

// each reads the members of an object whose names anybody may choose.
func each(member schema) schema {
	return func(w *walk, v gjson.Result) {
		if !v.IsObject() {
			w.other(v)
			return
		}
		v.ForEach(func(key, value gjson.Result) bool {
			w.in(pathName(key.Str), value, member)
			return w.err == nil
		})
	}
}

// list reads an array's elements.
func list(element schema) schema {
	return func(w *walk, v gjson.Result) {
		if !v.IsArray() {
			w.other(v)
			return
		}
		i := 0
		v.ForEach(func(_, value gjson.Result) bool {
			w.in(strconv.Itoa(i), value, element)
			i++
			return w.err == nil
		})
	}
}

// anyOf reads a value by its JSON type; what has no schema is unknown.
type anyOf struct{ text, list, object schema }

func (a anyOf) read(w *walk, v gjson.Result) {
	read := a.text
	switch {
	case v.IsArray():
		read = a.list
	case v.IsObject():
		read = a.object
	case v.Type != gjson.String:
		read = nil
	}
	if read == nil {
		w.other(v)
		return
	}
	read(w, v)
}

// text reads a string as a part of a kind.
func text(kind Kind) schema {
	return func(w *walk, v gjson.Result) {
		if v.Type != gjson.String {
			w.other(v)
			return
		}
		if v.Str != "" {
			w.add(kind, v.Str, v)
		}
	}
}

// gathered reads a value in which text may stand anywhere.
func gathered(kind Kind) schema {
	return func(w *walk, v gjson.Result) {
		if s := gather(v.Raw); s != "" {
			w.add(kind, s, v)
		}
	}
}

// media reads what is not text.
func media(kind Kind) schema {
	return func(w *walk, v gjson.Result) {
		if v.Type != gjson.Null && v.Raw != `""` {
			w.add(kind, "", v)
		}
	}
}

// attached reads a value that Redact replaces as a whole, by one of a form, where an
// attachment in it must go: one that is only emptied breaks the rules of the API.
func attached(form replacement, read schema) schema {
	return func(w *walk, v gjson.Result) {
		n := len(w.parts)
		read(w, v)
		for i := range w.parts[n:] {
			if p := &w.parts[n+i]; p.Attachment() && p.replacement == "" {
				p.replacement, p.before, p.after = form, p.Start-v.Index, endOf(v)-p.Start-p.Bytes
			}
		}
	}
}

// orEmptied reads the content of a message. The APIs refuse a message of the assistant without any, so
// none of their models has said it. It is what clients keep of an answer of ours whose refusal,
// or whose note of a blocked call, stands beside the content.
func orEmptied(form replacement, read schema) schema {
	return func(w *walk, v gjson.Result) {
		read(w, v)
		if w.err == nil && w.role == Assistant && (v.Raw == `""` || v.IsArray() && len(v.Array()) == 0) {
			if w.add(Text, "", v); w.err == nil {
				w.parts[len(w.parts)-1].replacement = form
			}
		}
	}
}

// emptied reports whether a part is the content of such an answer.
func (p Part) emptied() bool { return p.replacement == textBlocks || p.replacement == textParts }

// as reads a value with another role.
func as(role Role, read schema) schema {
	return func(w *walk, v gjson.Result) {
		before, result := w.role, w.result
		if role == Tool && before != Tool {
			w.results++
			w.result = w.results
		}
		w.role = role
		read(w, v)
		w.role, w.result = before, result
	}
}

// word reads a string that must be one of a few.
func word(known ...string) schema {
	return func(w *walk, v gjson.Result) {
		for _, k := range known {
			if v.Type == gjson.String && v.Str == k {
				return
			}
		}
		w.other(v)
	}
}

// scalar accepts a string, number or switch that no model reads, at least not as a text. A
// model's template may show those of messages and of definitions, such as the id of a call
// or the effort to reason with, and so may an agent with those of a server of tools, such as a
// media type. One that holds words is read there, as a name is.
func scalar(w *walk, v gjson.Result) {
	if v.Type == gjson.String && w.showsWords(v.Str) {
		w.add(Name, v.Str, v)
		return
	}
	setting(w, v)
}

// scalars reads a value of any depth that holds nothing but scalars and their names.
func scalars(w *walk, v gjson.Result) {
	switch {
	case v.IsArray():
		list(scalars)(w, v)
	case v.IsObject():
		eachNamed(scalars)(w, v)
	default:
		scalar(w, v)
	}
}

// eachNamed is each for an object whose names are read as scalars are.
func eachNamed(member schema) schema {
	return func(w *walk, v gjson.Result) {
		if v.IsObject() {
			v.ForEach(func(key, _ gjson.Result) bool {
				if w.showsWords(key.Str) {
					w.in(pathName(key.Str), key, text(Name))
				}
				return w.err == nil
			})
		}
		each(member)(w, v)
	}
}

// showsWords reports whether a short value may come before a model and says something.
func (w *walk) showsWords(s string) bool { return w.toModel && w.role != Other && holdsWords(s) }

// setting accepts a string, number or switch that no template shows either, such as a media
// type.
func setting(w *walk, v gjson.Result) {
	if v.IsObject() || v.IsArray() {
		w.other(v)
	}
}

// holdsWords reports whether a value says something: it has a character that ids, times and
// the names of options do not have. Words that are joined as in functions.get_weather:0 are
// those of a tool, whose name is read: to replace such an id would part a call from its result.
func holdsWords(s string) bool { return strings.ContainsFunc(s, isOddInID) }

func isOddInID(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("_-.:/|+=,;@~", c)
}

// calling reads a value that calls tools, which the client runs.
func calling(read schema) schema {
	return func(w *walk, v gjson.Result) {
		inner := w.calling
		w.called, w.calling = true, true
		read(w, v)
		w.calling = inner
	}
}

// besideCalls reads what stands in a call and is no part of what the client runs, so that
// nobody decides on it.
func besideCalls(read schema) schema {
	return func(w *walk, v gjson.Result) {
		inner := w.calling
		w.calling = false
		read(w, v)
		w.calling = inner
	}
}

// opaque accepts any value; no model reads it.
func opaque(*walk, gjson.Result) {}

// unknown is the schema of what no schema knows.
func unknown(w *walk, v gjson.Result) { w.add(Unknown, "", v) }

// other takes a value that does not have the type it should have, as unknown. Null
// is nothing: many clients write it for a member that is absent.
func (w *walk) other(v gjson.Result) {
	if v.Type != gjson.Null {
		unknown(w, v)
	}
}

func (w *walk) add(kind Kind, s string, v gjson.Result) {
	if len(w.parts) == maxParts {
		w.err = invalid("it has more than %d parts", maxParts)
		return
	}
	w.parts = append(w.parts, Part{
		Path: string(w.path), Role: w.role, Kind: kind, Text: s, Start: v.Index, Bytes: len(v.Raw), Message: w.message,
		Result: w.result, Called: w.calling,
	})
}
