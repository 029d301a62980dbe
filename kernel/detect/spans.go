package detect

import (
	"context"
	"sort"
	"unicode/utf8"
	"unsafe"
)

// Span is a half-open range of bytes, From <= To, that begins and ends at rune
// boundaries of the text it belongs to (in text that is not UTF-8 each bad
// byte counts as a rune).
type Span struct{ From, To int }

// derived is a text made from another one, the outermost from the original.
type derived struct {
	text string
	// marks tell where the parts of the text come from, in order. Without marks
	// each byte stands where it stood in the text before.
	marks []mark
	// mirror: the text before stands here backwards.
	mirror bool
	up     *derived        // the text before; nil for the original
	ctx    context.Context // of the original: reading stops when it is done; nil: it does not stop
	packed bool            // of the original: something in it was not unpacked to its end
}

// mark says that the text from out on comes from what stands at src in the
// text before, up to the next mark: byte from byte, or as a block.
type mark struct {
	out uint32
	src uint32 // its lowest bit: block
}

func (m mark) source() int { return int(m.src >> 1) }

func newSource(ctx context.Context, s string) *derived { return &derived{text: s, ctx: ctx} }

// newText returns an original that is read to its end.
func newText(s string) *derived { return &derived{text: s} }

// cancellation is the panic that ends the work on a text when its context is done.
// It never leaves the package: every exported function that takes a context
// recovers it and returns err.
type cancellation struct{ err error }

// checkContext ends the work on a text when its context is done.
func (d *derived) checkContext() {
	ctx := d.root().ctx
	if ctx == nil {
		return
	}
	if err := ctx.Err(); err != nil {
		panic(cancellation{err})
	}
}

// root returns the original.
func (d *derived) root() *derived {
	for d.up != nil {
		d = d.up
	}
	return d
}

// checkContextAt checks the context once for each interval of a text of which
// s[i:end] was read.
func (d *derived) checkContextAt(i, end int) {
	if i/contextInterval != end/contextInterval {
		d.checkContext()
	}
}

// recoverCancellation turns the panic of a [cancellation] into its error.
func recoverCancellation(err *error) {
	switch p := recover().(type) {
	case nil:
	case cancellation:
		*err = p.err
	default:
		panic(p)
	}
}

// span returns the range of the original that text[from:to] comes from.
func (d *derived) span(from, to int) Span {
	for ; d.up != nil; d = d.up {
		from, to = d.before(from, to)
	}
	return aligned(d.text, from, to)
}

// before maps a range one text up.
func (d *derived) before(from, to int) (int, int) {
	if d.mirror {
		return len(d.text) - to, len(d.text) - from
	}
	if d.marks == nil {
		return from, to
	}
	m := d.marks
	i := sort.Search(len(m), func(i int) bool { return int(m[i].out) > from }) - 1
	i = max(0, min(i, len(m)-2))
	from = m[i].at(from, m[i].source())
	j := sort.Search(len(m), func(j int) bool { return int(m[j].out) >= to })
	j = max(1, min(j, len(m)-1))
	to = m[j-1].at(to, m[j].source())
	return from, max(from, to)
}

// at maps a position after the mark; in a block it is where the block says.
func (m mark) at(out, block int) int {
	if m.src&1 == 1 {
		return block
	}
	return m.source() + out - int(m.out)
}

// aligned widens a range to the runes that it touches.
func aligned(s string, from, to int) Span {
	to = max(0, min(to, len(s)))
	from = max(0, min(from, to))
	return Span{runeStart(s, from), runeEnd(s, to)}
}

func runeStart(s string, at int) int {
	for back := at; back >= max(0, at-utf8.UTFMax+1) && at < len(s); back-- {
		if _, size := utf8.DecodeRuneInString(s[back:]); utf8.RuneStart(s[back]) {
			if back+size > at {
				return back
			}
			return at
		}
	}
	return at
}

func runeEnd(s string, at int) int {
	if start := runeStart(s, at); start < at {
		_, size := utf8.DecodeRuneInString(s[start:])
		return start + size
	}
	return at
}

// rewriter writes a text derived from another. Each byte of the source is taken
// in order, by one call of keep, put or drop.
type rewriter struct {
	from  *derived
	out   []byte
	marks []mark
	last  pieceKind
	steps int
}

// contextInterval is how many steps of a few nanoseconds each are taken between two
// checks of the context.
const contextInterval = 1 << 14

type pieceKind int

const (
	nothing pieceKind = iota
	kept              // unchanged
	replaced
	dropped
)

func rewrite(d *derived) *rewriter {
	return &rewriter{from: d, out: make([]byte, 0, len(d.text))}
}

// keep copies source[i:j].
func (d *rewriter) keep(i, j int) {
	d.mark(kept, i)
	d.out = append(d.out, d.from.text[i:j]...)
}

// keepSome is keep for what may be empty.
func (d *rewriter) keepSome(i, j int) {
	if i < j {
		d.keep(i, j)
	}
}

// put writes text in the place of source[i:j].
func (d *rewriter) put(text string, i, j int) {
	d.replace(len(text), i, j)
	d.out = append(d.out, text...)
}

// putBytes is put.
func (d *rewriter) putBytes(text []byte, i, j int) {
	d.replace(len(text), i, j)
	d.out = append(d.out, text...)
}

func (d *rewriter) replace(n, i, j int) {
	switch n {
	case 0:
		d.mark(dropped, i)
	case j - i:
		d.mark(kept, i)
	default:
		d.mark(replaced, i)
	}
}

// swap writes a text whose parts correspond to source[i:] in another order.
func (d *rewriter) swap(text string, i int) {
	d.mark(replaced, i)
	d.out = append(d.out, text...)
}

// drop leaves out what stands at source[i:].
func (d *rewriter) drop(i int) { d.mark(dropped, i) }

func (d *rewriter) mark(p pieceKind, src int) {
	if p != d.last || p == replaced {
		block := uint32(1)
		if p == kept {
			block = 0
		}
		d.marks = append(d.marks, mark{uint32(len(d.out)), uint32(src)<<1 | block}) //nolint:gosec // G115: MaxText keeps positions in 31 bits
	}
	d.last = p
	if d.steps++; d.steps%contextInterval == 0 {
		d.from.checkContext()
	}
}

// done returns the finished text.
func (d *rewriter) done() *derived {
	if len(d.marks) <= 1 && d.last <= kept {
		d.marks = nil
	} else {
		d.marks = append(d.marks, mark{uint32(len(d.out)), uint32(len(d.from.text))<<1 | 1}) //nolint:gosec // G115: MaxText keeps positions in 31 bits
	}
	text := unsafe.String(unsafe.SliceData(d.out), len(d.out)) //nolint:gosec // G103: nobody writes to out any more
	return &derived{text: text, marks: d.marks, up: d.from}
}
