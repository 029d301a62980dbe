// Package detect is the local detector: it reads prompts, documents and answers
// on this machine, in microseconds, and describes them in numbers that the kernel
// can decide on.
//
// # Prompts
//
// [Model.Assess] turns the texts of one turn into a [Signal]. A text is normalised
// ([Normalise]), read in every way in which something can be hidden in it,
// and judged by two halves of one model, whose logits are added for six
// heads ([Head]): by spelling, with weights for hashed words, pairs, character
// n-grams and groups of words ([Scanner]), and by meaning, with a small network
// over the mean of the words' vectors. Sums are over integers, and the
// few real numbers are computed as the kernel does it (arithmetic.go), so equal texts give
// equal signals on every platform, to the bit. Scores are rounded to a millionth. A long text
// counts as its worst part, one that only says yes, no or the like has no score
// (backchannels.go), and a short question presses for nothing (questions.go). Requests for harm
// and attacks on the assistant have readers of their own ([Languages]), one for English and one
// for other languages, that know classes of terms.
// Beside the scores stand a rule set for talk about the assistant's own rules ([SelfReference])
// and an embedding ([Model.Embed]) in which texts on like things lie close. Assess stops when its
// context is done. [Model.Explain] says which half of the model and which words weighed most.
//
// # Answers
//
// [Model.Judge] looks for capitulation and returns a [Judgement]; its rules would
// rather miss a case than accuse an ordinary answer. A [Listener] judges an answer
// while it grows, and says of every beginning what Judge says of it. [IsRefusal]
// recognises answers that decline, [Echoed] finds what an answer repeats of a text
// that must stay secret, and [Measure] computes the triple that the kernel compares
// with its state.
//
// # Where to start
//
// Read detect.go, which tells the way of a prompt, then views.go for what may be
// hidden in it, score.go, sentences.go, languages.go and requests.go for the model, memory.go for what
// it remembers of words, and judge.go for the rules on answers, which listener.go applies.
// The files views_*.go and blobs*.go each undo one family of disguises.
//
// The model is trained by cmd/train and embedded. MODEL.md and LANGUAGES.md, beside this
// file, describe its data, its figures on sources that it has not seen, and what it
// misses. It is a screen against plain attacks: an attacker with an hour to spend
// gets past it, and then the kernel's sequential test, the operator's rules, the
// judge of the output and the receipts are what remains.
//
// Everything here is pure, and safe for concurrent use but for a [Listener].
package detect
