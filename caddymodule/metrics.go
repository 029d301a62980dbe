package caddymodule

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// outcomeRejected is the outcome of a request that was not accepted and so
// leaves no receipt; the other outcomes are those of receipts.
const outcomeRejected = "rejected"

// metrics are the counters of one configuration's registry. Labels are bounded
// sets; no key, session or prompt ever is one.
type metrics struct {
	requests    *prometheus.CounterVec // endpoint, dialect, outcome
	refusals    *prometheus.CounterVec // reason, mode
	receipts    *prometheus.CounterVec // kind, persisted
	storeErrors *prometheus.CounterVec // operation

	internalErrors *prometheus.CounterVec // operation, kind
	toolCalls      *prometheus.CounterVec // dialect, decision, invariant
	uninspected    *prometheus.CounterVec // what
	ungoverned     *prometheus.CounterVec // why
	uncovered      *prometheus.CounterVec // dialect, direction, kind

	severity *prometheus.HistogramVec // attack_type

	modelRequests  *prometheus.CounterVec   // detector
	modelFailures  *prometheus.CounterVec   // detector, kind
	modelSeconds   *prometheus.HistogramVec // detector
	modelCacheHits *prometheus.CounterVec   // detector
	breakerOpen    *prometheus.GaugeVec     // detector
}

// Why a request leaves no receipt.
const (
	withoutText = "no_text"
	wasPassed   = "unknown_pass"
)

// allMetrics lives as long as the process: Caddy makes a new registry for each
// configuration, and counters that fall to zero on a reload are no counters.
var allMetrics = &metrics{
	requests: counter("lex_requests_total",
		"Governed requests by endpoint, dialect and outcome.", "endpoint", "dialect", "outcome"),
	refusals: counter("lex_refusals_total",
		"Turns that were refused, or in the mode observe would have been, by primary reason.", "reason", "mode"),
	receipts: counter("lex_receipts_total",
		"Receipts by kind (KRN, TCR) and whether the store confirmed them.", "kind", "persisted"),
	storeErrors: counter("lex_store_errors_total",
		"Failed store operations.", "operation"),
	toolCalls: counter("lex_tool_calls_total",
		"Decided tool calls by dialect, decision (approved, blocked) and the invariant that applied, if one did.", "dialect", "decision", "invariant"),
	uninspected: counter("lex_uninspected_total",
		"Requests and answers that passed without being inspected whole.", "what"),
	ungoverned: counter("lex_ungoverned_total",
		"Requests that were forwarded without a receipt: no_text has nothing for a model to read, unknown_pass is the operator's wish.", "why"),
	uncovered: counter("lex_uncovered_bytes_total",
		"Bytes of governed requests and answers that no detector read, by dialect, direction and kind.", "dialect", "direction", "kind"),
	internalErrors: counter("lex_internal_errors_total",
		"Operations that failed for a reason of our own, by kind.", "operation", "kind"),

	severity: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "lex_severity", Help: "Severity of the prompts of turns, by attack type.",
		Buckets: []float64{.1, .2, .3, .4, .5, .55, .6, .65, .7, .75, .8, .85, .9, .95, .99},
	}, []string{"attack_type"}),

	modelRequests: counter("lex_model_requests_total",
		"Requests to remote embedders, judges and guards, those included that an open breaker kept back.", "detector"),
	modelFailures: counter("lex_model_failures_total",
		"Requests to remote embedders, judges and guards that gave no evidence, by kind.", "detector", "kind"),
	modelSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "lex_model_request_duration_seconds", Help: "How long remote embedders, judges and guards took, failures included.",
		Buckets: []float64{.025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
	}, []string{"detector"}),
	modelCacheHits: counter("lex_model_cache_hits_total",
		"Evidence of remote models that was known already.", "detector"),
	breakerOpen: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "lex_model_breaker_open", Help: "How many remote models are not asked, by one caller at least, because they fail or asked for a pause.",
	}, []string{"detector"}),
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// newMetrics makes the process's metrics visible in a configuration's registry.
func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := allMetrics
	for _, c := range []prometheus.Collector{
		m.requests, m.refusals, m.receipts, m.storeErrors, m.internalErrors, m.toolCalls, m.uninspected, m.ungoverned, m.uncovered, m.severity,
		m.modelRequests, m.modelFailures, m.modelSeconds, m.modelCacheHits, m.breakerOpen,
	} {
		var known prometheus.AlreadyRegisteredError
		if err := registry.Register(c); err != nil && !errors.As(err, &known) {
			return nil, fmt.Errorf("registering a collector: %w", err)
		}
	}
	return m, nil
}
