package kernel

// A Pillar indexes a component of a [Point].
type Pillar int

// The three pillars, in the order of every vector of this package.
const (
	Continuity Pillar = iota
	Reciprocity
	Sovereignty
)

// String returns the pillar's letter: C, R or S.
func (p Pillar) String() string { return "CRS"[p : p+1] }

// A Point is a triple in the order (C, R, S): a state or a weight vector (a
// point of the open probability simplex) or a pressure (components >= 0).
// In JSON it is an array of three numbers.
type Point [3]float64

// Min returns the smallest component, the margin M of a state.
func (p Point) Min() float64 { return min(p[0], p[1], p[2]) }

// Weakest returns the pillar of the smallest component; of equal ones the first.
func (p Point) Weakest() Pillar {
	w := Continuity
	for i := Reciprocity; i <= Sovereignty; i++ {
		if p[i] < p[w] {
			w = i
		}
	}
	return w
}

// Session is the kernel's memory of one session between two turns. It is a
// plain value: the store keeps it, the kernel maps it to the next one.
type Session struct {
	// X is the governed state after the last turn; min X >= tau.
	X Point `json:"x"`
	// Z holds the weights for the next turn; positive, sum 1.
	Z Point `json:"z"`
	// CUSUM is g, the slow-drip statistic; >= 0.
	CUSUM float64 `json:"cusum"`
	// Carry is the pressure that the previous output left for the next turn.
	Carry Point `json:"carry"`
	// Policy is the hash of the policy under which X and Z were computed.
	Policy string `json:"policy"`
}
