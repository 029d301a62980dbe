package detect

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// Explanation says why a text scores as it does: what the halves of the model add for the
// head that speaks loudest, in the window or sentence of the text where it does. A long text also
// counts as a whole, which may score higher than any window, and a window within it counts
// for less than its score; that is not explained.
type Explanation struct {
	Head   Head
	Score  float64 // of the head in the window, in [0, 1]
	Window string  // normalised
	// What each half adds to the logit, and the self-reference rule. The rest of the logit
	// is the same for all texts.
	Spelling, Meaning, Rule float64
	// Concepts are what a reader found ([Languages]), if it is what speaks: then
	// Spelling is its own, and there is no Meaning. The heaviest come first, for harm or against.
	Concepts []Concept
	// Words are those without which the logit would be lower, by how much, the heaviest
	// first; at most eight.
	Words []WordWeight

	reader   *requestReader // that speaks, if it is no head
	question Question       // that it answers
}

// WordWeight is a word of the window and how much lower the logit would be without it.
type WordWeight struct {
	Word  string
	Logit float64
}

const (
	maxExplained = 8
	leastWeight  = 0.05 // logit of a word that is worth naming
)

// Explain explains the scores of a user's text, and of one without any returns the zero
// Explanation. It is pure and safe for concurrent use. It
// stops soon after ctx is done, and gives its error then.
func (m *Model) Explain(ctx context.Context, text string) (best Explanation, err error) {
	defer recoverCancellation(&err)
	best.Score = -1
	for i, view := range read(ctx, text).Views {
		if i == 0 && isBackchannel(view.Text) {
			continue
		}
		rule, asks := selfReference(view.from), isPlainQuestion(view.Text)
		r := reading{m: m}
		short := Explanation{Score: -1} // of a text that fits into one window: its end is its whole
		r.window = func(_, window counters, text string) {
			e := m.explained(&window, rule, asks)
			e.Window = strings.TrimSpace(text)
			m.explainRequests(&e, &window, text, rule)
			if r.blocks < WindowBlocks {
				short = e
			} else if e.Score > best.Score {
				best = e
			}
		}
		r.readers = func(span counters, text string) { m.explainRequests(&best, &span, text, rule) }
		r.read(withoutRepetitions(view.from), nil)
		if r.blocks < WindowBlocks && short.Score > best.Score {
			best = short
		}
	}
	if best.Score < 0 {
		return Explanation{}, nil
	}
	m.weighWords(ctx, &best)
	return best, nil
}

// explained explains the loudest of the user's heads, of those that count if the text only
// asks.
func (m *Model) explained(t *counters, rule, asks bool) (e Explanation) {
	logits := m.logits(t)
	top := math.Inf(-1)
	for h, x := range logits[:Injection] {
		if asks && (Head(h) == Coercion || Head(h) == Sycophancy) {
			continue
		}
		if rule {
			x += float64(m.numbers.Rule[h])
		}
		if x > top {
			top, e.Head = x, Head(h)
		}
	}
	h := e.Head
	e.Score = sigmoid(top)
	e.Spelling = m.base(t, h, math.Sqrt(float64(t.n))) - float64(m.numbers.Offset[h])
	for k, sum := range &t.hidden {
		e.Meaning += float64(max(0, m.active(k, sum, m.scale(t))) * m.out[k][h])
	}
	if rule {
		e.Rule = float64(m.numbers.Rule[h])
	}
	return e
}

// explainRequests puts what a reader says of a span in the place of an explanation, if it is
// louder.
func (m *Model) explainRequests(e *Explanation, t *counters, text string, rule bool) {
	reader, questions := m.readerOf(t, nil)
	for q, asked := range questions {
		if asked {
			if f := m.explainedRequest(reader, Question(q), text, rule); f.Score > e.Score {
				*e = f
				e.Window = strings.TrimSpace(text)
			}
		}
	}
}

// explainedRequest explains what a reader says of a span.
func (m *Model) explainedRequest(reader *requestReader, q Question, text string, rule bool) Explanation {
	span := reader.whole(text)
	e := Explanation{Head: q.Head(), Spelling: reader.spelling(span, q), reader: reader, question: q}
	if rule {
		e.Rule = float64(m.numbers.Rule[e.Head])
	}
	e.Score = sigmoid(reader.logit(span, q) + e.Rule)
	for set := span.concepts; set != 0; set &= set - 1 {
		i := bits.TrailingZeros64(set)
		if weight := reader.Answers[q].Concepts[i]; weight != 0 {
			e.Concepts = append(e.Concepts, Concept{reader.Concepts[i], weight})
		}
	}
	slices.SortStableFunc(e.Concepts, func(a, b Concept) int {
		return cmp.Compare(math.Abs(float64(b.Weight)), math.Abs(float64(a.Weight)))
	})
	return e
}

// weighWords leaves out one word of the window after the other.
func (m *Model) weighWords(ctx context.Context, e *Explanation) {
	words := normalWords(e.Window)
	logit := func(words []string) float64 {
		if e.reader != nil {
			return e.reader.logit(e.reader.whole(strings.Join(words, " ")), e.question)
		}
		r := reading{m: m}
		var last counters
		r.window = func(_, window counters, _ string) { last = window }
		r.read(newSource(ctx, strings.Join(words, " ")), nil)
		if last.n == 0 {
			return float64(m.numbers.Offset[e.Head])
		}
		return m.logits(&last)[e.Head]
	}
	whole := logit(words)
	for i, word := range words {
		without := slices.Concat(words[:i], words[i+1:])
		if drop := whole - logit(without); drop >= leastWeight {
			e.Words = append(e.Words, WordWeight{word, drop})
		}
	}
	slices.SortStableFunc(e.Words, func(a, b WordWeight) int { return cmp.Compare(b.Logit, a.Logit) })
	e.Words = e.Words[:min(maxExplained, len(e.Words))]
}

func normalWords(normal string) (out []string) {
	for s := NewScanner(normal, nil); s.Next(); {
		out = append(out, s.Word())
	}
	return out
}
