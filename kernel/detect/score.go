package detect

import (
	"math"

	"github.com/caddy-lex/lex/kernel"
)

// A long text is also read in parts, because a sentence drowns in a page:
// BlockWords words make a block, WindowBlocks blocks a window, and the window
// moves by one block.
const (
	BlockWords   = 12
	WindowBlocks = 3

	usualPiece = 40 // bytes of a piece in most texts
)

// Of the windows of a text that a user pasted, one looks like an attack by chance, the
// sooner the more there are. So those within count less, by the logarithm of their number, as
// in Bonferroni's correction: of a text of certainBlocks blocks nothing, of one twice as long
// log 2. The first and the last windows count in full: there people say what they want.
//
// The whole of a text counts up to WholeBlocks. Its logit grows with the square root of its
// features, and nobody has taught the heads what a book is.
const (
	certainBlocks = 16
	WholeBlocks   = 128
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
	piece  counters          // up to the last word, but for spelt and known
	spelt  lanes             // of the last features
	count  int32             // how many these are
	known  [Hidden / 8]lanes // hidden of the words of the piece that the lexicon has
	words  int32             // how many these are
	pieces []piece
	recent recentWords
	whole  counters
	ring   [WindowBlocks]counters
	firsts [WindowBlocks]int // of these blocks, their first pieces
	blocks int
	first  int            // the first piece of the next one
	noise  int            // bytes of blocks that are no language
	best   [Heads]float64 // logits, of the whole text and of what stands at its ends
	inner  [Heads]float64 // those of windows within the text
	tail   float64        // injection logit of the last window

	pasted bool                         // see [Model.score]
	latest [WindowBlocks][Heads]float64 // logits of the last windows
	behind int                          // the first piece behind the first window

	block, sentence counters // up to the last piece
	sentenceFirst   int      // its first piece

	asked []askedSpan // what the readers of [Languages] are asked about

	// window, if it is not nil, is called with each block, with the window that ends
	// with it and with the window's text. The text begins where the blocks of ring do.
	// Then nobody asks the readers, but readers, if it is not nil, is called with what
	// they alone would be asked about. Both get values, because a reading that they had
	// pointers to would be on the heap.
	window  func(block, window counters, text string)
	readers func(span counters, text string)
	last    counters // the window that ends with the block
}

// piece is a run of words. Blocks and sentences are made of whole pieces.
type piece struct {
	begin int // in the text
	words int
}

