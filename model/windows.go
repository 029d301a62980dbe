package model

import (
	"strings"
	"unicode"
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

// A span is where a piece of a text begins and ends.
type span struct{ from, to int }

// unread is how many bytes of a text stand only in spans that were not read. The spans are
// those of [reach.spans], where only neighbours overlap.
func unread(spans []span, read []bool) (bytes int) {
	for i, s := range spans {
		if read[i] {
			continue
		}
		if i > 0 {
			s.from = max(s.from, spans[i-1].to)
		}
		if i+1 < len(spans) && read[i+1] {
			s.to = min(s.to, spans[i+1].from)
		}
		bytes += max(0, s.to-s.from)
	}
	return bytes
}

// pieces cuts a text, see [reach.spans].
func (r reach) pieces(text string) (out []string) {
	for _, s := range r.spans(text) {
		out = append(out, text[s.from:s.to])
	}
	return out
}

// spans cuts a text on the boundaries of its characters. Blank pieces are left
// out: there is nothing to read in them, and some providers refuse them.
func (r reach) spans(text string) (out []span) {
	for from := range r.most {
		start := from * (r.size - r.overlap)
		if from > 0 && start+r.overlap >= len(text) {
			break // the piece before reached the end
		}
		piece := span{boundary(text, start), boundary(text, start+r.size)}
		if strings.TrimSpace(text[piece.from:piece.to]) != "" {
			out = append(out, piece)
		}
	}
	return out
}

// maxBlanks is how many blanks in a row a model is shown: enough for what is indented.
const maxBlanks = 16

// Condense shortens long runs of blanks, and bytes that are no UTF-8, which say nothing:
// they would use up what a model reads of a text, and what stands behind them would remain
// unread.
func Condense(text string) string {
	blanks := 0
	return strings.Map(func(r rune) rune {
		if !isBlank(r) {
			blanks = 0
			return r
		}
		if blanks++; blanks > maxBlanks {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

// isBlank reports white space and the characters that look like it or like nothing. Tags
// (U+E0000) are none of them: a text can be written in them, and some models read it.
func isBlank(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune("\u00AD\u034F\u115F\u1160\u17B4\u17B5\u180E\u200B\u200C\u200D\u2060\u2800\u3164\uFEFF\uFFA0", r)
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
