package detect

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
)

// The part for languages stands at the end of a model's file: a header, the weights of the
// concepts and their names, one a line, and then Foreign, Weights and the slots of the terms
// as bytes.
type languagesHeader struct {
	Gain, Offset, Gate     float32
	Concepts, Names, Slots uint32 // how many, and how many bytes the names have
}

func (l Languages) appendTo(out []byte) ([]byte, error) {
	if len(l.Foreign) != SpelledBuckets || len(l.Weights) != LanguageBuckets || len(l.Concepts) > maxConcepts {
		return nil, fmt.Errorf("encoding %d and %d buckets and %d concepts of languages: %w", len(l.Foreign), len(l.Weights), len(l.Concepts), ErrModel)
	}
	var names []string
	weights := make([]float32, len(l.Concepts))
	for i, c := range l.Concepts {
		names, weights[i] = append(names, c.Name), c.Weight
	}
	text := strings.Join(names, "\n")
	h := languagesHeader{l.Gain, l.Offset, l.Gate, uint32(len(weights)), uint32(len(text)), uint32(len(l.Terms.slots) / slotSize)} //nolint:gosec // G115: small
	var err error
	for _, part := range []any{h, weights, []byte(text), l.Foreign, l.Weights, l.Terms.slots} {
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
	return l.appendTo(slices.Clone(file[:len(file)-m.languages.size()]))
}

// size is the length of the part in a file.
func (l *Languages) size() int {
	n := binary.Size(languagesHeader{}) + SpelledBuckets + LanguageBuckets + len(l.Terms.slots) + max(0, len(l.Concepts)-1)
	for _, c := range l.Concepts {
		n += 4 + len(c.Name)
	}
	return n
}

// readLanguages reads what appendTo wrote. Weights and slots stay where they are in
// the file: a copy would only take memory.
func (m *Model) readLanguages(part []byte) error {
	var h languagesHeader
	n, err := binary.Decode(part, binary.LittleEndian, &h)
	if err != nil {
		return fmt.Errorf("decoding the part for languages: %w: %w", ErrModel, err)
	}
	part = part[n:]
	l := &m.languages
	l.Gain, l.Offset, l.Gate = h.Gain, h.Offset, h.Gate
	if h.Concepts > maxConcepts ||
		int64(len(part)) != 4*int64(h.Concepts)+int64(h.Names)+SpelledBuckets+LanguageBuckets+slotSize*int64(h.Slots) {
		return fmt.Errorf("decoding %d bytes for languages: %w", len(part), ErrModel)
	}
	weights := make([]float32, h.Concepts)
	_, _ = binary.Decode(part, binary.LittleEndian, weights) // long enough, as checked above
	part = part[4*h.Concepts:]
	names := strings.Split(string(part[:h.Names]), "\n")
	part = part[h.Names:]
	if !finite(append([]float32{h.Gain, h.Offset, h.Gate}, weights...)) || h.Concepts > 0 && len(names) != len(weights) {
		return fmt.Errorf("decoding the concepts: %w", ErrModel)
	}
	for i, w := range weights {
		l.Concepts = append(l.Concepts, Concept{names[i], w})
	}
	for i, b := range part[:SpelledBuckets] {
		m.rows[i] |= packedByte(b, foreignLane)
	}
	for i := SpelledBuckets; i < len(m.rows); i++ {
		m.rows[i] |= packedByte(0, foreignLane)
	}
	part = part[SpelledBuckets:]
	m.languageWeights, l.Terms = part[:LanguageBuckets], Terms{part[LanguageBuckets:]}
	if !l.Terms.valid(len(weights)) {
		return fmt.Errorf("decoding the terms: %w", ErrModel)
	}
	return nil
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