// score returns the heads' probabilities for a normalised text, each the
// highest of the whole text, its windows and its blocks, and the injection probability
// of its last window, 0 for a text that fits into one. rule says whether
// [SelfReference] holds for the text. The words are added to meaning unless it
// is nil. noise counts the bytes of blocks that are no language. pasted says that a user may
// have pasted the text.
func (m *Model) score(normal *derived, rule, pasted bool, meaning *projection) (p [Heads]float64, tail float64, noise int) {
	r := reading{m: m, pasted: pasted}
	none := r.best
	for h := range none {
		none[h] = math.Inf(-1)
	}
	r.best, r.inner = none, none
	r.read(normal, meaning)
	if r.blocks == 0 {
		return p, 0, 0
	}
	if r.blocks <= WholeBlocks || !pasted {
		logits := m.logits(&r.whole)
		raise(&r.best, &logits)
		r.ask(0, &r.whole, &logits)
	}
	for n := range min(WindowBlocks, r.windows()) {
		raise(&r.best, &r.latest[n])
	}
	r.raiseAsked(normal)
	for h, logit := range r.best {
		logit = max(logit, r.inner[h]-r.doubt())
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

// read goes through the words, by pieces, of which it makes blocks and sentences.
func (r *reading) read(normal *derived, meaning *projection) {
	text := normal.text
	s := NewScanner(text, r.m.lexicon)
	r.pieces = make([]piece, 1, 2+len(text)/usualPiece)
	bySentence := r.window == nil || r.readers != nil // who asks the readers
	var sentences sentences
	if bySentence {
		sentences = newSentences(normal)
	}
	unknowns, inBlock, spoken, from := 0, 0, 0, 0
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
		to := len(text) - len(s.text)
		spoken++
		ends := bySentence && spoken >= shortestSentence && sentences.end(to)
		if ends || inBlock == BlockWords {
			r.cut(to)
		}
		if ends {
			r.endSentence(text, to, spoken)
			spoken = 0
		}
		if inBlock == BlockWords {
			r.close(text, to)
			if unknowns >= strange {
				r.noise += voiceless(text[from:to])
			}
			unknowns, inBlock, from = 0, 0, to
		}
	}
	if inBlock > 0 {
		r.cut(len(text))
		r.close(text, len(text))
		if unknowns*BlockWords >= strange*inBlock {
			r.noise += voiceless(text[from:])
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
	r.pieces[len(r.pieces)-1].words++
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
	r.piece.total += int32(known.weight)
	r.words++
}

// settle counts what spelt has.
func (r *reading) settle() {
	sums := r.spelt.sums(r.count)
	for h := range r.piece.weight {
		r.piece.weight[h] += sums[h]
	}
	r.piece.foreign += sums[foreignLane]
	r.piece.n += r.count
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
			r.piece.hidden[8*k+i] += x / n
		}
	}
	r.piece.total += unknownWeight
}

// cut ends a piece. The next one begins there.
func (r *reading) cut(there int) {
	if r.pieces[len(r.pieces)-1].words == 0 {
		return
	}
	r.settle()
	for k := range r.known {
		sums := r.known[k].sums(r.words)
		for i, x := range &sums {
			r.piece.hidden[8*k+i] += x
		}
	}
	r.block.merge(&r.piece)
	r.sentence.merge(&r.piece)
	r.pieces = append(r.pieces, piece{begin: there})
	r.piece, r.known, r.words = counters{}, [Hidden / 8]lanes{}, 0
}

// close ends a block, and looks at it, for instructions only, and through the
// window that ends with it. (A request needs more than twelve words around it
// to be understood, an instruction that has no place does not.) It ends at to.
func (r *reading) close(text string, to int) {
	at := r.blocks % WindowBlocks
	block := &r.ring[at]
	r.last.replace(block, &r.block)
	*block, r.block = r.block, counters{}
	r.firsts[at], r.first = r.first, len(r.pieces)-1
	if r.blocks++; r.blocks == WindowBlocks {
		r.behind = r.first
	}
	first := r.firsts[r.blocks%WindowBlocks] // of the window
	if r.window != nil {
		r.window(*block, r.last, text[r.pieces[first].begin:to])
	} else {
		r.best[Injection] = max(r.best[Injection], r.m.injection(block))
		r.whole.merge(block)
		if r.blocks >= WindowBlocks {
			logits := r.m.logits(&r.last)
			r.addWindow(&logits)
			r.tail = logits[Injection]
			r.ask(first, &r.last, &logits)
		}
	}
	if r.blocks >= 2 {
		before := (at + WindowBlocks - 1) % WindowBlocks
		two := r.ring[before]
		two.merge(block)
		r.askReaders(r.firsts[before], &two, text, to)
	}
}

// endSentence ends a sentence of some words, and a piece.
func (r *reading) endSentence(text string, to, words int) {
	if words <= longestSentence {
		r.askReaders(r.sentenceFirst, &r.sentence, text, to)
	}
	r.sentence, r.sentenceFirst = counters{}, len(r.pieces)-1
}

// windows is how many windows there were.
func (r *reading) windows() int { return max(0, r.blocks-WindowBlocks+1) }

// addWindow adds the logits of the next window. The one that it takes the place of among the
// latest is none of the last, so it stands at the beginning or within.
func (r *reading) addWindow(logits *[Heads]float64) {
	n := r.windows() - 1
	place := &r.latest[n%WindowBlocks]
	switch {
	case n >= 2*WindowBlocks:
		raise(&r.inner, place)
	case n >= WindowBlocks:
		raise(&r.best, place)
	}
	*place = *logits
}

// doubt is what the logit of a span within the text is lowered by.
func (r *reading) doubt() float64 {
	if !r.pasted {
		return 0
	}
	return Doubt(r.blocks)
}

// Doubt is what the logit of a span within a pasted text of some blocks is lowered by: of one
// that is in neither its first window nor its last. It is 0 or higher.
func Doubt(blocks int) float64 {
	return kernel.Log(max(1, float64(blocks)/certainBlocks))
}

// raise lifts logits to others.
func raise(logits, others *[Heads]float64) {
	for h, x := range others {
		logits[h] = max(logits[h], x)
	}
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

// questioned returns the logits of the heads that a [Question] is asked for, and no others.
func (m *Model) questioned(t *counters) (out [Heads]float64) {
	root, scale := math.Sqrt(float64(t.n)), m.scale(t)
	harm, identity := m.base(t, HarmRequest, root), m.base(t, Identity, root)
	for k, sum := range &t.hidden {
		if x := m.active(k, sum, scale); x > 0 {
			harm += float64(x * m.out[k][HarmRequest])
			identity += float64(x * m.out[k][Identity])
		}
	}
	out[HarmRequest], out[Identity] = harm, identity
	return out
}

// injection is the logit of [Injection].
func (m *Model) injection(t *counters) float64 {
	out, scale := m.base(t, Injection, math.Sqrt(float64(t.n))), m.scale(t)
	for k, sum := range &t.hidden {
		if x := m.active(k, sum, scale); x > 0 {
			out += float64(x * m.out[k][Injection])
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
