package caddymodule

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
)

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
