package caddymodule

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/wire"
)

// Caddy's handler tracing puts an OpenTelemetry span into the context of a request. What is
// decided of the request is written on it: what genai.go names after the conventions for
// generative AI, and lex.* for the rest, by the names of receipts and logs. As in logs, texts
// and names that callers choose stay out, except the model's as receipts show it. Without a
// span that is recorded nothing is computed. docs/operations.md lists the members.

// traceIDOf returns the trace that a request belongs to, as receipts name it; "" if there is
// none.
func traceIDOf(ctx context.Context) string {
	if id := trace.SpanContextFromContext(ctx).TraceID(); id.IsValid() {
		return id.String()
	}
	return ""
}

// traceAssessed notes that a prompt is assessed, before the model is asked.
func traceAssessed(ctx context.Context, t *kernel.Turn) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.AddEvent("lex.assessed", trace.WithAttributes(
			attribute.String("lex.attack_type", string(t.AttackType)),
			attribute.Float64("lex.severity", t.Severity),
			attribute.String("lex.pre_eval_label", t.Label)))
	}
}

// traceCommitted notes how a turn or a tool call ended, and its receipt. A request may have
// several, of which the span's attributes describe the last. The model, if there is one, is
// asked in asks.
func traceCommitted(ctx context.Context, asks string, o *govern.Opened, r *govern.Receipt) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(append(genAIRequest(asks, r.Model, o.SessionHash()),
		attribute.String("lex.endpoint", o.Endpoint),
		attribute.String("lex.dialect", o.Dialect),
		attribute.String("lex.mode", string(o.Mode)),
		attribute.String("lex.policy", r.Policy),
		attribute.String("lex.outcome", string(r.Outcome)),
		attribute.Bool("lex.refused", r.Refused),
		attribute.Bool("lex.would_refuse", r.WouldRefuse),
		attribute.String("lex.reason", string(r.Turn.PrimaryReason())),
		attribute.String("lex.attack_type", string(r.Turn.AttackType)),
		attribute.Float64("lex.severity", r.Turn.Severity),
		attribute.Float64("lex.margin", r.Turn.M),
		attribute.String("lex.health_band", string(r.Turn.Band)),
		attribute.Bool("lex.coverage_complete", o.Coverage.Complete()),
		attribute.Bool("lex.receipt_persisted", r.Persisted),
		attribute.String("lex.receipt_id", r.ID))...)
	if r.Kind == store.KindToolCall {
		traceCall(span, r)
	}
	for _, call := range r.Calls {
		traceCall(span, call)
	}
	span.AddEvent("lex.committed", trace.WithAttributes(
		seconds("lex.read_seconds", o.Timing.Read),
		seconds("lex.assess_seconds", o.Timing.Assess),
		seconds("lex.decide_seconds", o.Timing.Decide),
		seconds("lex.conclude_seconds", o.Timing.Conclude),
		seconds("lex.commit_seconds", o.Timing.Commit)))
}

func seconds(name string, d time.Duration) attribute.KeyValue {
	return attribute.Float64(name, d.Seconds())
}

// traceCall notes the decision on a tool call.
func traceCall(span trace.Span, r *govern.Receipt) {
	call := r.Turn.Call
	span.AddEvent("lex.tool_call", trace.WithAttributes(
		attribute.String("lex.decision", string(call.Decision)),
		attribute.String("lex.invariant", call.Invariant),
		attribute.String("lex.rule", call.Rule),
		attribute.String("lex.effect", string(call.Effect)),
		attribute.String("lex.receipt_id", r.ID)))
}

// traceTokens notes the tokens of an answer, as far as the answer tells them.
func traceTokens(ctx context.Context, u wire.Usage) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(genAIUsage(u)...)
	}
}
