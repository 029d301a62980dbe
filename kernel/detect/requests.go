package detect

import (
	"math"
	"math/bits"
	"slices"
)

// Requests reads what a text asks for, and answers one question for each head that it helps
// ([Question]). Each answer is a logistic regression over what is spelled and over concepts:
// classes of terms ("theft", "prevention") with their words in each language, so that what
// is learnt of one word, or of one language, helps the others.
type Requests struct {
	Answers  [Questions]Regression
	Concepts []string // their names
	Terms    Terms
}

// Regression answers a question. Its logit over a span is
//
//	Gain·Σ Weights/√n + Σ Concepts + Offset
//
// with the first sum over the span's n features ([RequestFeatures]) and the second one over
// the concepts that occur.
type Regression struct {
	Gain, Offset float32
	Weights      []int8    // for each of the [RequestBuckets]
	Concepts     []float32 // for each of [Requests.Concepts]
}

// Question is what a reader is asked about a text.
type Question int

// The questions, in the order of [Requests.Answers].
const (
	AsksForHarm      Question = iota // answered for [HarmRequest]
	AttacksAssistant                 // answered for [Identity]
	Questions        int      = iota // how many there are
)

// Head is the head that the answer counts for.
func (q Question) Head() Head { return [Questions]Head{HarmRequest, Identity}[q] }

// Concept is a class of terms, and what it adds to an answer.
type Concept struct {
	Name   string
	Weight float32
}

// RequestBuckets is how many buckets the features of [Requests] are hashed into. They have
// tables of their own, because eighteen languages beside each other would crowd that of the
// heads.
const RequestBuckets = 1 << 19

// maxConcepts is how many concepts there can be: those of a span are a set in one number.
const maxConcepts = 64

// requestReader is [Requests] of a model that was read. The weights stand where they do in
// the file, as the same eight bits, those of a bucket for all questions beside each other.
type requestReader struct {
	Requests
	weights []byte
	lexicon *Lexicon
	spelled memory[requestWord]
}

// requestWord is what a word adds to a span by its letters.
type requestWord struct {
	requestSpan
	open bool   // terms may begin with the word and go on behind it
	hash uint32 // of the letters, for these terms
}

// requestSpan is what a span of a text adds to the logit of a reader.
type requestSpan struct {
	weight   [Questions]int32
	n        int32
	concepts uint64
}

func (s *requestSpan) merge(o requestSpan) {
	for q := range s.weight {
		s.weight[q] += o.weight[q]
	}
	s.n += o.n
	s.concepts |= o.concepts
}

// pieces reads the wanted pieces of a normalised text.
func (r *requestReader) pieces(normal *derived, pieces []piece, wanted []bool) []requestSpan {
	spans := make([]requestSpan, len(pieces))
	search := newTermSearch()
	defer termSearches.Put(search)
	for from := 0; from < len(pieces); {
		end := from
		for end < len(pieces) && wanted[end] {
			end++
		}
		if end > from {
			before, skipped := from, 0 // the words that it looks back at
			for before > 0 && skipped < mostLookedBack {
				before--
				skipped += pieces[before].words
			}
			r.read(normal, normal.text[pieces[before].begin:], skipped, pieces[from:end], spans[from:end], search)
		}
		from = end + 1
	}
	return spans
}

// read reads the pieces that begin after some words of a text, which is a part of normal. The
// sums are those over [RequestFeatures], without the words that come too often.
func (r *requestReader) read(normal *derived, text string, skipped int, pieces []piece, spans []requestSpan, search *termSearch) {
	s := NewScanner(text, r.lexicon)
	search.terms, search.spans = &r.Terms, spans
	var words requestWords
	var recent recentWords
	for range skipped {
		s.Next()
		words.pairs(s)
		recent.add(s.hash)
	}
	n := 0
	for i, p := range pieces {
		b := &spans[i]
		for range p.words {
			if !s.Next() {
				break
			}
			if n++; n%contextIntervalWords == 0 {
				normal.checkContext()
			}
			w := r.spelled.of(s)
			if w == nil {
				first := r.spell(s, &words)
				r.spelled.keep(s, first)
				w = &first
			}
			if b.concepts |= w.concepts; !recent.add(s.hash) {
				b.merge(w.requestSpan)
			}
			b.merge(r.sum(words.pairs(s)))
			search.add(s, w, i)
		}
	}
	search.end(s)
}

