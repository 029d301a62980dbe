package govern

import (
	"context"
	"slices"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/store"
)

// A DryRun takes the turns of one session through the phases of a [Governor] without
// a store and without a model. It decides on each turn as the proxy would. It belongs
// to one goroutine at a time.
type DryRun struct {
	governor *Governor
	session  store.Session
}

// A DryTurn is one turn of a [DryRun].
type DryTurn struct {
	Prompt       string // of the user; "" if only a tool or a document spoke
	Said         []detect.Text
	Instructions []detect.Text // the application's own
	Answer       string        // of the model; "" if it is not known
}

// DryRun begins a session.
func (g *Governor) DryRun() *DryRun {
	return &DryRun{governor: g, session: store.Session{State: g.Kernel.NewSession()}}
}

// Take takes one turn. The answer to a refused prompt is not judged, because the
// model would not have been asked.
func (d *DryRun) Take(ctx context.Context, t DryTurn) (*Judged, error) {
	o := &Opened{Request: Request{Mode: kernel.Enforce}, Coverage: new(Coverage), governor: d.governor, session: d.session}
	t.Said = slices.Clone(t.Said)
	for i, said := range t.Said {
		o.Coverage.Inspect("request."+string(said.Source), DetectorLocal, len(said.Body))
		named("request."+string(said.Source), t.Said[i:i+1])
	}
	assessed, err := o.Assess(ctx, Input{Prompt: t.Prompt, said: t.Said, instructions: t.Instructions})
	if err != nil {
		return nil, err
	}
	judged := assessed.judged()
	if t.Answer != "" && !assessed.Turn.Refused {
		o.Coverage.InspectAnswer("response", len(t.Answer))
		if judged, err = assessed.Judge(ctx, Answer{t.Answer}); err != nil {
			return nil, err
		}
	}
	d.session = judged.advance(d.session)
	return judged, nil
}
