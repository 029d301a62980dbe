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
func Echoed(given, answer string) []Span { return NewSecret(given).Echoed(answer) }

// Secret is a text that an answer must not repeat. It is immutable and safe for
// concurrent use.
type Secret struct {
	words wordsOf
	known map[uint64]int // where runs of EchoWords begin
}

// NewSecret prepares a text, of which several answers or one that grows may be compared
// with it.
func NewSecret(given string) *Secret {
	s := &Secret{words: echoWords(given)}
	s.known = make(map[uint64]int, len(s.words.words))
	for i := 0; i+EchoWords <= len(s.words.hashes); i++ {
		s.known[runOf(s.words.hashes[i:i+EchoWords])] = i
	}
	return s
}

// holds reports whether words stand in the secret in this order.
func (s *Secret) holds(hashes []uint64) bool {
	at, ok := s.known[runOf(hashes)]
	return ok && slices.Equal(s.words.hashes[at:at+EchoWords], hashes)
}

// Echoed is [Echoed] for the text of the secret.
func (s *Secret) Echoed(answer string) (spans []Span) {
	said := echoWords(answer)
	from, to := 0, 0 // the echo that is being read, as a range of words
	for i := 0; i+EchoWords <= len(said.words); i++ {
		if !s.holds(said.hashes[i : i+EchoWords]) {
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
	for i, end, hash := nextEchoWord(normal, 0); i < end; i, end, hash = nextEchoWord(normal, end) {
		w.words, w.hashes = append(w.words, Span{i, end}), append(w.hashes, hash)
	}
	return w
}

// nextEchoWord returns the next word from s[i:] on; from is end when there is none.
func nextEchoWord(s string, i int) (from, end int, hash uint64) {
	for i < len(s) {
		end, hash, digits := echoWord(s, i)
		switch {
		case end == i:
			_, size := utf8.DecodeRuneInString(s[i:])
			i += size
		case digits && end-i <= 3:
			i = end
		default:
			return i, end, hash
		}
	}
	return i, i, 0
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
		if c := s[at]; asciiAlnum(c) {
			at++
			hash, digits, end = (hash^uint64(c))*fnvPrime64, digits && c <= '9', at
			continue
		}
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

// runOf hashes words that may be an echo.
func runOf(hashes []uint64) uint64 {
	h := fnvBasis64
	for _, word := range hashes {
		h = (h ^ word) * fnvPrime64
		h ^= h >> 29
	}
	return h
}

// echo adds the words from, …, to-1 to the spans if they are enough.
func (w *wordsOf) echo(spans []Span, from, to int) []Span {
	weight := 0
	for _, word := range w.words[from:to] {
		weight += echoWeight(w.text.text[word.From:])
	}
	if weight < 2*EchoWords {
		return spans
	}
	return append(spans, w.text.span(w.words[from].From, w.words[to-1].To))
}

// echoWeight returns what the first word of s counts, in halves of a word.
func echoWeight(s string) int {
	if r, _ := utf8.DecodeRuneInString(s); ideograph(r) {
		return 1
	}
	return 2
}

// echoing looks for an echo in a text that grows. It is a value: what may still change is
// read on a copy.
type echoing struct {
	next    int // where to read on
	count   int // words so far
	hashes  [EchoWords]uint64
	weights [EchoWords]int // both of the last words, the newest last
	to      int            // the word after the last run that the secret holds
	weight  int            // of the runs that overlap or meet there
	found   bool
}

// read reads the words of said, as [spoken] returns it, but for the last one: it may go
// on, unless a space follows.
func (e *echoing) read(secret *Secret, said []byte) {
	s := string(said[e.next:])
	read := 0
	for i, end, hash := nextEchoWord(s, 0); end < len(s) && !e.found; i, end, hash = nextEchoWord(s, end) {
		e.add(secret, hash, echoWeight(s[i:]))
		read = end
	}
	e.next += read
}

func (e *echoing) add(secret *Secret, hash uint64, weight int) {
	copy(e.hashes[:], e.hashes[1:])
	copy(e.weights[:], e.weights[1:])
	e.hashes[EchoWords-1], e.weights[EchoWords-1] = hash, weight
	e.count++
	run := e.count - EchoWords // its first word
	if run < 0 || !secret.holds(e.hashes[:]) {
		return
	}
	if run > e.to {
		e.to, e.weight = run, 0
	}
	for ; e.to < e.count; e.to++ {
		e.weight += e.weights[e.to-run]
	}
	e.found = e.weight >= 2*EchoWords
}
