package detect

import "math"

// A long text is also read in parts, because a sentence drowns in a page:
// BlockWords words make a block, WindowBlocks blocks a window, and the window
// moves by one block.
const (
	BlockWords   = 12
	WindowBlocks = 3

	usualBlock = 64 // bytes of a block in most texts
)

// counters are the sums over the features and words of a span. They are integers,
// so that the sums are exact on every platform.
type counters struct {
	weight  [Heads]int32
	n       int32 // features
	foreign int32 // see [Languages]
	hidden  [Hidden]int32
	total   int32 // weight of the words, in 255ths
}

// unknownWeight is the weight of a word outside the lexicon.
const unknownWeight = 255

func (m *Model) subword(bucket uint32) *packedWord {
	return &m.words[len(m.words)-SubwordBuckets+int(bucket)]
}

func (t *counters) merge(o *counters) {
	for h := range t.weight {
		t.weight[h] += o.weight[h]
	}
	t.n += o.n
	t.foreign += o.foreign
	for k := range t.hidden {
		t.hidden[k] += o.hidden[k]
	}
	t.total += o.total
}

// replace takes a block out and puts another one in.
func (t *counters) replace(out, in *counters) {
	for h := range t.weight {
		t.weight[h] += in.weight[h] - out.weight[h]
	}
	t.n += in.n - out.n
	t.foreign += in.foreign - out.foreign
	for k := range t.hidden {
		t.hidden[k] += in.hidden[k] - out.hidden[k]
	}
	t.total += in.total - out.total
}

// reading is one pass over a text: what was seen so far, and the last blocks.
type reading struct {
	m      *Model
	block  counters          // up to the last word, but for spelt and known
	spelt  lanes             // of the last features
	count  int32             // how many these are
	known  [Hidden / 8]lanes // hidden of the words of the block that the lexicon has
	words  int32             // how many these are
	recent recentWords
	whole  counters
	ring   [WindowBlocks]counters
	blocks int
	noise  int            // bytes of blocks that are no language
	best   [Heads]float64 // logits
	tail   float64        // injection logit of the last window

	asked []askedSpan // what the readers of [Languages] are asked about

	// window, if it is not nil, is called with each block, with the window that ends
	// with it and with the window's text. The text begins where the blocks of ring do.
	// It gets values, because a reading that it had pointers to would be on the heap.
	window func(block, window counters, text string)
	begins []int    // of the blocks in the text
	last   counters // the window that ends with the block
}

