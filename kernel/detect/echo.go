package detect

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// EchoWords is how many words in a row make an echo. Two writers on one topic
// share runs of four to six words ("it is important to note that"); eight in
// one order are copied. An ideograph counts as half a word.
const EchoWords = 8

// Echoed returns the spans of an answer that repeat a given text word for word:
// [EchoWords] words or more in their order, whatever the case, the lookalikes,
// accents, spaces, lines, punctuation, quotation marks, markdown and numbers of
// a list. Spans are ordered, apart, and reach from the first letter of their
// first word to the last of their last. What is translated, encoded or told in
// other words is no echo. It is pure and linear in the length of both.
func Echoed(given, answer string) (spans []Span) {
	source, said := echoWords(given), echoWords(answer)
	known := make(map[uint64]int, len(source.words))
	for i := 0; i+EchoWords <= len(source.words); i++ {
		known[source.run(i)] = i
	}
	from, to := 0, 0 // the echo that is being read, as a range of words
	for i := 0; i+EchoWords <= len(said.words); i++ {
		at, ok := known[said.run(i)]
		if !ok || !slices.Equal(source.hashes[at:at+EchoWords], said.hashes[i:i+EchoWords]) {
			continue
		}
		if i > to {
			spans = said.echo(spans, from, to)
			from = i
		}
		to = i + EchoWords
	}
	return said.echo(spans, from, to)
}

// wordsOf a text, in their order.
type wordsOf struct {
	text   *derived
	words  []Span // in the normalised text
	hashes []uint64
}

// echoWords returns the words of a text: letters and digits. Numbers of up to
// three digits are left out, since lists gain and lose them.
func echoWords(s string) (w wordsOf) {
	w.text = normalised(newText(s))
	normal := w.text.text
	for i := 0; i < len(normal); {
		end, hash, digits := echoWord(normal, i)
		if end == i {
			_, size := utf8.DecodeRuneInString(normal[i:])
			i += size
			continue
		}
		if !digits || end-i > 3 {
			w.words, w.hashes = append(w.words, Span{i, end}), append(w.hashes, hash)
		}
		i = end
	}
	return w
}

// FNV-1a with 64 bits, over code points.
const (
	fnvBasis64 uint64 = 14695981039346656037
	fnvPrime64 uint64 = 1099511628211
)

// echoWord reads the word at s[i:]; then end > i. An apostrophe within it is
// passed over, an ideograph is a word.
func echoWord(s string, i int) (end int, hash uint64, digits bool) {
	hash, digits, end = fnvBasis64, true, i
	for at := i; at < len(s); {
		r, size := utf8.DecodeRuneInString(s[at:])
		at += size
		switch {
		case ideograph(r) && end > i:
			return end, hash, digits
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			hash, digits, end = (hash^uint64(r))*fnvPrime64, digits && unicode.IsDigit(r), at //nolint:gosec // G115: a decoded rune is not negative
			if ideograph(r) {
				return end, hash, false
			}
		case end > i && (r == '\'' || r == '’'):
		default:
			return end, hash, digits
		}
	}
	return end, hash, digits
}

// run hashes the words from the i-th on that may be an echo.
func (w *wordsOf) run(i int) uint64 {
	h := fnvBasis64
	for _, word := range w.hashes[i : i+EchoWords] {
		h = (h ^ word) * fnvPrime64
		h ^= h >> 29
	}
	return h
}

// echo adds the words from, …, to-1 to the spans if they are enough.
func (w *wordsOf) echo(spans []Span, from, to int) []Span {
	count := 2 * (to - from)
	for _, word := range w.words[from:to] {
		if r, _ := utf8.DecodeRuneInString(w.text.text[word.From:]); ideograph(r) {
			count--
		}
	}
	if count < 2*EchoWords {
		return spans
	}
	return append(spans, w.text.span(w.words[from].From, w.words[to-1].To))
}
