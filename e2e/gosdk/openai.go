package main

import (
	"context"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

func openaiClient(origin string, w *wire) openai.Client {
	return openai.NewClient(option.WithBaseURL(origin+"/v1"), option.WithAPIKey("sk-e2e-not-a-real-key"), option.WithHTTPClient(&http.Client{Transport: w}))
}

// --- Chat Completions

func chatSaw(c openai.ChatCompletion) sighting {
	if len(c.Choices) == 0 {
		return sighting{}
	}
	choice := c.Choices[0]
	saw := sighting{Text: choice.Message.Content, Refusal: choice.Message.Refusal, Finish: choice.FinishReason}
	for _, call := range choice.Message.ToolCalls {
		saw.Calls += call.Function.Name + "(" + call.Function.Arguments + ")"
	}
	return saw
}

type chatParams = openai.ChatCompletionNewParams

func chat(body chatParams) action {
	return func(ctx context.Context, origin string, w *wire) (sighting, error) {
		body.Model = "gpt-e2e"
		client := openaiClient(origin, w)
		answer, err := client.Chat.Completions.New(ctx, body)
		if err != nil {
			return sighting{}, err
		}
		return chatSaw(*answer), nil
	}
}

func chatStreamed(body chatParams) action {
	return func(ctx context.Context, origin string, w *wire) (sighting, error) {
		body.Model = "gpt-e2e"
		client := openaiClient(origin, w)
		stream := client.Chat.Completions.NewStreaming(ctx, body)
		defer func() { _ = stream.Close() }() // of what was only read
		var whole openai.ChatCompletionAccumulator
		pieces := 0
		for stream.Next() {
			chunk := stream.Current()
			if !whole.AddChunk(chunk) {
				return sighting{}, eventError("a chunk that cannot be added")
			}
			if len(chunk.Choices) > 0 && chunk.Choices[0].Delta.Content != "" {
				pieces++
			}
		}
		saw := chatSaw(whole.ChatCompletion)
		saw.Pieces = pieces
		return saw, stream.Err()
	}
}

func chatAsks(text string) chatParams {
	return chatParams{Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)}}
}

func chatStructured(text string) chatParams {
	body := chatAsks(text)
	body.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
		JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "capital", Schema: schema, Strict: openai.Bool(true)},
	}
	return body
}

func chatWithTool(text string, more ...openai.ChatCompletionMessageParamUnion) chatParams {
	body := chatAsks(text)
	body.Messages = append(body.Messages, more...)
	body.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "get_weather", Description: openai.String("The weather of a city"), Parameters: city})}
	return body
}

func chatToolResult(found string) chatParams {
	call := openai.ChatCompletionMessageToolCallUnionParam{OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
		ID: "call_e2e", Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: "get_weather", Arguments: `{"city":"Paris"}`},
	}}
	return chatWithTool(weather,
		openai.ChatCompletionMessageParamUnion{OfAssistant: &openai.ChatCompletionAssistantMessageParam{ToolCalls: []openai.ChatCompletionMessageToolCallUnionParam{call}}},
		openai.ToolMessage(found, "call_e2e"))
}

// chatAfter goes on with the message as the SDK gave it.
func chatAfter(first string, send func(chatParams) action) action {
	return func(ctx context.Context, origin string, w *wire) (sighting, error) {
		client := openaiClient(origin, w)
		body := chatAsks(first)
		body.Model = "gpt-e2e"
		answer, err := client.Chat.Completions.New(ctx, body)
		if err != nil {
			return sighting{}, err
		}
		w.again()
		body.Messages = append(body.Messages, answer.Choices[0].Message.ToParam(), openai.UserMessage(question))
		return send(body)(ctx, origin, w)
	}
}

