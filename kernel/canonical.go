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
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

// maxInteger is the largest integer that every JSON reader keeps exactly (RFC
// 8785 reads numbers as IEEE 754 doubles).
const maxInteger = 1 << 53

// A shape says how the values of a type stand in canonical JSON (RFC 8785). It is
// made once from the type and its json tags, which the ordinary decoder reads too,
// so that all know the same members: a new member of a receipt is a field with a
// tag and nothing else. canonical writes a value and readCanonical reads one. Both go
// through the members in their order and find them by their offsets, which is several times
// faster than a general encoder or decoder: an archive of millions of receipts is
// verified at that speed. Nothing here goes by another type than that of the value that
// it stands for: that is what makes the unsafe pointers safe.
type shape struct {
	kind    reflect.Kind
	size    uintptr  // of a value in memory
	members []member // of a struct, by name
	element *shape   // of an array or slice
	length  int      // of an array
	slice   reflect.Type
	empty   unsafe.Pointer // what a slice without elements points to, which is not nil
}

// A member is one member of a struct, or of a struct embedded in it.
type member struct {
	name   string
	key    string // the name as it stands before the value
	offset uintptr
	// optional members are left out when they are false or empty.
	optional bool
	shape    *shape
}

// A list is the memory of a slice of any type.
type list struct {
	data     unsafe.Pointer
	len, cap int
}

var (
	receiptShape = shapeOf(reflect.TypeFor[Receipt]())
	policyShape  = shapeOf(reflect.TypeFor[Policy]())
)

func shapeOf(t reflect.Type) *shape {
	s := &shape{kind: t.Kind(), size: t.Size()}
	switch s.kind {
	case reflect.Array:
		s.element, s.length = shapeOf(t.Elem()), t.Len()
	case reflect.Slice:
		s.element, s.slice = shapeOf(t.Elem()), t
		s.empty = reflect.MakeSlice(t, 0, 0).UnsafePointer()
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if name, options, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				s.members = append(s.members, member{name, `"` + name + `":`, offsetOf(t, f.Index), options != "", shapeOf(f.Type)})
			}
		}
		slices.SortFunc(s.members, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	case reflect.String, reflect.Bool, reflect.Float64, reflect.Int, reflect.Int64:
	default:
		panic("a " + t.String() + " has no canonical form")
	}
	return s
}

// offsetOf returns where a field stands in a struct, through those that embed it.
func offsetOf(t reflect.Type, index []int) (offset uintptr) {
	for _, i := range index {
		offset += t.Field(i).Offset
		t = t.Field(i).Type
	}
	return offset
}

// canonical returns the canonical JSON of a value of the shape's type. A number that is
// not finite, an integer beyond 2^53 or a text that is not UTF-8 is an error that names
// its place.
func canonical[T any](s *shape, v *T) ([]byte, error) {
	return s.append(make([]byte, 0, 3<<10), unsafe.Pointer(v)) //nolint:gosec // G103: of the shape's type
}

// append writes the value at p after b.
func (s *shape) append(b []byte, p unsafe.Pointer) ([]byte, error) {
	switch s.kind {
	case reflect.Struct:
		return s.appendObject(b, p)
	case reflect.Array:
		return s.appendArray(b, p, s.length)
	case reflect.Slice:
		return s.appendArray(b, (*list)(p).data, (*list)(p).len)
	case reflect.String:
		return appendText(b, *(*string)(p))
	case reflect.Bool:
		return strconv.AppendBool(b, *(*bool)(p)), nil
	case reflect.Float64:
		return appendNumber(b, *(*float64)(p))
	case reflect.Int:
		return appendInteger(b, int64(*(*int)(p)))
	default:
		return appendInteger(b, *(*int64)(p))
	}
}

func (s *shape) appendObject(b []byte, p unsafe.Pointer) (_ []byte, err error) {
	separator := byte('{')
	for i := range s.members {
		m := &s.members[i]
		field := unsafe.Add(p, m.offset)
		if m.optional && m.shape.isEmpty(field) {
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

// isEmpty reports whether an optional member with the value at p is left out.
func (s *shape) isEmpty(p unsafe.Pointer) bool {
	switch s.kind {
	case reflect.Slice:
		return (*list)(p).len == 0
	case reflect.String:
		return *(*string)(p) == ""
	case reflect.Bool:
		return !*(*bool)(p)
	case reflect.Float64:
		return *(*float64)(p) == 0
	case reflect.Int:
		return *(*int)(p) == 0
	case reflect.Int64:
		return *(*int64)(p) == 0
	}
	return false
}

func (s *shape) appendArray(b []byte, p unsafe.Pointer, length int) (_ []byte, err error) {
	b = append(b, '[')
	for i := range length {
		if i > 0 {
			b, p = append(b, ','), unsafe.Add(p, s.element.size)
		}
		if b, err = s.element.append(b, p); err != nil {
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
