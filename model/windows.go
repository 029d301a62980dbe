package model

import (
	"strings"
	"unicode/utf8"
)

// reach bounds what is read of a text, piece by piece.
type reach struct {
	size    int // bytes of a piece, at most
	overlap int // bytes that two neighbours share, so that no phrase is cut by both
	most    int // pieces
}

// bytes is how many bytes are read of a longer text.
func (r reach) bytes() int { return r.size + (r.most-1)*(r.size-r.overlap) }

// pieces cuts a text on the boundaries of its characters. Blank pieces are left
// out: there is nothing to read in them, and some providers refuse them.
func (r reach) pieces(text string) []string {
	var out []string
	for from := range r.most {
		start := from * (r.size - r.overlap)
		if from > 0 && start+r.overlap >= len(text) {
			break // the piece before reached the end
		}
		piece := text[boundary(text, start):boundary(text, start+r.size)]
		if strings.TrimSpace(piece) != "" {
			out = append(out, piece)
		}
	}
	return out
}

// boundary is the start of the character at a byte, or the text's end.
func boundary(text string, at int) int {
	if at >= len(text) {
		return len(text)
	}
	for back := range utf8.UTFMax {
		if at-back >= 0 && utf8.RuneStart(text[at-back]) {
			return at - back
		}
	}
	return at // no UTF-8
}