func chatActions() map[string]action {
	beside := chatAsks(question)
	beside.Prediction.Content.OfString = openai.String(plan.Attack)
	return map[string]action{
		"question":                          chat(chatAsks(question)),
		"question, streamed":                chatStreamed(chatAsks(question)),
		"question, structured":              chat(chatStructured(asJSON)),
		"question, structured and streamed": chatStreamed(chatStructured(asJSON)),
		"tool call":                         chat(chatWithTool(weather)),
		"tool call, streamed":               chatStreamed(chatWithTool(weather)),
		"tool result":                       chat(chatToolResult(toolResult)),
		"attack":                            chat(chatAsks(plan.Attack)),
		"attack, streamed":                  chatStreamed(chatAsks(plan.Attack)),
		"attack, structured":                chat(chatStructured(plan.Attack)),
		"attack, structured and streamed":   chatStreamed(chatStructured(plan.Attack)),
		"attack in a part": chat(chatParams{Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{
			openai.TextContentPart(question), openai.TextContentPart(plan.Attack),
		})}}),
		"attack beside the messages":     chat(beside),
		"attack in a tool result":        chat(chatToolResult(plan.Attack)),
		"role in the system prompt":      chat(chatParams{Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(plan.Attack), openai.UserMessage(question)}}),
		"after a refusal":                chatAfter(plan.Attack, chat),
		"after a refusal, streamed":      chatAfter(plan.Attack, chatStreamed),
		"after an answer":                chatAfter(thinking, chat),
		"answer that gives in":           chat(chatAsks(story)),
		"answer that gives in, streamed": chatStreamed(chatAsks(story)),
	}
}

// --- Responses

type responseParams = responses.ResponseNewParams

func responseSaw(r responses.Response) sighting {
	saw := sighting{Text: r.OutputText(), Finish: string(r.Status)}
	for _, item := range r.Output {
		switch item.Type {
		case "message":
			for _, part := range item.Content {
				saw.Refusal += part.Refusal
			}
		case "reasoning":
			for _, part := range item.Summary {
				saw.Reasoning += part.Text
			}
		case "function_call":
			saw.Calls += item.Name + "(" + item.Arguments.OfString + ")"
		}
	}
	return saw
}

func respond(body responseParams) action {
	return func(ctx context.Context, origin string, w *wire) (sighting, error) {
		body.Model = "gpt-e2e"
		client := openaiClient(origin, w)
		answer, err := client.Responses.New(ctx, body)
		if err != nil {
			return sighting{}, err
		}
		return responseSaw(*answer), nil
	}
}

func respondStreamed(body responseParams) action {
	return func(ctx context.Context, origin string, w *wire) (sighting, error) {
		body.Model = "gpt-e2e"
		client := openaiClient(origin, w)
		stream := client.Responses.NewStreaming(ctx, body)
		defer func() { _ = stream.Close() }() // of what was only read
		var saw sighting
		for stream.Next() {
			event := stream.Current()
			switch event.Type {
			case "response.output_text.delta":
				saw.Text += event.Delta
				saw.Pieces++
			case "response.refusal.delta":
				saw.Refusal += event.Delta
			case "response.reasoning_summary_text.delta":
				saw.Reasoning += event.Delta
			case "response.output_item.done":
				if event.Item.Type == "function_call" {
					saw.Calls += event.Item.Name + "(" + event.Item.Arguments.OfString + ")"
				}
			case "response.completed", "response.failed", "response.incomplete":
				saw.Finish = string(event.Response.Status)
			case "error":
				return saw, eventError("error event: " + event.Message)
			}
		}
		return saw, stream.Err()
	}
}

func responseAsks(text string) responseParams {
	return responseParams{Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(text)}}
}

func responseStructured(text string) responseParams {
	body := responseAsks(text)
	body.Text.Format = responses.ResponseFormatTextConfigParamOfJSONSchema("capital", schema)
	return body
}

func responseWithTool(body responseParams) responseParams {
	body.Tools = []responses.ToolUnionParam{responses.ToolParamOfFunction("get_weather", city, true)}
	return body
}

func responseItems(items ...responses.ResponseInputItemUnionParam) responseParams {
	return responseParams{Input: responses.ResponseNewParamsInputUnion{OfInputItemList: items}}
}

func responseUser(text string) responses.ResponseInputItemUnionParam {
	return responses.ResponseInputItemParamOfMessage(text, "user")
}

