package wire

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// An eventSplitter splits an event stream (WHATWG HTML, section 9.2) into frames. A
// frame is ready as soon as its blank line is complete, except that a blank line in CR
// waits for one more byte, which may be its LF, unless the line before ended in CR
// alone.
type eventSplitter struct {
	frameQueue
	limit int // of one frame, in bytes

	buf    []byte // what frames are cut from; never written again where a frame is
	start  int    // of the unfinished frame
	fields int    // where its fields start: behind the byte order mark, if there is one
	line   int    // start of the unfinished line
	pos    int    // everything before was scanned
	begun  bool   // the byte order mark was looked for
	crlf   bool   // a line has ended in CRLF
	err    error
}

// chunk is the least size of a new buffer, so that short frames share one.
const chunk = 4 << 10

// appendUncut appends to the bytes of a buffer that are in no frame yet. Appending within
// the capacity is safe, because frames lie before the buffer's end.
func appendUncut(uncut, p []byte) []byte {
	if size := len(uncut) + len(p); size > cap(uncut) && size <= chunk {
		uncut = append(make([]byte, 0, chunk), uncut...)
	}
	return append(uncut, p...)
}

// fitting returns how many bytes of p to take next: those that a buffer still has room for,
// so that only the frame at its end moves to a new one.
func fitting(buf, p []byte) int {
	if room := cap(buf) - len(buf); room > 0 {
		return min(room, len(p))
	}
	return len(p)
}

// Push implements [Splitter].
func (d *eventSplitter) Push(p []byte) error {
	for len(p) > 0 && d.err == nil {
		n := fitting(d.buf, p)
		d.append(p[:n])
		d.scan()
		if len(d.buf)-d.start > d.limit {
			d.tooLarge()
		}
		p = p[n:]
	}
	return d.err
}

func (d *eventSplitter) tooLarge() {
	if d.err == nil {
		d.err = fmt.Errorf("reading a frame of more than %d bytes: %w", d.limit, ErrFrameTooLarge)
	}
}

// append keeps only the unfinished frame of the buffer.
func (d *eventSplitter) append(p []byte) {
	d.buf = d.buf[d.start:]
	d.line -= d.start
	d.pos -= d.start
	d.fields -= d.start
	d.start = 0
	d.buf = appendUncut(d.buf, p)
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// scan finds the lines, and with the blank ones the frames.
func (d *eventSplitter) scan() {
	if !d.begun && !d.skipByteOrderMark() {
		return
	}
	lf := -1 // next LF, remembered: looking for it in each line of a CR stream is quadratic
	for d.pos < len(d.buf) && d.err == nil {
		if lf < d.pos {
			lf = indexFrom(d.buf, d.pos, '\n')
		}
		at := lf
		if i := bytes.IndexByte(d.buf[d.pos:lf], '\r'); i >= 0 {
			at = d.pos + i
		}
		if at == len(d.buf) {
			d.pos = at
			return
		}
		if !d.endLine(at) {
			return
		}
	}
}

// indexFrom is the index of c in b from i on, or len(b).
func indexFrom(b []byte, i int, c byte) int {
	if n := bytes.IndexByte(b[i:], c); n >= 0 {
		return i + n
	}
	return len(b)
}

// skipByteOrderMark reports whether enough bytes are there to tell.
func (d *eventSplitter) skipByteOrderMark() bool {
	if len(d.buf) < len(byteOrderMark) && bytes.HasPrefix(byteOrderMark, d.buf) {
		return false
	}
	d.begun = true
	if bytes.HasPrefix(d.buf, byteOrderMark) {
		d.fields, d.line, d.pos = len(byteOrderMark), len(byteOrderMark), len(byteOrderMark)
	}
	return true
}

// endLine takes the line that ends with the CR or LF at index at. It reports
// whether it is known where the line ends.
func (d *eventSplitter) endLine(at int) bool {
	blank, end := at == d.line, at+1
	if d.buf[at] == '\r' {
		bare := blank && at > d.start && d.buf[at-1] == '\r' // the stream ends lines in CR alone
		switch {
		case bare:
		case end == len(d.buf):
			d.pos = at
			return false
		case d.buf[end] == '\n':
			end++
			d.crlf = true
		}
	}
	d.line, d.pos = end, end
	if blank {
		d.endFrame(end)
	}
	return true
}

func (d *eventSplitter) endFrame(end int) {
	if end-d.start > d.limit {
		d.tooLarge()
		return
	}
	d.add(parseFrame(d.buf[d.start:end:end], d.buf[d.fields:end]))
	d.start, d.fields = end, end
}

// Last implements [Splitter]. The frame that the stream ended in has no blank line. Some
// clients read it all the same, so it is read like every other.
func (d *eventSplitter) Last() (Frame, bool) {
	raw := bytes.Clone(d.buf[d.start:])
	last := eventSplitter{limit: len(raw) + 2}
	if len(raw) == 0 || last.Push(append(bytes.Clone(raw), "\n\n"...)) != nil {
		return Frame{}, false
	}
	f, ok := last.Next()
	f.Raw = raw
	return f, ok
}

// Ended implements [Splitter]. The data of a frame is whole if it is JSON or the end mark of
// OpenAI. The frame ends as those before it do: the Go SDK of Gemini mistakes the ends where
// both kinds of them occur.
func (d *eventSplitter) Ended(last Frame) (Frame, bool) {
	whole := len(last.Stray) == 0 && (gjson.ValidBytes(last.Data) || bytes.HasPrefix(last.Data, doneData))
	if !whole && !last.Comment {
		return Frame{}, false
	}
	newline := "\n"
	if d.crlf {
		newline = "\r\n"
	}
	raw := bytes.Clone(last.Raw)
	if bytes.HasSuffix(raw, []byte("\r")) {
		raw = append(raw, '\n')
	}
	if !bytes.HasSuffix(raw, []byte("\n")) {
		raw = append(raw, newline...)
	}
	raw = append(raw, newline...)
	last.Raw = raw
	return last, true
}

// parseFrame reads the fields of one frame, which end raw.
func parseFrame(raw, lines []byte) Frame {
	f := Frame{Raw: raw, Comment: true}
	data, stray := 0, 0
	for len(lines) > 0 {
		var line []byte
		line, lines = cutLine(lines)
		name, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		// Data is JSON, which is none if it is cut within a string, and elsewhere has no such
		// character. Only behind its end mark may stand anything.
		astray := (string(name) != "data" || bytes.HasPrefix(value, doneData)) && hasOtherLineEnd(line)
		f.Comment = f.Comment && len(name) == 0 && !astray
		switch string(name) {
		case "": // a comment, or the blank line
		case "id", "retry":
			f.HasID = true
		case "event":
			f.Event = string(value)
		case "data":
			f.Data = joinData(f.Data, value, data)
			data++
		default:
			astray = true
		}
		if astray {
			f.Stray = joinData(f.Stray, line, stray)
			stray++
		}
	}
	return f
}

// hasOtherLineEnd reports whether a line is several to clients that cut it by the str.splitlines
// of Python, as httpx does for Google's SDK: behind such a character may stand a field that
// nobody else sees. The byte 0x85 is a line end of its own where a client takes the stream for
// Latin-1, as requests does, and the last one of U+0085 in UTF-8.
func hasOtherLineEnd(line []byte) bool {
	return bytes.ContainsFunc(line, func(c rune) bool {
		return c == '\v' || c == '\f' || c >= 0x1c && c <= 0x1e || c == '\u2028' || c == '\u2029'
	}) || bytes.IndexByte(line, 0x85) >= 0
}

// joinData appends the n-th data line. A single one needs no copy.
func joinData(data, value []byte, n int) []byte {
	switch n {
	case 0:
		return value[:len(value):len(value)]
	case 1:
		data = append(make([]byte, 0, 2*(len(data)+len(value))+1), data...)
	}
	return append(append(data, '\n'), value...)
}

// cutLine cuts the first line off, without its CR, LF or CRLF.
func cutLine(b []byte) (line, rest []byte) {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		i = len(b)
	}
	if j := bytes.IndexByte(b[:i], '\r'); j >= 0 {
		rest = b[j+1:]
		return b[:j], bytes.TrimPrefix(rest, []byte{'\n'})
	}
	return b[:i], b[min(i+1, len(b)):]
}

