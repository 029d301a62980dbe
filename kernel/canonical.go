package kernel

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxInteger is the largest integer that every JSON reader keeps exactly (RFC
// 8785 reads numbers as IEEE 754 doubles).
const maxInteger = 1 << 53

// A shape says how the values of a type stand in canonical JSON (RFC 8785). It is
// made once from the type and its json tags, which the ordinary decoder reads too,
// so that all know the same members: a new member of a receipt is a field with a
// tag and nothing else. canonical writes a value and read reads one. Both go
// through the members in their order, which is several times faster than a general
// encoder or decoder; an archive of millions of receipts is verified at that speed.
type shape struct {
	kind    reflect.Kind
	members []member      // of a struct, by name
	element *shape        // of an array or slice
	empty   reflect.Value // of a slice: the one without elements
}

// A member is one member of a struct, or of a struct embedded in it.
type member struct {
	name  string
	key   string // the name as it stands before the value
	index []int
	// optional members are left out when they are false or empty.
	optional bool
	shape    *shape
}

var (
	receiptShape = shapeOf(reflect.TypeFor[Receipt]())
	policyShape  = shapeOf(reflect.TypeFor[Policy]())
)

func shapeOf(t reflect.Type) *shape {
	s := &shape{kind: t.Kind()}
	switch s.kind {
	case reflect.Array:
		s.element = shapeOf(t.Elem())
	case reflect.Slice:
		s.element, s.empty = shapeOf(t.Elem()), reflect.MakeSlice(t, 0, 0)
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if name, options, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				s.members = append(s.members, member{name, `"` + name + `":`, f.Index, options != "", shapeOf(f.Type)})
			}
		}
		slices.SortFunc(s.members, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	}
	return s
}

// canonical returns the canonical JSON of what v points to. A number that is not
// finite, an integer beyond 2^53 or a text that is not UTF-8 is an error that names
// its place.
func (s *shape) canonical(v any) ([]byte, error) {
	return s.append(make([]byte, 0, 3<<10), reflect.ValueOf(v).Elem())
}

// append writes one value after b.
func (s *shape) append(b []byte, v reflect.Value) ([]byte, error) {
	switch s.kind {
	case reflect.Struct:
		return s.appendObject(b, v)
	case reflect.Array, reflect.Slice:
		return s.appendArray(b, v)
	case reflect.String:
		return appendText(b, v.String())
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool()), nil
	case reflect.Float64:
		return appendNumber(b, v.Float())
	case reflect.Int, reflect.Int64:
		return appendInteger(b, v.Int())
	}
	return nil, fmt.Errorf("a %s has no canonical form", s.kind)
}

func (s *shape) appendObject(b []byte, v reflect.Value) (_ []byte, err error) {
	separator := byte('{')
	for i := range s.members {
		m := &s.members[i]
		field := v.FieldByIndex(m.index)
		if m.optional && isEmpty(field) {
			continue
		}
		b = append(append(b, separator), m.key...)
		if b, err = m.shape.append(b, field); err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		separator = ','
	}
	if separator == '{' {
		b = append(b, '{')
	}
	return append(b, '}'), nil
}

// isEmpty reports whether an optional member with this value is left out.
func isEmpty(v reflect.Value) bool {
	return v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0
}

func (s *shape) appendArray(b []byte, v reflect.Value) (_ []byte, err error) {
	b = append(b, '[')
	for i := range v.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = s.element.append(b, v.Index(i)); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

func appendText(b []byte, text string) ([]byte, error) {
	if n := plain(text); n == len(text) {
		b = append(b, '"')
		b = append(b, text...)
		return append(b, '"'), nil
	}
	b, err := jsontext.AppendQuote(b, text)
	if err != nil {
		return nil, errors.New("a text is not UTF-8")
	}
	return b, nil
}

// plain returns how many bytes at the start of a text stand for themselves in a JSON
// string, whatever follows them.
func plain(text string) int {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return i
		}
	}
	return len(text)
}

// appendNumber writes a number as ECMAScript does, which is what RFC 8785 asks for:
// the shortest digits that are read back as the same number, with an exponent for
// the very large and very small ones.
func appendNumber(b []byte, n float64) ([]byte, error) {
	n += 0 // -0 + 0 is 0
	switch size := math.Abs(n); {
	case n-n != 0: // NaN and the infinities
		return nil, errors.New("a number is not finite")
	case size == 0 || size >= 1e-6 && size < 1e21:
		return strconv.AppendFloat(b, n, 'f', -1, 64), nil
	}
	b = strconv.AppendFloat(b, n, 'e', -1, 64)
	if ten := len(b) - 2; b[ten] == '0' && b[ten-1] < '0' { // Go writes at least two digits after the sign
		b = append(b[:ten], b[ten+1])
	}
	return b, nil
}

// appendInteger writes an integer without an exponent.
func appendInteger(b []byte, n int64) ([]byte, error) {
	if n > maxInteger || n < -maxInteger {
		return nil, errors.New("an integer is beyond 2^53")
	}
	return strconv.AppendInt(b, n, 10), nil
}
