package main

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/aws/smithy-go/auth/bearer"
)

// bedrockClient is a client that sends an API key, or signs with credentials of AWS. The SDK sends an
// API key by HTTPS only, so the transport stands for a proxy's TLS.
func bedrockClient(origin string, w *wire) *bedrockruntime.Client {
	o := bedrockruntime.Options{Region: "us-east-1", HTTPClient: &http.Client{Transport: withoutTLS{w}}}
	if plan.Signed {
		o.BaseEndpoint = aws.String(origin)
		o.Credentials = credentials.NewStaticCredentialsProvider("AKIAE2ENOTAREALKEY", "secret-e2e-not-a-real-key", "")
		return bedrockruntime.New(o)
	}
	o.BaseEndpoint = aws.String(strings.Replace(origin, "http:", "https:", 1))
	o.BearerAuthTokenProvider = bearer.StaticTokenProvider{Token: bearer.Token{Value: "e2e-not-a-real-key"}}
	o.AuthSchemePreference = []string{"httpBearerAuth"}
	return bedrockruntime.New(o)
}

type withoutTLS struct{ *wire }

func (t withoutTLS) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme = "http"
	return t.wire.RoundTrip(r)
}

// --- Converse

const bedrockModel = "amazon.nova-e2e-v1:0"

type (
	converseParams = bedrockruntime.ConverseInput
	converseBlock  = types.ContentBlock
)

// addBlock notes a block of an answer.
func (saw *sighting) addBlock(block converseBlock) error {
	switch b := block.(type) {
	case *types.ContentBlockMemberText:
		saw.Text += b.Value
	case *types.ContentBlockMemberReasoningContent:
		if text, ok := b.Value.(*types.ReasoningContentBlockMemberReasoningText); ok {
			saw.Reasoning += aws.ToString(text.Value.Text)
		}
	case *types.ContentBlockMemberToolUse:
		input, err := b.Value.Input.MarshalSmithyDocument()
		if err != nil {
			return err
		}
		saw.Calls += aws.ToString(b.Value.Name) + "(" + compact(string(input)) + ")"
	}
	return nil
}

// addRefusal notes the refusal that has a place beside the content.
func (saw *sighting) addRefusal(more document.Interface) error {
	if more == nil {
		return nil
	}
	var fields struct {
		Refusal string `document:"refusal"`
	}
	err := more.UnmarshalSmithyDocument(&fields)
	saw.Refusal += fields.Refusal
	return err
}

func converse(body converseParams) action {
	return func(ctx context.Context, origin string, w *wire) (saw sighting, err error) {
		answer, err := bedrockClient(origin, w).Converse(ctx, &body)
		if err != nil {
			return saw, err
		}
		saw.Finish = string(answer.StopReason)
		if said, ok := answer.Output.(*types.ConverseOutputMemberMessage); ok {
			for _, block := range said.Value.Content {
				if err := saw.addBlock(block); err != nil {
					return saw, err
				}
			}
		}
		return saw, saw.addRefusal(answer.AdditionalModelResponseFields)
	}
}

func converseStreamed(body converseParams) action {
	return func(ctx context.Context, origin string, w *wire) (saw sighting, err error) {
		answer, err := bedrockClient(origin, w).ConverseStream(ctx, &bedrockruntime.ConverseStreamInput{
			ModelId: body.ModelId, Messages: body.Messages, System: body.System, ToolConfig: body.ToolConfig, OutputConfig: body.OutputConfig,
		})
		if err != nil {
			return saw, err
		}
		stream := answer.GetStream()
		defer func() { _ = stream.Close() }() // of what was only read
		for event := range stream.Events() {
			switch e := event.(type) {
			case *types.ConverseStreamOutputMemberContentBlockStart:
				if call, ok := e.Value.Start.(*types.ContentBlockStartMemberToolUse); ok {
					saw.Calls += aws.ToString(call.Value.Name) + "("
				}
			case *types.ConverseStreamOutputMemberContentBlockDelta:
				switch d := e.Value.Delta.(type) {
				case *types.ContentBlockDeltaMemberText:
					saw.Text += d.Value
					saw.Pieces++
				case *types.ContentBlockDeltaMemberReasoningContent:
					if text, ok := d.Value.(*types.ReasoningContentBlockDeltaMemberText); ok {
						saw.Reasoning += text.Value
					}
				case *types.ContentBlockDeltaMemberToolUse:
					saw.Calls += aws.ToString(d.Value.Input)
				}
			case *types.ConverseStreamOutputMemberMessageStop:
				saw.Finish = string(e.Value.StopReason)
				if err := saw.addRefusal(e.Value.AdditionalModelResponseFields); err != nil {
					return saw, err
				}
			}
		}
		if saw.Calls != "" {
			saw.Calls = compact(saw.Calls) + ")"
		}
		return saw, stream.Err()
	}
}

func converseOf(messages ...types.Message) converseParams {
	return converseParams{ModelId: aws.String(bedrockModel), Messages: messages}
}

