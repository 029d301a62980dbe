package caddymodule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"go.uber.org/zap"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel/toolcall"
)

func init() {
	caddy.RegisterModule(new(App))
}

// pipelineVersion opens the version string of every result; the policy's hash
// closes it.
const pipelineVersion = "lex-go/0.1.0"

// App holds what all sites share: the policy, the store, the limits. Handlers
// of the `lex` directive use it whether or not it is configured; without a
// configuration every default holds.
type App struct {
	// Where receipts, sessions, limits and benchmarks are kept. Default: bolt,
	// in Caddy's data directory.
	StoreRaw json.RawMessage `json:"store,omitempty" caddy:"namespace=lex.stores inline_key=engine"`

	// Whose embedding space the threat signal is measured in. Default: local.
	EmbedderRaw json.RawMessage `json:"embedder,omitempty" caddy:"namespace=lex.embedders inline_key=provider"`

	// The judge that reads answers beside the local one. Default: none.
	JudgeRaw json.RawMessage `json:"judge,omitempty" caddy:"namespace=lex.judges inline_key=provider"`

	// The guard models that are asked about texts which the detector leaves undecided.
	// Default: none.
	GuardsRaw []json.RawMessage `json:"guards,omitzero" caddy:"namespace=lex.guards inline_key=kind"`

	// What requests are governed under; what is absent keeps its default.
	Policy Policy `json:"policy,omitzero"`

	// Policies by name, for sites and for the plans of API keys that choose one.
	Policies map[string]*Policy `json:"policies,omitempty"`

	// Rules on the calls of tools.
	Tools Tools `json:"tools,omitzero"`

	// Rates and sizes.
	Limits Limits `json:"limits,omitzero"`

	// Secrets that open what is not public.
	Secrets Secrets `json:"secrets,omitzero"`

	// How many earlier turns of a session POST /lex/govern gives back to the
	// model; 0 switches the memory off. Default: 6.
	Memory *int `json:"memory,omitempty"`

	logger       *zap.Logger
	events       *caddyevents.App // nil: nobody is told, of canaries
	eventContext caddy.Context    // of Provision; names the origin of events, used for nothing else
	metrics      *metrics
	embedder     govern.Embedder // nil: the detector's own
	judge        govern.Judge    // nil: the local one alone
	guards       []*govern.Guard
	opener       StoreOpener
	storeEngine  string                   // its module's name
	handlers     []*Handler               // of this configuration
	remotes      map[string][]remoteModel // by component: embedder, judge

	judgeRequired bool // an answer on which the judge gives no verdict is refused

	ready  chan struct{} // closed when Start is over, which sets the next two
	shared *sharedStore  // nil if it failed
	failed error         // why

	selfTest     *selfTest // from Start on
	stopSelfTest func()    // ends it; nil before Start
}

// CaddyModule returns the Caddy module information.
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "lex",
		New: func() caddy.Module { return new(App) },
	}
}

// Provision builds everything that needs no I/O beyond reading files named in
// the configuration; the store is opened in Start.
func (a *App) Provision(ctx caddy.Context) error {
	a.logger = ctx.Logger()
	a.eventContext = ctx
	a.ready = make(chan struct{})
	settleAtExit(ctx)
	if err := a.provisionEvents(ctx); err != nil {
		return err
	}
	var err error
	if a.EmbedderRaw != nil {
		if a.embedder, err = a.loadEmbedder(ctx, a); err != nil {
			return err
		}
	}
	if a.JudgeRaw != nil {
		if a.judge, a.judgeRequired, err = a.loadJudge(ctx, a); err != nil {
			return err
		}
	}
	if a.GuardsRaw != nil {
		if a.guards, err = a.loadGuards(ctx, a); err != nil {
			return err
		}
	}
	if err := a.Limits.provision(); err != nil {
		return err
	}
	if err := a.Secrets.provision(a.logger); err != nil {
		return err
	}
	if a.Memory == nil {
		six := 6
		a.Memory = &six
	}
	if err := a.provisionPolicies(ctx); err != nil {
		return err
	}
	a.metrics = allMetrics
	if err := a.metrics.register(ctx.GetMetricsRegistry()); err != nil { // the admin endpoint may be off
		return err
	}
	return a.provisionStore(ctx)
}

