package detect

import "math"

// A long text is also read in parts, because a sentence drowns in a page:
// BlockWords words make a block, WindowBlocks blocks a window, and the window
// moves by one block.
const (
	BlockWords   = 12
	WindowBlocks = 3
)

// counters are the sums over the features and words of a span. They are integers,
// so that the sums are exact on every platform.
type counters struct {
	weight [Heads]int32
	n      int32 // features
	hidden [Hidden]int32
	total  int32 // weight of the words, in 255ths
}

func (t *counters) add(p *Parameters, s *Scanner) {
	features := s.Features()
	for _, f := range features {
		w := &p.Rows[f]
		t.weight[0] += int32(w[0])
		t.weight[1] += int32(w[1])
		t.weight[2] += int32(w[2])
		t.weight[3] += int32(w[3])
		t.weight[4] += int32(w[4])
		t.weight[5] += int32(w[5])
	}
	t.n += int32(len(features)) //nolint:gosec // G115: at most the length of Scanner.features
	if entry := s.Entry(); entry >= 0 {
		w := &p.Words[entry]
		for k, x := range &w.Hidden {
			t.hidden[k] += int32(x)
		}
		t.total += int32(w.Weight)
		return
	}
	t.addUnknown(p, s.Subwords())
}

// addUnknown adds a word outside the lexicon: the mean of its subwords.
func (t *counters) addUnknown(p *Parameters, subwords []uint32) {
	var sum [Hidden]int32
	for _, g := range subwords {
		for k, x := range &p.subword(g).Hidden {
			sum[k] += int32(x)
		}
	}
	for k, x := range &sum {
		t.hidden[k] += x / int32(len(subwords)) //nolint:gosec // G115: at most maxWord
	}
	t.total += unknownWeight
}

// unknownWeight is the weight of a word outside the lexicon.
const unknownWeight = 255

func (p *Parameters) subword(bucket uint32) *Word {
	return &p.Words[len(p.Words)-SubwordBuckets+int(bucket)]
}

func (t *counters) merge(o *counters) {
	for h := range t.weight {
		t.weight[h] += o.weight[h]
	}
	t.n += o.n
	for k := range t.hidden {
		t.hidden[k] += o.hidden[k]
	}
	t.total += o.total
}

// reading is one pass over a text: what was seen so far, and the last blocks.
type reading struct {
	p      *Parameters
	whole  counters
	ring   [WindowBlocks]counters
	blocks int
	noise  int            // bytes of blocks that are no language
	best   [Heads]float64 // logits
	tail   float64        // injection logit of the last window

	// window, if it is not nil, is called with each block, with the window that ends
	// with it and with the window's text. The text begins where the blocks of ring do.
	window func(block, window *counters, text string)
	begin  [WindowBlocks]int
}

// score returns the heads' probabilities for a normalised text, each the
// highest of the whole text, its windows and its blocks, and the injection probability
// of its last window, 0 for a text that fits into one. rule says whether
// [SelfReference] holds for the text. The words are added to meaning unless it
// is nil. noise counts the bytes of blocks that are no language.
func (m *Model) score(normal *derived, rule bool, meaning *projection) (p [Heads]float64, tail float64, noise int) {
	r := reading{p: &m.p}
	for h := range r.best {
		r.best[h] = math.Inf(-1)
	}
	r.read(normal, meaning)
	if r.blocks == 0 {
		return p, 0, 0
	}
	r.raise(&r.whole)
	for h, logit := range r.best {
		if rule {
			logit += float64(m.p.Rule[h])
		}
		p[h] = sigmoid(logit)
	}
	if r.blocks > WindowBlocks {
		tail = sigmoid(r.tail)
	}
	return p, tail, r.noise
}

// read goes through the words, block by block.
func (r *reading) read(normal *derived, meaning *projection) {
	s := NewScanner(normal.text, r.p.Lexicon)
	var block counters
	unknowns, inBlock, from := 0, 0, 0
	for words := 1; s.Next(); words++ {
		inBlock++
		if s.Entry() < 0 {
			unknowns++
		}
		block.add(r.p, s)
		if meaning != nil {
			meaning.addWord(r.p, s)
		}
		if words%contextIntervalWords == 0 {
			normal.checkContext()
		}
		if words%BlockWords == 0 {
			to := len(normal.text) - len(s.text)
			r.close(&block, normal.text, from, to)
			block = counters{}
			if unknowns >= strange {
				r.noise += voiceless(normal.text[from:to])
			}
			unknowns, inBlock, from = 0, 0, to
		}
	}
	if block.n > 0 {
		r.close(&block, normal.text, from, len(normal.text))
		if unknowns*BlockWords >= strange*inBlock {
			r.noise += voiceless(normal.text[from:])
		}
	}
}

// close ends a block, and looks at it, for instructions only, and through the
// window that ends with it. (A request needs more than twelve words around it
// to be understood, an instruction that has no place does not.) The block is
// text[from:to].
func (r *reading) close(block *counters, text string, from, to int) {
	at := r.blocks % WindowBlocks
	r.ring[at], r.begin[at] = *block, from
	r.blocks++
	var window counters
	for i := range r.ring {
		window.merge(&r.ring[i])
	}
	if r.window != nil {
		r.window(block, &window, text[r.begin[max(0, r.blocks-WindowBlocks)%WindowBlocks]:to])
		return
	}
	r.best[Injection] = max(r.best[Injection], r.p.logits(block)[Injection])
	r.whole.merge(block)
	if r.blocks >= WindowBlocks {
		r.tail = r.raise(&window)
	}
}

// raise lifts the best logits to those of t and returns the injection one.
func (r *reading) raise(t *counters) float64 {
	logits := r.p.logits(t)
	for h, x := range logits {
		r.best[h] = max(r.best[h], x)
	}
	return logits[Injection]
}

// logits are those of a span, without the rules.
func (p *Parameters) logits(t *counters) (out [Heads]float64) {
	root := math.Sqrt(float64(t.n))
	for h := range out {
		out[h] = float64(float64(p.Gain[h])*float64(t.weight[h]))/root + float64(p.Offset[h])
	}
	scale := float64(p.Scale) / float64(max(1, t.total))
	for k, sum := range &t.hidden {
		x := float64(scale*float64(sum)) + float64(p.Bias[k])
		if x <= 0 {
			continue
		}
		for h := range out {
			out[h] += float64(x * float64(p.Out[h][k]))
		}
	}
	return out
}