func converseUser(blocks ...converseBlock) types.Message {
	return types.Message{Role: types.ConversationRoleUser, Content: blocks}
}

func converseText(text string) converseBlock { return &types.ContentBlockMemberText{Value: text} }

func converseAsks(text string) converseParams { return converseOf(converseUser(converseText(text))) }

func converseStructured(text string) converseParams {
	body := converseAsks(text)
	form, _ := json.Marshal(schema)
	body.OutputConfig = &types.OutputConfig{TextFormat: &types.OutputFormat{Type: types.OutputFormatTypeJsonSchema, Structure: &types.OutputFormatStructureMemberJsonSchema{
		Value: types.JsonSchemaDefinition{Name: aws.String("capital"), Schema: aws.String(string(form))},
	}}}
	return body
}

func converseWithTool(body converseParams) converseParams {
	body.ToolConfig = &types.ToolConfiguration{Tools: []types.Tool{&types.ToolMemberToolSpec{Value: types.ToolSpecification{
		Name: aws.String("get_weather"), Description: aws.String("The weather of a city"),
		InputSchema: &types.ToolInputSchemaMemberJson{Value: document.NewLazyDocument(city)},
	}}}}
	return body
}

func converseResult(id *string, found string) converseBlock {
	return &types.ContentBlockMemberToolResult{Value: types.ToolResultBlock{
		ToolUseId: id, Status: types.ToolResultStatusSuccess, Content: []types.ToolResultContentBlock{&types.ToolResultContentBlockMemberText{Value: found}},
	}}
}

func converseToolResult(found string) converseParams {
	call := types.ToolUseBlock{ToolUseId: aws.String("tooluse_e2e"), Name: aws.String("get_weather"), Input: document.NewLazyDocument(map[string]string{"city": "Paris"})}
	return converseWithTool(converseOf(
		converseUser(converseText(weather)),
		types.Message{Role: types.ConversationRoleAssistant, Content: []converseBlock{&types.ContentBlockMemberToolUse{Value: call}}},
		converseUser(converseResult(call.ToolUseId, found))))
}

// converseDocument is a page beside the question.
func converseDocument(page string) converseParams {
	return converseOf(converseUser(&types.ContentBlockMemberDocument{Value: types.DocumentBlock{
		Format: types.DocumentFormatTxt, Name: aws.String("page"), Source: &types.DocumentSourceMemberBytes{Value: []byte(page)},
	}}, converseText(question)))
}

// converseNext goes on with the message as the SDK gave it.
func converseNext(first converseParams, next func(said types.Message) (types.Message, bool), send func(converseParams) action) action {
	return func(ctx context.Context, origin string, w *wire) (sighting, error) {
		answer, err := bedrockClient(origin, w).Converse(ctx, &first)
		if err != nil {
			return sighting{}, err
		}
		said, ok := answer.Output.(*types.ConverseOutputMemberMessage)
		if !ok {
			return sighting{}, eventError("an answer without a message")
		}
		message, anew := next(said.Value)
		if anew {
			w.again()
		}
		body := first
		body.Messages = append(append([]types.Message{}, first.Messages...), said.Value, message)
		return send(body)(ctx, origin, w)
	}
}

func converseAfter(first converseParams, send func(converseParams) action) action {
	return converseNext(first, func(types.Message) (types.Message, bool) { return converseUser(converseText(question)), true }, send)
}

func converseLoop(found string) action {
	return converseNext(converseWithTool(converseAsks(weather)), func(said types.Message) (types.Message, bool) {
		var results []converseBlock
		for _, block := range said.Content {
			if call, ok := block.(*types.ContentBlockMemberToolUse); ok {
				results = append(results, converseResult(call.Value.ToolUseId, found))
			}
		}
		return converseUser(results...), false
	}, converse)
}

func converseActions() map[string]action {
	system := converseAsks(question)
	system.System = []types.SystemContentBlock{&types.SystemContentBlockMemberText{Value: plan.Attack}}
	return map[string]action{
		"question":                          converse(converseAsks(question)),
		"question, streamed":                converseStreamed(converseAsks(question)),
		"question, structured":              converse(converseStructured(asJSON)),
		"question, structured and streamed": converseStreamed(converseStructured(asJSON)),
		"reasoning":                         converse(converseAsks(thinking)),
		"reasoning, streamed":               converseStreamed(converseAsks(thinking)),
		"tool call":                         converse(converseWithTool(converseAsks(weather))),
		"tool call, streamed":               converseStreamed(converseWithTool(converseAsks(weather))),
		"tool result":                       converse(converseToolResult(toolResult)),
		"tool loop":                         converseLoop(toolResult),
		"attack":                            converse(converseAsks(plan.Attack)),
		"attack, streamed":                  converseStreamed(converseAsks(plan.Attack)),
		"attack, structured":                converse(converseStructured(plan.Attack)),
		"attack, structured and streamed":   converseStreamed(converseStructured(plan.Attack)),
		"attack in a part":                  converse(converseOf(converseUser(converseText(question), converseText(plan.Attack)))),
		"attack beside the messages":        converse(converseDocument(plan.Attack)),
		"attack in a tool result":           converse(converseToolResult(plan.Attack)),
		"attack in a tool result, streamed": converseStreamed(converseToolResult(plan.Attack)),
		"attack in a tool loop":             converseLoop(plan.Attack),
		"role in the system prompt":         converse(system),
		"after a refusal":                   converseAfter(converseAsks(plan.Attack), converse),
		"after a refusal, streamed":         converseAfter(converseAsks(plan.Attack), converseStreamed),
		"after a refusal, structured":       converseAfter(converseStructured(plan.Attack), converse),
		"after an answer":                   converseAfter(converseAsks(thinking), converse),
		"answer that gives in":              converse(converseAsks(story)),
		"answer that gives in, streamed":    converseStreamed(converseAsks(story)),
	}
}

