package toolcall

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/prose"
	"github.com/caddy-lex/lex/kernel/regex"
)

// wording is what the request says, in the forms in which the arguments of a call are compared
// with it.
type wording struct {
	words    []prose.Word
	byPrefix map[string][]string // their stems
	figures  []float64
	days     []prose.Day
	dropped  dropped
}

// dropped is what the request says, of the end of a long one, and the call has not.
type dropped struct {
	figure, level   bool
	mailbox, folder bool
	marks, names    []string // by their shapes
}

// maxWording is the length, in bytes, of the end of a request of which everything is compared.
const maxWording = 8 << 10

func (r *reading) readWording() (w wording) {
	w.byPrefix = make(map[string][]string)
	for _, s := range r.wish.sentences {
		w.words = append(w.words, s.Words...)
		for _, own := range s.Words {
			if p := prefixOf(own.Stem); len(w.byPrefix[p]) < maxAlikes && !slices.Contains(w.byPrefix[p], own.Stem) {
				w.byPrefix[p] = append(w.byPrefix[p], own.Stem)
			}
		}
	}
	w.words = w.words[max(0, len(w.words)-maxWording/4):]
	w.figures, w.days = r.wish.figures(), prose.Dates(lastOf(r.asks))
	w.dropped = r.drops(w)
	return w
}

// drops looks once for each piece of the request in the arguments.
func (r *reading) drops(w wording) (d dropped) {
	folded := lastOf(r.wish.folded)
	without := func(piece string) bool { return !strings.Contains(r.arguments, strings.Trim(piece, " \"'(\n")) }
	d.figure = slices.ContainsFunc(w.figures[:min(len(w.figures), maxMarks)], func(n float64) bool {
		return n > 0 && !r.numbersThing(n) && !r.calledWithNumber(n)
	})
	d.mailbox = slices.ContainsFunc(mailboxes.FindAllString(folded, maxLooks), without)
	d.folder = slices.ContainsFunc(folders.FindAllString(folded, maxLooks), without)
	var seen []string
	for i := range w.words {
		if t := w.words[i].Text; levels[t] && !slices.Contains(seen, t) {
			seen = append(seen, t)
			d.level = d.level || !r.calledWith(t)
		}
	}
	for _, m := range marksIn(folded) {
		if !r.calledWith(m) {
			d.marks = append(d.marks, shape(m))
		}
	}
	for _, name := range shaped(lastOf(r.asks)) {
		if !r.calledWith(prose.Fold(name)) {
			d.names = append(d.names, shape(name))
		}
	}
	return d
}

func lastOf(text string) string {
	at := max(0, len(text)-maxWording)
	return text[at+max(0, strings.IndexByte(text[at:], ' ')):] // a whole word
}

// has reports whether the request has a word like a stem.
func (w *wording) has(stem string) bool {
	return slices.ContainsFunc(w.byPrefix[prefixOf(stem)], func(own string) bool { return alike(own, stem) })
}

// contradicted reports whether the request gives another argument of a kind, which the call
// has not.
func (r *reading) contradicted(a addition) bool {
	lost := r.wording.dropped
	switch {
	case a.flag:
		return false
	case a.numeric:
		return lost.figure
	case len(a.dates) > 0:
		return len(r.wording.days) > 0
	case mailboxes.MatchString(a.form):
		return lost.mailbox && r.effect != kernel.ToolReads // who wrote is no other than who is written to
	case folders.MatchString(a.form):
		return lost.folder
	case lost.level && isLevel(a.form):
		return true
	}
	form := shape(a.form)
	if strings.Contains(form, "9") {
		return slices.Contains(lost.marks, form)
	}
	name := slices.IndexFunc(r.texts, func(t string) bool {
		return t != "" && t[0] >= 'A' && t[0] <= 'Z' && len(strings.Fields(t)) < 4 && prose.Fold(t) == a.form
	})
	return name >= 0 && slices.Contains(lost.names, shape(strings.Fields(r.texts[name])[0]))
}

// numbersThing reports whether a number of the request tells which thing is meant, as that of
// a ticket does: it is long, and what was read has it.
func (r *reading) numbersThing(n float64) bool {
	return n > 999 && n == math.Trunc(n) && r.untrusted.word(strconv.FormatFloat(n, 'f', -1, 64))
}

func (r *reading) calledWithNumber(n float64) bool {
	return slices.ContainsFunc(r.numbers, func(f float64) bool { return equalAmounts(f, n) || f >= 50 && equalAmounts(f, 100*n) }) ||
		n > 99 && strings.Contains(r.arguments, strconv.FormatFloat(n, 'f', -1, 64))
}

// isLevel reports whether a form is a level, a right or a frequency.
func isLevel(form string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(form, func(c rune) bool { return c == ' ' || c == '_' || c == '-' }), func(w string) bool { return levels[w] })
}

var (
	folders = regex.New(`(?:^|[\s"'(])[~/][\w./-]+|\b[\w-]+/[\w./-]+`)
	levels  = words("read readonly view viewer viewonly edit editor write writer owner admin administrator public private internal anyone everyone guest member commenter comment restricted low medium high urgent critical normal minor major draft final daily weekly monthly yearly economy business standard premium basic express open closed full partial on off enabled disabled")
)
