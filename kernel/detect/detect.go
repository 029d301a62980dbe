package detect

import "github.com/caddy-lex/lex/kernel"

// Source says where a text came from.
type Source string

// The sources of a text.
const (
	User      Source = "user"
	System    Source = "system"
	Assistant Source = "assistant"
	Tool      Source = "tool"
	Document  Source = "document"
)

// Text is one content-bearing part of a request.
type Text struct {
	Source Source
	Body   string
}

// Signal is what the detector says of the texts of one turn.
type Signal struct {
	// Scores are calibrated probabilities, each the maximum over the texts.
	Scores kernel.Scores
	// Threat is the cosine of the user's text with the harm centroid minus the
	// one with the benign centroid, in [-2, 2]; 0 without user text.
	Threat float64
	// SelfReference: the user's text speaks of the assistant's rules or
	// identity in order to change them.
	SelfReference bool
	// Embedding of the user's texts together: unit length, or nil without any.
	Embedding Vector
	// BytesInspected counts the bytes of all texts that were read.
	BytesInspected int
}

// Assess scores the texts of one turn.
func (m *Model) Assess(texts []Text) Signal { return Signal{} }
