package detect

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
)

// The part for languages stands at the end of a model's file: Gate and Floor, Foreign, and
// the two readers, the English one first. A reader is a header, the weights of the concepts
// and their names, one a line, and then Weights and the slots of the terms as bytes.
type languagesHeader struct{ Gate, Floor float32 }

type requestsHeader struct {
	Gain, Offset           float32
	Concepts, Names, Slots uint32 // how many, and how many bytes the names have
}

func (l *Languages) appendTo(out []byte) ([]byte, error) {
	if len(l.Foreign) != SpelledBuckets {
		return nil, fmt.Errorf("encoding %d buckets of languages: %w", len(l.Foreign), ErrModel)
	}
	out, err := appendParts(out, languagesHeader{l.Gate, l.Floor}, l.Foreign)
	if err == nil {
		out, err = l.English.appendTo(out)
	}
	if err == nil {
		out, err = l.Other.appendTo(out)
	}
	return out, err
}

func (r *Requests) appendTo(out []byte) ([]byte, error) {
	if len(r.Weights) != RequestBuckets || len(r.Concepts) > maxConcepts {
		return nil, fmt.Errorf("encoding %d buckets and %d concepts of requests: %w", len(r.Weights), len(r.Concepts), ErrModel)
	}
	var names []string
	weights := make([]float32, len(r.Concepts))
	for i, c := range r.Concepts {
		names, weights[i] = append(names, c.Name), c.Weight
	}
	text := strings.Join(names, "\n")
	h := requestsHeader{r.Gain, r.Offset, uint32(len(weights)), uint32(len(text)), uint32(len(r.Terms.slots) / slotSize)} //nolint:gosec // G115: small
	return appendParts(out, h, weights, []byte(text), r.Weights, r.Terms.slots)
}

func appendParts(out []byte, parts ...any) (_ []byte, err error) {
	for _, part := range parts {
		if out, err = binary.Append(out, binary.LittleEndian, part); err != nil {
			return nil, fmt.Errorf("encoding the part for languages: %w", err)
		}
	}
	return out, nil
}

// ReplaceLanguages returns a model's file with another part for languages, which is trained
// by itself: the heads stay as they are, to the last bit.
func ReplaceLanguages(file []byte, l Languages) ([]byte, error) {
	m, err := Decode(file)
	if err != nil {
		return nil, err
	}
	size := binary.Size(languagesHeader{}) + SpelledBuckets + m.english.size() + m.other.size()
	return l.appendTo(slices.Clone(file[:len(file)-size]))
}

// size is the length of the reader in a file.
func (r *requestReader) size() int {
	n := binary.Size(requestsHeader{}) + RequestBuckets + len(r.Terms.slots) + max(0, len(r.Concepts)-1)
	for _, c := range r.Concepts {
		n += 4 + len(c.Name)
	}
	return n
}

// readLanguages reads what appendTo wrote. Weights and slots stay where they are in
// the file: a copy would only take memory.
func (m *Model) readLanguages(part []byte) error {
	var h languagesHeader
	n, err := binary.Decode(part, binary.LittleEndian, &h)
	if err != nil || len(part) < n+SpelledBuckets || !finite([]float32{h.Gate, h.Floor}) {
		return fmt.Errorf("decoding %d bytes for languages: %w", len(part), ErrModel)
	}
	part = part[n:]
	m.gate, m.floor = h.Gate, h.Floor
	for i, b := range part[:SpelledBuckets] {
		m.rows[i] |= packedByte(b, foreignLane)
	}
	for i := SpelledBuckets; i < len(m.rows); i++ {
		m.rows[i] |= packedByte(0, foreignLane)
	}
	part = part[SpelledBuckets:]
	for _, r := range []*requestReader{&m.english, &m.other} {
		if part, err = r.decode(part); err != nil {
			return err
		}
		r.lexicon, r.spelled = m.lexicon, newMemory[requestWord](m.lexicon)
	}
	if len(part) > 0 {
		return fmt.Errorf("decoding the part for languages: %d bytes too many: %w", len(part), ErrModel)
	}
	return nil
}

// decode reads one reader and returns what follows it.
func (r *requestReader) decode(part []byte) (rest []byte, err error) {
	var h requestsHeader
	n, err := binary.Decode(part, binary.LittleEndian, &h)
	if err != nil {
		return nil, fmt.Errorf("decoding the requests: %w: %w", ErrModel, err)
	}
	part = part[n:]
	if h.Concepts > maxConcepts ||
		int64(len(part)) < 4*int64(h.Concepts)+int64(h.Names)+RequestBuckets+slotSize*int64(h.Slots) {
		return nil, fmt.Errorf("decoding %d bytes for requests: %w", len(part), ErrModel)
	}
	weights := make([]float32, h.Concepts)
	_, _ = binary.Decode(part, binary.LittleEndian, weights) // long enough, as checked above
	part = part[4*h.Concepts:]
	names := strings.Split(string(part[:h.Names]), "\n")
	part = part[h.Names:]
	if !finite(append([]float32{h.Gain, h.Offset}, weights...)) || h.Concepts > 0 && len(names) != len(weights) {
		return nil, fmt.Errorf("decoding the concepts: %w", ErrModel)
	}
	r.Gain, r.Offset = h.Gain, h.Offset
	for i, w := range weights {
		r.Concepts = append(r.Concepts, Concept{names[i], w})
	}
	slots := part[RequestBuckets : RequestBuckets+slotSize*h.Slots]
	r.weights, r.Terms = part[:RequestBuckets], newTerms(slots)
	if !r.Terms.valid(len(weights)) {
		return nil, fmt.Errorf("decoding the terms: %w", ErrModel)
	}
	return part[RequestBuckets+len(slots):], nil
}

// valid reports whether a search in the table ends, and finds only concepts that there are.
func (t *Terms) valid(concepts int) bool {
	free := len(t.slots) == 0
	for slot := range slices.Chunk(t.slots, slotSize) {
		free = free || slot[4] == 0
		if slot[4] != goesOn && int(slot[4]) > concepts {
			return false
		}
	}
	return free
}

func finite(numbers []float32) bool {
	return !slices.ContainsFunc(numbers, func(x float32) bool { y := float64(x); return math.IsNaN(y) || math.IsInf(y, 0) })
}
