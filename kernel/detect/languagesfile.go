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
// for one question after the other, their names, one a line, and then as bytes the weights of
// the buckets, for all questions beside each other, and the slots of the terms.
type languagesHeader struct {
	Gate  float32
	Floor [Questions]float32
}

type requestsHeader struct {
	Gain, Offset           [Questions]float32
	Concepts, Names, Slots uint32 // how many, and how many bytes the names have
}

// weightBytes is how many bytes the buckets' weights of a reader have.
const weightBytes = RequestBuckets * Questions

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
	if len(r.Concepts) > maxConcepts {
		return nil, fmt.Errorf("encoding %d concepts of requests: %w", len(r.Concepts), ErrModel)
	}
	names := strings.Join(r.Concepts, "\n")
	h := requestsHeader{Concepts: uint32(len(r.Concepts)), Names: uint32(len(names)), Slots: uint32(len(r.Terms.slots) / slotSize)} //nolint:gosec // G115: small
	var concepts []float32
	weights := make([]int8, weightBytes)
	for q, a := range r.Answers {
		if len(a.Weights) != RequestBuckets || len(a.Concepts) != len(r.Concepts) {
			return nil, fmt.Errorf("encoding %d buckets and %d concepts of requests: %w", len(a.Weights), len(a.Concepts), ErrModel)
		}
		h.Gain[q], h.Offset[q] = a.Gain, a.Offset
		concepts = append(concepts, a.Concepts...)
		for f, w := range a.Weights {
			weights[f*Questions+q] = w
		}
	}
	return appendParts(out, h, concepts, []byte(names), weights, r.Terms.slots)
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
	n := binary.Size(requestsHeader{}) + weightBytes + len(r.Terms.slots) + max(0, len(r.Concepts)-1)
	for _, name := range r.Concepts {
		n += 4*Questions + len(name)
	}
	return n
}

// readLanguages reads what appendTo wrote. Weights and slots stay where they are in
// the file: a copy would only take memory.
func (m *Model) readLanguages(part []byte) error {
	var h languagesHeader
	n, err := binary.Decode(part, binary.LittleEndian, &h)
	if err != nil || len(part) < n+SpelledBuckets || !finite(append(h.Floor[:], h.Gate)) {
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
		int64(len(part)) < int64(weightBytes)+4*int64(Questions)*int64(h.Concepts)+int64(h.Names)+slotSize*int64(h.Slots) {
		return nil, fmt.Errorf("decoding %d bytes for requests: %w", len(part), ErrModel)
	}
	concepts := make([]float32, h.Concepts*uint32(Questions))
	_, _ = binary.Decode(part, binary.LittleEndian, concepts) // long enough, as checked above
	part = part[4*len(concepts):]
	names := strings.Split(string(part[:h.Names]), "\n")
	part = part[h.Names:]
	if !finite(slices.Concat(h.Gain[:], h.Offset[:], concepts)) || h.Concepts > 0 && len(names) != int(h.Concepts) {
		return nil, fmt.Errorf("decoding the concepts: %w", ErrModel)
	}
	if h.Concepts > 0 {
		r.Concepts = names
	}
	for q := range r.Answers {
		r.Answers[q] = Regression{Gain: h.Gain[q], Offset: h.Offset[q], Concepts: concepts[q*len(r.Concepts):][:len(r.Concepts)]}
	}
	slots := part[weightBytes : weightBytes+slotSize*int(h.Slots)]
	r.weights, r.Terms = part[:weightBytes], newTerms(slots)
	if !r.Terms.valid(len(r.Concepts)) {
		return nil, fmt.Errorf("decoding the terms: %w", ErrModel)
	}
	return part[weightBytes+len(slots):], nil
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
