package caddymodule_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/tracing"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/caddy-lex/lex/caddymodule"
)

// spans are what Caddy's handler tracing exports; it has one provider for the process.
var spans = keeper{tracetest.NewInMemoryExporter()}

// A keeper keeps its spans when the provider shuts down.
type keeper struct{ *tracetest.InMemoryExporter }

func (keeper) Shutdown(context.Context) error { return nil }

func init() {
	autoexport.RegisterSpanExporter("memory", func(context.Context) (sdktrace.SpanExporter, error) { return spans, nil })
}

// traced runs a request through the handler tracing and then the site, and returns the span.
func (s *site) traced(path, body string, headers ...string) (tracetest.SpanStub, *httptest.ResponseRecorder) {
	s.t.Helper()
	s.t.(*testing.T).Setenv("OTEL_TRACES_EXPORTER", "memory")
	ctx, cancel := caddy.NewContext(caddy.Context{Context: s.t.Context()})
	defer cancel()
	outer := new(tracing.Tracing)
	if err := outer.Provision(ctx); err != nil {
		s.t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "http://site.test"+path, strings.NewReader(body))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, new(caddyhttp.Server))
	err := outer.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		return s.handler.ServeHTTP(w, r, s.model)
	}))
	if err != nil {
		s.t.Fatal(err)
	}
	if err := outer.Cleanup(); err != nil { // exports what there is
		s.t.Fatal(err)
	}
	got := spans.GetSpans()
	spans.Reset()
	if len(got) != 1 {
		s.t.Fatalf("%d spans", len(got))
	}
	return got[0], w
}

// attributesOf are attributes as texts, by name.
func attributesOf(list []attribute.KeyValue) map[string]string {
	out := make(map[string]string)
	for _, a := range list {
		out[string(a.Key)] = a.Value.String()
	}
	return out
}

// Each governed request tells on Caddy's span what was decided, and its receipts name the
// trace.
func TestTraces(t *testing.T) {
	chat := map[string]string{"gen_ai.provider.name": "openai", "gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
	with := func(base map[string]string, more ...string) map[string]string {
		out := maps.Clone(base)
		for i := 0; i+1 < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	manual, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		config, path, body string
		model              caddyhttp.HandlerFunc
		receipts           int
		want               map[string]string
		events             string
	}{
		"a question": {
			path: "/v1/chat/completions", body: chatQuestion, receipts: 1, model: answering("application/json", strings.Replace(completion("Paris."), "{", `{"usage":{"prompt_tokens":5,"completion_tokens":7},`, 1)),
			want:   with(chat, "lex.outcome", "answered", "lex.refused", "false", "lex.mode", "enforce", "lex.health_band", "OPTIMAL", "lex.endpoint", "openai_chat", "gen_ai.usage.input_tokens", "5", "gen_ai.usage.output_tokens", "7"),
			events: "lex.assessed lex.committed",
		},
		"a stream": {
			path: "/v1/chat/completions", body: chatStreamed, receipts: 1, model: answering("text/event-stream", stream("Paris.")),
			want:   with(chat, "lex.outcome", "answered", "lex.receipt_persisted", "true", "gen_ai.usage.output_tokens", "2"),
			events: "lex.assessed lex.committed",
		},
		"an attack": {
			path: "/v1/chat/completions", body: chatAttack, receipts: 1, model: answering("application/json", completion("Paris.")),
			want:   with(chat, "lex.outcome", "refused", "lex.refused", "true", "lex.reason", "semantic_classifier", "lex.attack_type", "identity", "lex.health_band", "CRITICAL", "lex.margin", "0.08"),
			events: "lex.assessed lex.committed",
		},
		"an attack in observe": {
			config: `{"mode":"observe"}`, path: "/v1/chat/completions", body: chatAttack, receipts: 1, model: answering("application/json", completion("Paris.")),
			want:   with(chat, "lex.outcome", "answered", "lex.refused", "false", "lex.would_refuse", "true", "lex.reason", "semantic_classifier", "lex.mode", "observe"),
			events: "lex.assessed lex.committed",
		},
		"a blocked call": {
			path: "/v1/chat/completions", body: chatQuestion, receipts: 2, model: answering(callingAPIs[0].answer(wipe)),
			want:   with(chat, "lex.outcome", "answered", "lex.refused", "false"),
			events: "lex.assessed lex.tool_call lex.committed",
		},
		"govern": {
			config: `{"model":"m","baseline":"always"}`, path: "/lex/govern", body: question, receipts: 1, model: answering("application/json", strings.Replace(completion("Paris."), "{", `{"usage":{"prompt_tokens":5,"completion_tokens":7},`, 1)),
			want:   with(chat, "lex.dialect", "lex", "lex.endpoint", "lex/govern", "lex.outcome", "answered", "gen_ai.usage.output_tokens", "7"),
			events: "lex.assessed lex.committed",
		},
		"a checked call": {
			path: "/lex/tools/check", body: `{"session_id":"canary-session","tool":{"name":"bash","arguments":` + wipeArguments + `}}`, receipts: 1,
			want:   map[string]string{"lex.endpoint": "lex/tools/check", "lex.refused": "true", "gen_ai.provider.name": ""},
			events: "lex.tool_call lex.committed",
		},
		"a call over MCP": {
			path: "/mcp", body: mcpCall("1", "get_weather", weatherArguments), receipts: 2, model: answering("application/json", mcpResult("Sunny.")),
			want:   map[string]string{"lex.endpoint": "mcp", "lex.outcome": "answered", "gen_ai.provider.name": ""},
			events: "lex.assessed lex.tool_call lex.committed lex.committed",
		},
		"no dialect": {
			path: "/elsewhere", body: `{"text":"What is the capital of France?"}`, receipts: 1, model: answering("application/json", `{}`),
			want:   map[string]string{"lex.dialect": "unknown", "lex.coverage_complete": "false"},
			events: "lex.assessed lex.committed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := test.config
			if config == "" {
				config = `{}`
			}
			s := newSite(t, config, test.model)
			span, w := s.traced(test.path, test.body)
			got := attributesOf(span.Attributes)
			for member, want := range test.want {
				if got[member] != want {
					t.Errorf("%s is %q, want %q", member, got[member], want)
				}
			}
			var events []string
			for _, e := range span.Events {
				events = append(events, e.Name)
				maps.Copy(got, attributesOf(e.Attributes))
			}
			for _, member := range slices.Concat(slices.Collect(maps.Keys(got)), events) {
				ours := strings.HasPrefix(member, "lex.") || strings.HasPrefix(member, "gen_ai.")
				if ours && !bytes.Contains(manual, []byte("`"+member+"`")) {
					t.Errorf("docs/operations.md does not tell of %s", member)
				}
			}
			if strings.Join(events, " ") != test.events {
				t.Errorf("events %v, want %s", events, test.events)
			}
			receipts := s.receipts()
			for _, r := range receipts {
				if r["trace_id"] != span.SpanContext.TraceID().String() {
					t.Errorf("a receipt of the trace %v", r["trace_id"])
				}
			}
			if len(receipts) != test.receipts || !slices.ContainsFunc(receipts, func(r map[string]any) bool {
				return r["id"] == got["lex.receipt_id"] && r["policy"] == got["lex.policy"]
			}) {
				t.Errorf("%d receipts, the span's is %q: %d %s", len(receipts), got["lex.receipt_id"], w.Code, w.Body)
			}
		})
	}
}

