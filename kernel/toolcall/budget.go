package toolcall

import (
	"context"

	"github.com/caddy-lex/lex/kernel/code"
	"github.com/caddy-lex/lex/kernel/prose"
)

// maxWork bounds the work of one call, in units of three to ten nanoseconds: what a
// reader needs for a byte that it passes over. A reader that does more for a byte
// counts it more often.
//
// A shell script of 64 KB takes five million units, as many bytes of JSON or of PowerShell
// seven and a half, and a conversation of 64 KB three to four more (BenchmarkLarge). Spending
// the whole takes fifty milliseconds, at worst a hundred, and only for a call that nobody
// honest sends.
const maxWork = 12 << 20

// maxUnasked is the work between two looks at the context.
const maxUnasked = 1 << 16

// budget is the work that all readers of one call share. Once it is spent, or
// the caller has gone, nothing more is read: the readers return as soon as
// they ask for more. What they found until then is not a decision.
type budget struct {
	ctx      context.Context
	used     int
	unasked  int // since the context was last asked
	over     bool
	err      error        // of the context
	reader   prose.Reader // spends from it, as programs does
	programs code.Reader
}

func newBudget(ctx context.Context) *budget {
	b := &budget{ctx: ctx}
	b.reader.Spend, b.programs.Spend = b.spend, b.spend
	return b
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
	costScreen  = 1  // one pass of a screen
	costParse   = 12 // the shell's parser, and the walk through what it made
	costJudge   = 16 // what a command line is compared with
	costSearch  = 8  // one search for a long pattern
	costCode    = 8  // the literals of a program
	costScript  = 48 // making what a script of sed does
	costQuery   = 8  // the lexer of SQL
	costPlace   = 24 // parsing one address
	costIndex   = 6  // a text that others are looked up in
	costCompare = 1  // two values that a passage may name
)

// The units that a thing costs whatever its length.
const (
	costWord    = 32   // a word
	costExpand  = 256  // a word in which something is to be expanded
	costLeaf    = 128  // a value of the arguments
	costCommand = 512  // a command, and a text that may hold one
	costSed     = 4096 // a script of sed
)

// maxMatches bounds what is looked at of the things of one kind in a text.
const maxMatches = 8
