package caddymodule

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
)

// Policy is what a request is governed under. What is absent keeps its default;
// what is absent in a named policy is as in the unnamed one, and in the app.
type Policy struct {
	// The governor fires when the margin falls below it. Default: 0.08.
	Tau *float64 `json:"tau,omitempty"`

	// Severity from which a prompt is refused. Default: 0.70.
	RefuseAt *float64 `json:"refuse_at,omitempty"`

	// The same while detection is degraded. Default: 0.50.
	RefuseAtDegraded *float64 `json:"refuse_at_degraded,omitempty"`

	// Severity from which a prompt is judged by what it leaves of the session's state, and
	// the session does not recover from it. Default: 0.50.
	SevereAt *float64 `json:"severe_at,omitempty"`

	// Contrastive threat signal over which a suspected prompt is refused. Default:
	// calibrated for the local embedder, 0.15 for a remote one.
	ThreatAt *float64 `json:"threat_at,omitempty"`

	// Severity that such a prompt must have as well. Default: 0.50.
	ThreatSeverity *float64 `json:"threat_severity,omitempty"`

	// The levels at which the fast and the slow slow-drip chart raise the alarm.
	// Default: 0.90 and 1.25.
	CUSUMH     *float64 `json:"cusum_h,omitempty"`
	CUSUMSlowH *float64 `json:"cusum_slow_h,omitempty"`

	// What a refused turn answers.
	RefusalText string `json:"refusal_text,omitempty"`

	// A file with the system text of the governed call of POST /lex/govern, in place
	// of the built-in constitution.
	Constitution string `json:"constitution,omitempty"`

	// Files with what applications put around their users' words in the user's own turn: texts
	// with places {{…}} that are filled in. Default for a named policy: those of the unnamed one.
	Templates []string `json:"templates,omitempty"`

	// The identity mode of requests that name none: full, minimal, dynamic or
	// none. Default: full.
	Identity string `json:"identity,omitempty"`

	// The identity modes that requests may name; without `none` no caller can
	// leave the constitution out. Default: all four.
	IdentityModes []string `json:"identity_modes,omitempty"`

	// The embedder of a named policy. Default: the app's.
	EmbedderRaw json.RawMessage `json:"embedder,omitempty" caddy:"namespace=lex.embedders inline_key=provider"`

	// The judge of a named policy. Default: the app's.
	JudgeRaw json.RawMessage `json:"judge,omitempty" caddy:"namespace=lex.judges inline_key=provider"`

	// The guards of a named policy; an empty list stands for none. Default: the app's.
	GuardsRaw []json.RawMessage `json:"guards,omitzero" caddy:"namespace=lex.guards inline_key=kind"`

	// The memory of a named policy. Default: the app's.
	Memory *int `json:"memory,omitempty"`

	// The rules on tools of a named policy. Default for each option: the app's.
	Tools Tools `json:"tools,omitzero"`

	// The rates of a named policy. A rate that is given is counted for this policy
	// alone. Default: the app's, counted together with all others.
	Limits Rates `json:"limits,omitzero"`

	name     string // "" of the unnamed one
	governor *govern.Governor
	setup    []byte // the document that the governor's receipts name

	anonymous, keyed, intercepted limit
}

// provisionPolicies builds the governors of all policies.
func (a *App) provisionPolicies(ctx caddy.Context) error {
	all := map[string]*Policy{"": &a.Policy}
	for name, p := range a.Policies {
		if !validIdentifier(name) {
			return fmt.Errorf("policy %q: %s", name, nameRule)
		}
		if p == nil {
			return fmt.Errorf("policy %s: give an object and not null", name)
		}
		p.name = name
		p.inherit(a.Policy)
		all[name] = p
	}
	for name, p := range all {
		if err := p.provision(ctx, a); err != nil {
			if name != "" {
				err = fmt.Errorf("policy %s: %w", name, err)
			}
			return err
		}
	}
	for name, plan := range a.Limits.Plans {
		if _, err := a.policy(plan.Policy); err != nil {
			return fmt.Errorf("limits plan %s: %w", name, err)
		}
	}
	return nil
}

// policy returns a policy by its name, "" for the unnamed one.
func (a *App) policy(name string) (*Policy, error) {
	if name == "" {
		return &a.Policy, nil
	}
	if p, ok := a.Policies[name]; ok {
		return p, nil
	}
	known := slices.Sorted(maps.Keys(a.Policies))
	if len(known) == 0 {
		return nil, fmt.Errorf("there is no policy %q; the option lex defines policies by name: policy %s { ... }", name, name)
	}
	return nil, fmt.Errorf("there is no policy %q; give one of %s", name, strings.Join(known, ", "))
}

