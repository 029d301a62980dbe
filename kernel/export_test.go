package kernel

// The elementary functions are tested on their own, against exact arithmetic, and another
// implementation checks itself against vectors of these.
var (
	Exp     = exp
	Log     = log
	Project = project
)

// Softmax returns the point and its logarithms.
func Softmax(v Point) (p, ln Point) {
	b := softmax(v)
	return b.Point, b.logs()
}

// Divergence returns KL(z || y).
func Divergence(z, y Point) float64 { return divergence(z, logs(z), logs(y)) }
