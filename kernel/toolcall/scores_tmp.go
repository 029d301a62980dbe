package toolcall

import "github.com/caddy-lex/lex/kernel"

func (v Invariant) Scores() kernel.Scores {
	if v == "" {
		return kernel.Scores{}
	}
	return kernel.Scores{HarmRequest: 0.45}
}
