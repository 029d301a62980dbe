package caddymodule

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/caddy-lex/lex/model"
)

// remotes holds the clients of remote models and of guards in this process, keyed by
// everything that makes them what they are, so that a reload which keeps an embedder, a
// judge or a guard keeps its cache, its references, its breaker and its connections.
var remotes = caddy.NewUsagePool()

// Remote holds what all remote models have in common.
type Remote struct {
	// Address of the API up to and with the version. Default: the provider's. Placeholders are
	// resolved as in api_key.
	BaseURL string `json:"base_url,omitempty"`

	// The model, as the provider names it. Placeholders are resolved as in api_key.
	Model string `json:"model,omitempty"`

	// The credential. Placeholders such as {env.GEMINI_API_KEY} or
	// {file./run/secrets/key} are resolved when the configuration is loaded and
	// never written back into it.
	APIKey string `json:"api_key,omitempty"`

	// How long a turn waits for the model. Default: 2s for embedders and classifiers,
	// 5s for moderation APIs, 10s for judges and other guards.
	Timeout caddy.Duration `json:"timeout,omitempty"`

	observer *remoteObserver // of the client, from Provision on
}

// health tells how the model does.
func (r *Remote) health() remoteHealth { return r.observer.health() }

// options are the subdirectives of all remote models.
func (r *Remote) options() options {
	return options{
		"base_url": stringOption(&r.BaseURL),
		"model":    stringOption(&r.Model),
		"api_key":  stringOption(&r.APIKey),
		"timeout":  durationOption(&r.Timeout),
	}
}

// config resolves the placeholders. An option that was given and comes to nothing is an error: a
// variable that was forgotten is not a server without a key, or the provider's own.
func (r *Remote) config(provider string) (model.Config, error) {
	c := model.Config{Provider: provider, Timeout: time.Duration(r.Timeout)}
	for _, option := range []struct {
		name, raw string
		to        *string
	}{{"base_url", r.BaseURL, &c.BaseURL}, {"model", r.Model, &c.Model}, {"api_key", r.APIKey, &c.Key}} {
		value, err := resolveSecret(option.raw)
		if err != nil {
			return model.Config{}, fmt.Errorf("%s has a placeholder that is not known", option.name)
		}
		if option.raw != "" && value == "" {
			return model.Config{}, fmt.Errorf("%s is set, but what it names is empty: set the variable or the file, or leave %[1]s out", option.name)
		}
		*option.to = value
	}
	return c, nil
}

// remoteKey tells clients apart: an embedder and a judge may have one and the
// same configuration.
type remoteKey struct {
	name string
	model.Config
}

// A sharedRemote is a client in the pool, with what observes it for all
// configurations that share it.
type sharedRemote[C interface{ Close() }] struct {
	client   C
	observer *remoteObserver
}

// Destruct closes the client's connections. The pool calls it.
func (s sharedRemote[C]) Destruct() error {
	s.client.Close()
	s.observer.showBreaker(false)
	return nil
}

// shareRemote returns the client of a remote model, and what gives it back, as [share] does.
func shareRemote[C interface{ Close() }](
	ctx caddy.Context, r *Remote, config model.Config, name string, build func(model.Config, model.Observer) (C, error),
) (client C, release func(), err error) {
	client, r.observer, release, err = share(ctx, remoteKey{name, config}, name, func(o model.Observer) (C, error) { return build(config, o) })
	return client, release, err
}

// share returns the client with a key, built if it is not there yet, what observes it, and
// what gives it back, to be called once. A request in flight may go on using a client that
// was given back.
func share[C interface{ Close() }](
	ctx caddy.Context, key any, name string, build func(model.Observer) (C, error),
) (client C, observer *remoteObserver, release func(), err error) {
	logger := ctx.Logger()
	value, _, err := remotes.LoadOrNew(key, func() (caddy.Destructor, error) {
		observer := newRemoteObserver(name)
		client, err := build(observer)
		return sharedRemote[C]{client, observer}, err
	})
	if err != nil {
		return client, nil, nil, err
	}
	remote, ok := value.(sharedRemote[C])
	if !ok {
		return client, nil, nil, fmt.Errorf("the pool of remote models holds a %T", value)
	}
	remote.observer.loggers.join(logger)
	return remote.client, remote.observer, func() {
		remote.observer.loggers.leave(logger)
		_, _ = remotes.Delete(key) // closing connections does not fail
	}, nil
}

