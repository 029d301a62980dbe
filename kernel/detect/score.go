package detect

import "math"

// A long text is also read through a window that slides over it, because a
// sentence drowns in a page: BlockWords words make a block, WindowBlocks blocks
// a window, and the window moves by one block.
const (
	BlockWords   = 12
	WindowBlocks = 3
)

// tally sums the weights of n features. Integers make the sum exact, whatever
// the platform.
type tally struct {
	weight [Heads]int32
	n      int32
}

func (t *tally) add(rows []Row, features []uint32) {
	for _, f := range features {
		w := &rows[f].Weight
		t.weight[0] += int32(w[0])
		t.weight[1] += int32(w[1])
		t.weight[2] += int32(w[2])
		t.weight[3] += int32(w[3])
		t.weight[4] += int32(w[4])
		t.weight[5] += int32(w[5])
	}
	t.n += int32(len(features))
}

func (t *tally) merge(o *tally) {
	for h := range t.weight {
		t.weight[h] += o.weight[h]
	}
	t.n += o.n
}

// reading is one pass over a text: what was seen so far, and the last blocks.
type reading struct {
	m      *Model
	whole  tally
	ring   [WindowBlocks]tally
	blocks int
	best   [Heads]float64 // logits
	tail   float64        // injection logit of the last window
}

// score returns the heads' probabilities for a normalised text, each the
// highest of the whole text and of its windows, and the injection probability
// of its last window, 0 for a text that fits into one. rule says whether
// [SelfReference] holds for the text.
func (m *Model) score(normal string, rule bool) (p [Heads]float64, tail float64) {
	r := reading{m: m}
	for h := range r.best {
		r.best[h] = math.Inf(-1)
	}
	s := NewScanner(normal)
	var block tally
	for words := 1; ; words++ {
		features, ok := s.Next()
		if !ok {
			break
		}
		block.add(m.p.Rows, features)
		if words%BlockWords == 0 {
			r.close(&block)
			block = tally{}
		}
	}
	if block.n > 0 {
		r.close(&block)
	}
	if r.blocks == 0 {
		return p, 0
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
	return p, tail
}

// close ends a block and looks through the window that ends with it.
func (r *reading) close(block *tally) {
	r.ring[r.blocks%WindowBlocks] = *block
	r.whole.merge(block)
	r.blocks++
	if r.blocks < WindowBlocks {
		return
	}
	var window tally
	for i := range r.ring {
		window.merge(&r.ring[i])
	}
	r.tail = r.raise(&window)
}

// raise lifts the best logits to those of t and returns the injection one.
func (r *reading) raise(t *tally) float64 {
	var logit float64
	root := math.Sqrt(float64(t.n))
	for h := range r.best {
		logit = float64(r.m.p.Gain[h])*float64(t.weight[h])/root + float64(r.m.p.Offset[h])
		r.best[h] = max(r.best[h], logit)
	}
	return logit // the last head's
}

func sigmoid(logit float64) float64 { return 1 / (1 + math.Exp(-logit)) }
