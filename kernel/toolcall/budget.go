package toolcall

import "context"

// maxWork bounds the work of one call, in units of ten to fifty nanoseconds:
// what a reader needs for a byte it passes over, so that a reader which
// searches a byte for many patterns counts it many times.
//
// The number is four times the work of the most expensive honest calls that
// fit the body of a request (TestLargeHonestCalls): a shell script of 60 KB
// takes four million units, a written file of 100 KB two, 100 KB that may be
// anything twelve. Spending it takes about a second, and only for a call that
// nobody honest sends.
const maxWork = 50 << 20

// maxUnasked is the work between two looks at the context.
const maxUnasked = 1 << 16

// budget is the work that all readers of one call share. Once it is spent, or
// the caller has gone, nothing more is read: the readers return as soon as
// they ask for more. What they found until then is not a decision.
type budget struct {
	ctx     context.Context
	used    int
	unasked int // since the context was last asked
	over    bool
	err     error // of the context
}

// spend takes n units and reports whether reading may go on.
func (b *budget) spend(n int) bool {
	if b.over || b.err != nil {
		return false
	}
	if n > maxWork-b.used {
		b.over = true
		return false
	}
	b.used += n
	b.unasked += n
	if b.unasked > maxUnasked {
		b.unasked, b.err = 0, b.ctx.Err()
	}
	return b.err == nil
}

// unreadable ends the reading of a call that nobody honest would write.
func (b *budget) unreadable() { b.over = true }

// spent reports whether reading has ended early.
func (b *budget) spent() bool { return b.over || b.err != nil }

// The units that a byte costs a reader, measured by BenchmarkHostile.
const (
	costParse   = 12 // the shell's parser, and the walk through what it made
	costJudge   = 48 // every pattern that a command line is compared with
	costSearch  = 8  // one search for a long pattern
	costCode    = 64 // the patterns that a program is compared with
	costPattern = 64 // one pattern with many ways on
	costQuery   = 24 // the lexer of SQL and the pattern before it
	costPlace   = 24 // parsing one address
	costIndex   = 16 // a text that others are looked up in
	costWord    = 32 // one expanded word, whatever its length
)
