package main

import (
	"context"
	"encoding/json"
	"net/http"

	"google.golang.org/genai"
)

func genaiClient(ctx context.Context, origin string, w *wire) (*genai.Client, error) {
	return genai.NewClient(ctx, &genai.ClientConfig{ //nolint:gosec // G101: no credential
		APIKey: "AIza-e2e-not-a-real-key", Backend: genai.BackendGeminiAPI,
		HTTPClient: &http.Client{Transport: w}, HTTPOptions: genai.HTTPOptions{BaseURL: origin},
	})
}

const geminiModel = "gemini-e2e"

func (saw *sighting) add(r *genai.GenerateContentResponse) {
	if feedback := r.PromptFeedback; feedback != nil {
		saw.Refusal += feedback.BlockReasonMessage
		saw.Finish = string(feedback.BlockReason)
	}
	if len(r.Candidates) == 0 {
		return
	}
	candidate := r.Candidates[0]
	saw.Refusal += candidate.FinishMessage
	if candidate.FinishReason != "" {
		saw.Finish = string(candidate.FinishReason)
	}
	if candidate.Content == nil {
		return
	}
	for _, part := range candidate.Content.Parts {
		switch {
		case part.Thought:
			saw.Reasoning += part.Text
		case part.Text != "":
			saw.Text += part.Text
			saw.Pieces++
		case part.FunctionCall != nil:
			arguments, _ := json.Marshal(part.FunctionCall.Args)
			saw.Calls += part.FunctionCall.Name + "(" + string(arguments) + ")"
		}
	}
}

// A content is what generateContent is asked with.
type content struct {
	contents []*genai.Content
	config   *genai.GenerateContentConfig
}

func generate(c content) action {
	return func(ctx context.Context, origin string, w *wire) (saw sighting, err error) {
		client, err := genaiClient(ctx, origin, w)
		if err != nil {
			return saw, err
		}
		answer, err := client.Models.GenerateContent(ctx, geminiModel, c.contents, c.config)
		if err != nil {
			return saw, err
		}
		saw.add(answer)
		return saw, nil
	}
}

func generateStreamed(c content) action {
	return func(ctx context.Context, origin string, w *wire) (saw sighting, err error) {
		client, err := genaiClient(ctx, origin, w)
		if err != nil {
			return saw, err
		}
		for chunk, err := range client.Models.GenerateContentStream(ctx, geminiModel, c.contents, c.config) {
			if err != nil {
				return saw, err
			}
			saw.add(chunk)
		}
		return saw, nil
	}
}

// chatAsked sends a message in a chat of the SDK, which keeps the history by itself,
// after the messages that are given before it.
func chatAsked(streams bool, messages ...string) action {
	return func(ctx context.Context, origin string, w *wire) (saw sighting, err error) {
		client, err := genaiClient(ctx, origin, w)
		if err != nil {
			return saw, err
		}
		chat, err := client.Chats.Create(ctx, geminiModel, nil, nil)
		if err != nil {
			return saw, err
		}
		last := len(messages) - 1
		for _, text := range messages[:last] {
			if _, err := chat.SendMessage(ctx, genai.Part{Text: text}); err != nil {
				return saw, err
			}
		}
		w.again()
		if !streams {
			answer, err := chat.SendMessage(ctx, genai.Part{Text: messages[last]})
			if err != nil {
				return saw, err
			}
			saw.add(answer)
			return saw, nil
		}
		for chunk, err := range chat.SendMessageStream(ctx, genai.Part{Text: messages[last]}) {
			if err != nil {
				return saw, err
			}
			saw.add(chunk)
		}
		return saw, nil
	}
}

func contentAsks(text string) content { return content{contents: genai.Text(text)} }

func contentStructured(text string) content {
	return content{genai.Text(text), &genai.GenerateContentConfig{ResponseMIMEType: "application/json", ResponseJsonSchema: schema}}
}

func contentThinking() content {
	return content{genai.Text(thinking), &genai.GenerateContentConfig{ThinkingConfig: &genai.ThinkingConfig{IncludeThoughts: true}}}
}

func contentWithTool(contents []*genai.Content) content {
	return content{contents, &genai.GenerateContentConfig{Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{
		{Name: "get_weather", Description: "The weather of a city", ParametersJsonSchema: city},
	}}}}}
}

func contentToolResult(found string) content {
	return contentWithTool([]*genai.Content{
		genai.NewContentFromText(weather, genai.RoleUser),
		genai.NewContentFromFunctionCall("get_weather", map[string]any{"city": "Paris"}, genai.RoleModel),
		genai.NewContentFromFunctionResponse("get_weather", map[string]any{"output": found}, genai.RoleUser),
	})
}

func geminiActions() map[string]action {
	system := content{genai.Text(question), &genai.GenerateContentConfig{SystemInstruction: genai.NewContentFromText(plan.Attack, genai.RoleUser)}}
	return map[string]action{
		"question":                            generate(contentAsks(question)),
		"question, streamed":                  generateStreamed(contentAsks(question)),
		"question, stream helper":             chatAsked(true, question),
		"question, structured":                generate(contentStructured(asJSON)),
		"question, structured and streamed":   generateStreamed(contentStructured(asJSON)),
		"reasoning":                           generate(contentThinking()),
		"reasoning, streamed":                 generateStreamed(contentThinking()),
		"tool call":                           generate(contentWithTool(genai.Text(weather))),
		"tool call, streamed":                 generateStreamed(contentWithTool(genai.Text(weather))),
		"tool result":                         generate(contentToolResult(toolResult)),
		"attack":                              generate(contentAsks(plan.Attack)),
		"attack, streamed":                    generateStreamed(contentAsks(plan.Attack)),
		"attack, stream helper":               chatAsked(true, plan.Attack),
		"attack, structured":                  generate(contentStructured(plan.Attack)),
		"attack, structured and streamed":     generateStreamed(contentStructured(plan.Attack)),
		"attack in a part":                    generate(content{contents: []*genai.Content{{Role: genai.RoleUser, Parts: []*genai.Part{{Text: question}, {Text: plan.Attack}}}}}),
		"attack in a tool result":             generate(contentToolResult(plan.Attack)),
		"role in the system prompt":           generate(system),
		"after a refusal":                     chatAsked(false, plan.Attack, question),
		"after a refusal, streamed":           chatAsked(true, plan.Attack, question),
		"after an answer":                     chatAsked(false, thinking, question),
		"answer that gives in":                generate(contentAsks(story)),
		"answer that gives in, streamed":      generateStreamed(contentAsks(story)),
		"answer that gives in, stream helper": chatAsked(true, story),
	}
}
