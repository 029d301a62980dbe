package detect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrModel is wrapped by every error of [Decode] and [Parameters.Encode].
var ErrModel = errors.New("malformed model")

// The format, little-endian: magic, the number of the lexicon's entries, the
// numbers, the entries' hashes and groups, then rows and words column by column
// (columns compress better than rows).
const magic = "LEXD0002"

type header struct {
	Entries uint32
	Numbers Numbers
}

// Encode writes the parameters in the model's file format.
func (p Parameters) Encode() ([]byte, error) {
	if p.Lexicon == nil || len(p.Lexicon.hashes) > maxEntries || len(p.Rows) != Buckets || len(p.Words) != len(p.Lexicon.hashes)+SubwordBuckets {
		return nil, fmt.Errorf("encoding %d rows and %d words: %w", len(p.Rows), len(p.Words), ErrModel)
	}
	out := []byte(magic)
	var err error
	h := header{uint32(len(p.Lexicon.hashes)), p.Numbers} //nolint:gosec // G115: at most maxEntries, as checked above
	for _, part := range []any{h, p.Lexicon.hashes, p.Lexicon.groups} {
		if out, err = binary.Append(out, binary.LittleEndian, part); err != nil {
			return nil, fmt.Errorf("encoding the model: %w", err)
		}
	}
	return p.appendColumns(out), nil
}

func (p Parameters) appendColumns(out []byte) []byte {
	for h := range Heads {
		for i := range p.Rows {
			out = append(out, byte(p.Rows[i][h])) //nolint:gosec // G115: the same eight bits, readColumns turns them back
		}
	}
	for i := range p.Words {
		out = append(out, p.Words[i].Weight)
	}
	for k := range Hidden {
		for i := range p.Words {
			out = append(out, byte(p.Words[i].Hidden[k])) //nolint:gosec // G115: the same eight bits, readColumns turns them back
		}
	}
	for d := range Dimensions {
		for i := range p.Words {
			out = append(out, byte(p.Words[i].Meaning[d])) //nolint:gosec // G115: the same eight bits, readColumns turns them back
		}
	}
	return out
}

// Decode reads a model from its file format.
func Decode(raw []byte) (*Model, error) {
	var h header
	fixed := len(magic) + binary.Size(h)
	if len(raw) < fixed || string(raw[:len(magic)]) != magic {
		return nil, fmt.Errorf("decoding %d bytes: %w", len(raw), ErrModel)
	}
	if _, err := binary.Decode(raw[len(magic):], binary.LittleEndian, &h); err != nil {
		return nil, fmt.Errorf("decoding the header: %w: %w", ErrModel, err)
	}
	if h.Entries > maxEntries || len(raw) != fixed+size(int(h.Entries)) {
		return nil, fmt.Errorf("decoding %d bytes for %d words: %w", len(raw), h.Entries, ErrModel)
	}
	if !h.Numbers.finite() {
		return nil, fmt.Errorf("decoding the header: not a finite number: %w", ErrModel)
	}
	return decodeBody(h, raw, raw[fixed:])
}

// size is the length of what follows the header.
func size(entries int) int {
	return entries*(4+2) + Buckets*Heads + (entries+SubwordBuckets)*(Hidden+Dimensions+1)
}

func decodeBody(h header, raw, body []byte) (*Model, error) {
	hashes, groups := make([]uint32, h.Entries), make([]uint16, h.Entries)
	for _, part := range []any{hashes, groups} {
		n, err := binary.Decode(body, binary.LittleEndian, part)
		if err != nil {
			return nil, fmt.Errorf("decoding the lexicon: %w: %w", ErrModel, err)
		}
		body = body[n:]
	}
	p := Parameters{
		Lexicon: newLexicon(hashes, groups), Numbers: h.Numbers,
		Rows: make([]Row, Buckets), Words: make([]Word, int(h.Entries)+SubwordBuckets),
	}
	p.readColumns(body)
	return newModel(p, raw), nil
}

// readColumns reads what appendColumns wrote.
func (p *Parameters) readColumns(body []byte) {
	for h := range Heads {
		for i, b := range body[h*Buckets : (h+1)*Buckets] {
			p.Rows[i][h] = int8(b) //nolint:gosec // G115: the same eight bits
		}
	}
	body, n := body[Heads*Buckets:], len(p.Words)
	for i, b := range body[:n] {
		p.Words[i].Weight = b
	}
	body = body[n:]
	for k := range Hidden {
		for i, b := range body[k*n : (k+1)*n] {
			p.Words[i].Hidden[k] = int8(b) //nolint:gosec // G115: the same eight bits
		}
	}
	body = body[Hidden*n:]
	for d := range Dimensions {
		for i, b := range body[d*n : (d+1)*n] {
			p.Words[i].Meaning[d] = int8(b) //nolint:gosec // G115: the same eight bits
		}
	}
}

func (n *Numbers) finite() bool {
	flat, err := binary.Append(nil, binary.LittleEndian, n)
	if err != nil {
		return false
	}
	for len(flat) > 0 {
		x := float64(math.Float32frombits(binary.LittleEndian.Uint32(flat)))
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
		flat = flat[4:]
	}
	return true
}
