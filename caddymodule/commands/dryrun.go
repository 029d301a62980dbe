package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/caddy-lex/lex/caddymodule"
	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
)

// promptOptions are the options of the app that decisions on prompts depend on.
var promptOptions = []string{"policy", "embedder", "guards"}

// dryRunApp provisions the app with some options of a configuration file, those that
// decisions depend on. It touches no store, no secret and no listener. Without a file
// the app has its defaults.
func dryRunApp(config string, names ...string) (*caddymodule.App, error) {
	options, err := readOptions(config, names)
	if err != nil {
		return nil, err
	}
	raw, err := encodeJSON(options)
	if err != nil {
		return nil, err
	}
	ctx, err := caddy.ProvisionContext(&caddy.Config{
		Admin: &caddy.AdminConfig{Disabled: true}, AppsRaw: caddy.ModuleMap{"lex": raw},
	})
	if err != nil {
		return nil, err
	}
	module, err := ctx.App("lex")
	if err != nil {
		return nil, err
	}
	app, ok := module.(*caddymodule.App)
	if !ok {
		return nil, fmt.Errorf("the app lex is a %T", module)
	}
	return app, nil
}

// readOptions reads options of the app from a configuration file.
func readOptions(config string, names []string) (map[string]jsontext.Value, error) {
	options := make(map[string]jsontext.Value)
	if config == "" {
		return options, nil
	}
	if config == "-" {
		return nil, errors.New("--config: name a file; standard input holds what is decided on")
	}
	adapted, _, _, err := caddycmd.LoadConfig(config, "")
	if err != nil {
		return nil, err
	}
	var whole struct {
		Apps struct {
			Lex map[string]jsontext.Value `json:"lex"`
		} `json:"apps"`
	}
	// Caddy itself accepts a member that occurs twice.
	if err := json.Unmarshal(adapted, &whole, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	for _, name := range names {
		if value, ok := whole.Apps.Lex[name]; ok {
			options[name] = value
		}
	}
	return options, nil
}

// A decision is what a dry run decided on a prompt or conversation.
type decision struct {
	kernel.Turn                  // the last one
	coverage    *govern.Coverage // of the last turn
	turns       int
}

// decide runs a prompt or conversation through a new session. speaker is the source
// of a text without turns.
func decide(ctx context.Context, app *caddymodule.App, p prompt, speaker detect.Source) (decision, error) {
	turns, err := p.dryTurns(speaker)
	if err != nil {
		return decision{}, err
	}
	last, session := decision{turns: len(turns)}, app.Governor().DryRun()
	for _, t := range turns {
		judged, err := session.Take(ctx, t)
		if err != nil {
			return decision{}, err
		}
		last.Turn, last.coverage = judged.Turn, judged.Opened.Coverage
	}
	return last, nil
}
