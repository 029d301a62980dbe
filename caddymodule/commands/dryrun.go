package commands

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/caddy-lex/lex/caddymodule"
	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
)

// promptOptions are the options of the app that decisions on prompts depend on.
var promptOptions = []string{"policy", "embedder", "guards"}

// configFlags adds the flags that name a configuration file, as Caddy's own commands have them.
func configFlags(cmd *cobra.Command, usage string) {
	cmd.Flags().StringP("config", "c", "", usage)
	cmd.Flags().StringP("adapter", "a", "", "Name of the config adapter of a file that is no JSON and not named Caddyfile")
}

// dryRunApp provisions the app with some options of a configuration file, those that
// decisions depend on. The adapter may be "", as in Caddy's own commands. It touches no store, no secret and no listener. Without a file
// the app has its defaults.
func dryRunApp(config, adapter string, names ...string) (*caddymodule.App, error) {
	options, err := readOptions(config, adapter, names)
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
func readOptions(config, adapter string, names []string) (map[string]jsontext.Value, error) {
	options := make(map[string]jsontext.Value)
	if config == "" {
		return options, nil
	}
	if config == "-" {
		return nil, errors.New("--config: name a file; standard input holds what is decided on")
	}
	adapted, _, _, err := caddycmd.LoadConfig(config, adapter)
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
	// failed are the detectors that gave no whole verdict in one of the turns, as receipts
	// list them. Detection was degraded then: the state that the last turn began in, or the
	// threshold that decided on it, is not that of a proxy whose detectors answer.
	failed []kernel.DetectorRun
}

// addFailed adds the detectors that failed in a turn, each once. A guard that failed on a
// piece of a text is flagged if it found something in another, so the reason tells. One
// that is only observed decides nothing, whether it answers or not. One that need not be
// asked, or whose budget is used up, did not run, as in the proxy.
func (d *decision) addFailed(runs []kernel.DetectorRun, guards []*govern.Guard) {
	for _, run := range runs {
		observed := slices.ContainsFunc(guards, func(g *govern.Guard) bool {
			return g.Ask == govern.AskObserve && strings.HasPrefix(run.Name, "guard_"+g.Name+".")
		})
		known := slices.ContainsFunc(d.failed, func(r kernel.DetectorRun) bool { return r.Name == run.Name })
		if run.Why != "" && run.Outcome != kernel.NotRun && !observed && !known {
			d.failed = append(d.failed, run)
		}
	}
}

// leftOutDegraded is the reason for which prompts are left out of figures if detection was
// degraded.
const leftOutDegraded = "degraded"

// A degradation counts the prompts that are left out because detection was degraded.
type degradation struct {
	prompts int
	why     map[string]bool // the detectors that failed, and how; never content
}

// add counts a prompt.
func (d *degradation) add(why ...string) {
	if d.why == nil {
		d.why = make(map[string]bool)
	}
	d.prompts++
	for _, w := range why {
		d.why[w] = true
	}
}

// leavesOut counts a prompt if detectors failed on it, and reports whether they did.
func (d *degradation) leavesOut(failed []kernel.DetectorRun) bool {
	if len(failed) == 0 {
		return false
	}
	var why []string
	for _, run := range failed {
		why = append(why, run.Name+": "+run.Why)
	}
	d.add(why...)
	return true
}

// err says what to do about the prompts that were left out; nil if none were.
func (d *degradation) err() error {
	if d.prompts == 0 {
		return nil
	}
	return fmt.Errorf("detection was degraded on %d prompts, which are left out (%s): try again when these detectors answer, or without them in the configuration",
		d.prompts, strings.Join(slices.Sorted(maps.Keys(d.why)), ", "))
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
		last.addFailed(last.coverage.Detectors, app.Governor().Guards)
	}
	return last, nil
}
