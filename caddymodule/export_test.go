package caddymodule

import (
	"bytes"
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/wire"
)

// OpenAPIDocument is what GET /lex/openapi.json serves.
var OpenAPIDocument = openAPIDocument

// ReadBody reads a request's body and returns the status of its error, or 0.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, int) {
	body, apiErr := readBody(w, r, limit)
	if apiErr != nil {
		return nil, apiErr.Status
	}
	return body, 0
}

// SafeURI is an address as logs may show it.
var SafeURI = safeURI

// Endpoints returns the methods of our own endpoints by path, without HEAD,
// which comes with GET.
func Endpoints() map[string][]string {
	found := make(map[string][]string)
	for _, e := range endpoints {
		method, path, _ := strings.Cut(e.pattern, " ")
		found[path] = append(found[path], method)
		slices.Sort(found[path])
	}
	return found
}

// A DefinedError is an error of the HTTP interface.
type DefinedError struct {
	Status      int
	Code        string
	OnEndpoints bool
}

// DefinedErrors returns the errors of the HTTP interface.
func DefinedErrors() []DefinedError {
	out := make([]DefinedError, len(definedErrors))
	for i, e := range definedErrors {
		out[i] = DefinedError{e.Status, e.Code, e.where == onEndpoints}
	}
	return out
}

// KeepAlive is what a stream does while the model is silent.
func KeepAlive(w http.ResponseWriter) (stop func()) {
	return (&tokenStream{w: w, streams: prometheus.NewGauge(prometheus.GaugeOpts{})}).keepAlive(keepAlive)
}

// ObserveTiming counts a turn in which all phases took place.
func ObserveTiming() {
	allMetrics.governance.observe(&govern.Timing{Read: 1, Assess: 2, Decide: 3, Conclude: 4, Commit: 5})
}

var (
	describedName   = regexp.MustCompile(`fqName: "(\w+)"`)
	describedLabels = regexp.MustCompile(`variableLabels: \{([^}]*)\}`)
)

// MetricLabels returns the labels of every metric, sorted, by its name.
func MetricLabels() map[string][]string {
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		for _, c := range append(allMetrics.collectors(), newSelfTestGauge()) {
			c.Describe(descriptions)
		}
	}()
	found := make(map[string][]string)
	for d := range descriptions {
		name := describedName.FindStringSubmatch(d.String())[1]
		labels := strings.FieldsFunc(describedLabels.FindStringSubmatch(d.String())[1], func(r rune) bool { return r == ',' })
		slices.Sort(labels)
		found[name] = labels
	}
	return found
}

// StateOfSelfTestUnderWay is the state of a self-test whose first pass is not over.
func StateOfSelfTestUnderWay(ctx context.Context) string {
	return (&selfTest{first: make(chan struct{})}).state(ctx)
}

// FirstSelfTest is closed when the canaries of a handler's configuration have run once.
func FirstSelfTest(h *Handler) <-chan struct{} { return h.app.selfTest.first }

// EndSelfTest ends the self-test that runs by itself. Without a result of it, all is well.
func EndSelfTest(h *Handler) { h.app.stopSelfTest() }

// RunSelfTest runs the canaries of a handler's configuration once.
func RunSelfTest(h *Handler) { h.app.selfTest.pass(context.Background()) }

// FailedCanaries returns the names of those that failed when they ran last.
func FailedCanaries(h *Handler) (names []string) {
	t := h.app.selfTest
	t.mu.Lock()
	defer t.mu.Unlock()
	for c, failed := range t.inert {
		if failed {
			names = append(names, c.dialect+" "+c.name)
		}
	}
	return names
}

// BlindSelfTest makes the attacks of the self-test harmless, as a detector sees them that
// finds nothing. OpenEyesOfSelfTest ends that.
func BlindSelfTest(h *Handler) {
	for i, c := range h.app.selfTest.canaries {
		c.call.Body = bytes.ReplaceAll(c.call.Body, []byte(canaryAttack), []byte(canaryQuestion))
		h.app.selfTest.canaries[i] = c
	}
}

// TameSelfTest makes the calls of tools in the self-test harmless.
func TameSelfTest(h *Handler) {
	for i, c := range h.app.selfTest.canaries {
		c.call.Body = bytes.ReplaceAll(c.call.Body, []byte("rm -rf / --no-preserve-root"), []byte("ls ./build"))
		c.answer.body = []byte(Rewritten(string(c.answer.body), "m -rf / --no-preserve-root", "ead ./build")) // its first letter stands in the chunk before
		h.app.selfTest.canaries[i] = c
	}
}

// OpenEyesOfSelfTest makes the self-test anew.
func OpenEyesOfSelfTest(h *Handler) { h.app.selfTest.canaries = h.app.newSelfTest().canaries }

// Stopped is closed when a webhook that was cleaned up sends nothing any more.
func (h *Webhook) Stopped() <-chan struct{} { return h.stopped }

// Instrument makes the webhook send and log elsewhere. It is called before the first event.
func (h *Webhook) Instrument(through http.RoundTripper, logger *zap.Logger) {
	h.client.Transport, h.logger = through, logger
}

// Trace returns a function that notes a turn on the span of a context.
func Trace(ctx context.Context) func() {
	o, r := &govern.Opened{Coverage: new(govern.Coverage)}, new(govern.Receipt)
	return func() {
		traceAssessed(ctx, &r.Turn)
		traceCommitted(ctx, "openai_chat", o, r)
		traceTokens(ctx, wire.Usage{Input: 1, Output: 2})
	}
}

// OpenStores is how many users the store with the key has.
func OpenStores(key string) int {
	users, _ := sharedStores.References(key)
	return users
}

// IsCredential reports whether a header of this name is hidden from logs.
var IsCredential = isCredential

// UsualHeaders are taken for no credentials without a look at their names.
var UsualHeaders = usualHeaders

// Rewritten replaces texts in an answer. The messages of Amazon's encoding get new lengths then.
func Rewritten(body string, pairs ...string) string {
	replace := strings.NewReplacer(pairs...).Replace
	var out bytes.Buffer
	for in := strings.NewReader(body); in.Len() > 0; {
		message, err := eventstream.NewDecoder().Decode(in, nil)
		if err != nil {
			return replace(body)
		}
		message.Payload = []byte(replace(string(message.Payload)))
		if err := eventstream.NewEncoder().Encode(&out, message); err != nil {
			panic(err)
		}
	}
	return out.String()
}
