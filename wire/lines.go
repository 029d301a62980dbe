package wire

import (
	"bytes"
	"fmt"

	"github.com/tidwall/gjson"
)

// A lineSplitter splits a stream of JSON values into frames, one a line, as Ollama sends
// it. A line ends in LF or CRLF, has no limit but the one of a frame, and is a comment if
// it is blank.
type lineSplitter struct {
	frameQueue
	limit int // of one frame, in bytes

	buf   []byte // what frames are cut from; never written again where a frame is
	start int    // of the unfinished line
	pos   int    // everything before was scanned
	begun bool   // the first line was cut
	err   error
}

// Push implements [Splitter].
func (l *lineSplitter) Push(p []byte) error {
	for len(p) > 0 && l.err == nil {
		n := fitting(l.buf, p)
		l.append(p[:n])
		l.scan()
		p = p[n:]
	}
	return l.err
}

// scan finds the lines.
func (l *lineSplitter) scan() {
	for l.err == nil {
		end := indexFrom(l.buf, l.pos, '\n')
		if l.pos = end; end == len(l.buf) {
			break
		}
		l.pos++
		l.endLine(l.pos)
	}
	if len(l.buf)-l.start > l.limit {
		l.tooLarge()
	}
}

// append keeps only the unfinished line of the buffer.
func (l *lineSplitter) append(p []byte) {
	l.buf, l.pos, l.start = l.buf[l.start:], l.pos-l.start, 0
	l.buf = appendUncut(l.buf, p)
}

func (l *lineSplitter) endLine(end int) {
	if end-l.start > l.limit {
		l.tooLarge()
		return
	}
	l.add(l.frame(l.buf[l.start:end:end]))
	l.start = end
}

// frame reads one line. A byte order mark before the first one is not part of its
// JSON: the JavaScript SDK reads over it.
func (l *lineSplitter) frame(raw []byte) Frame {
	data := bytes.TrimRight(raw, "\r\n")
	if !l.begun {
		l.begun, data = true, bytes.TrimPrefix(data, byteOrderMark)
	}
	return Frame{Raw: raw, Data: data, Comment: len(bytes.TrimSpace(data)) == 0}
}

func (l *lineSplitter) tooLarge() {
	if l.err == nil {
		l.err = fmt.Errorf("reading a line of more than %d bytes: %w", l.limit, ErrFrameTooLarge)
	}
}

// Last implements [Splitter]. The last line needs no LF: every client reads it.
func (l *lineSplitter) Last() (Frame, bool) {
	if l.err != nil || l.start == len(l.buf) {
		return Frame{}, false
	}
	f := l.frame(bytes.Clone(l.buf[l.start:]))
	l.start = len(l.buf)
	return f, true
}

// Ended implements [Splitter]. Whoever writes behind a line without LF ends it, as
// [ollamaStream] does.
func (*lineSplitter) Ended(last Frame) (Frame, bool) {
	return last, last.Comment || gjson.ValidBytes(last.Data)
}

// Interface guard
var _ Splitter = (*lineSplitter)(nil)
