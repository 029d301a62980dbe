package caddymodule

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

func init() {
	caddy.RegisterModule(AdminMetrics{})
}

// The outcomes of requests that leave no receipt, beside [kernel.Failed], which no receipt
// has; the others are those of receipts.
const (
	outcomeRejected = "rejected" // it was not accepted
	outcomeLeft     = "left"     // the client left before there was a decision
)

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

	governance    phases
	margin        prometheus.Histogram
	interventions *prometheus.CounterVec   // pillar
	detectorRuns  *prometheus.CounterVec   // detector, outcome
	storeSeconds  *prometheus.HistogramVec // operation
	streams       prometheus.Gauge
	heldBytes     prometheus.Gauge
	tokens        *prometheus.HistogramVec // gen_ai_provider_name, gen_ai_operation_name, gen_ai_token_type

	selfTests *selfTestResults
}

// phases are the histograms of the phases of a turn. They are looked up once: observing
// then takes no lock and no memory.
type phases struct {
	*prometheus.HistogramVec // phase

	read, assess, decide, conclude, commit prometheus.Observer
}

func newPhases() phases {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "lex_governance_seconds", Help: "How long the phases of a turn took in this process: read, assess, decide, conclude, commit. The model's own time is in none.",
		Buckets: []float64{1e-5, 1e-4, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"phase"})
	of := h.WithLabelValues
	return phases{h, of("read"), of("assess"), of("decide"), of("conclude"), of("commit")}
}

// observe counts the phases that took place.
func (p *phases) observe(t *govern.Timing) {
	observe(p.read, t.Read)
	observe(p.assess, t.Assess)
	observe(p.decide, t.Decide)
	observe(p.conclude, t.Conclude)
	observe(p.commit, t.Commit)
}

func observe(o prometheus.Observer, took time.Duration) {
	if took > 0 {
		o.Observe(took.Seconds())
	}
}

// Why a request leaves no receipt.
const (
	withoutText = "no_text"
	wasPassed   = "unknown_pass"
)

// allMetrics lives as long as the process: Caddy makes a new registry for each
// configuration, and counters that fall to zero on a reload are no counters.
var allMetrics = withKnownSeries(makeMetrics())

// withKnownSeries makes the series exist that alerts wait for. A series that begins with 1
// has not increased, says Prometheus.
func withKnownSeries(m *metrics) *metrics {
	for _, operation := range []string{"session", "commit", "check", "read", "limit", "key"} {
		m.storeErrors.WithLabelValues(operation)
	}
	for _, operation := range []string{"session", "commit", "answer"} {
		for _, kind := range []string{"kernel_input", "receipt", "policy", "store_conflict", "store_record", "other"} {
			m.internalErrors.WithLabelValues(operation, kind)
		}
	}
	for _, kind := range []string{store.KindText, store.KindToolCall} {
		m.receipts.WithLabelValues(kind, "true")
		m.receipts.WithLabelValues(kind, "false")
	}
	m.uninspected.WithLabelValues("request")
	m.uninspected.WithLabelValues("answer")
	return m
}

func makeMetrics() *metrics {
	return &metrics{
		requests: counter("lex_requests_total",
			"Governed requests by endpoint, dialect and outcome: the receipt's, or without a receipt rejected, left or failed.", "endpoint", "dialect", "outcome"),
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

		governance: newPhases(),
		margin: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "lex_margin", Help: "The margin M of committed turns, 0 to 1/3. The bands of health begin at 0.08, 0.15 and 0.25.",
			Buckets: []float64{.02, .04, .06, .08, .1, .125, .15, .175, .2, .225, .25, .275, .3, .32},
		}),
		interventions: counter("lex_interventions_total",
			"Turns in which the governor corrected the state, by the pillar that had fallen lowest.", "pillar"),
		detectorRuns: counter("lex_detector_runs_total",
			"What the detectors of committed turns found: clean, flagged, failed, or not_run.", "detector", "outcome"),
		storeSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "lex_store_seconds", Help: "How long the store took, failures included.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"operation"}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "lex_inflight_streams", Help: "Governed streams that have begun and not ended.",
		}),
		heldBytes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "lex_held_bytes", Help: "Bytes of governed streams that wait for their checks or their receipt.",
		}),
		tokens: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gen_ai_client_token_usage", Help: "Tokens that answers say they took, as OpenTelemetry's conventions for generative AI name them.",
			Buckets: []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864},
		}, []string{"gen_ai_provider_name", "gen_ai_operation_name", "gen_ai_token_type"}),
		selfTests: new(selfTestResults),
	}
}

