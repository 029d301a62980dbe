package toolcall

import (
	"slices"
	"strings"
	"unicode"

	"github.com/caddy-lex/lex/kernel/prose"
	"github.com/caddy-lex/lex/kernel/regex"
)

// A call may do what was asked with another value than the one that was asked for. The
// request names V-6973, the call has V-61546: what matters is less where the new value
// comes from than that the old one is gone.

// mark is a telling word of a request: it has a digit, or is an address.
var mark = regex.New(`[\p{L}\d_./@:+-]*\d[\p{L}\d_./@:+-]*|[\w.+-]+@[\w.-]+`)

// maxMarks bounds the words of a request, or of an argument, that are compared.
const maxMarks = 64

func marksIn(text string) (out []string) {
	for _, m := range mark.FindAllString(text, maxMarks) {
		if m = strings.Trim(m, ".,:;-/"); m != "" && !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

// dropped counts the marks of the request that the call has not.
func (r *reading) dropped(marks []string) (n int) {
	form := prose.DestinationForm(r.arguments)
	for _, m := range marks {
		if !r.calledWith(m) && !strings.Contains(form, prose.DestinationForm(m)) {
			n++
		}
	}
	return n
}

// calledWith reports whether the arguments have a folded word, or its number.
func (r *reading) calledWith(word string) bool {
	digits := longestDigits(word)
	return strings.Contains(r.arguments, word) || len(digits) > 2 && strings.Contains(r.arguments, digits)
}

func longestDigits(s string) (out string) {
	for f := range strings.FieldsFuncSeq(s, func(c rune) bool { return c < '0' || c > '9' }) {
		if len(f) > len(out) {
			out = f
		}
	}
	return out
}

// swapped counts the words of the call that a text has and the request has not, where the
// request has a word of the same shape that the call has not.
func (r *reading) swapped() (n int) {
	dropped := r.droppedShapes()
	if len(dropped) == 0 {
		return 0
	}
	looks := 0
	for _, text := range r.texts {
		for _, t := range shaped(". " + text) {
			low := prose.Fold(t)
			if !dropped[shape(t)] || strings.Contains(r.wish.folded, low) || looks == maxLooks {
				continue
			}
			looks++
			if r.untrusted.word(low) {
				n++
			}
		}
	}
	return n
}

// maxLooks bounds the words of a call that are looked for in all that was read.
const maxLooks = 16

func (r *reading) droppedShapes() map[string]bool {
	out := make(map[string]bool)
	for _, t := range shaped(r.asks) {
		if !r.calledWith(prose.Fold(t)) {
			out[shape(t)] = true
		}
	}
	for _, n := range r.wish.spelled() {
		if n > 1 && !slices.Contains(r.figures, n) {
			out["9"] = true
		}
	}
	return out
}

// shaped returns the words of a text that have a digit, and the names within a sentence.
func shaped(text string) (out []string) {
	starts := true
	for f := range strings.FieldsFuncSeq(text, func(c rune) bool { return unicode.IsSpace(c) || strings.ContainsRune("\"'()[]{},;=<>", c) }) {
		t := strings.Trim(f, ".:!?-*#")
		if t != "" && len(t) < 64 && (strings.ContainsAny(t, "0123456789@") || !starts && (shape(t) == "Aa" || len(t) > 1 && shape(t) == "A")) {
			out = append(out, t)
		}
		starts = strings.ContainsAny(f[len(f)-1:], ".!?:")
		if len(out) > maxMarks {
			break
		}
	}
	return out
}

// shape writes a word as its runs of capitals, small letters, digits and signs.
func shape(word string) string {
	var out []rune
	for _, c := range word {
		switch {
		case unicode.IsDigit(c):
			c = '9'
		case unicode.IsUpper(c):
			c = 'A'
		case unicode.IsLetter(c):
			c = 'a'
		}
		if len(out) == 0 || out[len(out)-1] != c {
			out = append(out, c)
		}
	}
	return string(out)
}

func (p passage) spelled() (out []float64) {
	for i := range p.sentences {
		out = append(out, p.sentences[i].Spelled()...)
	}
	return out
}

// figures are the numbers that a passage names, in figures or in words.
func (p passage) figures() []float64 { return append(prose.Figures(p.folded), p.spelled()...) }

// hasAmount reports whether a number is among some, or in cents.
func hasAmount(all []float64, m float64) bool {
	return slices.ContainsFunc(all, func(n float64) bool { return equalAmounts(n, m) || m > 999 && equalAmounts(100*n, m) })
}

// foreignFigures returns the numbers of the call that the user does not name, in figures,
// in words or in cents.
func (r *reading) foreignFigures() (out []float64) {
	own := r.wish.figures()
	for _, f := range r.figures {
		if f > 1 && !slices.ContainsFunc(own, func(n float64) bool { return equalAmounts(n, f) || f >= 50 && equalAmounts(100*n, f) }) {
			out = append(out, f)
		}
	}
	return out
}

// hasFigure reports whether a sentence names one of some numbers.
func hasFigure(s *prose.Sentence, of []float64) bool {
	if len(of) == 0 {
		return false
	}
	return slices.ContainsFunc(of, func(m float64) bool { return hasAmount(s.Figures(), m) })
}
