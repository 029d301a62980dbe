package caddymodule

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/dustin/go-humanize"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/wire"
)

func init() {
	httpcaddyfile.RegisterGlobalOption("lex", parseApp)
	httpcaddyfile.RegisterHandlerDirective("lex", parseHandler)
	httpcaddyfile.RegisterDirectiveOrder("lex", httpcaddyfile.After, "encode")
}

// parseApp sets up the app from the global option block. Syntax:
//
//	lex {
//	    store bolt [<path>]
//	    store redis <url>
//	    embedder local
//	    embedder openai|gemini|mistral|jina {
//	        api_key    <key>
//	        model      <name>
//	        dimensions <number>
//	        base_url   <address>
//	        timeout    <duration>
//	    }
//	    judge local
//	    judge openai {
//	        base_url <address>
//	        model    <name>
//	        api_key  <key>
//	        timeout  <duration>
//	        fail     local|refuse
//	    }
//	    guard chat|moderation|classifier [<name>] {
//	        server   tei|vllm # of a classifier
//	        base_url <address>
//	        model    <name>
//	        api_key  <key>
//	        timeout  <duration>
//	        asks     prompt|answer|tool_result|tool_call...
//	        ask      when <low> <high>|always|observe
//	        fail     local|refuse
//	        budget   <share>%
//	    }
//	    policy {
//	        tau                <number>
//	        refuse_at          <number>
//	        refuse_at_degraded <number>
//	        severe_at          <number>
//	        threat_at          <number>
//	        threat_severity    <number>
//	        cusum_h            <number>
//	        cusum_slow_h       <number>
//	        refusal_text       <text>
//	        constitution       <file>
//	        template           <file>...
//	        identity           full|minimal|dynamic|none
//	        identity_modes     full|minimal|dynamic|none...
//	    }
//	    policy <name> {
//	        # the options of the unnamed policy, and
//	        embedder ...
//	        judge    ...
//	        guard    none|...
//	        memory   off|<turns>
//	        tools    ...
//	        limits {
//	            anonymous   <n>/<duration>
//	            keyed       <n>/<duration>
//	            intercepted <n>/<duration>
//	        }
//	    }
//	    tools {
//	        unknown   allow|block
//	        allow     <glob>...
//	        deny      <glob>...
//	        reads     <glob>...
//	        writes    <glob>...
//	        sends     <glob>...
//	        high_risk <glob>...
//	        rule      <name> <condition>
//	        untrusted flag|block
//	        invalid   flag|block
//	    }
//	    limits {
//	        anonymous   <n>/<duration>
//	        keyed       <n>/<duration>
//	        intercepted <n>/<duration>
//	        read        <n>/<duration>
//	        plan        <name> <runs>/<duration> [<policy>]
//	        body        <size>
//	    }
//	    secrets {
//	        admin <secret>
//	        bench <secret>
//	        read  <secret>
//	    }
//	    memory off|<turns>
//	}
func parseApp(d *caddyfile.Dispenser, existing any) (any, error) {
	if existing != nil {
		d.Next() // to where the error is
		return nil, d.Err("the lex option is given twice")
	}
	a := new(App)
	if err := a.UnmarshalCaddyfile(d); err != nil {
		return nil, err
	}
	return httpcaddyfile.App{Name: "lex", Value: caddyconfig.JSON(a, nil)}, nil
}

// UnmarshalCaddyfile sets up the app from the global option block; parseApp
// has the syntax.
func (a *App) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume option name
	return blockOption(options{
		"store":    guestOption(&a.StoreRaw, "lex.stores.", "engine"),
		"embedder": guestOption(&a.EmbedderRaw, "lex.embedders.", "provider"),
		"judge":    guestOption(&a.JudgeRaw, "lex.judges.", "provider"),
		"guard":    guardOption(&a.GuardsRaw),
		"policy":   a.parsePolicy,
		"tools":    a.parseTools,
		"limits": blockOption(options{
			"anonymous":   rateOption(&a.Limits.Anonymous),
			"keyed":       rateOption(&a.Limits.Keyed),
			"intercepted": rateOption(&a.Limits.Intercepted),
			"read":        rateOption(&a.Limits.Read),
			"plan":        a.Limits.parsePlan,
			"body":        sizeOption(&a.Limits.Body),
		}),
		"secrets": blockOption(options{
			"admin": stringOption(&a.Secrets.Admin),
			"bench": stringOption(&a.Secrets.Bench),
			"read":  stringOption(&a.Secrets.Read),
		}),
		"memory": memoryOption(&a.Memory),
	})(d)
}