// --- InvokeModel with the bodies of Anthropic's own API

const (
	claudeOnBedrock = "anthropic.claude-e2e-v1:0"
	claudeByProfile = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/e2e" // which does not name its model
)

// invokeBody is the body of a message: the model stands in the address.
func invokeBody(params messageParams) ([]byte, error) {
	encoded, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	var body map[string]any
	if err := json.Unmarshal(encoded, &body); err != nil {
		return nil, err
	}
	delete(body, "model")
	body["anthropic_version"] = "bedrock-2023-05-31"
	return json.Marshal(body)
}

func invoked(ctx context.Context, client *bedrockruntime.Client, params messageParams) (message anthropic.Message, err error) {
	body, err := invokeBody(params)
	if err != nil {
		return message, err
	}
	answer, err := client.InvokeModel(ctx, &bedrockruntime.InvokeModelInput{ModelId: aws.String(claudeByProfile), ContentType: aws.String("application/json"), Body: body})
	if err != nil {
		return message, err
	}
	return message, json.Unmarshal(answer.Body, &message)
}

func invoke(params messageParams) action {
	return func(ctx context.Context, origin string, w *wire) (sighting, error) {
		message, err := invoked(ctx, bedrockClient(origin, w), params)
		if err != nil {
			return sighting{}, err
		}
		return messageSaw(message), nil
	}
}

func invokeStreamed(params messageParams) action {
	return func(ctx context.Context, origin string, w *wire) (sighting, error) {
		body, err := invokeBody(params)
		if err != nil {
			return sighting{}, err
		}
		answer, err := bedrockClient(origin, w).InvokeModelWithResponseStream(ctx, &bedrockruntime.InvokeModelWithResponseStreamInput{
			ModelId: aws.String(claudeOnBedrock), ContentType: aws.String("application/json"), Body: body,
		})
		if err != nil {
			return sighting{}, err
		}
		stream := answer.GetStream()
		defer func() { _ = stream.Close() }() // of what was only read
		var whole anthropic.Message
		pieces := 0
		for event := range stream.Events() {
			chunk, ok := event.(*types.ResponseStreamMemberChunk)
			if !ok {
				return sighting{}, eventError("an event that is no chunk")
			}
			var piece anthropic.MessageStreamEventUnion
			if err := json.Unmarshal(chunk.Value.Bytes, &piece); err != nil {
				return sighting{}, err
			}
			if err := whole.Accumulate(piece); err != nil {
				return sighting{}, err
			}
			if piece.Delta.Text != "" {
				pieces++
			}
		}
		saw := messageSaw(whole)
		saw.Pieces = pieces
		return saw, stream.Err()
	}
}

func invokeAfter(first string, send func(messageParams) action) action {
	return func(ctx context.Context, origin string, w *wire) (sighting, error) {
		body := messageAsks(first)
		message, err := invoked(ctx, bedrockClient(origin, w), body)
		if err != nil {
			return sighting{}, err
		}
		w.again()
		return send(messageOf(append(body.Messages, message.ToParam(), anthropic.NewUserMessage(anthropic.NewTextBlock(question)))...))(ctx, origin, w)
	}
}

func invokeActions() map[string]action {
	return map[string]action{
		"question":                       invoke(messageAsks(question)),
		"question, streamed":             invokeStreamed(messageAsks(question)),
		"reasoning":                      invoke(messageThinking()),
		"reasoning, streamed":            invokeStreamed(messageThinking()),
		"tool call":                      invoke(messageWithTool(messageAsks(weather))),
		"tool call, streamed":            invokeStreamed(messageWithTool(messageAsks(weather))),
		"tool result":                    invoke(messageToolResult(toolResult)),
		"attack":                         invoke(messageAsks(plan.Attack)),
		"attack, streamed":               invokeStreamed(messageAsks(plan.Attack)),
		"attack in a tool result":        invoke(messageToolResult(plan.Attack)),
		"after a refusal":                invokeAfter(plan.Attack, invoke),
		"after a refusal, streamed":      invokeAfter(plan.Attack, invokeStreamed),
		"after an answer":                invokeAfter(thinking, invoke),
		"answer that gives in":           invoke(messageAsks(story)),
		"answer that gives in, streamed": invokeStreamed(messageAsks(story)),
	}
}
