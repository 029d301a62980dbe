package detect

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
)

// ErrModel is wrapped by every error of [Decode] and [Parameters.Encode].
var ErrModel = errors.New("malformed model")

// The format, little-endian: magic, the number of the lexicon's entries, the
// numbers, the entries' hashes and groups, rows and words column by column (columns
// compress better than rows), and the part for languages.
const magic = "LEXD0004"

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
	return p.Languages.appendTo(p.appendColumns(out))
}

func (p Parameters) appendColumns(out []byte) []byte {
	for h := range Heads {
		for i := range p.Rows {
			out = append(out, byte(p.Rows[i][h])) //nolint:gosec // G115: the same eight bits
		}
	}
	for i := range p.Words {
		out = append(out, p.Words[i].Weight)
	}
	for k := range Hidden {
		for i := range p.Words {
			out = append(out, byte(p.Words[i].Hidden[k])) //nolint:gosec // G115: the same eight bits
		}
	}
	for d := range Dimensions {
		for i := range p.Words {
			out = append(out, byte(p.Words[i].Meaning[d])) //nolint:gosec // G115: the same eight bits
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
	if h.Entries > maxEntries || len(raw) < fixed+size(int(h.Entries)) {
		return nil, fmt.Errorf("decoding %d bytes for %d words: %w", len(raw), h.Entries, ErrModel)
	}
	if !h.Numbers.finite() {
		return nil, fmt.Errorf("decoding the header: not a finite number: %w", ErrModel)
	}
	return decodeBody(h, raw, raw[fixed:])
}

// size is the length of what follows the header, without the part for languages.
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
	sum := sha256.Sum256(raw)
	m := &Model{
		lexicon: newLexicon(hashes, groups), numbers: h.Numbers, sum: hex.EncodeToString(sum[:]),
		rows: make([]uint64, Buckets), words: make([]packedWord, int(h.Entries)+SubwordBuckets),
	}
	m.spelled = newMemory[wordSums](m.lexicon)
	if err := m.readLanguages(m.readColumns(body)); err != nil {
		return nil, err
	}
	for k, x := range m.numbers.Bias {
		m.bias[k] = float64(x)
	}
	for h, units := range m.numbers.Out {
		for k, w := range units {
			m.out[k][h] = float64(w)
		}
	}
	return m, nil
}

// readColumns reads what appendColumns wrote, and returns what follows it. Each byte goes
// where it is used, in a row of eight: a copy in between would be as large as the model.
func (m *Model) readColumns(body []byte) (rest []byte) {
	next := func(n int) (column []byte) {
		column, body = body[:n], body[n:]
		return column
	}
	for h := range Heads {
		for i, b := range next(Buckets) {
			m.rows[i] |= packedByte(b, h)
		}
	}
	for i, b := range next(len(m.words)) {
		m.words[i].weight = b
	}
	for k := range Hidden {
		for i, b := range next(len(m.words)) {
			m.words[i].hidden[k/8] |= packedByte(b, k%8)
		}
	}
	for d := range Dimensions {
		for i, b := range next(len(m.words)) {
			m.words[i].meaning[d/8] |= packedByte(b, d%8)
		}
	}
	return body
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
