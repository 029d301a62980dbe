package toolcall

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-lex/lex/kernel"
)

// wording is what the request says, in the forms in which the arguments of a call are compared
// with it.
type wording struct {
	words    []word
	byPrefix map[string][]string // their stems
	figures  []float64
	days     []day

	// Of the end of a long request:
	marks, names, mailboxes, folders []string
}

// maxWording is the length, in bytes, of the end of a request of which everything is compared.
const maxWording = 8 << 10

func (r *reading) readWording() (w wording) {
	w.byPrefix = make(map[string][]string)
	for _, s := range r.wish.sentences {
		w.words = append(w.words, s.words...)
		for _, own := range s.words {
			if p := prefixOf(own.stem); len(w.byPrefix[p]) < maxAlikes && !slices.Contains(w.byPrefix[p], own.stem) {
				w.byPrefix[p] = append(w.byPrefix[p], own.stem)
			}
		}
	}
	w.words = w.words[max(0, len(w.words)-maxWording/4):]
	w.figures = r.wish.figures()
	folded, asks := lastOf(r.wish.folded), lastOf(r.asks)
	w.days, w.marks, w.names = datesIn(asks), marksIn(folded), shaped(asks)
	w.mailboxes, w.folders = mailboxes.FindAllString(folded, maxLooks), folders.FindAllString(folded, maxLooks)
	return w
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
	switch {
	case a.flag:
		return false
	case a.numeric:
		return slices.ContainsFunc(r.wording.figures[:min(len(r.wording.figures), maxMarks)], func(n float64) bool {
			return n > 0 && !r.numbersThing(n) && !r.calledWithNumber(n)
		})
	case len(a.dates) > 0:
		return len(r.wording.days) > 0
	case mailboxes.MatchString(a.form):
		// Who wrote is no other than who is written to.
		return r.effect != kernel.ToolReads && r.drops(r.wording.mailboxes)
	case folders.MatchString(a.form):
		return r.drops(r.wording.folders)
	case r.contradictedLevel(a.form):
		return true
	}
	form, of := shape(a.form), r.wording.marks
	if !strings.Contains(form, "9") {
		name := slices.IndexFunc(r.texts, func(t string) bool {
			return t != "" && t[0] >= 'A' && t[0] <= 'Z' && len(strings.Fields(t)) < 4 && foldText(t) == a.form
		})
		if name < 0 {
			return false
		}
		form, of = shape(strings.Fields(r.texts[name])[0]), r.wording.names
	}
	return slices.ContainsFunc(of, func(m string) bool { return shape(m) == form && !r.calledWith(foldText(m)) })
}

// drops reports whether the call has not all of some pieces of the request.
func (r *reading) drops(pieces []string) bool {
	return slices.ContainsFunc(pieces, func(m string) bool { return !strings.Contains(r.arguments, strings.Trim(m, " \"'(\n")) })
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

// contradictedLevel reports whether a form is a level, a right or a frequency, and the
// request names another.
func (r *reading) contradictedLevel(form string) bool {
	if !slices.ContainsFunc(strings.FieldsFunc(form, func(c rune) bool { return c == ' ' || c == '_' || c == '-' }), func(w string) bool { return levels[w] }) {
		return false
	}
	return slices.ContainsFunc(r.wording.words, func(w word) bool { return levels[w.text] && !r.calledWith(w.text) })
}

var (
	folders = newExpression(`(?:^|[\s"'(])[~/][\w./-]+|\b[\w-]+/[\w./-]+`)
	levels  = wordSet("read readonly view viewer viewonly edit editor write writer owner admin administrator public private internal anyone everyone guest member commenter comment restricted low medium high urgent critical normal minor major draft final daily weekly monthly yearly economy business standard premium basic express open closed full partial on off enabled disabled")
)