// score returns the heads' probabilities for a normalised text, each the
// highest of the whole text, its windows and its blocks, and the injection probability
// of its last window, 0 for a text that fits into one. rule says whether
// [SelfReference] holds for the text. The words are added to meaning unless it
// is nil. noise counts the bytes of blocks that are no language.
func (m *Model) score(normal *derived, rule bool, meaning *projection) (p [Heads]float64, tail float64, noise int) {
	r := reading{m: m}
	for h := range r.best {
		r.best[h] = math.Inf(-1)
	}
	r.read(normal, meaning)
	if r.blocks == 0 {
		return p, 0, 0
	}
	logits := r.raise(&r.whole)
	r.ask(0, &r.whole, &logits)
	r.raiseAsked(normal)
	for h, logit := range r.best {
		if rule {
			logit += float64(m.numbers.Rule[h])
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
	s := NewScanner(normal.text, r.m.lexicon)
	r.begins = make([]int, 0, 2+len(normal.text)/usualBlock)
	unknowns, inBlock, from := 0, 0, 0
	for words := 1; s.Next(); words++ {
		inBlock++
		if s.Entry() < 0 {
			unknowns++
		}
		r.add(s)
		if meaning != nil {
			meaning.addWord(r.m, s)
		}
		if words%contextIntervalWords == 0 {
			normal.checkContext()
		}
		if words%BlockWords == 0 {
			to := len(normal.text) - len(s.text)
			r.close(normal.text, from, to)
			if unknowns >= strange {
				r.noise += voiceless(normal.text[from:to])
			}
			unknowns, inBlock, from = 0, 0, to
		}
	}
	if inBlock > 0 {
		r.close(normal.text, from, len(normal.text))
		if unknowns*BlockWords >= strange*inBlock {
			r.noise += voiceless(normal.text[from:])
		}
	}
}

// wordSums is what a word adds to a text by its letters and its group.
type wordSums struct {
	rows  lanes
	count int32
}

func (m *Model) spell(s *Scanner) (w wordSums) {
	features := s.alone()
	for _, f := range features {
		w.rows.add(m.rows[f])
	}
	w.count = int32(len(features)) //nolint:gosec // G115: at most the length of Scanner.features
	return w
}

// add reads the next word.
func (r *reading) add(s *Scanner) {
	pairs := s.joined()
	if r.count+int32(len(pairs)) > maxAdded { //nolint:gosec // G115: at most three
		r.settle()
	}
	for _, f := range pairs {
		r.spelt.add(r.m.rows[f])
	}
	r.count += int32(len(pairs)) //nolint:gosec // G115: as above
	if r.recent.add(s.hash) {
		return
	}
	w := r.m.spelled.of(s)
	if w == nil {
		first := r.m.spell(s)
		r.m.spelled.keep(s, first)
		w = &first
	}
	if r.count+w.count > maxAdded {
		r.settle()
	}
	r.spelt.even += w.rows.even
	r.spelt.odd += w.rows.odd
	r.count += w.count
	entry := s.Entry()
	if entry < 0 {
		r.addUnknown(s.Subwords())
		return
	}
	known := &r.m.words[entry]
	for k, x := range &known.hidden {
		r.known[k].add(x)
	}
	r.block.total += int32(known.weight)
	r.words++
}

// settle counts what spelt has.
func (r *reading) settle() {
	sums := r.spelt.sums(r.count)
	for h := range r.block.weight {
		r.block.weight[h] += sums[h]
	}
	r.block.foreign += sums[foreignLane]
	r.block.n += r.count
	r.spelt, r.count = lanes{}, 0
}

// addUnknown adds a word outside the lexicon: the mean of its subwords.
func (r *reading) addUnknown(subwords []uint32) {
	n := int32(len(subwords)) //nolint:gosec // G115: at most maxWord
	for k := range Hidden / 8 {
		var sum lanes
		for _, g := range subwords {
			sum.add(r.m.subword(g).hidden[k])
		}
		for i, x := range sum.sums(n) {
			r.block.hidden[8*k+i] += x / n
		}
	}
	r.block.total += unknownWeight
}

// close ends a block, and looks at it, for instructions only, and through the
// window that ends with it. (A request needs more than twelve words around it
// to be understood, an instruction that has no place does not.) The block is
// text[from:to].
func (r *reading) close(text string, from, to int) {
	r.settle()
	for k := range r.known {
		sums := r.known[k].sums(r.words)
		for i, x := range &sums {
			r.block.hidden[8*k+i] += x
		}
	}
	at := r.blocks % WindowBlocks
	block := &r.ring[at]
	r.last.replace(block, &r.block)
	*block, r.begins = r.block, append(r.begins, from)
	r.blocks++
	r.block, r.known, r.words = counters{}, [Hidden / 8]lanes{}, 0
	if r.window != nil {
		r.window(*block, r.last, text[r.begins[max(0, r.blocks-WindowBlocks)]:to])
		return
	}
	r.best[Injection] = max(r.best[Injection], r.m.logit(block, Injection))
	r.whole.merge(block)
	if r.blocks >= WindowBlocks {
		logits := r.raise(&r.last)
		r.tail = logits[Injection]
		r.ask(r.blocks-WindowBlocks, &r.last, &logits)
	}
}

// raise lifts the best logits to those of t, which it returns.
func (r *reading) raise(t *counters) [Heads]float64 {
	logits := r.m.logits(t)
	for h, x := range logits {
		r.best[h] = max(r.best[h], x)
	}
	return logits
}

// logits are those of a span, without the rules.
func (m *Model) logits(t *counters) (out [Heads]float64) {
	root := math.Sqrt(float64(t.n))
	for h := range out {
		out[h] = m.base(t, Head(h), root)
	}
	scale := m.scale(t)
	for k, sum := range &t.hidden {
		if x := m.active(k, sum, scale); x > 0 {
			for h, w := range &m.out[k] {
				out[h] += float64(x * w)
			}
		}
	}
	return out
}

// logit is the one of a head.
func (m *Model) logit(t *counters, h Head) float64 {
	out, scale := m.base(t, h, math.Sqrt(float64(t.n))), m.scale(t)
	for k, sum := range &t.hidden {
		if x := m.active(k, sum, scale); x > 0 {
			out += float64(x * m.out[k][h])
		}
	}
	return out
}

// base is what the features add to a logit. root is the square root of their number.
func (m *Model) base(t *counters, h Head, root float64) float64 {
	return float64(float64(m.numbers.Gain[h])*float64(t.weight[h]))/root + float64(m.numbers.Offset[h])
}

// scale is what the sums of the hidden units are multiplied by.
func (m *Model) scale(t *counters) float64 {
	return float64(m.numbers.Scale) / float64(max(1, t.total))
}

// active returns what a hidden unit gives on, if it is positive.
func (m *Model) active(k int, sum int32, scale float64) float64 {
	return float64(scale*float64(sum)) + m.bias[k]
}
