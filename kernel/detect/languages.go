package detect

// Languages is the part of a model that reads requests for harm by what they ask for: one
// reader for English, where it helps the heads, and one for the other languages, of which the
// heads know next to nothing. Of what it says and of the head [HarmRequest], the higher one
// counts.
//
// A span of a text is not English where the mean of Foreign over its buckets is over Gate. The
// English reader is asked only about spans where the logit of the head is over Floor: so nine
// in ten short questions cost no more than the heads do.
type Languages struct {
	Foreign        []int8 // for each of the [SpelledBuckets]
	Gate, Floor    float32
	English, Other Requests
}

// foreignLane is the place of Foreign in the numbers of [Model.rows], after the heads.
const foreignLane = Heads

// readerOf returns who reads a span beside the heads, or nil. head is the logit of
// [HarmRequest].
func (m *Model) readerOf(t *counters, head float64) *requestReader {
	switch {
	case float64(t.foreign) > float64(float64(m.gate)*float64(t.n)):
		return &m.other
	case head > float64(m.floor):
		return &m.english
	}
	return nil
}

// askedSpan is a span of a text that a reader is asked about, in blocks.
type askedSpan struct {
	reader    *requestReader
	from, end int
}

// ask notes a span that ends with the last block for its reader.
func (r *reading) ask(from int, t *counters, head float64) {
	if reader := r.m.readerOf(t, head); reader != nil {
		r.asked = append(r.asked, askedSpan{reader, from, r.blocks})
	}
}

// raiseAsked lifts the best logit for requests for harm to what the readers say. Each reads a
// block once at most, however its languages alternate, and only those that it is asked about.
func (r *reading) raiseAsked(normal *derived) {
	for _, reader := range []*requestReader{&r.m.english, &r.m.other} {
		var wanted []bool
		for _, a := range r.asked {
			if a.reader == reader {
				if wanted == nil {
					wanted = make([]bool, r.blocks)
				}
				for block := a.from; block < a.end; block++ {
					wanted[block] = true
				}
			}
		}
		if wanted == nil {
			continue
		}
		blocks := reader.blocks(normal, r.begins, wanted)
		for _, a := range r.asked {
			if a.reader == reader {
				var sum requestSpan
				for _, b := range blocks[a.from:a.end] {
					sum.merge(b)
				}
				r.best[HarmRequest] = max(r.best[HarmRequest], reader.logit(sum))
			}
		}
	}
}
