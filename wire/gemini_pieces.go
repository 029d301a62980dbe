package wire

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"
)

// geminiPieces are arguments that come value by value, each with the path of the place
// where it belongs. They are read as the AI SDK reads them (google-json-accumulator.ts).
type geminiPieces struct {
	key, id string
	root    geminiValue
	unclear bool
}

// A geminiValue is a value of JSON that is being put together.
type geminiValue struct {
	names    []string
	members  map[string]*geminiValue // of an object, in the order of names
	elements []*geminiValue          // of an array
	text     *strings.Builder        // of a string
	raw      string                  // of any other value
	complete bool                    // it does not go on
}

// add adds a piece. Of what goes on behind its end, or has two forms, some clients take
// the first, some the last and some both. A piece without a value ends a text or a list,
// or is an empty object or, with [] behind its path, an empty list.
func (p *geminiPieces) add(piece gjson.Result) {
	steps, list, ok := jsonPath(member(piece, "jsonPath").Str)
	value, given := pieceValue(piece)
	goesOn := member(piece, "willContinue").Type == gjson.True
	at := p.root.find(steps)
	switch {
	case !ok, given > 1, given == 1 && list:
		p.unclear = true
	case given == 0 && at != nil:
		at.complete = at.complete || !goesOn
	case given == 0 && goesOn:
	default:
		if at = p.root.make(steps); at == nil || !at.set(value, list) {
			p.unclear = true
			return
		}
		at.complete = !goesOn
	}
}

// pieceValue is the value that a piece brings, and how many it does.
func pieceValue(piece gjson.Result) (value gjson.Result, given int) {
	for name, is := range map[string]func(gjson.Result) bool{
		"stringValue": func(v gjson.Result) bool { return v.Type == gjson.String },
		"numberValue": func(v gjson.Result) bool { return v.Type == gjson.Number },
		"boolValue":   gjson.Result.IsBool,
	} {
		switch v := member(piece, name); {
		case v.Type == gjson.Null:
		case !is(v):
			return value, 2 // or none, for some clients
		default:
			value, given = v, given+1
		}
	}
	if member(piece, "nullValue").Exists() {
		return gjson.Result{Raw: "null"}, given + 1
	}
	return value, given
}

// find returns the value at a path; nil if there is none.
func (v *geminiValue) find(steps []any) *geminiValue {
	for _, step := range steps {
		if v == nil {
			return nil
		}
		switch step := v.step(step).(type) {
		case string:
			v = v.members[step]
		case int:
			if step >= len(v.elements) {
				return nil
			}
			v = v.elements[step]
		}
	}
	return v
}

// make returns the value at a path, a new one if need be; nil if there can be none.
// Elements come in their order.
func (v *geminiValue) make(steps []any) *geminiValue {
	for _, step := range steps {
		var next *geminiValue
		switch step := v.step(step).(type) {
		case string:
			if v.text != nil || v.raw != "" || v.elements != nil {
				return nil
			}
			if next = v.members[step]; next == nil {
				if v.members == nil {
					v.members = make(map[string]*geminiValue)
				}
				next = new(geminiValue)
				v.members[step] = next
				v.names = append(v.names, step)
			}
		case int:
			if v.text != nil || v.raw != "" || v.members != nil || step > len(v.elements) {
				return nil
			}
			if step == len(v.elements) {
				v.elements = append(v.elements, new(geminiValue))
			}
			next = v.elements[step]
		}
		v = next
	}
	return v
}

// step is a step into a value. A number below a list is an index, with a dot too.
func (v *geminiValue) step(step any) any {
	if name, ok := step.(string); ok && v.elements != nil {
		if n, ok := canonicalIndex(name); ok {
			return n
		}
	}
	return step
}

// set gives a value what a piece brings, and reports whether it can have it.
func (v *geminiValue) set(value gjson.Result, list bool) bool {
	switch {
	case v.members != nil, v.elements != nil, v.raw != "", v.complete:
		return false
	case value.Type == gjson.String:
		if v.text == nil {
			v.text = new(strings.Builder)
		}
		v.text.WriteString(value.Str)
	case v.text != nil:
		return false
	case list:
		v.elements = []*geminiValue{}
	case value.Raw == "": // none
		v.members = map[string]*geminiValue{}
	default:
		v.raw = value.Raw
	}
	return true
}

// arguments are the pieces put together.
func (p *geminiPieces) arguments() string {
	if p.root.members == nil {
		return "{}"
	}
	return string(p.root.append(nil))
}

func (v *geminiValue) append(dst []byte) []byte {
	switch {
	case v.members != nil:
		dst = append(dst, '{')
		for i, name := range v.names {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = v.members[name].append(append(append(dst, quoted(name)...), ':'))
		}
		return append(dst, '}')
	case v.elements != nil:
		dst = append(dst, '[')
		for i, element := range v.elements {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = element.append(dst)
		}
		return append(dst, ']')
	case v.text != nil:
		return append(dst, quoted(v.text.String())...)
	}
	return append(dst, cmp.Or(v.raw, `""`)...)
}

// quoted is a string of JSON.
func quoted(s string) []byte {
	out, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		panic(fmt.Errorf("quoting a string that was read from JSON: %w", err))
	}
	return out
}

// jsonPath reads the path of one value below the root, such as $.a[0].b, into names and
// indexes, and whether it ends in []. Clients know no other forms of RFC 9535.
func jsonPath(path string) (steps []any, list, ok bool) {
	path, list = strings.CutSuffix(strings.TrimPrefix(path, "$."), "[]")
	for part := range strings.SplitSeq(path, ".") {
		name, indexes, bracket := strings.Cut(part, "[")
		if name == "" || strings.ContainsAny(name, `$*?@'"]`) {
			return nil, list, false
		}
		steps = append(steps, name)
		for bracket {
			number, rest, closed := strings.Cut(indexes, "]")
			n, ok := canonicalIndex(number)
			if !closed || !ok {
				return nil, list, false
			}
			steps = append(steps, n)
			if indexes, bracket = strings.CutPrefix(rest, "["); !bracket && rest != "" {
				return nil, list, false
			}
		}
	}
	return steps, list, len(steps) <= MaxDepth
}

// canonicalIndex reads an index as everybody writes it.
func canonicalIndex(s string) (n int, ok bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == s
}
