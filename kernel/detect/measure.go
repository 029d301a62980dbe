package detect

// Measured is the triple measured on an output: each in [0, 1], sum 1.
type Measured struct{ C, R, S float64 }

// Measure measures an output. c is the continuity before normalisation; ok is
// false when there is no output or nothing to normalise.
func (m *Model) Measure(prompt, output string, centre Vector, j Judgement) (r Measured, c float64, ok bool) {
	return Measured{}, 0, false
}
