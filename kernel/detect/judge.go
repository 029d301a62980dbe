package detect

import "github.com/caddy-lex/lex/kernel"

// Judgement says whether an output gave in to its prompt.
type Judgement struct {
	Capitulated bool
	Category    kernel.Category
	Confidence  float64
	Reason      string
}

// Judge reads an output beside the prompt it answers.
func (m *Model) Judge(prompt, output string) Judgement {
	return Judgement{Category: kernel.NoCapitulation}
}

// IsRefusal reports whether an output declines the request.
func IsRefusal(output string) bool { return false }
