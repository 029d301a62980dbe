package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"
)

// MaxDepth is how deep the JSON of a body may nest. The schemas of tools nest
// deepest of all that is sent, and stay far below.
const MaxDepth = 128

// maxParts bounds what a body can make us list.
const maxParts = 16 << 10

// invalid makes an error that wraps ErrInvalid. The text must not quote the
// body.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}

// parse checks a body and opens it for reading. gjson reads anything, takes the
// first of two members of the same name where other readers take the last, and
// turns lone surrogates into U+FFFD, so everything that two readers could read
// differently must be refused first. That includes NUL characters, at which some
// servers end a text.
func parse(body []byte) (gjson.Result, error) {
	root, err := parseAny(body)
	if err == nil && !root.IsObject() {
		return gjson.Result{}, invalid("not a JSON object")
	}
	return root, err
}

// parseAny is parse for a body that need not be an object.
func parseAny(body []byte) (gjson.Result, error) {
	if err := CheckJSON(body); err != nil {
		return gjson.Result{}, err
	}
	if hasNUL(body) {
		return gjson.Result{}, invalid("it contains a NUL character")
	}
	return gjson.ParseBytes(body), nil
}

// parseAnswer is parse for what a provider answers. Clients in JavaScript put messages and
// pieces together by Object.assign, as openai-node does, and that gives an object what stands
// in a member named __proto__: one has a call there where another has nothing.
func parseAnswer(body []byte) (gjson.Result, error) {
	root, err := parse(body)
	if err == nil && setsPrototype(body) {
		return gjson.Result{}, errPrototype
	}
	return root, err
}

// prototype is the name of the member that JavaScript's objects inherit from.
const prototype = "__proto__"

var errPrototype = invalid("a member has the name that sets the prototype of an object")

// setsPrototype reports whether an object of valid JSON has a member named __proto__, at any
// depth. The name may be written with escapes.
func setsPrototype(body []byte) bool {
	if !bytes.Contains(body, []byte(prototype)) && !bytes.Contains(body, []byte(`\u00`)) {
		return false
	}
	d := jsontext.NewDecoder(bytes.NewReader(body))
	for {
		token, err := d.ReadToken()
		if err != nil {
			return false // the end: the body was validated
		}
		// In an object, every other token of its own is a name.
		if in, n := d.StackIndex(d.StackDepth()); in == '{' && n%2 == 1 && token.Kind() == '"' && token.String() == prototype {
			return true
		}
	}
}

// CheckJSON accepts a body that every reader reads alike: exactly one JSON value
// (RFC 8259) of any kind, in UTF-8 without a byte order mark, with unique member
// names and no lone surrogates, nested at most [MaxDepth] deep, with nothing but
// white space around it. Every other body is an error that wraps [ErrInvalid] and
// quotes nothing of it.
func CheckJSON(body []byte) error {
	switch {
	case !utf8.Valid(body):
		return invalid("not valid UTF-8")
	case bytes.HasPrefix(body, byteOrderMark):
		return invalid("it starts with a byte order mark")
	case !jsontext.Value(body).IsValid():
		return whyInvalid(body)
	case opened(body) > MaxDepth && nesting(body) > MaxDepth:
		return invalid("it nests deeper than %d levels", MaxDepth)
	}
	return nil
}

// whyInvalid says where a body is wrong. The decoder's own text names members
// and characters of the body.
func whyInvalid(body []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(body))
	err := d.SkipValue()
	var syntactic *jsontext.SyntacticError
	switch {
	case err == nil:
		return invalid("something follows the JSON value")
	case errors.Is(err, jsontext.ErrDuplicateName):
		return invalid("a member name occurs twice in an object")
	case errors.As(err, &syntactic):
		return invalid("not valid JSON near byte %d", syntactic.ByteOffset)
	}
	return invalid("it ends too early")
}

// EndsEarly reports whether a body is the beginning of a JSON object or array, and no more.
func EndsEarly(body []byte) bool {
	d := jsontext.NewDecoder(bytes.NewReader(body))
	kind := d.PeekKind()
	return (kind == '{' || kind == '[') && errors.Is(d.SkipValue(), io.ErrUnexpectedEOF)
}

// opened is how many objects and arrays JSON has, or more: it takes text for them too. Few
// bodies have so many that they have to be read for how deep they nest.
func opened(body []byte) int {
	return bytes.Count(body, []byte{'{'}) + bytes.Count(body, []byte{'['})
}

// nesting is how deep valid JSON nests.
func nesting(body []byte) int {
	depth, deepest := 0, 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		case '"':
			i = closingQuote(body, i)
		}
	}
	return deepest
}

// closingQuote is where the string that opens at index i ends.
func closingQuote(b []byte, i int) int {
	for i++; ; i++ {
		i = indexFrom(b, i, '"')
		if i == len(b) || backslashesBefore(b, i)%2 == 0 {
			return i
		}
	}
}

// hasNUL reports whether JSON holds a NUL character or the escape of one.
func hasNUL(body []byte) bool {
	if bytes.IndexByte(body, 0) >= 0 {
		return true
	}
	for at := 0; ; at++ {
		i := bytes.Index(body[at:], []byte(`\u0000`))
		if i < 0 {
			return false
		}
		if at += i; backslashesBefore(body, at)%2 == 0 {
			return true
		}
	}
}

func backslashesBefore(b []byte, i int) int {
	return i - len(bytes.TrimRight(b[:i], `\`))
}

// gather returns the names and strings of a JSON value, one a line, for values
// in which text may stand anywhere, like schemas. Raw JSON would not do: escapes
// hide words.
func gather(raw string) string {
	var b strings.Builder
	d := jsontext.NewDecoder(strings.NewReader(raw))
	for {
		token, err := d.ReadToken()
		if err != nil {
			return b.String() // the end: the body was validated
		}
		if token.Kind() != '"' {
			continue
		}
		if s := token.String(); s != "" {
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(s)
		}
	}
}

// encode makes JSON of this package's own values: strings and numbers, which
// always encode. Bytes that are not UTF-8 become U+FFFD. Members of maps are
// sorted, and the signs that mean something in HTML are escaped, so that an answer
// that a page embeds stays text.
func encode(v any) []byte {
	b, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true),
		jsontext.EscapeForHTML(true), jsontext.EscapeForJS(true))
	if err != nil {
		panic(fmt.Errorf("encoding an answer: %w", err))
	}
	return b
}
