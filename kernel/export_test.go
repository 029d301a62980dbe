package kernel

// The elementary functions are tested on their own, against exact arithmetic.
var (
	Exp = exp
	Log = log
)
