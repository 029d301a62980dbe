package kernel

// Another implementation checks itself against vectors of these.

// Project is the information projection.
var Project = project

// Softmax returns the point and its logarithms.
func Softmax(v Point) (p, ln Point) {
	b := softmax(v)
	return b.Point, b.logs()
}

// Divergence returns KL(z || y).
func Divergence(z, y Point) float64 { return divergence(z, logs(z), logs(y)) }
