package code

// A Reader reads programs. The zero value reads without a bound. It keeps nothing between two
// programs and may be used by several goroutines if Spend may.
type Reader struct {
	// Spend takes units of work, of three to ten nanoseconds each, and reports whether reading
	// may go on; nil if there is no bound. Once it is false the Reader reads no further, and
	// what it returns is what it had read until then.
	Spend func(units int) bool
}

func (r *Reader) spend(units int) bool { return r.Spend == nil || r.Spend(units) }

func (r *Reader) spent() bool { return !r.spend(0) }

// What a byte costs, and a word.
const (
	costScreen = 1  // one pass of a screen
	costSearch = 8  // one search for a long pattern
	costFold   = 48 // what operations on literals make of them
	costWord   = 32 // a word, whatever its length
)