// parsePolicy sets up the unnamed policy or a named one.
func (a *App) parsePolicy(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	if len(args) > 1 {
		return d.ArgErr()
	}
	if len(args) == 0 {
		if !reflect.ValueOf(a.Policy).IsZero() {
			return d.Err("policy is given twice")
		}
		return parseBlock(d, a.Policy.options())
	}
	name, p := args[0], new(Policy)
	if _, known := a.Policies[name]; known {
		return d.Errf("policy %s is given twice", name)
	}
	if !validIdentifier(name) {
		return d.Errf("%q is not a policy's name: use letters, digits, dots, dashes and underscores", name)
	}
	if a.Policies == nil {
		a.Policies = make(map[string]*Policy)
	}
	a.Policies[name] = p
	known := p.options()
	known["embedder"] = guestOption(&p.EmbedderRaw, "lex.embedders.", "provider")
	known["judge"] = guestOption(&p.JudgeRaw, "lex.judges.", "provider")
	known["guard"] = guardOption(&p.GuardsRaw)
	known["memory"] = memoryOption(&p.Memory)
	known["tools"] = blockOption(p.Tools.options())
	known["limits"] = blockOption(p.Limits.options())
	return parseBlock(d, known)
}

// options are those that every policy has.
func (p *Policy) options() options {
	return options{
		"tau":                numberOption(&p.Tau),
		"refuse_at":          numberOption(&p.RefuseAt),
		"refuse_at_degraded": numberOption(&p.RefuseAtDegraded),
		"severe_at":          numberOption(&p.SevereAt),
		"threat_at":          numberOption(&p.ThreatAt),
		"threat_severity":    numberOption(&p.ThreatSeverity),
		"cusum_h":            numberOption(&p.CUSUMH),
		"cusum_slow_h":       numberOption(&p.CUSUMSlowH),
		"refusal_text":       stringOption(&p.RefusalText),
		"constitution":       stringOption(&p.Constitution),
		"template":           listOption(&p.Templates),
		"identity":           choiceOption(&p.Identity, govern.IdentityModes...),
		"identity_modes":     choiceListOption(&p.IdentityModes, govern.IdentityModes...),
	}
}

func (r *Rates) options() options {
	return options{
		"anonymous":   rateOption(&r.Anonymous),
		"keyed":       rateOption(&r.Keyed),
		"intercepted": rateOption(&r.Intercepted),
	}
}

// parseTools sets up the rules on tools of the app. Those of a policy can only be checked
// as a whole when it has inherited the app's.
func (a *App) parseTools(d *caddyfile.Dispenser) error {
	if err := blockOption(a.Tools.options())(d); err != nil {
		return err
	}
	if _, err := a.Tools.provision(); err != nil {
		return d.WrapErr(err)
	}
	return nil
}

// guestOption sets a guest module by its name in a namespace.
func guestOption(to *json.RawMessage, namespace, key string) func(d *caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		option, there := d.Val(), strings.Join(guests(namespace), ", ")
		if !d.NextArg() {
			return missing(d, option, "one of "+there)
		}
		name := d.Val()
		if _, err := caddy.GetModule(namespace + name); err != nil {
			return d.Errf("there is no %s %q in this binary, which has %s%s", option, name, there, howToBuild[namespace+name])
		}
		module, err := caddyfile.UnmarshalModule(d, namespace+name)
		if err != nil {
			return err
		}
		*to = caddyconfig.JSONModuleObject(module, key, name, nil)
		return nil
	}
}

// howToBuild ends the error for a module that is ours and in a Go module of its own, which is
// in a binary only if it was built with it.
var howToBuild = map[string]string{
	"lex.guards.onnx": "; build one that has it: xcaddy build --with github.com/caddy-lex/lex --with github.com/caddy-lex/lex/guards/onnx",
}

// guests are the names of the modules in a namespace.
func guests(namespace string) (names []string) {
	for _, module := range caddy.GetModules(strings.TrimSuffix(namespace, ".")) {
		names = append(names, module.ID.Name())
	}
	return names
}

// memoryOption sets a number of turns.
func memoryOption(to **int) func(d *caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		arg, err := oneArgument(d)
		if err != nil {
			return err
		}
		turns := 0
		if arg != "off" {
			if turns, err = strconv.Atoi(arg); err != nil || turns < 1 || turns > govern.MaxMemory {
				return d.Errf("memory: %q is neither off nor a number of turns from 1 to %d", arg, govern.MaxMemory)
			}
		}
		*to = &turns
		return nil
	}
}

// parseHandler sets up the handler from Caddyfile tokens. Syntax:
//
//	lex [<matcher>] {
//	    mode         enforce|observe
//	    policy       <name>
//	    endpoints    all|govern|read|off
//	    read         public|keyed|admin
//	    console      [open]
//	    model        <name>
//	    provider_key <key>
//	    upstream_dialect <name>
//	    baseline     unless_refused|always|never
//	    raw          show|withhold
//	    refuse_with  message|refusal|content|status <code>
//	    unknown      inspect|observe|pass|block
//	    dialect      <path> <name>
//	    history      redact|refuse
//	    tool_results block|redact|annotate
//	    oversize     refuse|pass
//	    inspect_limit <size>
//	    hold_back    <bytes> <duration>
//	    upstream_path <prefix>
//	    timeout      <duration>
//	    headers      receipt|full|none
//	    require_key
//	    cors         *|<origin>...
//	}
func parseHandler(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	handler := new(Handler)
	return handler, handler.UnmarshalCaddyfile(h.Dispenser)
}