// spell reads the letters of the scanner's word.
func (r *requestReader) spell(s *Scanner, words *requestWords) (w requestWord) {
	w.requestSpan = r.sum(words.alone(s))
	if s.plain != "" {
		letters := s.bordered()[1 : s.n+1]
		w.hash = hashRunes(letters)
		w.concepts, w.open = r.Terms.from(letters, termStart(0))
	}
	return w
}

func (r *requestReader) sum(features []uint32) (span requestSpan) {
	for _, f := range features {
		w := (*[Questions]byte)(r.weights[int(f)*Questions:])
		for q := range w {
			span.weight[q] += int32(int8(w[q])) //nolint:gosec // G115: the same eight bits
		}
	}
	span.n = int32(len(features)) //nolint:gosec // G115: at most the length of requestWords.features
	return span
}

// whole reads a text as one span.
func (r *requestReader) whole(normal string) requestSpan {
	all := []piece{{words: len(normalWords(normal))}}
	return r.pieces(newText(normal), all, []bool{true})[0]
}

func (r *requestReader) logit(s requestSpan, q Question) float64 {
	logit := r.spelling(s, q) + float64(r.Answers[q].Offset)
	for set := s.concepts; set != 0; set &= set - 1 {
		logit += float64(r.Answers[q].Concepts[bits.TrailingZeros64(set)])
	}
	return logit
}

func (r *requestReader) spelling(s requestSpan, q Question) float64 {
	return float64(float64(r.Answers[q].Gain)*float64(s.weight[q])) / math.Sqrt(float64(max(1, s.n)))
}

// requestWords walks the words of a text for [Requests].
type requestWords struct {
	features [3 + (maxGram-minGram+1)*(maxWord+2)]uint32
	paired   [2]uint32
	before   [2]uint32 // hashes of the two words before
}

// RequestFeatures reads a text from [Normalise] and calls f with the features of each word,
// which are valid until f returns, and with the concepts that begin in it; block is the
// block of [BlockWords] words that the word stands in. The features are buckets below
// [RequestBuckets]: of the word, of the pairs that it forms with each of the two words
// before it, and of its character n-grams.
func RequestFeatures(normal string, terms *Terms, f func(block int, features []uint32, concepts uint64)) {
	requestFeatures(newText(normal), terms, f)
}

func requestFeatures(normal *derived, terms *Terms, f func(block int, features []uint32, concepts uint64)) {
	var r requestWords
	concepts := terms.find(normal)
	s := NewScanner(normal.text, nil)
	for n := 0; s.Next(); n++ {
		if n%contextIntervalWords == 0 {
			normal.checkContext()
		}
		f(n/BlockWords, r.of(s), concepts[n])
	}
}

// of returns the features of the scanner's word.
func (r *requestWords) of(s *Scanner) []uint32 {
	pairs := r.pairs(s)
	return slices.Insert(r.alone(s), 1, pairs...)
}

// alone returns those that the word has wherever it stands.
func (r *requestWords) alone(s *Scanner) []uint32 {
	out := append(r.features[:0], requestBucket(s.hash))
	word := s.bordered()
	for i := range word {
		h := gramBasis
		for j := i; j < len(word) && j < i+maxGram; j++ {
			h = (h ^ uint32(word[j])) * fnvPrime //nolint:gosec // G115: a decoded rune is not negative
			if j-i+1 >= minGram {
				out = append(out, requestBucket(h))
			}
		}
	}
	return out
}

// pairs returns the others, and is to be called once a word.
func (r *requestWords) pairs(s *Scanner) []uint32 {
	r.paired = [2]uint32{requestBucket(s.hash ^ r.before[0]*31), requestBucket(s.hash ^ r.before[1]*37)}
	r.before[1], r.before[0] = r.before[0], s.hash
	return r.paired[:]
}

// gramBasis lets n-grams begin elsewhere than words, so that a word of three letters with
// its borders is not counted twice.
const gramBasis = fnvBasis ^ 0x5bd1e995

func requestBucket(h uint32) uint32 { return mix32(h) % RequestBuckets }