func responseToolResult(found string) responseParams {
	output := responses.ResponseInputItemParamOfFunctionCallOutput(found)
	output.OfFunctionCallOutput.CallID = openai.String("call_e2e")
	return responseWithTool(responseItems(responseUser(weather), responses.ResponseInputItemParamOfFunctionCall(`{"city":"Paris"}`, "call_e2e", "get_weather"), output))
}

// byID goes on by the id of the response that the SDK gave.
func byID(first string, send func(responseParams) action) action {
	return func(ctx context.Context, origin string, w *wire) (sighting, error) {
		client := openaiClient(origin, w)
		body := responseAsks(first)
		body.Model = "gpt-e2e"
		answer, err := client.Responses.New(ctx, body)
		if err != nil {
			return sighting{}, err
		}
		w.again()
		next := responseAsks(question)
		next.PreviousResponseID = openai.String(answer.ID)
		return send(next)(ctx, origin, w)
	}
}

// byItems goes on with the message of the response that the SDK gave.
func byItems(first string, send func(responseParams) action) action {
	return func(ctx context.Context, origin string, w *wire) (sighting, error) {
		client := openaiClient(origin, w)
		body := responseItems(responseUser(first))
		body.Model = "gpt-e2e"
		answer, err := client.Responses.New(ctx, body)
		if err != nil {
			return sighting{}, err
		}
		w.again()
		items := []responses.ResponseInputItemUnionParam{responseUser(first)}
		for _, item := range answer.Output {
			if item.Type == "message" {
				message := item.AsMessage().ToParam()
				items = append(items, responses.ResponseInputItemUnionParam{OfOutputMessage: &message})
			}
		}
		return send(responseItems(append(items, responseUser(question))...))(ctx, origin, w)
	}
}

func responsesActions() map[string]action {
	beside, system := responseAsks(question), responseAsks(question)
	beside.Prompt = responses.ResponsePromptParam{ID: "pmpt_e2e", Variables: map[string]responses.ResponsePromptVariableUnionParam{"topic": {OfString: openai.String(plan.Attack)}}}
	system.Instructions = openai.String(plan.Attack)
	parts := responses.ResponseInputMessageContentListParam{
		{OfInputText: &responses.ResponseInputTextParam{Text: question}}, {OfInputText: &responses.ResponseInputTextParam{Text: plan.Attack}},
	}
	return map[string]action{
		"question":                            respond(responseAsks(question)),
		"question, streamed":                  respondStreamed(responseAsks(question)),
		"question, structured":                respond(responseStructured(asJSON)),
		"question, structured and streamed":   respondStreamed(responseStructured(asJSON)),
		"reasoning":                           respond(responseAsks(thinking)),
		"reasoning, streamed":                 respondStreamed(responseAsks(thinking)),
		"tool call":                           respond(responseWithTool(responseAsks(weather))),
		"tool call, streamed":                 respondStreamed(responseWithTool(responseAsks(weather))),
		"tool result":                         respond(responseToolResult(toolResult)),
		"attack":                              respond(responseAsks(plan.Attack)),
		"attack, streamed":                    respondStreamed(responseAsks(plan.Attack)),
		"attack, structured":                  respond(responseStructured(plan.Attack)),
		"attack, structured and streamed":     respondStreamed(responseStructured(plan.Attack)),
		"attack in a part":                    respond(responseItems(responses.ResponseInputItemParamOfMessage(parts, "user"))),
		"attack beside the messages":          respond(beside),
		"attack in a tool result":             respond(responseToolResult(plan.Attack)),
		"role in the system prompt":           respond(system),
		"after a refusal":                     byItems(plan.Attack, respond),
		"after a refusal, streamed":           byItems(plan.Attack, respondStreamed),
		"after a refusal, by id":              byID(plan.Attack, respond),
		"after a refusal, by id and streamed": byID(plan.Attack, respondStreamed),
		"after an answer":                     byItems(thinking, respond),
		"after an answer, by id":              byID(thinking, respond),
		"answer that gives in":                respond(responseAsks(story)),
		"answer that gives in, streamed":      respondStreamed(responseAsks(story)),
	}
}
