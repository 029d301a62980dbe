package caddymodule

import (
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

	"github.com/caddy-lex/lex/wire"
)

// A genAICall is what OpenTelemetry's semantic conventions for generative AI call the calls
// of a dialect: gen_ai.provider.name is the API that is spoken, whoever serves it. The
// attributes of spans and the labels of metrics come from here.
// https://opentelemetry.io/docs/specs/semconv/gen-ai/
type genAICall struct{ provider, operation attribute.KeyValue }

var genAICalls = map[string]genAICall{
	"openai_chat":        {semconv.GenAIProviderNameOpenAI, semconv.GenAIOperationNameChat},
	"openai_completions": {semconv.GenAIProviderNameOpenAI, semconv.GenAIOperationNameTextCompletion},
	"openai_responses":   {semconv.GenAIProviderNameOpenAI, semconv.GenAIOperationNameChat},
	"anthropic_messages": {semconv.GenAIProviderNameAnthropic, semconv.GenAIOperationNameChat},
	"gemini_generate":    {semconv.GenAIProviderNameGCPGemini, semconv.GenAIOperationNameGenerateContent},
	"bedrock_converse":   {semconv.GenAIProviderNameAWSBedrock, semconv.GenAIOperationNameChat},
	"ollama_chat":        {semconv.GenAIProviderNameKey.String("ollama"), semconv.GenAIOperationNameChat},
	"ollama_generate":    {semconv.GenAIProviderNameKey.String("ollama"), semconv.GenAIOperationNameTextCompletion},
}

// countTokens counts the tokens of an answer, as far as the answer tells them.
func (m *metrics) countTokens(dialect string, u wire.Usage) {
	call, asksModel := genAICalls[dialect]
	if !asksModel {
		return
	}
	count := func(kind string, tokens int64) {
		if tokens > 0 {
			m.tokens.WithLabelValues(call.provider.Value.AsString(), call.operation.Value.AsString(), kind).Observe(float64(tokens))
		}
	}
	count("input", u.Input)
	count("output", u.Output)
}

// genAIRequest are the attributes of a call in a dialect. The model is as receipts name it.
// There are none for what asks no model.
func genAIRequest(dialect, model, conversation string) []attribute.KeyValue {
	call, asksModel := genAICalls[dialect]
	if !asksModel {
		return nil
	}
	attributes := []attribute.KeyValue{call.provider, call.operation, semconv.GenAIConversationID(conversation)}
	if model != "" {
		attributes = append(attributes, semconv.GenAIRequestModel(model))
	}
	return attributes
}

// genAIUsage are the attributes of the tokens that an answer tells.
func genAIUsage(u wire.Usage) (attributes []attribute.KeyValue) {
	if u.Input > 0 {
		attributes = append(attributes, semconv.GenAIUsageInputTokens(int(u.Input)))
	}
	if u.Output > 0 {
		attributes = append(attributes, semconv.GenAIUsageOutputTokens(int(u.Output)))
	}
	return attributes
}
