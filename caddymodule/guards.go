package caddymodule

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

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

// GuardOptions holds what the modules of all guards have in common.
type GuardOptions struct {
	// What receipts and metrics call the guard: guard_<name>. Default: its kind.
	Name string `json:"name,omitempty"`

	// What it is asked about: prompt, answer, tool_result, tool_call. Default: the texts that
	// its kind is for.
	Asks []string `json:"asks,omitempty"`

	// When it is asked: when (the severity that the detector gives a text is from low up
	// to high; a call of a tool does more than read, and the agent has read something),
	// always, or observe (always, and its verdict is only recorded). About a call that is
	// blocked it is never asked. Default: when.
	Ask string `json:"ask,omitempty"`

	// The severities between which a text is undecided. Default: 0.05 and 0.95.
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`

	// What happens when it gives no verdict: local lets the detector decide, by the lower
	// threshold, and the interceptor of tool calls, refuse refuses the turn, or blocks the
	// call. Default: local.
	Fail string `json:"fail,omitempty"`

	// In how many of 100 turns it is asked at most, in the long run: what is not used is
	// saved up, for ten turns at most. Default: 100.
	Budget *float64 `json:"budget,omitempty"`

	// How its probabilities are corrected, as "caddy lex calibrate --guard" fits it: their
	// log-odds times the slope, which is over 0, plus the intercept. Default: not at all.
	Calibration *govern.Calibration `json:"calibration,omitempty"`

	guard   *govern.Guard
	release func()
}

// Guard returns the guard. Its client is shared with all configurations that ask the same
// model in the same way under the same name.
func (g *GuardOptions) Guard() *govern.Guard { return g.guard }

// RemoteGuard holds what the modules of guards on a server have in common.
type RemoteGuard struct {
	Remote
	GuardOptions
}

// LocalGuard holds what the modules of guards in this process have in common. A module of
// another package embeds it, calls UnmarshalGuard and ProvisionGuard, and has its Guard and
// Cleanup.
type LocalGuard struct {
	GuardOptions

	// What receipts call the model. The labels that are only numbers, such as LABEL_1, are
	// known of some models by their names.
	Model string `json:"model,omitempty"`

	// How long a turn waits for the verdict on a text. Default: 2s.
	Timeout caddy.Duration `json:"timeout,omitempty"`

	observer *remoteObserver // of the client, from ProvisionGuard on
}

// health tells how the model does.
func (g *LocalGuard) health() remoteHealth { return g.observer.health() }

// A LocalModel is a classifier that a module has loaded.
type LocalModel struct {
	model.Classifier
	// Files has the SHA-256 of each file that the classifier was made of, in hexadecimal,
	// by the file's name. Receipts name them.
	Files map[string]string
	// Inferences is how many the classifier computes at once, at least 1.
	Inferences int
}

// localKey tells the clients of guards in this process apart.
type localKey struct {
	name string
	model.LocalConfig
}

// ProvisionGuard checks the options and makes the guard of a classifier, or takes the one
// that another configuration made of the same files with the same options. The kind is its
// name unless the configuration gives another.
func (g *LocalGuard) ProvisionGuard(ctx caddy.Context, kind string, local LocalModel) error {
	guard, err := g.asking(kind)
	if err != nil {
		return fmt.Errorf("guard %s: %w", g.Name, err)
	}
	versions := make([]string, 0, len(local.Files))
	for _, file := range slices.Sorted(maps.Keys(local.Files)) {
		versions = append(versions, file+" "+local.Files[file])
	}
	config := model.LocalConfig{
		Model: g.Model, Version: strings.Join(versions, ", "), Inferences: local.Inferences, Timeout: time.Duration(g.Timeout),
	}
	name := "guard_" + g.Name
	client, observer, release, err := share(ctx, localKey{name, config}, name, func(o model.Observer) (*model.Guard, error) {
		return model.NewLocalGuard(config, local, o)
	})
	if err != nil {
		return fmt.Errorf("guard %s: %w", g.Name, err)
	}
	g.observer, g.release, guard.Files = observer, release, local.Files
	return g.ask(guard, kind, client, model.RolePrompt, model.RoleToolResult)
}

// UnmarshalGuard reads a guard's name, if there is one, and its block, from the tokens after
// what the module has read itself. more are further options, each with what reads its
// arguments.
func (g *LocalGuard) UnmarshalGuard(d *caddyfile.Dispenser, more map[string]func(*caddyfile.Dispenser) error) error {
	known := options{"model": stringOption(&g.Model), "timeout": durationOption(&g.Timeout)}
	maps.Copy(known, more)
	return g.unmarshal(d, known)
}

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
	guard, err := g.asking(kind)
	if err != nil {
		return fmt.Errorf("guard %s: %w", g.Name, err)
	}
	config, err := g.config(provider)
	if err != nil {
		return fmt.Errorf("guard %s: %w", g.Name, err)
	}
	var client *model.Guard
	client, g.release, err = shareRemote(ctx, &g.Remote, config, "guard_"+g.Name, build)
	if err != nil {
		return fmt.Errorf("guard %s: %w", g.Name, err)
	}
	return g.ask(guard, kind, client, roles...)
}

// ask completes the guard with the model that it asks, and the roles that it is asked in.
func (g *GuardOptions) ask(guard *govern.Guard, kind string, client *model.Guard, roles ...model.Role) error {
	if len(g.Asks) > 0 {
		roles = nil
	}
	for _, asks := range g.Asks {
		roles = append(roles, model.Role(asks))
	}
	for _, r := range roles {
		switch {
		case client.Knows(r):
		case r == model.RoleToolCall:
			return fmt.Errorf("guard %s: asks tool_call: a guard of the kind %s knows nothing of tool calls with the model %s; ask a general chat model, or gpt-oss-safeguard, with: guard chat", g.Name, kind, client.Model())
		default:
			return fmt.Errorf("guard %s: asks %s: with this model a guard of the kind %s knows nothing of such texts; give %s", g.Name, r, kind, rolesOf(client))
		}
	}
	guard.Model, guard.Roles = client, roles
	g.guard = guard
	return nil
}

// rolesOf names the roles in which a model can be asked.
func rolesOf(client *model.Guard) string {
	var roles []string
	for _, r := range model.Roles {
		if client.Knows(r) {
			roles = append(roles, string(r))
		}
	}
	return strings.Join(roles, ", ")
}

// asking checks the options that say when the guard is asked. The kind is its name unless
// the configuration gives another.
func (g *GuardOptions) asking(kind string) (*govern.Guard, error) {
	if g.Name == "" {
		g.Name = kind
	}
	guard := &govern.Guard{Name: g.Name, Ask: govern.AskWhen, Low: undecidedFrom, High: undecidedTo, Required: g.Fail == failRefuse, Calibration: g.Calibration}
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
	if g.Calibration != nil {
		if err := g.Calibration.Check(); err != nil {
			return nil, err
		}
	}
	for i, asks := range g.Asks {
		if !slices.Contains(model.Roles, model.Role(asks)) || slices.Contains(g.Asks[:i], asks) {
			return nil, fmt.Errorf("asks %s: give prompt, answer, tool_result and tool_call, each at most once", asks)
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
func (g *GuardOptions) Cleanup() error {
	if g.release != nil {
		g.release()
	}
	return nil
}

// unmarshal sets up the guard from Caddyfile tokens, with the options of its kind.
func (g *RemoteGuard) unmarshal(d *caddyfile.Dispenser, more options) error {
	d.Next() // consume module name
	known := g.options()
	maps.Copy(known, more)
	return g.GuardOptions.unmarshal(d, known)
}

// unmarshal sets up the options of all guards, and more, from Caddyfile tokens.
func (g *GuardOptions) unmarshal(d *caddyfile.Dispenser, known options) error {
	if d.NextArg() {
		if g.Name = d.Val(); !validGuardName(g.Name) {
			return d.Errf("%q is not a guard's name: use at most 32 letters, digits, dashes and underscores", g.Name)
		}
	}
	known["asks"] = choiceListOption(&g.Asks, string(model.RolePrompt), string(model.RoleAnswer), string(model.RoleToolResult), string(model.RoleToolCall))
	known["ask"] = g.parseAsk
	known["fail"] = choiceOption(&g.Fail, failLocal, failRefuse)
	known["budget"] = g.parseBudget
	known["calibration"] = g.parseCalibration
	return blockOption(known)(d)
}

// parseAsk reads when <low> <high>, always or observe.
func (g *GuardOptions) parseAsk(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	switch {
	case len(args) == 1 && (args[0] == string(govern.AskAlways) || args[0] == string(govern.AskObserve)):
	case len(args) == 3 && args[0] == string(govern.AskWhen):
		g.Low, g.High = new(float64), new(float64)
		for i, to := range []*float64{g.Low, g.High} {
			var ok bool
			if *to, ok = parseNumber(args[i+1]); !ok {
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
func (g *GuardOptions) parseBudget(d *caddyfile.Dispenser) error {
	arg, err := oneArgument(d)
	if err != nil {
		return err
	}
	number, isShare := strings.CutSuffix(arg, "%")
	share, ok := parseNumber(number)
	if !isShare || !ok {
		return d.Errf("%q is not a share such as 20%%", arg)
	}
	g.Budget = &share
	return nil
}

// parseCalibration reads a slope and an intercept.
func (g *GuardOptions) parseCalibration(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	if len(args) != 2 {
		return d.Err("calibration takes a slope and an intercept")
	}
	g.Calibration = new(govern.Calibration)
	for i, to := range []*float64{&g.Calibration.Slope, &g.Calibration.Intercept} {
		var ok bool
		if *to, ok = parseNumber(args[i]); !ok {
			return d.Errf("%q is not a number", args[i])
		}
	}
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
//	    asks     prompt|answer|tool_result|tool_call...
//	    ask      when <low> <high>|always|observe
//	    fail     local|refuse
//	    budget   <share>%
//	    calibration <slope> <intercept>
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
//	    calibration <slope> <intercept>
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
//	    calibration <slope> <intercept>
//	}
func (g *ClassifierGuard) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return g.unmarshal(d, options{"server": choiceOption(&g.Server, model.ServerTEI, model.ServerVLLM)})
}

// guardNone is the word for no guard in a policy, where the app has some.
const guardNone = "none"

// guardOption adds a guard to a list, or makes the list empty.
func guardOption(to *[]json.RawMessage) func(d *caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		var guard json.RawMessage
		parse := guestOption(&guard, "lex.guards.", "kind")
		if !d.NextArg() {
			return parse(d) // which says what is missing
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
		err := parse(d)
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
