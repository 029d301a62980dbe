package govern

import (
	"slices"
	"strings"

	"github.com/caddy-lex/lex/wire"
)

// Models finish one part of an answer before they begin the next, so the text of a
// choice is read as it comes. But clients put the pieces of each part together, and if
// pieces of several parts come in turn, what a client shows of one stands nowhere in the
// text as it came. The parts of such a choice are therefore checked by themselves as well,
// and what is judged at the end is the text that they make one after the other.

// maxApart bounds how many parts of an answer are read by themselves.
const maxApart = 64

// interleaving follows which parts the text of a choice comes from.
type interleaving struct {
	pieces []piece           // in order, until a part goes on behind another
	begun  map[partName]bool // the parts of which there are pieces
	apart  map[partName]*apartText
	texts  []*apartText // those of apart, in the order in which they began
}

// A piece is a run of text of one part; it ends where the next begins.
type piece struct {
	part partName
	from int
}

// A partName names a part of a choice: refusals stand beside the content.
type partName struct {
	kind wire.Kind
	at   string
}

// An apartText is the text of one part so far.
type apartText struct {
	strings.Builder
	number    int // as a choice for the checks, behind those of the answer
	unchecked int // bytes since the last check
}

// goesOn notes that a text of a part stands behind before. It reports whether the part goes
// on behind another, so that from now on the parts have to be read by themselves.
func (i *interleaving) goesOn(part partName, before string) bool {
	if n := len(i.pieces); n > 0 && i.pieces[n-1].part == part {
		return false
	}
	if i.begun[part] {
		return true
	}
	if i.begun == nil {
		i.begun = make(map[partName]bool, 1)
	}
	i.begun[part] = true
	i.pieces = append(i.pieces, piece{part, len(before)})
	return false
}

// noteParts keeps the text of each part of a choice, once its parts are interleaved.
func (g *Gate) noteParts(c *choiceText, d wire.Delta) {
	part, before := partName{d.Kind, d.Part}, c.String()
	if c.parts.apart == nil {
		if !c.parts.goesOn(part, before) {
			return
		}
		c.parts.apart = make(map[partName]*apartText)
		for n, p := range c.parts.pieces {
			to := len(before)
			if n+1 < len(c.parts.pieces) {
				to = c.parts.pieces[n+1].from
			}
			g.addApart(c, p.part, before[p.from:to])
		}
		c.parts.pieces, c.parts.begun = nil, nil
	}
	g.addApart(c, part, d.Text)
}

// addApart adds to the text of a part. Beyond maxApart, the parts of a choice share the text of
// its last one.
func (g *Gate) addApart(c *choiceText, part partName, text string) {
	t := c.parts.apart[part]
	switch last := len(c.parts.texts) - 1; {
	case t != nil:
	case len(g.apart) >= maxApart && last >= 0:
		g.tangled = true
		t = c.parts.texts[last]
	default:
		t = &apartText{number: wire.MaxChoices + len(g.apart)}
		g.apart = append(g.apart, t)
		c.parts.texts = append(c.parts.texts, t)
	}
	c.parts.apart[part] = t
	_, _ = t.WriteString(text) // a strings.Builder never fails
	t.unchecked += len(text)
}

// checkApart checks the parts that are read by themselves. It reports whether a check
// flags.
func (g *Gate) checkApart() (flagged bool) {
	return slices.ContainsFunc(g.apart, func(t *apartText) bool {
		if t.unchecked == 0 {
			return false
		}
		t.unchecked = 0
		return g.Check(t.number, t.String())
	})
}

// Assembled returns the whole text of each choice that has text, in order, as clients put
// it together: one part after the other. It reports whether there were more parts, whose
// pieces came in turn, than are told apart.
func (g *Gate) Assembled() (texts []string, tangled bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.texts(func(_ int, c *choiceText) string {
		if len(c.parts.texts) == 0 {
			return c.String()
		}
		var whole strings.Builder
		for _, t := range c.parts.texts {
			whole.WriteString(t.String())
		}
		return whole.String()
	}), g.tangled
}
