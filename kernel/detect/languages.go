package detect

// Languages is the part of a model that reads texts by what they ask for: one reader for
// English, where it helps the heads, and one for the other languages, of which the heads know
// next to nothing. Of what a reader answers to a [Question] and of the question's head, the
// higher one counts.
//
// A span of a text is not English where the mean of Foreign over its buckets is over Gate. The
// English reader is asked a question only about spans where the logit of the question's head is
// over Floor: so most short questions cost no more than the heads do.
type Languages struct {
	Foreign        []int8 // for each of the [SpelledBuckets]
	Gate           float32
	Floor          [Questions]float32
	English, Other Requests
}

// foreignLane is the place of Foreign in the numbers of [Model.rows], after the heads.
const foreignLane = Heads

// readerOf returns who reads a span beside the heads, or nil, and what it is asked. logits are
// those of the heads, or nil if nobody knows them.
func (m *Model) readerOf(t *counters, logits *[Heads]float64) (reader *requestReader, asked [Questions]bool) {
	if float64(t.foreign) > float64(float64(m.gate)*float64(t.n)) {
		return &m.other, [Questions]bool{true, true}
	}
	if logits == nil {
		those := m.questioned(t)
		logits = &those
	}
	for q := range asked {
		if logits[Question(q).Head()] > float64(m.floor[q]) {
			reader, asked[q] = &m.english, true
		}
	}
	return reader, asked
}

// askedSpan is a span of a text that a reader is asked about, in pieces.
type askedSpan struct {
	reader    *requestReader
	questions [Questions]bool
	from, end int
}

// ask notes a span that ends with the last piece for its reader. Of a text that is longer than
// a window only windows and sentences are asked whether they attack the assistant: the answer
// grows with the square root of what is repeated, and a page of one harmless sentence would be
// an attack.
func (r *reading) ask(from int, t *counters, logits *[Heads]float64) {
	reader, questions := r.m.readerOf(t, logits)
	if from == 0 && r.blocks > WindowBlocks {
		questions[AttacksAssistant] = false
	}
	if questions != ([Questions]bool{}) {
		r.asked = append(r.asked, askedSpan{reader, questions, from, len(r.pieces) - 1})
	}
}

// askReaders notes a span that ends with the last piece and at to, and that the heads do not
// look at: their logits are for the questions alone.
func (r *reading) askReaders(from int, t *counters, text string, to int) {
	switch {
	case r.readers != nil:
		r.readers(*t, text[r.pieces[from].begin:to])
	case r.window == nil:
		r.ask(from, t, nil)
	}
}

// raiseAsked lifts the best logits of the questions' heads to what the readers say. Each reads
// a piece once at most, however its languages alternate, and only those that it is asked about.
func (r *reading) raiseAsked(normal *derived) {
	for _, reader := range []*requestReader{&r.m.english, &r.m.other} {
		var wanted []bool
		for _, a := range r.asked {
			if a.reader == reader {
				if wanted == nil {
					wanted = make([]bool, len(r.pieces))
				}
				for piece := a.from; piece < a.end; piece++ {
					wanted[piece] = true
				}
			}
		}
		if wanted == nil {
			continue
		}
		spans := reader.pieces(normal, r.pieces, wanted)
		closing := r.firsts[r.blocks%WindowBlocks] // the first piece of the last window
		for _, a := range r.asked {
			if a.reader != reader {
				continue
			}
			var sum requestSpan
			for _, s := range spans[a.from:a.end] {
				sum.merge(s)
			}
			for q, asked := range a.questions {
				if !asked {
					continue
				}
				logit, head := reader.logit(sum, Question(q)), Question(q).Head()
				if a.from >= r.behind && a.end <= closing {
					logit -= r.doubt()
				}
				r.best[head] = max(r.best[head], logit)
			}
		}
	}
}
