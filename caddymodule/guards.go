package caddymodule

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/model"
)

func init() {
	caddy.RegisterModule(ChatGuard{})
	caddy.RegisterModule(ModerationGuard{})
	caddy.RegisterModule(ClassifierGuard{})
}

// A GuardModule is a module in the namespace lex.guards. It is asked for its guard after
// it was provisioned.
type GuardModule interface {
	Guard() *govern.Guard
}

// RemoteGuard holds what the modules of all guards have in common.
type RemoteGuard struct {
	Remote

	// What receipts and metrics call the guard: guard_<name>. Default: its kind.
	Name string `json:"name,omitempty"`

	// The texts that it is asked about: prompt, answer, tool_result. Default: those that
	// its kind knows.
	Asks []string `json:"asks,omitempty"`

	// When it is asked: when (the severity that the detector gives a text is from low up
	// to high), always, or observe (always, and its verdict is only recorded). Default:
	// when.
	Ask string `json:"ask,omitempty"`

	// The severities between which a text is undecided. Default: 0.05 and 0.95.
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`

	// What happens when it gives no verdict: local lets the detector decide, by the lower
	// threshold, refuse refuses the turn. Default: local.
	Fail string `json:"fail,omitempty"`

	// In how many of 100 turns it is asked at most. Default: 100.
	Budget *float64 `json:"budget,omitempty"`

	guard   *govern.Guard
	release func()
}

// Guard returns the guard. Its client is shared with all configurations that ask the same
// model in the same way under the same name.
func (g *RemoteGuard) Guard() *govern.Guard { return g.guard }

// The severities between which a text is undecided, if the configuration does not say it.
const (
	undecidedFrom = 0.05
	undecidedTo   = 0.95
)

// provision checks the options and builds the client or takes the one that is there; it
// asks the model nothing. The roles are those that the guard is asked in unless the
// configuration says other ones.
func (g *RemoteGuard) provision(
	ctx caddy.Context, kind, provider string, build func(model.Config, model.Observer) (*model.Guard, error), roles ...model.Role,
) error {
	if g.Name == "" {
		g.Name = kind
	}
	guard, err := g.asking()
	if err != nil {
		return fmt.Errorf("guard %s: %w", g.Name, err)
	}
	config, err := g.config(provider)
	if err != nil {
		return fmt.Errorf("guard %s: %w", g.Name, err)
	}
	client, release, err := share(ctx, &g.Remote, config, "guard_"+g.Name, build)
	if err != nil {
		return fmt.Errorf("guard %s: %w", g.Name, err)
	}
	g.release = release
	if len(g.Asks) > 0 {
		roles = nil
	}
	for _, asks := range g.Asks {
		roles = append(roles, model.Role(asks))
	}
	for _, r := range roles {
		if !client.Knows(r) {
			return fmt.Errorf("guard %s: asks %s: a %s with this model knows nothing of such texts", g.Name, r, kind)
		}
	}
	guard.Model, guard.Roles = client, roles
	g.guard = guard
	return nil
}

// asking checks the options that say when the guard is asked.
func (g *RemoteGuard) asking() (*govern.Guard, error) {
	guard := &govern.Guard{Name: g.Name, Ask: govern.AskWhen, Low: undecidedFrom, High: undecidedTo, Required: g.Fail == failRefuse}
	if g.Ask != "" {
		guard.Ask = govern.Asking(g.Ask)
	}
	override(&guard.Low, g.Low)
	override(&guard.High, g.High)
	switch {
	case !validGuardName(g.Name):
		return nil, fmt.Errorf("%q is not a guard's name: use at most 32 letters, digits, dashes and underscores", g.Name)
	case guard.Ask != govern.AskWhen && guard.Ask != govern.AskAlways && guard.Ask != govern.AskObserve:
		return nil, fmt.Errorf("ask %q: give when, always or observe", g.Ask)
	case guard.Ask != govern.AskWhen && (g.Low != nil || g.High != nil):
		return nil, fmt.Errorf("ask %s: it takes no severities; those go with when", g.Ask)
	case !(guard.Low >= 0 && guard.Low < guard.High && guard.High <= 1):
		return nil, fmt.Errorf("ask when %v %v: give two severities from 0 to 1, the lower one first", guard.Low, guard.High)
	case g.Fail != "" && g.Fail != failLocal && g.Fail != failRefuse:
		return nil, fmt.Errorf("fail %q: give local or refuse", g.Fail)
	case guard.Required && guard.Ask == govern.AskObserve:
		return nil, fmt.Errorf("fail refuse: a guard that only observes refuses nothing")
	}
	for i, asks := range g.Asks {
		if !slices.Contains(model.Roles, model.Role(asks)) || slices.Contains(g.Asks[:i], asks) {
			return nil, fmt.Errorf("asks %s: give prompt, answer and tool_result, each at most once", asks)
		}
	}
	if g.Budget != nil {
		if !(*g.Budget > 0 && *g.Budget <= 100) {
			return nil, fmt.Errorf("budget %v: give a share of the turns over 0%% and up to 100%%", *g.Budget)
		}
		guard.Budget = govern.NewBudget(*g.Budget / 100)
	}
	return guard, nil
}

// validGuardName allows no dots: in receipts the role follows one.
func validGuardName(name string) bool {
	return validIdentifier(name) && len(name) <= 32 && !strings.Contains(name, ".")
}

// Cleanup lets go of the client.
func (g *RemoteGuard) Cleanup() error {
	if g.release != nil {
		g.release()
	}
	return nil
}

// unmarshal sets up the guard from Caddyfile tokens, with the options of its kind.
func (g *RemoteGuard) unmarshal(d *caddyfile.Dispenser, more options) error {
	d.Next() // consume module name
	if d.NextArg() {
		if g.Name = d.Val(); !validGuardName(g.Name) {
			return d.Errf("%q is not a guard's name: use at most 32 letters, digits, dashes and underscores", g.Name)
		}
	}
	known := g.options()
	known["asks"] = choiceListOption(&g.Asks, string(model.RolePrompt), string(model.RoleAnswer), string(model.RoleToolResult))
	known["ask"] = g.parseAsk
	known["fail"] = choiceOption(&g.Fail, failLocal, failRefuse)
	known["budget"] = g.parseBudget
	maps.Copy(known, more)
	return blockOption(known)(d)
}

// parseAsk reads when <low> <high>, always or observe.
func (g *RemoteGuard) parseAsk(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	switch {
	case len(args) == 1 && (args[0] == string(govern.AskAlways) || args[0] == string(govern.AskObserve)):
	case len(args) == 3 && args[0] == string(govern.AskWhen):
		g.Low, g.High = new(float64), new(float64)
		for i, to := range []*float64{g.Low, g.High} {
			var err error
			if *to, err = strconv.ParseFloat(args[i+1], 64); err != nil {
				return d.Errf("%q is not a number", args[i+1])
			}
		}
	default:
		return d.Err("ask takes when <low> <high>, always or observe")
	}
	g.Ask = args[0]
	return nil
}

// parseBudget reads a share such as 20%.
func (g *RemoteGuard) parseBudget(d *caddyfile.Dispenser) error {
	arg, err := oneArgument(d)
	if err != nil {
		return err
	}
	number, isShare := strings.CutSuffix(arg, "%")
	share, err := strconv.ParseFloat(number, 64)
	if !isShare || err != nil {
		return d.Errf("%q is not a share such as 20%%", arg)
	}
	g.Budget = &share
	return nil
}

// ChatGuard asks a chat model on an OpenAI-compatible API (OpenAI, Ollama, vLLM, LM
// Studio). Llama Guard, Granite Guardian, Qwen3Guard, ShieldGemma and gpt-oss-safeguard are
// understood in their own form.
type ChatGuard struct{ RemoteGuard }

// CaddyModule returns the Caddy module information.
func (ChatGuard) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "lex.guards.chat",
		New: func() caddy.Module { return new(ChatGuard) },
	}
}

// Provision resolves the key and builds the client.
func (g *ChatGuard) Provision(ctx caddy.Context) error {
	return g.provision(ctx, "chat", "openai", model.NewChatGuard, model.RolePrompt, model.RoleAnswer)
}

// UnmarshalCaddyfile sets up the guard from Caddyfile tokens. Syntax:
//
//	chat [<name>] {
//	    base_url <address>
//	    model    <name>
//	    api_key  <key>
//	    timeout  <duration>
//	    asks     prompt|answer|tool_result...
//	    ask      when <low> <high>|always|observe
//	    fail     local|refuse
//	    budget   <share>%
//	}
func (g *ChatGuard) UnmarshalCaddyfile(d *caddyfile.Dispenser) error { return g.unmarshal(d, nil) }

// ModerationGuard asks OpenAI's moderation API, or a server that speaks it, such as
// Mistral's. The model is omni-moderation-latest by default.
type ModerationGuard struct{ RemoteGuard }

// CaddyModule returns the Caddy module information.
func (ModerationGuard) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "lex.guards.moderation",
		New: func() caddy.Module { return new(ModerationGuard) },
	}
}

// Provision resolves the key and builds the client.
func (g *ModerationGuard) Provision(ctx caddy.Context) error {
	return g.provision(ctx, "moderation", "openai", model.NewModerationGuard, model.RolePrompt, model.RoleAnswer)
}

// UnmarshalCaddyfile sets up the guard from Caddyfile tokens. Syntax:
//
//	moderation [<name>] {
//	    base_url <address>
//	    model    <name>
//	    api_key  <key>
//	    timeout  <duration>
//	    asks     prompt|answer...
//	    ask      when <low> <high>|always|observe
//	    fail     local|refuse
//	    budget   <share>%
//	}
func (g *ModerationGuard) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return g.unmarshal(d, nil)
}

// ClassifierGuard asks a classifier of prompt attacks, such as Prompt Guard 2, PIGuard or
// a DeBERTa of Protect AI or deepset, on Text Embeddings Inference or vLLM.
type ClassifierGuard struct {
	RemoteGuard

	// The server: tei (Text Embeddings Inference) or vllm. Default: tei.
	Server string `json:"server,omitempty"`
}

// CaddyModule returns the Caddy module information.
func (ClassifierGuard) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "lex.guards.classifier",
		New: func() caddy.Module { return new(ClassifierGuard) },
	}
}

// Provision resolves the key and builds the client.
func (g *ClassifierGuard) Provision(ctx caddy.Context) error {
	if g.Server == "" {
		g.Server = model.ServerTEI
	}
	return g.provision(ctx, "classifier", g.Server, model.NewClassifierGuard, model.RolePrompt, model.RoleToolResult)
}

// UnmarshalCaddyfile sets up the guard from Caddyfile tokens. Syntax:
//
//	classifier [<name>] {
//	    server   tei|vllm
//	    base_url <address>
//	    model    <name>
//	    api_key  <key>
//	    timeout  <duration>
//	    asks     prompt|tool_result...
//	    ask      when <low> <high>|always|observe
//	    fail     local|refuse
//	    budget   <share>%
//	}
func (g *ClassifierGuard) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return g.unmarshal(d, options{"server": choiceOption(&g.Server, model.ServerTEI, model.ServerVLLM)})
}

// guardNone is the word for no guard in a policy, where the app has some.
const guardNone = "none"

// guardOption adds a guard to a list, or makes the list empty.
func guardOption(to *[]json.RawMessage) func(d *caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		if !d.NextArg() {
			return d.ArgErr()
		}
		none := d.Val() == guardNone
		switch {
		case none && (*to != nil || d.NextArg()), *to != nil && len(*to) == 0:
			return d.Err("guard none stands alone")
		case none:
			*to = []json.RawMessage{}
			return nil
		}
		d.Prev()
		var guard json.RawMessage
		err := guestOption(&guard, "lex.guards.", "kind")(d)
		*to = append(*to, guard)
		return err
	}
}

// loadGuards loads the guard modules of the app or of a policy.
func (a *App) loadGuards(ctx caddy.Context, of any) (guards []*govern.Guard, err error) {
	guests, err := ctx.LoadModule(of, "GuardsRaw")
	if err != nil {
		return nil, fmt.Errorf("loading the guard modules: %w", err)
	}
	list, _ := guests.([]any)
	for _, guest := range list {
		module, ok := guest.(GuardModule)
		if !ok {
			return nil, fmt.Errorf("the module %T has no guard", guest)
		}
		guard := module.Guard()
		if slices.ContainsFunc(guards, func(other *govern.Guard) bool { return other.Name == guard.Name }) {
			return nil, fmt.Errorf("two guards are named %s; give one another name, as in: guard classifier %s2 { ... }", guard.Name, guard.Name)
		}
		a.watchRemote("guard_"+guard.Name, guest)
		guards = append(guards, guard)
	}
	return guards, nil
}

// Interface guards
var (
	_ GuardModule           = (*ChatGuard)(nil)
	_ caddy.Provisioner     = (*ChatGuard)(nil)
	_ caddy.CleanerUpper    = (*ChatGuard)(nil)
	_ caddyfile.Unmarshaler = (*ChatGuard)(nil)

	_ GuardModule           = (*ModerationGuard)(nil)
	_ caddy.Provisioner     = (*ModerationGuard)(nil)
	_ caddy.CleanerUpper    = (*ModerationGuard)(nil)
	_ caddyfile.Unmarshaler = (*ModerationGuard)(nil)

	_ GuardModule           = (*ClassifierGuard)(nil)
	_ caddy.Provisioner     = (*ClassifierGuard)(nil)
	_ caddy.CleanerUpper    = (*ClassifierGuard)(nil)
	_ caddyfile.Unmarshaler = (*ClassifierGuard)(nil)
)
