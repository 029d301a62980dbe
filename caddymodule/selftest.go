package caddymodule

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/caddy-lex/lex/govern"
)

// selfTestEvery is how often the canaries run after the first time, at the start.
const selfTestEvery = 5 * time.Minute

// A selfTest runs canaries through every handler of a configuration, as requests come: its
// router, dialects, reading, detectors, gate, judge and receipts, under its own policy and
// options. What is behind the handlers, the store, the counters and the subscribers of
// events are replaced, so nothing of a canary is seen outside. Remote models are not asked:
// /lex/health tells how they do.
type selfTest struct {
	canaries []canary
	ok       *prometheus.GaugeVec
	logger   *zap.Logger
	first    chan struct{} // closed when all have run once

	mu    sync.Mutex
	inert map[selfTestCase]bool // that failed when they ran last
}

// A selfTestCase is what canaries of all handlers with the same policy and mode have in common.
type selfTestCase struct{ policy, mode, dialect, name, stream string }

func newSelfTestGauge() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "lex_selftest_ok", Help: "Whether the canaries of the self-test were treated as they must be, at the last time.",
	}, []string{"policy", "mode", "dialect", "canary", "stream"})
}

// selfTestResults shows how the configuration in force does: of those that have started and
// were not cleaned up since, the last. One that fails to start gives way to the one before.
type selfTestResults struct {
	mu      sync.Mutex
	started []*prometheus.GaugeVec
}

func (r *selfTestResults) begin(ok *prometheus.GaugeVec) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started = append(r.started, ok)
}

func (r *selfTestResults) end(ok *prometheus.GaugeVec) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started = slices.DeleteFunc(r.started, func(s *prometheus.GaugeVec) bool { return s == ok })
}

// Describe implements prometheus.Collector.
func (r *selfTestResults) Describe(to chan<- *prometheus.Desc) { newSelfTestGauge().Describe(to) }

// Collect implements prometheus.Collector.
func (r *selfTestResults) Collect(to chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.started); n > 0 {
		r.started[n-1].Collect(to)
	}
}

// newSelfTest makes the canaries of the handlers that a configuration has.
func (a *App) newSelfTest() *selfTest {
	t := &selfTest{ok: newSelfTestGauge(), logger: a.logger, first: make(chan struct{}), inert: make(map[selfTestCase]bool)}
	for _, h := range a.handlers {
		t.canaries = append(t.canaries, h.canaries()...)
	}
	return t
}

// run runs the canaries now and then until the context ends.
func (t *selfTest) run(ctx context.Context) {
	t.pass(ctx)
	close(t.first)
	tick := time.NewTicker(selfTestEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			t.pass(ctx)
		}
	}
}

// pass runs every canary once and publishes what became of them.
func (t *selfTest) pass(ctx context.Context) {
	problems := make(map[selfTestCase]string)
	for _, c := range t.canaries {
		problem := c.run(ctx)
		if ctx.Err() != nil || process.ends() {
			return // what was cancelled says nothing
		}
		if problem != "" || problems[c.selfTestCase] == "" {
			problems[c.selfTestCase] = problem
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for c, problem := range problems {
		ok := 1.0
		if problem != "" {
			ok = 0
		}
		t.ok.WithLabelValues(c.policy, c.mode, c.dialect, c.name, c.stream).Set(ok)
		t.logChange(c, problem)
		t.inert[c] = problem != ""
	}
}

// logChange writes a line when a canary begins to fail and one when it is well again.
func (t *selfTest) logChange(c selfTestCase, problem string) {
	fields := []zap.Field{
		zap.String("policy", c.policy), zap.String("mode", c.mode), zap.String("dialect", c.dialect),
		zap.String("canary", c.name), zap.String("stream", c.stream),
	}
	switch failed := t.inert[c]; {
	case problem != "" && !failed:
		t.logger.Warn("the self-test found that Lex does not do its work", append(fields, zap.String("problem", problem))...)
	case problem == "" && failed:
		t.logger.Warn("the self-test found that Lex does its work again", fields...)
	}
}

// state waits for the first pass and tells how the last one ended. Before it waits it looks:
// the time of ctx may be used up by a store that hangs.
func (t *selfTest) state(ctx context.Context) string {
	select {
	case <-t.first:
	default:
		select {
		case <-t.first:
		case <-ctx.Done():
			return stateStarting
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, failed := range t.inert {
		if failed {
			return stateDegraded
		}
	}
	return stateOK
}

// startSelfTest begins the self-test. stopSelfTest ends it and waits for that.
func (a *App) startSelfTest() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	a.selfTest = a.newSelfTest()
	a.metrics.selfTests.begin(a.selfTest.ok)
	a.stopSelfTest = func() {
		a.metrics.selfTests.end(a.selfTest.ok)
		cancel()
		<-done
	}
	go func() {
		defer close(done)
		a.selfTest.run(ctx)
	}()
}

// forCanaries returns the handler with everything replaced by which a canary could be seen.
func (h *Handler) forCanaries(scratch *scratchStore) *Handler {
	shared := newSharedStore("", scratch)
	limits := h.app.Limits
	limits.Body = max(limits.Body, defaultBody) // has room for a canary
	app := &App{
		Policies: make(map[string]*Policy), Limits: limits, logger: zap.NewNop(), metrics: makeMetrics(),
		ready: make(chan struct{}), shared: shared,
	}
	close(app.ready)
	for name, p := range h.app.Policies {
		app.Policies[name] = p.forCanaries(shared)
	}
	out := *h
	out.app, out.policy, out.logger, out.unread, out.upstream = app, h.policy.forCanaries(shared), app.logger, new(seenPaths), new(upstreamLog)
	if out.Baseline == "always" {
		out.Baseline = "unless_refused" // else the model is asked for a refused prompt, as it must be
	}
	return &out
}

// forCanaries returns the policy with a governor that writes into another store and asks no
// remote model. Its refusals have the default text: the operator's may have words by which a
// canary that was let through is known.
func (p *Policy) forCanaries(shared *sharedStore) *Policy {
	out, governor := *p, *p.governor
	governor.Store, governor.Locks = shared.store, shared.locks
	governor.Embedder, governor.Judge, governor.Guards = nil, nil, nil
	out.RefusalText, governor.RefusalText = govern.DefaultRefusal, govern.DefaultRefusal
	out.governor = &governor
	return &out
}