func (a *App) provisionEvents(ctx caddy.Context) error {
	events, err := ctx.App("events")
	if err != nil {
		return fmt.Errorf("loading the events app: %w", err)
	}
	var ok bool
	if a.events, ok = events.(*caddyevents.App); !ok {
		return fmt.Errorf("the events app is a %T", events)
	}
	return nil
}

func (a *App) provisionStore(ctx caddy.Context) error {
	if a.StoreRaw == nil {
		a.StoreRaw = json.RawMessage(`{"engine":"bolt"}`)
	}
	guest, err := ctx.LoadModule(a, "StoreRaw")
	if err != nil {
		return fmt.Errorf("loading the store module: %w", err)
	}
	var ok bool
	if a.opener, ok = guest.(StoreOpener); !ok {
		return fmt.Errorf("the module %T opens no store", guest)
	}
	if module, ok := guest.(caddy.Module); ok {
		a.storeEngine = module.CaddyModule().ID.Name()
	}
	return nil
}

// Start opens the store, or joins the configuration before this one in using
// the same store.
func (a *App) Start() error {
	defer close(a.ready)
	e, err := acquireStore(a.opener, a.logger)
	if err == nil {
		if err = a.startPolicies(e); err != nil {
			err = errors.Join(err, e.leave(a.logger))
			e = nil
		}
	}
	a.shared, a.failed = e, err
	if err == nil {
		a.startSelfTest()
	}
	return err
}

func (a *App) startPolicies(e *sharedStore) error {
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	for _, p := range a.policies() {
		if err := p.start(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// Stop does nothing: streams of this configuration may still be open. What
// was acquired is given back in Cleanup and by each request in flight.
func (a *App) Stop() error { return nil }

// Cleanup gives the store back, if this configuration ever got it: it also
// runs after a failed Provision.
func (a *App) Cleanup() error {
	if a.stopSelfTest != nil {
		a.stopSelfTest()
	}
	if a.shared == nil {
		return nil
	}
	return a.shared.leave(a.logger)
}

// Governor returns the governor of the default policy. It has a store from Start
// on.
func (a *App) Governor() *govern.Governor { return a.Policy.governor }

// Interceptor returns what decides on the calls of tools under the default policy.
func (a *App) Interceptor() *toolcall.Interceptor { return a.Policy.governor.Interceptor() }

// errNotServing says that this configuration has no store (any more).
var errNotServing = errors.New("the governor is not ready")

// use returns the store for the time of one request, waiting for Start if
// need be. The caller calls done exactly once; until then a reload cannot
// close the store.
//
// A request may come after Cleanup: Caddy does not wait for requests when it reloads, and what
// stands before lex may take its time. It is governed as long as the configuration that
// followed, or another request, has the store open.
func (a *App) use(ctx context.Context) (e *sharedStore, done func(), err error) {
	select {
	case <-a.ready: // also for who has left: what is counted of a request goes by what became of it
	default:
		select {
		case <-a.ready:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	e = a.shared
	if e == nil {
		return nil, nil, errors.Join(errNotServing, a.failed)
	}
	if err := e.retain(); err != nil {
		return nil, nil, errors.Join(errNotServing, err)
	}
	return e, func() { a.giveBack(e) }, nil
}

func (a *App) giveBack(e *sharedStore) {
	if err := e.release(); err != nil {
		a.logger.Error("closing the store", zap.Error(err))
	}
}

// emit publishes an event to Caddy's subscribers.
func (a *App) emit(name string, data map[string]any) {
	if a.events != nil && a.events.ShouldEmit(name) {
		a.events.Emit(a.eventContext, name, data)
	}
}

// Interface guards
var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)
