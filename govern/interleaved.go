package govern

import (
	"slices"
	"strings"

	"github.com/caddy-lex/lex/wire"
)

// Models finish one part of an answer before they begin the next, so the text of a
// choice is read as it comes. But clients put the pieces of each part together, and if
// pieces of several parts come in turn, what a client shows of one stands nowhere in the
// text as it came. The parts of such a choice are therefore checked and judged by
// themselves as well.

// maxApart bounds how many parts of an answer are read by themselves.
const maxApart = 64

// interleaving follows which parts the text of a choice comes from.
type interleaving struct {
	pieces []piece           // in order, until a part goes on behind another
	begun  map[partName]bool // the parts of which there are pieces
	apart  map[partName]*apartText
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

// addApart adds to the text of a part. Those beyond maxApart share the text of the last.
func (g *Gate) addApart(c *choiceText, part partName, text string) {
	t := c.parts.apart[part]
	if t == nil {
		if len(g.apart) == maxApart {
			g.tangled = true
			t = g.apart[maxApart-1]
		} else {
			t = &apartText{number: wire.MaxChoices + len(g.apart)}
			g.apart = append(g.apart, t)
		}
		c.parts.apart[part] = t
	}
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

// Apart returns the whole texts of the parts that are to be judged by themselves because
// their pieces came in turn with those of others. It reports whether there were more of
// them than are read.
func (g *Gate) Apart() (texts []string, tangled bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range g.apart {
		texts = append(texts, t.String())
	}
	return texts, g.tangled
}
