package caddymodule

import (
	"context"
	"time"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/store"
)

// A DryRun takes the turns of one session through the pipeline that the proxy uses,
// without a store and without a model: what it decides on a prompt is what the proxy
// would decide. It belongs to one goroutine.
type DryRun struct {
	app     *App
	session store.Session
}

// A DryTurn is one turn of a dry run.
type DryTurn struct {
	// Prompt is what the user said, empty when only a tool or document spoke.
	Prompt string
	// Texts are all that was said, the prompt among them.
	Texts []detect.Text
	// Instructions are the application's own.
	Instructions []detect.Text
	// Answer is what the model answered, empty when it is not known.
	Answer string
}

// NewDryRun begins a session. The app must be provisioned; it need not be started.
func (a *App) NewDryRun() *DryRun {
	return &DryRun{app: a, session: store.Session{State: a.kernel.NewSession()}}
}

// Version returns the version of the pipeline and the policy that decide.
func (d *DryRun) Version() string { return d.app.version() }

// Take takes one turn and returns the decision and what of the turn was inspected.
// The answer to a refused prompt is not judged: the proxy would not have asked for it.
func (d *DryRun) Take(ctx context.Context, t DryTurn) (kernel.Turn, kernel.Coverage, error) {
	x := &exchange{
		app: d.app, mode: kernel.Enforce, session: d.session, prompt: t.Prompt,
		endpoint: endpointGovern, dialect: dialectLex, started: time.Now(),
	}
	for _, text := range t.Texts {
		x.cover("request."+string(text.Source), detectorLocal, len(text.Body))
	}
	if err := x.assess(ctx, t.Texts, t.Instructions); err != nil {
		return kernel.Turn{}, kernel.Coverage{}, err
	}
	if t.Answer != "" && !x.turn.Refused {
		x.coverAnswer("response", len(t.Answer))
		if err := x.conclude(ctx, t.Answer); err != nil {
			return kernel.Turn{}, kernel.Coverage{}, err
		}
	}
	d.session = x.advanced()
	return x.turn, x.coverage, nil
}
