// Package detect is the local detector: it reads prompts, documents and answers
// without asking anybody, in microseconds, and says what it found in numbers
// that the kernel can decide on.
//
// The input side is [Model.Assess], which stops when its context is done. A text is normalised ([Normalise]), read
// in each way in which something can be hidden in it ([Read]), and judged by
// two halves of one model whose logits are added for six heads: by spelling,
// with weights for hashed words, pairs, character n-grams and groups of words
// ([Scanner]), and by meaning, with a small network over the mean of the words'
// vectors. Sums are over integers, so equal texts give equal scores on every
// platform up to the rounding of a few real numbers; scores are rounded to a
// millionth. A long text counts as its worst part. Beside the scores stand a
// rule set for talk about the assistant's own rules ([SelfReference]) and an
// embedding ([Model.Embed]) in which texts on like things lie close.
//
// The output side is [Model.Judge], which looks for capitulation with rules
// that prefer missing a case to accusing an ordinary answer, [IsRefusal],
// [Echoed], which finds what an answer repeats of a text that it was not to
// tell, and [Measure], the triple that the kernel compares with its state.
//
// The model is trained by cmd/train and embedded; MODEL.md, beside this file,
// tells its data, its figures on sources it has not seen, and what it misses.
// It is a screen against plain attacks. Somebody who tries for an hour gets
// past it, and then the kernel's sequential test, the operator's rules, the
// judge of the output and the receipts are what remains.
//
// Everything here is pure and safe for concurrent use.
package detect
