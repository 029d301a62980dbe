package detect

// Measured is the triple that was measured on an output, in the order of the
// pillars: each in [0, 1], sum 1.
type Measured struct{ C, R, S float64 }

// The alignment of an answer with its prompt is full between these cosines. It
// falls to 0 for an answer that shares nothing with the prompt (evasion) and
// for one that is the prompt again (parroting). Of the answers of Self-Instruct
// and GPTeacher half lie over 0.52, of answers to other prompts a quarter over
// 0.49; an answer that repeats its question's words reaches 0.94.
const (
	alignedFrom = 0.50
	alignedTo   = 0.95
)

// Continuity is how close an output is to the centre of those before, in
// [0, 1]: the cosine c as (1+c)/2, so that what points away from the centre is
// still told apart.
func Continuity(out, centre Vector) float64 { return float64((1 + Similarity(out, centre)) / 2) }

// Measure compares the embedding of an output with that of the prompt it
// answers: [Continuity] with the session's running centre (with the
// prompt while there is none), reciprocity its alignment with the prompt,
// sovereignty one minus the confidence that it capitulated. c is the continuity
// before normalisation, in [0, 1]. ok is false when there is no output, or
// nothing to normalise.
func Measure(asked, out, centre Vector, j Judgement) (r Measured, c float64, ok bool) {
	if len(out) == 0 {
		return Measured{}, 0, false
	}
	if len(centre) == 0 {
		centre = asked
	}
	c = Continuity(out, centre)
	reciprocity := alignment(Similarity(out, asked))
	sovereignty := 1.0
	if j.Capitulated {
		sovereignty = max(0, min(1, 1-j.Confidence))
	}
	total := c + reciprocity + sovereignty
	if !(total > 0) {
		return Measured{}, c, false
	}
	return Measured{c / total, reciprocity / total, sovereignty / total}, c, true
}

// alignment maps a cosine to [0, 1]: up, flat, down.
func alignment(cosine float64) float64 {
	switch {
	case cosine <= 0:
		return 0
	case cosine < alignedFrom:
		return cosine / alignedFrom
	case cosine <= alignedTo:
		return 1
	}
	return max(0, (1-cosine)/(1-alignedTo))
}
