package prose

import (
	"strings"
	"unicode/utf8"
)

// A Reader reads texts that share a budget and memory. The zero value has no bounds. It is not
// safe for concurrent use.
type Reader struct {
	// Spend takes units of work, of three to ten nanoseconds each, and reports whether reading
	// may go on. Once it may not, a text has no more sentences.
	Spend func(units int) bool

	pool []Word // the memory of the words
}

func (r *Reader) spend(units int) bool { return r.Spend == nil || r.Spend(units) }

// costSentence is what a byte of a text costs to read.
const costSentence = 8

// maxSentence is in bytes; what is longer is cut.
const maxSentence = 600

// Sentences cuts a text and reads every piece. Quoted members of JSON and cells of
// tables end a sentence as full stops do, so that an instruction planted in a field is a
// sentence of its own.
func (r *Reader) Sentences(text string) []Sentence {
	if !r.spend(costSentence * len(text)) {
		return nil
	}
	out := make([]Sentence, 0, 1+len(text)/usualSentence)
	for lower := lowered(text); len(text) > 0; {
		n := sentenceEnd(text)
		s := r.sentence(text[:n], lower[:n])
		if !r.spend(costSentence * max(0, len(s.Plain)-n)) { // one character may become eighteen
			return out
		}
		switch {
		case len(s.Words) > 0:
			s.Last = strings.ContainsAny(s.Text[len(s.Text)-1:], "\r\n")
			out = append(out, s)
		case len(out) > 0 && strings.ContainsAny(s.Text, "\r\n"):
			out[len(out)-1].Last = true
		}
		text, lower = text[n:], lower[n:]
	}
	return out
}

// usualSentence is how long the sentences of most texts are at least.
const usualSentence = 64

// sentenceEnd returns the length of the first sentence.
func sentenceEnd(text string) int {
	limit := min(len(text), maxSentence)
	for i := 0; i < limit; i++ {
		switch c := text[i]; c {
		case '\n', '\r', '{', '}', '\t':
			return i + 1
		case '|':
			if (i == 0 || text[i-1] != '<') && (i+1 == len(text) || text[i+1] != '>') { // <|system|> is no table
				return i + 1
			}
		case '\\':
			if i+1 < limit && (text[i+1] == 'n' || text[i+1] == 'r' || text[i+1] == 't') {
				return i + 2
			}
		case '.', '!', '?':
			ends := i+1 == len(text) || strings.IndexByte(" \t\n\r\"'<\\)]*_", text[i+1]) >= 0
			if ends && (c != '.' || !titleEnds(text[:i])) {
				return i + 1
			}
		case '"', '\'', '`':
			if i+1 < len(text) && strings.IndexByte(",:]}", text[i+1]) >= 0 && (i+2 >= len(text) || strings.IndexByte(" \n'\"}],{", text[i+2]) >= 0) {
				return i + 2
			}
		case '-':
			if strings.HasPrefix(text[i:], "-->") {
				return i + 3
			}
		case 0xE3, 0xEF: // the full stops of Chinese and Japanese
			if strings.HasPrefix(text[i:], "。") || strings.HasPrefix(text[i:], "！") || strings.HasPrefix(text[i:], "？") {
				return i + 3
			}
		}
	}
	for limit < len(text) && !utf8.RuneStart(text[limit]) {
		limit++
	}
	return limit
}

// titles are abbreviated words that no sentence ends with.
var titles = Set("dr mr mrs ms prof st no nr e.g i.e vs")

// titleEnds reports whether a full stop behind a text is that of a title.
func titleEnds(before string) bool {
	at := strings.LastIndexAny(before, " \t\n\"'(:,;")
	return len(before)-at-1 < 5 && titles[strings.ToLower(before[at+1:])]
}

// sentence reads one; lower is the text with the capitals of ASCII small.
func (r *Reader) sentence(text, lower string) Sentence {
	s := Sentence{Text: text, Plain: lower, wide: !IsASCII(text)}
	if s.wide {
		s.Plain = Fold(text)
	}
	s.Words, s.summary = r.split(text, lower)
	s.read()
	s.Hostile, s.Overrides = s.isHostile()
	s.Instructs = s.Instructs || s.Hostile
	if s.Hostile {
		s.Lenient(true)
	}
	return s
}

// words splits a sentence. Sentences share the memory of their words.
func (r *Reader) split(text, lower string) ([]Word, summary) {
	if most := len(text)/2 + 1; cap(r.pool)-len(r.pool) < most { // no two words touch
		r.pool = make([]Word, 0, max(most, min(maxPool, 2*cap(r.pool))))
	}
	first := len(r.pool)
	all, whole := appendWords(r.pool, text, lower)
	r.pool = all
	return all[first:len(all):len(all)], whole
}

// Words splits a text whose words are looked at once: they hold until others are read.
func (r *Reader) Words(text string) []Word {
	words, _ := r.split(text, lowered(text))
	r.pool = r.pool[:len(r.pool)-len(words)]
	return words
}

// maxPool is how many words get their memory together.
const maxPool = 1 << 10
