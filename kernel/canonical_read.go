package kernel

import (
	"reflect"
	"strconv"
	"strings"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

// A scanner reads canonical JSON and nothing else: what it accepts is exactly what
// [shape.canonical] writes of the value that it read, so nobody need write the value
// again to know it. Whatever else may be right or wrong with the text is for the
// ordinary decoder to say.
type scanner struct {
	rest string
}

// readCanonical reads the canonical JSON of a whole text into v, a zero value of the
// shape's type. The texts in the value are parts of text, so they keep it in memory.
// After false the value is of no use.
func readCanonical[T any](s *shape, text string, v *T) bool {
	in := scanner{text}
	return s.scan(&in, unsafe.Pointer(v)) && in.rest == "" //nolint:gosec // G103: of the shape's type
}

// scan reads one value to p, where there is a zero one.
func (s *shape) scan(in *scanner, p unsafe.Pointer) (ok bool) {
	switch s.kind {
	case reflect.Struct:
		return s.scanObject(in, p)
	case reflect.Array:
		return s.scanArray(in, p)
	case reflect.Slice:
		return s.scanSlice(in, (*list)(p))
	case reflect.String:
		*(*string)(p), ok = in.text()
		return ok
	case reflect.Bool:
		yes := in.skip("true")
		*(*bool)(p) = yes
		return yes || in.skip("false")
	case reflect.Float64:
		*(*float64)(p), ok = in.number()
		return ok
	case reflect.Int:
		n, ok := in.integer()
		*(*int)(p) = int(n)
		return ok && int64(int(n)) == n
	default:
		*(*int64)(p), ok = in.integer()
		return ok
	}
}

func (s *shape) scanObject(in *scanner, p unsafe.Pointer) bool {
	separator := byte('{')
	for i := range s.members {
		m := &s.members[i]
		if !in.key(separator, m.key) {
			if m.optional {
				continue
			}
			return false
		}
		field := unsafe.Add(p, m.offset)
		if !m.shape.scan(in, field) || m.optional && m.shape.isEmpty(field) {
			return false
		}
		separator = ','
	}
	return (separator == ',' || in.skip("{")) && in.skip("}")
}

func (s *shape) scanArray(in *scanner, p unsafe.Pointer) bool {
	separator := "["
	for i := range s.length {
		if i > 0 {
			separator, p = ",", unsafe.Add(p, s.element.size)
		}
		if !in.skip(separator) || !s.element.scan(in, p) {
			return false
		}
	}
	return in.skip("]")
}

func (s *shape) scanSlice(in *scanner, l *list) bool {
	if in.skip("[]") {
		l.data = s.empty
		return true
	}
	separator, at := "[", l.data // where the element goes
	for in.skip(separator) {
		if l.len == l.cap {
			at = s.grow(l)
		} else {
			at = unsafe.Add(at, s.element.size)
		}
		l.len++
		if !s.element.scan(in, at) {
			return false
		}
		separator = ","
	}
	return separator == "," && in.skip("]")
}

// grow gives a slice that is full more room, and returns where that begins.
func (s *shape) grow(l *list) (rest unsafe.Pointer) {
	larger := reflect.MakeSlice(s.slice, max(l.cap+l.cap, 4), max(l.cap+l.cap, 4))
	if l.len > 0 {
		reflect.Copy(larger, reflect.SliceAt(s.slice.Elem(), l.data, l.len))
	}
	l.data, l.cap = larger.UnsafePointer(), larger.Len()
	return larger.Index(l.len).Addr().UnsafePointer()
}

// skip reads a word if it comes next.
func (in *scanner) skip(word string) (found bool) {
	in.rest, found = strings.CutPrefix(in.rest, word)
	return found
}

// key reads a member's name if it comes next, after a separator.
func (in *scanner) key(separator byte, key string) bool {
	if in.rest == "" || in.rest[0] != separator || !strings.HasPrefix(in.rest[1:], key) {
		return false
	}
	in.rest = in.rest[1+len(key):]
	return true
}

func (in *scanner) text() (string, bool) {
	if !in.skip(`"`) {
		return "", false
	}
	n := plain(in.rest)
	if n < len(in.rest) && in.rest[n] == '"' {
		text := in.rest[:n]
		in.rest = in.rest[n+1:]
		return text, true
	}
	return in.quoted(n)
}

// quoted reads the rest of a text that is not plain from byte n on.
func (in *scanner) quoted(n int) (string, bool) {
	for n < len(in.rest) && in.rest[n] != '"' {
		if in.rest[n] == '\\' {
			n++
		}
		n++
	}
	if n >= len(in.rest) {
		return "", false
	}
	literal := `"` + in.rest[:n+1]
	in.rest = in.rest[n+1:]
	text, err := jsontext.AppendUnquote(nil, literal)
	if err != nil {
		return "", false
	}
	again, err := appendText(nil, string(text))
	return string(text), err == nil && string(again) == literal
}

// number reads a number. What [decimal] does not know is written again and compared.
func (in *scanner) number() (float64, bool) {
	if n, length := decimal(in.rest); length > 0 {
		in.rest = in.rest[length:]
		return n, true
	}
	length := 0
	for length < len(in.rest) && numeric[in.rest[length]] {
		length++
	}
	literal := in.rest[:length]
	in.rest = in.rest[length:]
	n, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return 0, false
	}
	var buffer [32]byte
	again, err := appendNumber(buffer[:0], n)
	return n, err == nil && string(again) == literal
}

// numeric are the bytes of numbers.
var numeric = func() (is [256]bool) {
	for _, c := range []byte("0123456789+-.e") {
		is[c] = true
	}
	return is
}()

// integer reads an integer as [appendInteger] writes it.
func (in *scanner) integer() (int64, bool) {
	length := 0
	for length < len(in.rest) && (in.rest[length] >= '0' && in.rest[length] <= '9' || in.rest[length] == '-') {
		length++
	}
	literal := in.rest[:length]
	in.rest = in.rest[length:]
	n, err := strconv.ParseInt(literal, 10, 64)
	if err != nil || n > maxInteger || n < -maxInteger {
		return 0, false
	}
	var buffer [24]byte
	return n, string(strconv.AppendInt(buffer[:0], n, 10)) == literal
}