// policies returns all policies.
func (a *App) policies() []*Policy {
	return append(slices.Collect(maps.Values(a.Policies)), &a.Policy)
}

// inherit takes over what the policy does not say itself.
func (p *Policy) inherit(unnamed Policy) {
	p.Tau = cmp.Or(p.Tau, unnamed.Tau)
	p.RefuseAt = cmp.Or(p.RefuseAt, unnamed.RefuseAt)
	p.RefuseAtDegraded = cmp.Or(p.RefuseAtDegraded, unnamed.RefuseAtDegraded)
	p.SevereAt = cmp.Or(p.SevereAt, unnamed.SevereAt)
	p.ThreatAt = cmp.Or(p.ThreatAt, unnamed.ThreatAt)
	p.ThreatSeverity = cmp.Or(p.ThreatSeverity, unnamed.ThreatSeverity)
	p.CUSUMH = cmp.Or(p.CUSUMH, unnamed.CUSUMH)
	p.CUSUMSlowH = cmp.Or(p.CUSUMSlowH, unnamed.CUSUMSlowH)
	p.RefusalText = cmp.Or(p.RefusalText, unnamed.RefusalText)
	p.Constitution = cmp.Or(p.Constitution, unnamed.Constitution)
	if len(p.Templates) == 0 {
		p.Templates = unnamed.Templates
	}
	p.Identity = cmp.Or(p.Identity, unnamed.Identity)
	if len(p.IdentityModes) == 0 {
		p.IdentityModes = unnamed.IdentityModes
	}
	if p.EmbedderRaw == nil {
		p.EmbedderRaw = unnamed.EmbedderRaw
	}
	if p.JudgeRaw == nil {
		p.JudgeRaw = unnamed.JudgeRaw
	}
	if p.GuardsRaw == nil {
		p.GuardsRaw = unnamed.GuardsRaw
	}
	p.Memory = cmp.Or(p.Memory, unnamed.Memory)
	p.Limits.Anonymous = cmp.Or(p.Limits.Anonymous, unnamed.Limits.Anonymous)
	p.Limits.Keyed = cmp.Or(p.Limits.Keyed, unnamed.Limits.Keyed)
	p.Limits.Intercepted = cmp.Or(p.Limits.Intercepted, unnamed.Limits.Intercepted)
}

// provision builds the governor that works under the policy. Its store comes with
// Start.
func (p *Policy) provision(ctx caddy.Context, a *App) error {
	p.RefusalText = cmp.Or(p.RefusalText, govern.DefaultRefusal)
	p.Identity = cmp.Or(p.Identity, govern.IdentityFull)
	if err := p.checkIdentity(); err != nil {
		return err
	}
	memory := *cmp.Or(p.Memory, a.Memory)
	if memory < 0 || memory > govern.MaxMemory {
		return fmt.Errorf("memory: %d turns; give a number from 0 to %d", memory, govern.MaxMemory)
	}
	if err := p.Limits.check(); err != nil {
		return err
	}
	p.anonymous = newLimit("govern", p, p.Limits.Anonymous, a.Limits.Anonymous)
	p.keyed = newLimit("govern", p, p.Limits.Keyed, a.Limits.Keyed)
	p.intercepted = newLimit("intercepted", p, p.Limits.Intercepted, a.Limits.Intercepted)
	p.Tools.inherit(a.Tools)
	tools, err := p.Tools.provision()
	if err != nil {
		return err
	}
	constitution, err := p.constitution()
	if err != nil {
		return err
	}

	templates, err := p.templates()
	if err != nil {
		return err
	}

	g := &govern.Governor{
		Detector: detect.Default(), RefusalText: p.RefusalText, Constitution: constitution, Templates: templates, Memory: memory, Tools: tools,
	}
	g.Embedder, g.Judge, g.JudgeRequired, g.Guards = a.embedder, a.judge, a.judgeRequired, a.guards
	if p.EmbedderRaw != nil {
		if g.Embedder, err = a.loadEmbedder(ctx, p); err != nil {
			return err
		}
	}
	if p.JudgeRaw != nil {
		if g.Judge, g.JudgeRequired, err = a.loadJudge(ctx, p); err != nil {
			return err
		}
	}
	if p.GuardsRaw != nil {
		if g.Guards, err = a.loadGuards(ctx, p); err != nil {
			return err
		}
	}

	policy := kernel.DefaultPolicy()
	override(&policy.Tau, p.Tau)
	override(&policy.RefuseAt, p.RefuseAt)
	override(&policy.RefuseAtDegraded, p.RefuseAtDegraded)
	override(&policy.SevereAt, p.SevereAt)
	if g.Embedder == nil { // the threshold belongs to the detector's own scale
		policy.ThreatAt = math.Round(float64(g.Detector.Calibration().Threat)*1e4) / 1e4
	}
	override(&policy.ThreatAt, p.ThreatAt)
	override(&policy.ThreatSeverity, p.ThreatSeverity)
	override(&policy.CUSUMH, p.CUSUMH)
	override(&policy.CUSUMSlowH, p.CUSUMSlowH)
	if g.Kernel, err = kernel.New(policy); err != nil {
		return fmt.Errorf("checking the policy: %w", err)
	}
	g.Version = pipelineVersion + "+policy." + g.Kernel.PolicyHash()[:12]
	p.setup, g.Setup, err = g.Describe(codeSetup(), p.Tools.ruleSet(), govern.IdentitySetup{Default: p.Identity, Modes: p.IdentityModes}).JSON()
	p.governor = g
	return err
}

