package schema

import (
	"errors"
	"math"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Read reads JSON into maps, slices, strings, bools, nil and the numbers of
// readNumber.
func Read(raw []byte, to any) error {
	return json.Unmarshal(raw, to, json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, v *any) error {
		if d.PeekKind() != '0' {
			return errors.ErrUnsupported
		}
		number, err := d.ReadValue()
		if err == nil {
			*v = readNumber(string(number))
		}
		return err
	})))
}

// maxExact bounds the integers that a float64 represents without gaps.
const maxExact = 1 << 53

// readNumber returns an int64 if the number is whole, so that 1000, 1000.0 and 1e3 are
// one value and no spelling slips past a rule. Otherwise it returns the nearest finite
// float64.
func readNumber(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	f, _ := strconv.ParseFloat(text, 64) // what is out of range is infinite
	if f == math.Trunc(f) && math.Abs(f) <= maxExact {
		return int64(f)
	}
	return max(-math.MaxFloat64, min(f, math.MaxFloat64))
}
