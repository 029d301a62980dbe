package main

import (
	"context"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

func anthropicClient(origin string, w *wire) anthropic.Client {
	return anthropic.NewClient(option.WithBaseURL(origin), option.WithAPIKey("sk-ant-e2e-not-a-real-key"), option.WithHTTPClient(&http.Client{Transport: w}))
}

type messageParams = anthropic.MessageNewParams

func messageSaw(m anthropic.Message) sighting {
	saw := sighting{Refusal: m.StopDetails.Explanation, Finish: string(m.StopReason)}
	for _, block := range m.Content {
		saw.Text += block.Text
		saw.Reasoning += block.Thinking
		if block.Type == "tool_use" {
			saw.Calls += block.Name + "(" + compact(string(block.Input)) + ")"
		}
	}
	return saw
}

func message(body messageParams) action {
	return func(ctx context.Context, origin string, w *wire) (sighting, error) {
		client := anthropicClient(origin, w)
		answer, err := client.Messages.New(ctx, body)
		if err != nil {
			return sighting{}, err
		}
		return messageSaw(*answer), nil
	}
}

// messageStreamed accumulates the message as the SDK's documentation shows it.
func messageStreamed(body messageParams) action {
	return func(ctx context.Context, origin string, w *wire) (sighting, error) {
		client := anthropicClient(origin, w)
		stream := client.Messages.NewStreaming(ctx, body)
		defer func() { _ = stream.Close() }() // of what was only read
		var whole anthropic.Message
		pieces, ended := 0, false
		for stream.Next() {
			event := stream.Current()
			if err := whole.Accumulate(event); err != nil {
				return sighting{}, err
			}
			if event.Delta.Text != "" {
				pieces++
			}
			ended = event.Type == "message_stop"
		}
		saw := messageSaw(whole)
		saw.Pieces = pieces
		if !ended {
			saw.Finish = ""
		}
		return saw, stream.Err()
	}
}

func messageOf(messages ...anthropic.MessageParam) messageParams {
	return messageParams{Model: "claude-e2e", MaxTokens: 2048, Messages: messages}
}

func messageAsks(text string) messageParams {
	return messageOf(anthropic.NewUserMessage(anthropic.NewTextBlock(text)))
}

func messageStructured(text string) messageParams {
	body := messageAsks(text)
	body.OutputConfig.Format = anthropic.JSONOutputFormatParam{Schema: schema}
	return body
}

func messageThinking() messageParams {
	body := messageAsks(thinking)
	body.Thinking = anthropic.ThinkingConfigParamOfEnabled(1024)
	return body
}

func messageWithTool(body messageParams) messageParams {
	body.Tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
		Name: "get_weather", Description: anthropic.String("The weather of a city"),
		InputSchema: anthropic.ToolInputSchemaParam{Properties: city["properties"], Required: []string{"city"}},
	}}}
	return body
}

func messageToolResult(found string) messageParams {
	return messageWithTool(messageOf(
		anthropic.NewUserMessage(anthropic.NewTextBlock(weather)),
		anthropic.NewAssistantMessage(anthropic.NewToolUseBlock("toolu_e2e", map[string]any{"city": "Paris"}, "get_weather")),
		anthropic.NewUserMessage(anthropic.NewToolResultBlock("toolu_e2e", found, false))))
}

func messageAfter(first string, send func(messageParams) action) action {
	return func(ctx context.Context, origin string, w *wire) (sighting, error) {
		client := anthropicClient(origin, w)
		body := messageAsks(first)
		answer, err := client.Messages.New(ctx, body)
		if err != nil {
			return sighting{}, err
		}
		w.again()
		return send(messageOf(append(body.Messages, answer.ToParam(), anthropic.NewUserMessage(anthropic.NewTextBlock(question)))...))(ctx, origin, w)
	}
}

func anthropicActions() map[string]action {
	system := messageAsks(question)
	system.System = []anthropic.TextBlockParam{{Text: plan.Attack}}
	return map[string]action{
		"question":                          message(messageAsks(question)),
		"question, streamed":                messageStreamed(messageAsks(question)),
		"question, structured":              message(messageStructured(asJSON)),
		"question, structured and streamed": messageStreamed(messageStructured(asJSON)),
		"reasoning":                         message(messageThinking()),
		"reasoning, streamed":               messageStreamed(messageThinking()),
		"tool call":                         message(messageWithTool(messageAsks(weather))),
		"tool call, streamed":               messageStreamed(messageWithTool(messageAsks(weather))),
		"tool result":                       message(messageToolResult(toolResult)),
		"attack":                            message(messageAsks(plan.Attack)),
		"attack, streamed":                  messageStreamed(messageAsks(plan.Attack)),
		"attack, structured":                message(messageStructured(plan.Attack)),
		"attack, structured and streamed":   messageStreamed(messageStructured(plan.Attack)),
		"attack in a part":                  message(messageOf(anthropic.NewUserMessage(anthropic.NewTextBlock(question), anthropic.NewTextBlock(plan.Attack)))),
		"attack beside the messages": message(messageOf(anthropic.NewUserMessage(
			anthropic.NewDocumentBlock(anthropic.PlainTextSourceParam{Data: plan.Attack}), anthropic.NewTextBlock(question)))),
		"attack in a tool result":        message(messageToolResult(plan.Attack)),
		"role in the system prompt":      message(system),
		"after a refusal":                messageAfter(plan.Attack, message),
		"after a refusal, streamed":      messageAfter(plan.Attack, messageStreamed),
		"after an answer":                messageAfter(thinking, message),
		"answer that gives in":           message(messageAsks(story)),
		"answer that gives in, streamed": messageStreamed(messageAsks(story)),
	}
}