// withoutReceipt counts the requests that left no receipt in this process.
type withoutReceipt struct {
	Since       int64 `json:"since"` // Unix milliseconds
	NoPrompt    int   `json:"no_prompt"`
	UnknownPass int   `json:"unknown_pass"`
	Rejected    int   `json:"rejected"`
	Left        int   `json:"left"`
	Failed      int   `json:"failed"`
}

// processBegan is when the counters of this process began.
var processBegan = time.Now()

func (m *metrics) withoutReceipt() withoutReceipt {
	return withoutReceipt{
		Since: processBegan.UnixMilli(), NoPrompt: sum(m.ungoverned, withoutText), UnknownPass: sum(m.ungoverned, wasPassed),
		Rejected: sum(m.requests, outcomeRejected), Left: sum(m.requests, outcomeLeft), Failed: sum(m.requests, string(kernel.Failed)),
	}
}

// sum adds up the series of a counter that have a value in one of their labels.
func sum(c prometheus.Collector, value string) (n int) {
	series := make(chan prometheus.Metric)
	go func() {
		defer close(series)
		c.Collect(series)
	}()
	for s := range series {
		var m dto.Metric
		has := func(l *dto.LabelPair) bool { return l.GetValue() == value }
		if s.Write(&m) == nil && slices.ContainsFunc(m.GetLabel(), has) {
			n += int(m.GetCounter().GetValue())
		}
	}
	return n
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// register makes the metrics visible in a registry, once.
func (m *metrics) register(registry prometheus.Registerer) error {
	for _, c := range m.collectors() {
		var known prometheus.AlreadyRegisteredError
		if err := registry.Register(c); err != nil && !errors.As(err, &known) {
			return fmt.Errorf("registering metrics: %w", err)
		}
	}
	return nil
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{
		m.requests, m.refusals, m.receipts, m.storeErrors, m.internalErrors, m.toolCalls, m.uninspected, m.ungoverned, m.uncovered, m.severity,
		m.modelRequests, m.modelFailures, m.modelSeconds, m.modelCacheHits, m.breakerOpen,
		m.governance, m.margin, m.interventions, m.detectorRuns, m.storeSeconds, m.streams, m.heldBytes, m.tokens, m.selfTests,
	}
}

// AdminMetrics puts Lex's metrics on Caddy's admin endpoint, whatever becomes of the
// configuration. Caddy replaces the endpoint, and the registry that it shows, before it
// provisions the apps; when one of them rejects the configuration, the one before goes on
// behind the new endpoint. If the app alone registered the metrics, they would be gone then.
type AdminMetrics struct{}

// CaddyModule returns the Caddy module information.
func (AdminMetrics) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "admin.api.lex_metrics", New: func() caddy.Module { return new(AdminMetrics) }}
}

// Provision registers the process's metrics.
func (AdminMetrics) Provision(ctx caddy.Context) error {
	return allMetrics.register(ctx.GetMetricsRegistry())
}

// Routes returns none: Caddy's own serve the registry.
func (AdminMetrics) Routes() []caddy.AdminRoute { return nil }

// Interface guards
var (
	_ caddy.Provisioner = (*AdminMetrics)(nil)
	_ caddy.AdminRouter = (*AdminMetrics)(nil)
)
