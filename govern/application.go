package govern

import (
	"context"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
)

// An application tells its assistant who it is, what it must do and what it must never do. It
// does so in instructions (system messages and the definitions of tools) and in context that it
// puts into the user's turn. From a user that would be an attack on the assistant's identity, or
// coercion; from the application it is its right. It may not ask for harm.
//
// What it says short of a refusal is no evidence. It comes again with each turn, so a doubt about
// it would add up until the session of a user who said nothing is refused.

// A long text counts as the worst of its windows. The instructions of coding agents have
// hundreds, about files, commands and the network, and in one of the five agents that were
// measured the worst one reaches 0.8. So what is longer than shortOfApplication, in bytes, is
// refused from refuseLongAt on.
const (
	shortOfApplication = 2000
	refuseLongAt       = 0.90
)

// refuseContextAt is the score from which context is an attack on the assistant. A part of the
// user's turn that is marked as context may be the user's own after all, and what is plain stays
// refused: of 150 jailbreaks of the wild 112 reach it, of the agents' context none (0.91 at most,
// "these instructions override any default behavior").
const refuseContextAt = 0.95

// readApplication scores what the application says, and returns the scores that count.
func (o *Opened) readApplication(ctx context.Context, instructions, beside []detect.Text) (detect.Signal, error) {
	s, err := o.score(ctx, instructions)
	if err != nil {
		return s, err
	}
	found, err := o.score(ctx, beside)
	if err != nil {
		return s, err
	}
	counted := o.governor.harmOf(found.Scores, beside)
	if found.Scores.Identity >= refuseContextAt {
		counted.Identity = found.Scores.Identity
	}
	s.Scores = maxScores(o.governor.harmOf(s.Scores, instructions), counted)
	return withGaps(s, found), nil
}

// harmOf returns of the scores of an application's texts those for harm that is asked for, as far
// as they would be refused alone.
func (g *Governor) harmOf(s kernel.Scores, texts []detect.Text) (harm kernel.Scores) {
	size := 0
	for _, t := range texts {
		size += len(t.Body)
	}
	refuseAt := g.Kernel.Policy().RefuseAt
	if size > shortOfApplication {
		refuseAt = max(refuseAt, refuseLongAt)
	}
	if s.Exploitative >= refuseAt {
		harm.Exploitative = s.Exploitative
	}
	if s.HarmRequest >= refuseAt {
		harm.HarmRequest = s.HarmRequest
	}
	return harm
}
