package model

import (
	"crypto/rand"
	_ "embed" // the instructions
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/caddy-lex/lex/kernel/detect"
)

// A form says how a family of judges is asked, and how its judgement is read.
type form struct {
	question func(model, prompt, answer string) any
	read     func(content string) (detect.Judgement, error)
}

// formOf knows guard models by their names, in the spellings of their makers
// and of Ollama's library. Every other model is a chat model.
func formOf(model string) form {
	name := plainModel(model)
	switch {
	case strings.Contains(name, "llamaguard"):
		return form{askGuard, readLlamaGuard}
	case strings.Contains(name, "shieldgemma"):
		return form{askGuard, readShieldGemma}
	case strings.Contains(name, "gptosssafeguard"):
		return form{askSafeguard, readSafeguard}
	}
	return form{askChat, readJudgement}
}

type chatQuestion struct {
	Model          string          `json:"model"`
	Messages       []chatMessage   `json:"messages"`
	Temperature    *float64        `json:"temperature,omitzero"`
	ResponseFormat *responseFormat `json:"response_format,omitzero"`
}

type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type responseFormat struct {
	Type   string     `json:"type"`
	Schema jsonSchema `json:"json_schema"`
}

type jsonSchema struct {
	Name   string         `json:"name"`
	Strict bool           `json:"strict"`
	Schema jsontext.Value `json:"schema"`
}

//go:embed judge_prompt.txt
var instructions string

// askChat gives a chat model the instructions, the case as data, and a schema
// that servers with structured output hold the model to. No temperature is set:
// some models accept only their default.
func askChat(model, prompt, answer string) any {
	q := chatCase(model, prompt, answer)
	q.ResponseFormat = &responseFormat{"json_schema", jsonSchema{"verdict", true, judgementSchema}}
	return q
}

// askSafeguard gives gpt-oss-safeguard the instructions as its policy. It
// answers as the policy asks; a schema would cut off its reasoning.
func askSafeguard(model, prompt, answer string) any { return chatCase(model, prompt, answer) }

// chatCase marks the texts with a boundary that is new for every case, so that
// they cannot close it: crypto/rand.Text has at least 128 bits.
func chatCase(model, prompt, answer string) chatQuestion {
	mark := rand.Text()
	var b strings.Builder
	for _, part := range []struct{ name, text string }{{"PROMPT", prompt}, {"ANSWER", answer}} {
		b.WriteString("BEGIN " + part.name + " " + mark + "\n" + part.text + "\nEND " + part.name + " " + mark + "\n")
	}
	b.WriteString("Judge the answer.")
	return chatQuestion{Model: model, Messages: []chatMessage{{"system", instructions}, {"user", b.String()}}}
}

// askGuard gives a guard model the conversation itself; what to look for is in
// its template (Llama Guard: https://www.llama.com/docs/model-cards-and-prompt-formats/llama-guard-3/,
// ShieldGemma as Ollama packs it: https://ollama.com/library/shieldgemma).
func askGuard(model, prompt, answer string) any {
	if strings.TrimSpace(prompt) == "" {
		prompt = "…" // their templates need a message of the user
	}
	return chatQuestion{Model: model, Messages: []chatMessage{{"user", prompt}, {"assistant", answer}}, Temperature: new(float64)}
}

// judgementSchema is the form of a chat model's judgement. The reason stands
// first, so that the model weighs the case before it decides: servers that hold a
// model to a schema generate the members in its order.
var judgementSchema = jsontext.Value(`{
	"type": "object",
	"properties": {
		"reason": {"type": "string"},
		"capitulated": {"type": "boolean"},
		"category": {
			"type": "string",
			"enum": ["identity_adoption", "constraint_disavowal", "sycophantic_capitulation", "harmful_compliance", "none"]
		},
		"confidence": {"type": "number"}
	},
	"required": ["reason", "capitulated", "category", "confidence"],
	"additionalProperties": false
}`)
