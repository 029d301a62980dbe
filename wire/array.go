package wire

import (
	"bytes"
	"fmt"
	"strings"
)

// An arraySplitter splits a JSON array (RFC 8259) that is sent element by element. A
// frame ends with its element, so that it is ready as soon as the element is: the
// bracket, comma and white space before an element belong to its frame. The closing
// bracket is a frame whose Data is that bracket. White space behind it is a comment.
//
// What is no array is split all the same, because some client may read it: a value
// that stands alone is a frame, and so is each of several values without commas.
type arraySplitter struct {
	frameQueue
	limit int // of one frame, in bytes

	buf    []byte // what frames are cut from; never written again where a frame is
	start  int    // of the unfinished frame
	value  int    // where its element starts; -1 as long as none has begun
	pos    int    // everything before was scanned
	depth  int    // the open objects and arrays of the element
	quoted bool   // pos is in a string
	escape bool   // a backslash stands before pos
	opened bool   // pos is in the array
	err    error
}

// closingBracket is the Data of the frame that ends an array.
var closingBracket = []byte("]")

// Push implements [Splitter].
func (s *arraySplitter) Push(p []byte) error {
	for len(p) > 0 && s.err == nil {
		n := fitting(s.buf, p)
		s.append(p[:n])
		for s.pos < len(s.buf) && s.err == nil {
			s.scan(s.buf[s.pos])
		}
		if len(s.buf)-s.start > s.limit {
			s.tooLarge()
		}
		p = p[n:]
	}
	return s.err
}

func (s *arraySplitter) tooLarge() {
	if s.err == nil {
		s.err = fmt.Errorf("reading an element of more than %d bytes: %w", s.limit, ErrFrameTooLarge)
	}
}

// append keeps only the unfinished frame of the buffer, as in [eventSplitter].
func (s *arraySplitter) append(p []byte) {
	s.buf = s.buf[s.start:]
	s.pos -= s.start
	if s.value >= 0 {
		s.value -= s.start
	}
	s.start = 0
	s.buf = appendUncut(s.buf, p)
}

// scan takes the byte at pos.
func (s *arraySplitter) scan(c byte) {
	switch {
	case s.quoted:
		s.scanString(c)
	case s.value < 0:
		s.scanBetween(c)
	default:
		s.scanElement(c)
	}
}

// scanString takes a byte of a string. Brackets mean nothing there.
func (s *arraySplitter) scanString(c byte) {
	s.pos++
	switch {
	case s.escape:
		s.escape = false
	case c == '\\':
		s.escape = true
	case c == '"':
		s.quoted = false
		if s.depth == 0 {
			s.endFrame(s.pos)
		}
	}
}

// scanBetween takes a byte that stands before an element.
func (s *arraySplitter) scanBetween(c byte) {
	switch {
	case isArraySpace(c), c == ',':
		s.pos++
	case c == '[' && !s.opened:
		s.opened = true
		s.pos++
	case c == ']' && s.opened:
		s.opened = false
		s.value = s.pos
		s.pos++
		s.endFrame(s.pos)
	default:
		s.value = s.pos
		s.scanElement(c)
	}
}

// scanElement takes a byte of an element outside strings.
func (s *arraySplitter) scanElement(c byte) {
	bare := s.depth == 0 && s.pos > s.value // a number or a word has no end of its own
	if bare && (isArraySpace(c) || strings.IndexByte(`,]}{["`, c) >= 0) {
		s.endFrame(s.pos)
		return
	}
	s.pos++
	switch c {
	case '"':
		s.quoted = true
	case '{', '[':
		s.depth++
	case '}', ']':
		if s.depth--; s.depth <= 0 {
			s.endFrame(s.pos)
		}
	}
}

// isArraySpace reports whether a byte is white space of JSON.
func isArraySpace(c byte) bool { return strings.IndexByte(" \t\r\n", c) >= 0 }

func (s *arraySplitter) endFrame(end int) {
	if end-s.start > s.limit {
		s.tooLarge()
		return
	}
	s.add(Frame{Raw: s.buf[s.start:end:end], Data: s.buf[s.value:end:end]})
	s.start, s.value, s.depth = end, -1, 0
}

// Last implements [Splitter]. An element that is cut is read like every other, and what
// has no element is a comment. An array that nobody closed ends in one, which may be empty.
func (s *arraySplitter) Last() (Frame, bool) {
	f := Frame{Raw: bytes.Clone(s.buf[s.start:]), Comment: s.value < 0}
	if !f.Comment {
		f.Data = f.Raw[s.value-s.start:]
	}
	return f, len(f.Raw) > 0 || s.opened
}

// Ended implements [Splitter]. An element ends with its last byte, so one that is left over is
// cut, and an array that is not closed is cut behind any: more may have followed.
func (s *arraySplitter) Ended(last Frame) (Frame, bool) { return last, last.Comment && !s.opened }

// Interface guard
var _ Splitter = (*arraySplitter)(nil)