// UnmarshalCaddyfile sets up the handler; parseHandler has the syntax.
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume directive name
	return blockOption(options{
		"mode":             choiceOption(&h.Mode, "enforce", "observe"),
		"policy":           h.parsePolicyName,
		"endpoints":        choiceOption(&h.Endpoints, "all", groupGovern, groupRead, "off"),
		"read":             choiceOption(&h.Read, readPublic, readKeyed, readAdmin),
		"console":          h.parseConsole,
		"model":            stringOption(&h.Model),
		"provider_key":     stringOption(&h.ProviderKey),
		"upstream_dialect": choiceOption(&h.UpstreamDialect, wire.AskerNames()...),
		"baseline":         choiceOption(&h.Baseline, "unless_refused", "always", "never"),
		"raw":              choiceOption(&h.Raw, "show", "withhold"),
		"refuse_with":      h.parseRefuseWith,
		"unknown":          choiceOption(&h.Unknown, unknownInspect, unknownObserve, unknownPass, unknownBlock),
		"dialect":          h.parseDialect,
		"history":          choiceOption(&h.History, "redact", "refuse"),
		"tool_results":     choiceOption(&h.ToolResults, "block", "redact", "annotate"),
		"oversize":         choiceOption(&h.Oversize, "refuse", "pass"),
		"inspect_limit":    sizeOption(&h.InspectLimit),
		"hold_back":        h.parseHoldBack,
		"upstream_path":    h.parseUpstreamPath,
		"timeout":          durationOption(&h.Timeout),
		"headers":          choiceOption(&h.Headers, "receipt", "full", "none"),
		"require_key":      h.parseRequireKey,
		"cors":             h.parseCORS,
	})(d)
}

// parsePolicyName takes the name of a policy. An empty one, as of a variable that is not set,
// would be the policy without a name.
func (h *Handler) parsePolicyName(d *caddyfile.Dispenser) error {
	if err := stringOption(&h.Policy)(d); err != nil || h.Policy != "" {
		return err
	}
	return d.Err("the name of the policy is empty; leave the line out for the policy without a name")
}

func (h *Handler) parseRefuseWith(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	switch {
	case len(args) == 1 && (args[0] == "message" || args[0] == "refusal" || args[0] == "content"):
		h.RefuseWith = RefuseWith{As: args[0]}
	case len(args) == 2 && args[0] == "status":
		status, err := strconv.Atoi(args[1])
		if err != nil {
			return d.Errf("%q is not an HTTP status", args[1])
		}
		h.RefuseWith = RefuseWith{As: "status", Status: status}
	default:
		return d.Err("refuse_with takes message, refusal, content or status <code>")
	}
	return nil
}

func (h *Handler) parseHoldBack(d *caddyfile.Dispenser) error {
	args, err := arguments(d, 2, 2, "a size and a duration")
	if err != nil {
		return err
	}
	n, err := humanize.ParseBytes(args[0])
	if err != nil || n > maxHoldBack {
		return d.Errf("%q is not a size of at most %d bytes", args[0], maxHoldBack)
	}
	h.HoldBack.Bytes = int(n)
	return setDuration(d, args[1], &h.HoldBack.Duration)
}

func (h *Handler) parseUpstreamPath(d *caddyfile.Dispenser) (err error) {
	if h.UpstreamPath, err = oneArgument(d); err != nil {
		return err
	}
	if err := checkUpstreamPath(h.UpstreamPath); err != nil {
		return d.WrapErr(err)
	}
	return nil
}

func (h *Handler) parseCORS(d *caddyfile.Dispenser) (err error) {
	if h.CORS, err = arguments(d, 1, math.MaxInt, "an origin or *"); err != nil {
		return err
	}
	if err := checkOrigins(h.CORS); err != nil {
		return d.WrapErr(err)
	}
	return nil
}

func (h *Handler) parseConsole(d *caddyfile.Dispenser) error {
	h.Console = consoleSecret
	switch args := d.RemainingArgs(); {
	case len(args) == 1 && args[0] == consoleOpen:
		h.Console = consoleOpen
	case len(args) > 0:
		return d.Err("console takes open or nothing")
	}
	return nil
}

func (h *Handler) parseRequireKey(d *caddyfile.Dispenser) error {
	if d.NextArg() {
		return d.ArgErr()
	}
	h.RequireKey = true
	return nil
}

// Interface guards
var (
	_ caddyfile.Unmarshaler = (*App)(nil)
	_ caddyfile.Unmarshaler = (*Handler)(nil)
)
