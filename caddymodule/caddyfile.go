package caddymodule

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/dustin/go-humanize"
)

func init() {
	httpcaddyfile.RegisterGlobalOption("lex", parseApp)
	httpcaddyfile.RegisterHandlerDirective("lex", parseHandler)
	httpcaddyfile.RegisterDirectiveOrder("lex", httpcaddyfile.After, "encode")
}

// options maps the name of a subdirective to its parser. Each may stand once.
type options map[string]func(d *caddyfile.Dispenser) error

// repeated are the options that may stand more than once, each time with
// another name as their first argument.
var repeated = []string{"plan"}

// parseBlock reads a block of options at the dispenser's nesting.
func parseBlock(d *caddyfile.Dispenser, known options) error {
	seen := make(map[string]bool)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		name := d.Val()
		parse, ok := known[name]
		if !ok {
			return d.Errf("unrecognized option %q", name)
		}
		if seen[name] && !slices.Contains(repeated, name) {
			return d.Errf("%s is given twice", name)
		}
		seen[name] = true
		if err := parse(d); err != nil {
			return err
		}
	}
	return nil
}

// block wraps the options of a nested block; it takes no arguments.
func block(known options) func(d *caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		if d.NextArg() {
			return d.ArgErr()
		}
		return parseBlock(d, known)
	}
}

// one reads exactly one argument.
func one(d *caddyfile.Dispenser) (string, error) {
	args := d.RemainingArgs()
	if len(args) != 1 {
		return "", d.ArgErr()
	}
	return args[0], nil
}

// text sets a string.
func text(to *string) func(d *caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) (err error) {
		*to, err = one(d)
		return err
	}
}

// choice sets a string that must be one of values.
func choice(to *string, values ...string) func(d *caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		arg, err := one(d)
		if err != nil {
			return err
		}
		if !slices.Contains(values, arg) {
			return d.Errf("%q is not one of %s", arg, strings.Join(values, ", "))
		}
		*to = arg
		return nil
	}
}

// number sets a float.
func number(to **float64) func(d *caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		arg, err := one(d)
		if err != nil {
			return err
		}
		f, err := strconv.ParseFloat(arg, 64)
		if err != nil {
			return d.Errf("%q is not a number", arg)
		}
		*to = &f
		return nil
	}
}

// duration sets a duration such as 30s or 2m.
func duration(to *caddy.Duration) func(d *caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		arg, err := one(d)
		if err != nil {
			return err
		}
		return setDuration(d, arg, to)
	}
}

func setDuration(d *caddyfile.Dispenser, arg string, to *caddy.Duration) error {
	v, err := caddy.ParseDuration(arg)
	if err != nil || v <= 0 {
		return d.Errf("%q is not a positive duration", arg)
	}
	*to = caddy.Duration(v)
	return nil
}

// rate sets a rate such as 20/1m.
func rate(to *Rate) func(d *caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		arg, err := one(d)
		if err != nil {
			return err
		}
		return setRate(d, arg, to)
	}
}

func setRate(d *caddyfile.Dispenser, arg string, to *Rate) error {
	n, window, ok := strings.Cut(arg, "/")
	requests, err := strconv.Atoi(n)
	if !ok || err != nil || requests < 1 {
		return d.Errf("%q is not a rate such as 20/1m", arg)
	}
	to.Requests = requests
	return setDuration(d, window, &to.Window)
}

// parsePlan adds a plan: its name and its runs in a window.
func (l *Limits) parsePlan(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	if len(args) != 2 {
		return d.ArgErr()
	}
	name, runs := args[0], Rate{}
	if _, known := l.Plans[name]; known {
		return d.Errf("plan %s is given twice", name)
	}
	if !validPlan(name) {
		return d.Errf("%q is not a plan's name: use letters, digits, dots, dashes and underscores", name)
	}
	if err := setRate(d, args[1], &runs); err != nil {
		return err
	}
	if l.Plans == nil {
		l.Plans = make(map[string]Rate)
	}
	l.Plans[name] = runs
	return nil
}

// size sets a number of bytes such as 32MiB.
func size(to *int64) func(d *caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		arg, err := one(d)
		if err != nil {
			return err
		}
		n, err := humanize.ParseBytes(arg)
		if err != nil || n < 1 || n > 1<<40 {
			return d.Errf("%q is not a size such as 32MiB", arg)
		}
		*to = int64(n)
		return nil
	}
}