// start gives the governor its store, and leaves the policy and the setup there before
// the first receipt that names them, so that the receipt can be replayed for as long as
// it is kept.
func (p *Policy) start(ctx context.Context, e *sharedStore) error {
	p.governor.Store, p.governor.Locks = e.store, e.locks
	text, err := p.governor.Kernel.Policy().JSON()
	if err != nil {
		return err
	}
	if err := e.store.PutDocument(ctx, p.governor.Kernel.PolicyHash(), text); err != nil {
		return fmt.Errorf("the store does not take the policy: %w", err)
	}
	if err := e.store.PutDocument(ctx, p.governor.Setup, p.setup); err != nil {
		return fmt.Errorf("the store does not take the setup: %w", err)
	}
	return nil
}

// loadEmbedder loads the embedder module of the app or of a policy.
func (a *App) loadEmbedder(ctx caddy.Context, of any) (govern.Embedder, error) {
	guest, err := ctx.LoadModule(of, "EmbedderRaw")
	if err != nil {
		return nil, fmt.Errorf("loading the embedder module: %w", err)
	}
	module, ok := guest.(EmbedderModule)
	if !ok {
		return nil, fmt.Errorf("the module %T has no embedder", guest)
	}
	a.watchRemote("embedder", guest)
	return module.Embedder(), nil
}

// loadJudge loads the judge module of the app or of a policy.
func (a *App) loadJudge(ctx caddy.Context, of any) (judge govern.Judge, required bool, err error) {
	guest, err := ctx.LoadModule(of, "JudgeRaw")
	if err != nil {
		return nil, false, fmt.Errorf("loading the judge module: %w", err)
	}
	module, ok := guest.(JudgeModule)
	if !ok {
		return nil, false, fmt.Errorf("the module %T has no judge", guest)
	}
	a.watchRemote("judge", guest)
	return module.Judge(), module.Required(), nil
}

// checkIdentity checks the modes and puts those that requests may name into
// their usual order.
func (p *Policy) checkIdentity() error {
	for _, mode := range append([]string{p.Identity}, p.IdentityModes...) {
		if !slices.Contains(govern.IdentityModes, mode) {
			return fmt.Errorf("policy identity %q: give one of %s", mode, strings.Join(govern.IdentityModes, ", "))
		}
	}
	if len(p.IdentityModes) == 0 {
		p.IdentityModes = govern.IdentityModes
	}
	if !slices.Contains(p.IdentityModes, p.Identity) {
		return fmt.Errorf("policy identity_modes: the default identity %s is not among them; name it, or set identity to one that is", p.Identity)
	}
	p.IdentityModes = slices.DeleteFunc(slices.Clone(govern.IdentityModes), func(mode string) bool { return !slices.Contains(p.IdentityModes, mode) })
	return nil
}

func override(field, value *float64) {
	if value != nil {
		*field = *value
	}
}

// constitution reads the governed arm's system text.
func (p *Policy) constitution() (string, error) {
	if p.Constitution == "" {
		return govern.DefaultConstitution(), nil
	}
	text, err := os.ReadFile(p.Constitution)
	if err != nil {
		return "", fmt.Errorf("reading the constitution: %w", err)
	}
	trimmed := strings.TrimSpace(string(text))
	if trimmed == "" || !utf8.ValidString(trimmed) {
		return "", errors.New("the constitution file is empty or not UTF-8")
	}
	return trimmed, nil
}

// templates reads the files of the templates.
func (p *Policy) templates() (all []govern.Template, err error) {
	for _, file := range p.Templates {
		text, err := os.ReadFile(file) //nolint:gosec // G304: the operator names it
		if err != nil {
			return nil, fmt.Errorf("reading a template: %w", err)
		}
		t, err := govern.ParseTemplate(string(text))
		if err != nil {
			return nil, fmt.Errorf("policy template %s: %w", file, err)
		}
		all = append(all, t)
	}
	return all, nil
}
