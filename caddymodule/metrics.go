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
	refusals    *prometheus.CounterVec // reason
	receipts    *prometheus.CounterVec // kind, persisted
	storeErrors *prometheus.CounterVec // operation
}

// allMetrics lives as long as the process: Caddy makes a new registry for each
// configuration, and counters that fall to zero on a reload are no counters.
var allMetrics = &metrics{
	requests: counter("lex_requests_total",
		"Governed requests by endpoint, dialect and outcome.", "endpoint", "dialect", "outcome"),
	refusals: counter("lex_refusals_total",
		"Refused turns by primary reason.", "reason"),
	receipts: counter("lex_receipts_total",
		"Receipts by kind (KRN, TCR) and whether the store confirmed them.", "kind", "persisted"),
	storeErrors: counter("lex_store_errors_total",
		"Failed store operations.", "operation"),
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// newMetrics makes the process's metrics visible in a configuration's registry.
func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := allMetrics
	for _, c := range []prometheus.Collector{m.requests, m.refusals, m.receipts, m.storeErrors} {
		var known prometheus.AlreadyRegisteredError
		if err := registry.Register(c); err != nil && !errors.As(err, &known) {
			return nil, fmt.Errorf("registering a collector: %w", err)
		}
	}
	return m, nil
}
