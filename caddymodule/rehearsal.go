package caddymodule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/store"
)

// A rehearsal takes turns of one session through the very exchange that the
// proxy uses, without a store and without a model: what it says of a prompt is
// what the proxy would decide.
type rehearsal struct {
	app     *App
	session store.Session
}

// A line is one turn of a rehearsal.
type line struct {
	prompt       string // what the user said; "" when only a tool or document spoke
	texts        []detect.Text
	instructions []detect.Text // the application's own
	answer       string        // what the model answered; "" when it is not known
}

func (a *App) rehearse() *rehearsal {
	return &rehearsal{app: a, session: store.Session{State: a.kernel.NewSession()}}
}

// say takes one turn and returns its exchange. An answer to a refused prompt
// would not have been given, so it is not weighed.
func (r *rehearsal) say(ctx context.Context, l line) (*exchange, error) {
	x := &exchange{
		app: r.app, mode: kernel.Enforce, session: r.session, prompt: l.prompt,
		endpoint: endpointGovern, dialect: dialectLex, started: time.Now(),
	}
	for _, t := range l.texts {
		x.cover("request."+string(t.Source), detectorLocal, len(t.Body))
	}
	if err := x.assess(ctx, l.texts, l.instructions); err != nil {
		return nil, err
	}
	if l.answer != "" && !x.turn.Refused {
		x.coverAnswer("response", len(l.answer))
		if err := x.conclude(ctx, l.answer); err != nil {
			return nil, err
		}
	}
	r.session = x.advanced()
	return x, nil
}

// rehearsed are the options of the app that bear on what is decided.
var rehearsed = []string{"policy", "embedder"}

// rehearsalApp provisions the app of a configuration file as far as decisions
// go: no store, no secret and no listener is touched. Without a file all
// defaults hold.
func rehearsalApp(config string) (*App, error) {
	options, err := rehearsalOptions(config)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(options)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	ctx, err := caddy.ProvisionContext(&caddy.Config{
		Admin: &caddy.AdminConfig{Disabled: true}, AppsRaw: caddy.ModuleMap{"lex": raw},
	})
	if err != nil {
		return nil, err
	}
	app, err := ctx.App("lex")
	if err != nil {
		return nil, err
	}
	return app.(*App), nil
}

func rehearsalOptions(config string) (map[string]json.RawMessage, error) {
	options := make(map[string]json.RawMessage)
	if config == "" {
		return options, nil
	}
	if config == "-" {
		return nil, errors.New("--config: name a file; standard input holds the prompts")
	}
	adapted, _, _, err := caddycmd.LoadConfig(config, "")
	if err != nil {
		return nil, err
	}
	var whole struct {
		Apps struct {
			Lex map[string]json.RawMessage `json:"lex"`
		} `json:"apps"`
	}
	if err := json.Unmarshal(adapted, &whole); err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	for _, name := range rehearsed {
		if value, ok := whole.Apps.Lex[name]; ok {
			options[name] = value
		}
	}
	return options, nil
}
