package main

import "github.com/caddy-lex/lex/kernel/detect"

// scan reads the text as the detector will: its features, where its blocks end,
// and the mean vector of each span.
func (e *example) scan(s *space) {
	e.features, e.blocks, e.means = nil, nil, nil
	normal := detect.Normalise(e.text)
	e.rule = detect.SelfReference(normal)
	var sums []weighted
	scanner := detect.NewScanner(normal, s.known)
	for n := 0; scanner.Next(); n++ {
		if n%detect.BlockWords == 0 {
			e.blocks = append(e.blocks, 0)
			sums = append(sums, weighted{sum: make([]float32, s.width)})
		}
		e.features = append(e.features, scanner.Features()...)
		e.blocks[len(e.blocks)-1] = len(e.features)
		sums[len(sums)-1].add(s.of(scanner))
	}
	for _, span := range e.spans() {
		total := weighted{sum: make([]float32, s.width)}
		for _, block := range sums[span.from:span.to] {
			total.merge(block)
		}
		e.means = append(e.means, total.mean())
	}
}

// weighted is a weighted sum of vectors.
type weighted struct {
	sum   []float32
	total float32
}

func (w *weighted) add(vector []float32, weight float32) {
	w.total += weight
	for j, x := range vector {
		w.sum[j] += weight * x
	}
}

func (w *weighted) merge(o weighted) {
	w.total += o.total
	for j, x := range o.sum {
		w.sum[j] += x
	}
}

func (w *weighted) mean() []float32 {
	for j := range w.sum {
		w.sum[j] *= meanScale / max(w.total, 1.0/255)
	}
	return w.sum
}

// span is a part of a text that is scored: blocks [from, to).
type span struct{ from, to int }

// spans are the whole text, the windows over it, and its blocks.
func (e *example) spans() []span {
	n := len(e.blocks)
	if n == 0 {
		return nil
	}
	out := []span{{0, n}}
	for to := detect.WindowBlocks; to <= n && n > detect.WindowBlocks; to++ {
		out = append(out, span{to - detect.WindowBlocks, to})
	}
	for b := 0; b < n && n > 1; b++ {
		out = append(out, span{b, b + 1})
	}
	return out
}

// large is how many of the spans come before the single blocks. These are read
// for instructions in documents only: a request needs more than twelve words
// around it to be understood, an instruction that has no place does not.
func (e *example) large() int {
	return 1 + max(0, len(e.blocks)-detect.WindowBlocks+1)*boolToInt(len(e.blocks) > detect.WindowBlocks)
}

// within are the features of a span.
func (e *example) within(s span) []uint32 {
	from := 0
	if s.from > 0 {
		from = e.blocks[s.from-1]
	}
	return e.features[from:e.blocks[s.to-1]]
}
