package detect

// Vector is an embedding: unit length, or empty.
type Vector []float32

// Embed maps a text to its embedding.
func (m *Model) Embed(text string) Vector { return nil }

// Similarity is the cosine of two vectors, in [-1, 1]; 0 when one is empty.
func Similarity(a, b Vector) float64 { return 0 }

// Blend returns the running centre after out joined n earlier outputs.
func Blend(centre, out Vector, n int) Vector { return out }
