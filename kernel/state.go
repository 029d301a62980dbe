package kernel

// A Pillar indexes a component of a [Point].
type Pillar int

// The three pillars, in the order of every vector of this package.
const (
	// Continuity (C): the assistant keeps its identity, its commitments and the
	// thread of the conversation across turns.
	Continuity Pillar = iota
	// Reciprocity (R): the exchange serves its participants and does not turn
	// them against others or each other.
	Reciprocity
	// Sovereignty (S): the operator's rules and the assistant's own judgement
	// stay in force; the prompt does not overwrite them.
	Sovereignty
)

// String returns the pillar's letter: C, R or S. It panics on any other value.
func (p Pillar) String() string { return "CRS"[p : p+1] }

// A Point is a triple in the order (C, R, S): a state or a weight vector (a
// point of the open probability simplex: components > 0, sum 1 within rounding)
// or a pressure (components >= 0). In JSON it is an array of three numbers.
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

// largest returns the pillar of the largest component; of equal ones the first.
func (p Point) largest() Pillar {
	l := Continuity
	for i := Reciprocity; i <= Sovereignty; i++ {
		if p[i] > p[l] {
			l = i
		}
	}
	return l
}

// Session is the kernel's memory of one session between two turns. It is a
// plain value: the store keeps it, the kernel maps it to the next one. Its
// numbers must survive storage exactly, as shortest decimals do. The zero value
// is not a session; [Kernel.NewSession] makes the first one.
type Session struct {
	// X is the governed state after the last turn; min X >= tau.
	X Point `json:"x"`
	// Z holds the weights for the next turn; positive, sum 1, each component at
	// least (1 - kappa)/3.
	Z Point `json:"z"`
	// CUSUM is the statistic of the fast slow-drip chart; in [0, cusum_h].
	CUSUM float64 `json:"cusum"`
	// CUSUMSlow is that of the slow chart; in [0, cusum_slow_h].
	CUSUMSlow float64 `json:"cusum_slow,omitzero"`
	// Carry is the pressure that the previous output left for the next turn;
	// components >= 0. It acts once.
	Carry Point `json:"carry"`
	// Policy is the hash of the policy under which X and Z were computed.
	Policy string `json:"policy"`
}