// A trace that the client began goes on, and its id is the receipt's.
func TestTraceOfTheClient(t *testing.T) {
	seen := new(recorder)
	s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
		seen.record(r)
		return answering("application/json", completion("Paris."))(w, r)
	})
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	span, _ := s.traced("/v1/chat/completions", chatQuestion, "traceparent", "00-"+id+"-00f067aa0ba902b7-01")
	if got := s.turns()[0]["trace_id"]; got != id || span.SpanContext.TraceID().String() != id {
		t.Errorf("the receipt's trace is %v, the span's %s", got, span.SpanContext.TraceID())
	}
	if forwarded := seen.last().header.Get("traceparent"); !strings.HasPrefix(forwarded, "00-"+id+"-"+span.SpanContext.SpanID().String()) {
		t.Errorf("the model got %q", forwarded)
	}
	s.post("/v1/chat/completions", chatQuestion, "traceparent", "00-"+id+"-00f067aa0ba902b7-01") // without the handler tracing
	if got, there := s.turns()[0]["trace_id"]; there {
		t.Errorf("a receipt without a trace has %v", got)
	}
}

// The receipt names the trace also where its span is not recorded: others may record theirs.
func TestTraceThatIsNotSampled(t *testing.T) {
	s := newSite(t, `{}`, answering("application/json", completion("Paris.")))
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{0xab}, SpanID: trace.SpanID{1}})
	r := httptest.NewRequestWithContext(trace.ContextWithSpanContext(t.Context(), parent), http.MethodPost, "http://site.test/v1/chat/completions", strings.NewReader(chatQuestion))
	s.serve(httptest.NewRecorder(), r)
	if got := s.turns()[0]["trace_id"]; got != "ab000000000000000000000000000000" {
		t.Errorf("the receipt's trace is %v", got)
	}
}

// Spans have no text, no credential and no name that a caller chose.
func TestTracesHoldNoContent(t *testing.T) {
	const secret = "canary-4711"
	s := newSite(t, `{}`, answering(callingAPIs[0].answer(askedFor{"call_1", secret + "-tool", `{"command":"` + secret + `"}`})))
	for _, request := range []struct{ path, body string }{
		{"/v1/chat/completions", strings.Replace(chatAttack, "DAN", secret, 1)},
		{"/v1/chat/completions", strings.Replace(chatQuestion, "France", secret, 1)},
		{"/lex/govern", `{"prompt":"Tell me of ` + secret + `","session_id":"` + secret + `"}`},
		{"/lex/tools/check", `{"session_id":"` + secret + `","tool":{"name":"` + secret + `","arguments":{"a":"` + secret + `"}}}`},
		{"/elsewhere", `{"text":"` + secret + `"}`},
	} {
		headers := []string{"X-Lex-Session", secret, "X-Api-Key", secret}
		if !strings.HasPrefix(request.path, "/lex/") { // there it would have to be a key of ours
			headers = append(headers, "Authorization", "Bearer "+secret)
		}
		span, _ := s.traced(request.path, request.body, headers...)
		told := fmt.Sprint(attributesOf(span.Attributes), span.Status, span.Name)
		for _, e := range span.Events {
			told += fmt.Sprint(e.Name, attributesOf(e.Attributes))
		}
		if strings.Contains(told, secret) || !strings.Contains(told, "lex.receipt_id") {
			t.Errorf("%s: %s", request.path, told)
		}
	}
}

// Without a span that is recorded, nothing is computed for one.
func TestTracesCostNothingWithoutASpan(t *testing.T) {
	sampledOut := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}}))
	for name, ctx := range map[string]context.Context{"no span": t.Context(), "sampled out": sampledOut} {
		if n := testing.AllocsPerRun(100, caddymodule.Trace(ctx)); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkTraceWithoutASpan(b *testing.B) {
	note := caddymodule.Trace(b.Context())
	b.ReportAllocs()
	for b.Loop() {
		note()
	}
}
