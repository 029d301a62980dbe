package onnx

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// A tokenizerModel is the part of tokenizer.json that has the vocabulary.
type tokenizerModel struct {
	Type         string          `json:"type"`
	Vocab        json.RawMessage `json:"vocab"`
	UnkToken     string          `json:"unk_token"`
	UnkID        *int64          `json:"unk_id"`
	Prefix       *string         `json:"continuing_subword_prefix"`
	Longest      int             `json:"max_input_chars_per_word"`
	ByteFallback bool            `json:"byte_fallback"`
}

// vocabulary returns the vocabulary and the number of the unknown token.
func (m tokenizerModel) vocabulary() (v vocabulary, unknown int64, err error) {
	switch m.Type {
	case "WordPiece", "WordLevel":
		return m.words()
	case "Unigram":
		return m.unigram()
	case "BPE":
		return nil, 0, fmt.Errorf("%w: a model of the type \"BPE\" (RoBERTa, ModernBERT) is not supported; WordPiece, WordLevel and Unigram are", errTokenizer)
	}
	return nil, 0, unsupported("model", m.Type)
}

func (m tokenizerModel) words() (vocabulary, int64, error) {
	var ids map[string]int64
	if err := json.Unmarshal(m.Vocab, &ids); err != nil {
		return nil, 0, fmt.Errorf("%w: the vocabulary: %w", errTokenizer, err)
	}
	unknown, known := ids[m.UnkToken]
	if !known {
		return nil, 0, fmt.Errorf("%w: the vocabulary has no unknown token", errTokenizer)
	}
	if m.Type == "WordLevel" {
		return wordLevel{ids, unknown}, unknown, nil
	}
	w := wordPiece{ids: ids, unknown: unknown, prefix: "##", longest: 100}
	if m.Prefix != nil {
		w.prefix = *m.Prefix
	}
	if m.Longest > 0 {
		w.longest = m.Longest
	}
	return w, unknown, nil
}

// wordLevel knows whole words.
type wordLevel struct {
	ids     map[string]int64
	unknown int64
}

func (v wordLevel) lookUp(word string) []int64 {
	if id, known := v.ids[word]; known {
		return []int64{id}
	}
	return []int64{v.unknown}
}

// wordPiece takes the longest piece again and again (Schuster and Nakajima, Japanese and
// Korean voice search, 2012, as in BERT). A word that it cannot cut, or that is too long, is
// unknown as a whole.
type wordPiece struct {
	ids     map[string]int64
	unknown int64
	prefix  string // of pieces that do not begin a word
	longest int    // word, in characters
}

func (v wordPiece) lookUp(word string) (pieces []int64) {
	if utf8.RuneCountInString(word) > v.longest {
		return []int64{v.unknown}
	}
	for from := 0; from < len(word); {
		id, to := v.longestPiece(word, from)
		if to == from {
			return []int64{v.unknown}
		}
		pieces, from = append(pieces, id), to
	}
	return pieces
}

func (v wordPiece) longestPiece(word string, from int) (id int64, to int) {
	prefix := ""
	if from > 0 {
		prefix = v.prefix
	}
	for to := len(word); to > from; {
		if id, known := v.ids[prefix+word[from:to]]; known {
			return id, to
		}
		_, last := utf8.DecodeLastRuneInString(word[from:to])
		to -= last
	}
	return 0, from
}

// unigram finds the likeliest pieces of a word (Kudo, Subword Regularization, 2018).
type unigram struct {
	ids     map[string]int64
	scores  []float64
	unknown int64
	// unlikely is the score of an unknown character.
	unlikely float64
	longest  int // piece, in bytes
}

// unknownPenalty is by how much an unknown character scores less than the least likely
// piece: SentencePiece's kUnkPenalty.
const unknownPenalty = 10

func (m tokenizerModel) unigram() (vocabulary, int64, error) {
	var entries []piece
	if err := json.Unmarshal(m.Vocab, &entries); err != nil {
		return nil, 0, fmt.Errorf("%w: the vocabulary: %w", errTokenizer, err)
	}
	switch {
	case m.UnkID == nil || *m.UnkID < 0 || *m.UnkID >= int64(len(entries)):
		return nil, 0, fmt.Errorf("%w: the vocabulary has no unknown token", errTokenizer)
	case m.ByteFallback:
		return nil, 0, fmt.Errorf("%w: byte_fallback is not supported", errTokenizer)
	}
	u := unigram{ids: make(map[string]int64, len(entries)), unknown: *m.UnkID, unlikely: math.Inf(1)}
	for i, p := range entries {
		u.ids[p.text] = int64(i)
		u.scores = append(u.scores, p.score)
		u.unlikely, u.longest = min(u.unlikely, p.score), max(u.longest, len(p.text))
	}
	u.unlikely -= unknownPenalty
	return u, u.unknown, nil
}

// A piece of a unigram vocabulary is written as a list of its text and its score.
type piece struct {
	text  string
	score float64
}

func (p *piece) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &[]any{&p.text, &p.score}) }

// A best path ends at a byte of a word: its score, and its last piece.
type bestPath struct {
	score float64
	from  int
	id    int64
}

// lookUp searches with Viterbi's algorithm. Unknown characters that follow each other are
// one token.
func (v unigram) lookUp(word string) (pieces []int64) {
	best := make([]bestPath, len(word)+1)
	for i := range best[1:] {
		best[i+1].from = -1
	}
	for from, r := range word {
		v.extend(best, word, from, from+utf8.RuneLen(r))
	}
	for at := len(word); at > 0; at = best[at].from {
		if last := best[at].id; last != v.unknown || len(pieces) == 0 || pieces[len(pieces)-1] != v.unknown {
			pieces = append(pieces, last)
		}
	}
	slices.Reverse(pieces)
	return pieces
}

// extend extends the best path to a byte by every piece that begins there. The first
// character, which ends at next, is unknown if it is no piece.
func (v unigram) extend(best []bestPath, word string, from, next int) {
	to := func(end int, score float64, id int64) {
		if score += best[from].score; best[end].from < 0 || score > best[end].score {
			best[end] = bestPath{score, from, id}
		}
	}
	known := false
	for end := next; end <= len(word) && end-from <= v.longest; end++ {
		if end < len(word) && !utf8.RuneStart(word[end]) {
			continue
		}
		if id, found := v.ids[word[from:end]]; found {
			to(end, v.scores[id], id)
			known = known || end == next
		}
	}
	if !known {
		to(next, v.unlikely, v.unknown)
	}
}