// parseApp sets up the app from the global option block. Syntax:
//
//	lex {
//	    store bolt [<path>]
//	    store redis <url>...
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
//	    }
//	    policy {
//	        tau                <number>
//	        refuse_at          <number>
//	        refuse_at_degraded <number>
//	        refusal_text       <text>
//	        constitution       <file>
//	        identity           full|minimal|dynamic|none
//	    }
//	    limits {
//	        anonymous   <n>/<duration>
//	        keyed       <n>/<duration>
//	        intercepted <n>/<duration>
//	        plan        <name> <runs>/<duration>
//	        body        <size>
//	    }
//	    secrets {
//	        admin <secret>
//	        bench <secret>
//	    }
//	    memory off|<turns>
//	}
func parseApp(d *caddyfile.Dispenser, existing any) (any, error) {
	if existing != nil {
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
	return block(options{
		"store":    guest(&a.StoreRaw, "lex.stores.", "engine"),
		"embedder": guest(&a.EmbedderRaw, "lex.embedders.", "provider"),
		"judge":    guest(&a.JudgeRaw, "lex.judges.", "provider"),
		"policy": block(options{
			"tau":                number(&a.Policy.Tau),
			"refuse_at":          number(&a.Policy.RefuseAt),
			"refuse_at_degraded": number(&a.Policy.RefuseAtDegraded),
			"refusal_text":       text(&a.Policy.RefusalText),
			"constitution":       text(&a.Policy.Constitution),
			"identity":           choice(&a.Policy.Identity, identityModes...),
		}),
		"limits": block(options{
			"anonymous":   rate(&a.Limits.Anonymous),
			"keyed":       rate(&a.Limits.Keyed),
			"intercepted": rate(&a.Limits.Intercepted),
			"plan":        a.Limits.parsePlan,
			"body":        size(&a.Limits.Body),
		}),
		"secrets": block(options{
			"admin": text(&a.Secrets.Admin),
			"bench": text(&a.Secrets.Bench),
		}),
		"memory": a.parseMemory,
	})(d)
}

// guest sets a guest module by its name in a namespace.
func guest(to *json.RawMessage, namespace, key string) func(d *caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		if !d.NextArg() {
			return d.ArgErr()
		}
		name := d.Val()
		module, err := caddyfile.UnmarshalModule(d, namespace+name)
		if err != nil {
			return err
		}
		*to = caddyconfig.JSONModuleObject(module, key, name, nil)
		return nil
	}
}

func (a *App) parseMemory(d *caddyfile.Dispenser) error {
	arg, err := one(d)
	if err != nil {
		return err
	}
	turns := 0
	if arg != "off" {
		if turns, err = strconv.Atoi(arg); err != nil || turns < 1 || turns > maxMemory {
			return d.Errf("memory: %q is neither off nor a number of turns from 1 to %d", arg, maxMemory)
		}
	}
	a.Memory = &turns
	return nil
}

// parseHandler sets up the handler from Caddyfile tokens. Syntax:
//
//	lex [<matcher>] {
//	    mode         enforce|observe
//	    endpoints    all|govern|read|off
//	    model        <name>
//	    provider_key <key>
//	    baseline     unless_refused|always|never
//	    refuse_with  message|content|status <code>
//	    unknown      observe|pass|block
//	    hold_back    <bytes> <duration>
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
	return block(options{
		"mode":         choice(&h.Mode, "enforce", "observe"),
		"endpoints":    choice(&h.Endpoints, "all", groupGovern, groupRead, "off"),
		"model":        text(&h.Model),
		"provider_key": text(&h.ProviderKey),
		"baseline":     choice(&h.Baseline, "unless_refused", "always", "never"),
		"refuse_with":  h.parseRefuseWith,
		"unknown":      choice(&h.Unknown, "observe", "pass", "block"),
		"hold_back":    h.parseHoldBack,
		"timeout":      duration(&h.Timeout),
		"headers":      choice(&h.Headers, "receipt", "full", "none"),
		"require_key":  h.parseRequireKey,
		"cors":         h.parseCORS,
	})(d)
}

func (h *Handler) parseRefuseWith(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	switch {
	case len(args) == 1 && (args[0] == "message" || args[0] == "content"):
		h.RefuseWith = RefuseWith{As: args[0]}
	case len(args) == 2 && args[0] == "status":
		status, err := strconv.Atoi(args[1])
		if err != nil {
			return d.Errf("%q is not an HTTP status", args[1])
		}
		h.RefuseWith = RefuseWith{As: "status", Status: status}
	default:
		return d.Err("refuse_with takes message, content or status <code>")
	}
	return nil
}

func (h *Handler) parseHoldBack(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	if len(args) != 2 {
		return d.ArgErr()
	}
	n, err := humanize.ParseBytes(args[0])
	if err != nil || n > maxHoldBack {
		return d.Errf("%q is not a size of at most %d bytes", args[0], maxHoldBack)
	}
	h.HoldBack.Bytes = int(n)
	return setDuration(d, args[1], &h.HoldBack.Duration)
}

func (h *Handler) parseCORS(d *caddyfile.Dispenser) error {
	if h.CORS = d.RemainingArgs(); len(h.CORS) == 0 {
		return d.ArgErr()
	}
	if err := checkOrigins(h.CORS); err != nil {
		return d.WrapErr(err)
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
