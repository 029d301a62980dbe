package detect

import (
	"math"
	"math/bits"
)

// Languages is the part of a model that reads requests for harm in other languages than
// English. The words of the [Lexicon] are English, and so are nearly all texts that the
// heads have learnt from. It is logistic regression over what is spelled and over concepts:
// classes of terms ("theft", "prevention") with their words in each language, so that what
// is learnt of one language helps the others. Its logit over a span is
//
//	Gain·Σ Weights/√n + Σ Concepts.Weight + Offset
//
// with the first sum over the span's n features ([LanguageFeatures]) and the second one over
// the concepts that occur. Of it and the head [HarmRequest], the higher one counts. It is
// asked only about spans whose buckets say that they are not English: where the mean of
// Foreign over their features is over Gate. So English texts score, and cost, as if it were
// not there.
type Languages struct {
	Gain, Offset, Gate float32
	Foreign            []int8 // for each of the [SpelledBuckets]
	Weights            []int8 // for each of the [LanguageBuckets]
	Concepts           []Concept
	Terms              Terms
}

// Concept is a class of terms.
type Concept struct {
	Name   string
	Weight float32
}

// LanguageBuckets is how many buckets the features of [Languages] are hashed into. They have
// a table of their own, because eighteen languages beside each other would crowd the one of
// the heads.
const LanguageBuckets = 1 << 19

// maxConcepts is how many concepts there can be: those of a span are a set in one number.
const maxConcepts = 64

// foreignLane is the place of Foreign in the numbers of [Model.rows], after the heads.
const foreignLane = Heads

// isForeign reports whether a span is in another language than English.
func (m *Model) isForeign(t *counters) bool {
	return float64(t.foreign) > float64(float64(m.languages.Gate)*float64(t.n))
}

// foreignSpan is what a span of a text adds to the logit of [Languages].
type foreignSpan struct {
	weight, n int32
	concepts  uint64
}

func (s *foreignSpan) merge(o foreignSpan) {
	s.weight += o.weight
	s.n += o.n
	s.concepts |= o.concepts
}

// foreignBlocks reads a normalised text block by block, as reading.read does.
func (m *Model) foreignBlocks(text string) (blocks []foreignSpan) {
	LanguageFeatures(text, &m.languages.Terms, func(block int, features []uint32, concepts uint64) {
		if block == len(blocks) {
			blocks = append(blocks, foreignSpan{})
		}
		b := &blocks[block]
		for _, f := range features {
			b.weight += int32(int8(m.languageWeights[f])) //nolint:gosec // G115: the same eight bits
		}
		b.n += int32(len(features)) //nolint:gosec // G115: at most the length of languageReading.features
		b.concepts |= concepts
	})
	return blocks
}

// foreignWhole reads a text as one span.
func (m *Model) foreignWhole(text string) (whole foreignSpan) {
	for _, b := range m.foreignBlocks(text) {
		whole.merge(b)
	}
	return whole
}

// foreignLogit is the one of [Languages] over a span.
func (m *Model) foreignLogit(s foreignSpan) float64 {
	logit := m.foreignSpelling(s) + float64(m.languages.Offset)
	for set := s.concepts; set != 0; set &= set - 1 {
		logit += float64(m.languages.Concepts[bits.TrailingZeros64(set)].Weight)
	}
	return logit
}

func (m *Model) foreignSpelling(s foreignSpan) float64 {
	return float64(float64(m.languages.Gain)*float64(s.weight)) / math.Sqrt(float64(max(1, s.n)))
}

// raiseForeign lifts the best logit for requests for harm to that of [Languages] over the
// windows that end with the given blocks, and over the whole text where it says so.
func (r *reading) raiseForeign(text string) {
	whole := r.m.isForeign(&r.whole)
	if len(r.foreign) == 0 && !whole {
		return
	}
	blocks := r.m.foreignBlocks(text)
	raise := func(span []foreignSpan) {
		var sum foreignSpan
		for _, b := range span {
			sum.merge(b)
		}
		r.best[HarmRequest] = max(r.best[HarmRequest], r.m.foreignLogit(sum))
	}
	for _, end := range r.foreign {
		raise(blocks[end-WindowBlocks : end])
	}
	if whole {
		raise(blocks)
	}
}

// languageReading walks the words of a text for [Languages].
type languageReading struct {
	features [3 + (maxGram-minGram+1)*(maxWord+2)]uint32
	before   [2]uint32 // hashes of the two words before
}

// LanguageFeatures reads a text from [Normalise] and calls f with the features of each word,
// which are valid until f returns, and with the concepts that begin in it; block is the
// block of [BlockWords] words that the word stands in. The features are buckets below
// [LanguageBuckets]: of the word, of the pairs that it forms with each of the two words
// before it, and of its character n-grams.
func LanguageFeatures(normal string, terms *Terms, f func(block int, features []uint32, concepts uint64)) {
	var r languageReading
	concepts := terms.find(normal)
	s := NewScanner(normal, nil)
	for n := 0; s.Next(); n++ {
		f(n/BlockWords, r.of(s), concepts[n])
	}
}

// of returns the features of the scanner's word.
func (r *languageReading) of(s *Scanner) []uint32 {
	word := s.word[:s.n+2]
	out := append(r.features[:0], languageBucket(s.hash), languageBucket(s.hash^r.before[0]*31), languageBucket(s.hash^r.before[1]*37))
	r.before[1], r.before[0] = r.before[0], s.hash
	for i := range word {
		h := gramBasis
		for j := i; j < len(word) && j < i+maxGram; j++ {
			h = (h ^ uint32(word[j])) * fnvPrime //nolint:gosec // G115: a decoded rune is not negative
			if j-i+1 >= minGram {
				out = append(out, languageBucket(h))
			}
		}
	}
	return out
}

// gramBasis lets n-grams begin elsewhere than words, so that a word of three letters with
// its borders is not counted twice.
const gramBasis = fnvBasis ^ 0x5bd1e995

func languageBucket(h uint32) uint32 { return mix32(h) % LanguageBuckets }
