package wire

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// A blockEdit takes calls out of an answer in blocks. A text stands in the place of each, so
// that all other blocks stay where they are: those with reasoning are signed. Where clients
// parse the texts, the block goes, and the note stands in the end.
type blockEdit struct {
	blocked map[string]BlockedCall // by the number of the block
	dropped []int                  // numbers of blocks that went
	left    bool                   // some call is left
}

// notesOfTheEnd are the notes that do not stand in the content, one a line.
func (e *blockEdit) notesOfTheEnd() string {
	var notes []string
	for _, key := range slices.SortedFunc(maps.Keys(e.blocked), func(a, b string) int { return cmp.Or(len(a)-len(b), cmp.Compare(a, b)) }) {
		if b := e.blocked[key]; b.Place == OnlyRefusal {
			notes = append(notes, b.Note)
		}
	}
	return strings.Join(notes, "\n")
}

// numberOf is the number of a block without those that went before it: SDKs count.
func (e *blockEdit) numberOf(position int) int {
	number := position
	for _, dropped := range e.dropped {
		if dropped < position {
			number--
		}
	}
	return number
}