// remoteObserver counts what a client does, and writes one line when its model
// fails for good and one when it is back, never one a request.
type remoteObserver struct {
	name    string // as receipts name the detector
	metrics *metrics
	loggers loggers

	mu         sync.Mutex
	open       bool          // as the metric shows the breaker
	last       model.Failure // of the last that the model was asked for; "": it gave evidence
	proven     bool          // it has given evidence once
	rejections int           // since it gave evidence
}

// manyRejections is how many rejections in a row are about the model: fewer may be about
// the texts.
const manyRejections = 5

// A remoteHealth is how a remote model does.
type remoteHealth struct {
	// failing: the last request had no answer of use, or the breaker is open.
	failing bool
	// open: the breaker is open for one caller at least.
	open bool
}

func (o *remoteObserver) health() remoteHealth {
	o.mu.Lock()
	defer o.mu.Unlock()
	return remoteHealth{failing: o.open || o.last != "" || o.rejecting(), open: o.open}
}

// rejecting reports whether the model rejects more than single texts.
func (o *remoteObserver) rejecting() bool {
	return o.rejections >= manyRejections || !o.proven && o.rejections > 0
}

// Gathered keeps how the model does, if the end of what it was asked for says so: what was
// not asked, or not waited for, does not.
func (o *remoteObserver) Gathered(why model.Failure) {
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.rejecting()
	switch why {
	case model.Busy, model.Cancelled, model.BreakerOpen:
	case model.Rejected:
		o.rejections++
	case "":
		o.last, o.proven, o.rejections = "", true, 0
	default:
		o.last = why
	}
	switch {
	case o.rejecting() && !was:
		o.loggers.current().Warn("the remote model rejects what it is asked; check its name and options", zap.String("detector", o.name))
	case was && !o.rejecting():
		o.loggers.current().Warn("the remote model no longer rejects what it is asked", zap.String("detector", o.name))
	}
}

func newRemoteObserver(name string) *remoteObserver {
	allMetrics.breakerOpen.WithLabelValues(name).Add(0) // the series exists from now on
	return &remoteObserver{name: name, metrics: allMetrics}
}

// Asked counts a request.
func (o *remoteObserver) Asked(took time.Duration, why model.Failure) {
	o.metrics.modelRequests.WithLabelValues(o.name).Inc()
	if why != "" {
		o.metrics.modelFailures.WithLabelValues(o.name, string(why)).Inc()
	}
	if why != model.BreakerOpen && why != model.Busy {
		o.metrics.modelSeconds.WithLabelValues(o.name).Observe(took.Seconds())
	}
}

// Cached counts what needed no request.
func (o *remoteObserver) Cached() { o.metrics.modelCacheHits.WithLabelValues(o.name).Inc() }

// Breaker shows the breaker's state.
func (o *remoteObserver) Breaker(open bool, why model.Failure) {
	o.showBreaker(open)
	if open {
		o.loggers.current().Warn("the remote model is failing, and is not asked for a while by the callers whose turns fail",
			zap.String("detector", o.name), zap.String("why", string(why)))
		return
	}
	o.loggers.current().Warn("the remote model is back", zap.String("detector", o.name))
}

// showBreaker counts the breaker among those that are open: policies may ask
// several models under one detector's name.
func (o *remoteObserver) showBreaker(open bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	gauge := o.metrics.breakerOpen.WithLabelValues(o.name)
	switch {
	case open && !o.open:
		gauge.Inc()
	case !open && o.open:
		gauge.Dec()
	}
	o.open = open
}

// countOption sets a whole number of at least 1.
func countOption(to *int) func(d *caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		arg, err := oneArgument(d)
		if err != nil {
			return err
		}
		if *to, err = strconv.Atoi(arg); err != nil || *to < 1 {
			return d.Errf("%q is not a whole number of at least 1", arg)
		}
		return nil
	}
}

// Interface guards
var _ model.Observer = (*remoteObserver)(nil)
