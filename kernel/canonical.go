package kernel

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxInteger is the largest integer that every JSON reader keeps exactly (RFC
// 8785 reads numbers as IEEE 754 doubles).
const maxInteger = 1 << 53

// A shape says how the values of a type are written as canonical JSON (RFC
// 8785). It is made once from the type and its json tags, which the ordinary
// decoder reads too, so that both know the same members. Writing members in
// their order is several times faster than sorting them afterwards, and an
// archive of millions of receipts is verified by writing each of them again.
type shape struct {
	members []member // of a struct, by name
	element *shape   // of an array or slice
}

// A member is one member of a struct, or of a struct embedded in it.
type member struct {
	name  string
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
	switch t.Kind() {
	case reflect.Array, reflect.Slice:
		return &shape{element: shapeOf(t.Elem())}
	case reflect.Struct:
		s := new(shape)
		for _, f := range reflect.VisibleFields(t) {
			if name, options, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				s.members = append(s.members, member{name, f.Index, options != "", shapeOf(f.Type)})
			}
		}
		slices.SortFunc(s.members, func(a, b member) int { return cmp.Compare(a.name, b.name) })
		return s
	}
	return nil
}

// canonical returns the canonical JSON of v. A number that is not finite, an
// integer beyond 2^53 or a text that is not UTF-8 is an error that names its
// place.
func (s *shape) canonical(v any) ([]byte, error) {
	out := bytes.NewBuffer(make([]byte, 0, 4<<10))
	e := jsontext.NewEncoder(out, jsontext.AllowDuplicateNames(true)) // a type has none
	if err := s.write(e, reflect.ValueOf(v)); err != nil {
		return nil, fmt.Errorf("%w at %s", err, e.StackPointer())
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// write writes one value. An integer is written without an exponent and a number
// in its shortest form.
func (s *shape) write(e *jsontext.Encoder, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Struct:
		return s.writeObject(e, v)
	case reflect.Array, reflect.Slice:
		return s.writeArray(e, v)
	case reflect.String:
		if e.WriteToken(jsontext.String(v.String())) != nil {
			return errors.New("a text is not UTF-8")
		}
		return nil
	case reflect.Bool:
		return e.WriteToken(jsontext.Bool(v.Bool()))
	case reflect.Float64:
		if n := v.Float(); n-n != 0 { // NaN and the infinities
			return errors.New("a number is not finite")
		}
		return e.WriteToken(jsontext.Float(v.Float() + 0)) // -0 + 0 is 0
	case reflect.Int, reflect.Int64:
		if n := v.Int(); n > maxInteger || n < -maxInteger {
			return errors.New("an integer is beyond 2^53")
		}
		return e.WriteToken(jsontext.Int(v.Int()))
	}
	return fmt.Errorf("a %s has no canonical form", v.Kind())
}

func (s *shape) writeObject(e *jsontext.Encoder, v reflect.Value) error {
	err := e.WriteToken(jsontext.BeginObject)
	for i := range s.members {
		m := &s.members[i]
		field := v.FieldByIndex(m.index)
		if m.optional && (field.IsZero() || field.Kind() == reflect.Slice && field.Len() == 0) {
			continue
		}
		if err == nil {
			err = e.WriteToken(jsontext.String(m.name))
		}
		if err == nil {
			err = m.shape.write(e, field)
		}
	}
	if err == nil {
		err = e.WriteToken(jsontext.EndObject)
	}
	return err
}

func (s *shape) writeArray(e *jsontext.Encoder, v reflect.Value) error {
	err := e.WriteToken(jsontext.BeginArray)
	for i := range v.Len() {
		if err == nil {
			err = s.element.write(e, v.Index(i))
		}
	}
	if err == nil {
		err = e.WriteToken(jsontext.EndArray)
	}
	return err
}