// AppendEvent appends a frame with one data line. The data must not contain CR
// or LF, which compact JSON never does. Every client we know reads this form:
// one space, no id, no event name, one object a line.
func AppendEvent(dst, data []byte) []byte {
	dst = append(dst, "data: "...)
	dst = append(dst, data...)
	return append(dst, "\n\n"...)
}

// AppendComment appends a frame that clients skip. Text must be one line.
// Clients of Gemini are the exception: their Python SDK fails on comments.
func AppendComment(dst []byte, text string) []byte {
	dst = append(dst, ": "...)
	dst = append(dst, text...)
	return append(dst, "\n\n"...)
}

// Aside returns the lines of a frame of an event stream that clients throw away and that hold
// words. Who does not take the answer for a stream shows them.
func (f Frame) Aside() []byte {
	var aside []byte
	n := 0
	for lines := f.Raw; len(lines) > 0; {
		var line []byte
		line, lines = cutLine(lines)
		name, value, _ := bytes.Cut(line, []byte{':'})
		if thrown := []string{"", "id", "retry", "event"}; slices.Contains(thrown, string(name)) && holdsWords(string(bytes.TrimSpace(value))) {
			aside = joinData(aside, line, n)
			n++
		}
	}
	return aside
}

// WithoutComments returns a frame of an event stream without those of its comments whose text
// begins with a name, in whatever case. The name is given in lower case.
func (f Frame) WithoutComments(name string) Frame {
	if !bytes.HasPrefix(f.Raw, []byte(":")) && !bytes.Contains(f.Raw, []byte("\n:")) && !bytes.Contains(f.Raw, []byte("\r:")) {
		return f
	}
	kept := make([]byte, 0, len(f.Raw))
	for rest := f.Raw; len(rest) > 0; {
		end := len(rest)
		if at := bytes.IndexAny(rest, "\r\n"); at >= 0 {
			if end = at + 1; bytes.HasPrefix(rest[at:], []byte("\r\n")) {
				end++
			}
		}
		text, is := bytes.CutPrefix(rest[:end], []byte(":"))
		text = bytes.TrimLeft(text, " \t")
		if !is || len(text) < len(name) || !strings.EqualFold(string(text[:len(name)]), name) {
			kept = append(kept, rest[:end]...)
		}
		rest = rest[end:]
	}
	f.Raw = kept
	return f
}

// Interface guard
var _ Splitter = (*eventSplitter)(nil)
