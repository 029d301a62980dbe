package govern

import (
	"context"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/store"
)

// A DryRun takes the turns of one session through the phases of a [Governor]
// without a store and without a model: what it says of a turn is what the proxy
// would decide. It belongs to one goroutine at a time.
type DryRun struct {
	governor *Governor
	session  store.Session
}

// A DryTurn is one turn of a [DryRun].
type DryTurn struct {
	Prompt       string // what the user said; "" when only a tool or a document spoke
	Said         []detect.Text
	Instructions []detect.Text // the application's own
	Answer       string        // what the model answered; "" when it is not known
}

// DryRun begins a session.
func (g *Governor) DryRun() *DryRun {
	return &DryRun{governor: g, session: store.Session{State: g.Kernel.NewSession()}}
}

// Take takes one turn. An answer to a refused prompt would not have been given, so
// it is not judged.
func (d *DryRun) Take(ctx context.Context, t DryTurn) (*Judged, error) {
	o := &Opened{Request: Request{Mode: kernel.Enforce}, Coverage: new(Coverage), governor: d.governor, session: d.session}
	for _, said := range t.Said {
		o.Coverage.Inspect("request."+string(said.Source), DetectorLocal, len(said.Body))
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
