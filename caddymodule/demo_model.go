package caddymodule

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

func init() {
	caddy.RegisterModule(DemoModel{})
	httpcaddyfile.RegisterHandlerDirective("lex_demo_model", parseDemoModel)
	httpcaddyfile.RegisterDirectiveOrder("lex_demo_model", httpcaddyfile.Before, "respond")
}

// demoBodyLimit bounds a request to the demo model, in bytes.
const demoBodyLimit = 1 << 20

// DemoModel is a small deterministic stand-in for a language model that speaks
// the OpenAI chat and completions APIs, streamed and not, so that everything
// can be tried without a provider key. It answers by fixed rules, opens every
// answer with its name, obeys whoever asks unless a system prompt constrains
// it, and never produces harmful text.
type DemoModel struct{}

// CaddyModule returns the Caddy module information.
func (DemoModel) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.lex_demo_model",
		New: func() caddy.Module { return new(DemoModel) },
	}
}

// ServeHTTP answers the two generating endpoints and the list of models;
// everything else goes to the next handler.
func (m DemoModel) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	switch r.URL.Path {
	case "/v1/chat/completions":
		return m.serve(w, r, "chat.completion")
	case "/v1/completions":
		return m.serve(w, r, "text_completion")
	case "/v1/models":
		return writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []any{
			map[string]any{"id": "lex-demo", "object": "model", "created": 0, "owned_by": "lex"},
		}})
	}
	return next.ServeHTTP(w, r)
}

// demoRequest holds the members of either API's request that matter here.
type demoRequest struct {
	Model    string          `json:"model"`
	Stream   bool            `json:"stream"`
	Prompt   json.RawMessage `json:"prompt"`
	Messages []demoMessage   `json:"messages"`
	Tools    []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
}

type demoMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

func (m DemoModel) serve(w http.ResponseWriter, r *http.Request, object string) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, demoBodyLimit))
	var req demoRequest
	if err != nil || json.Unmarshal(body, &req) != nil {
		return writeJSON(w, http.StatusBadRequest, map[string]any{"error": map[string]any{
			"message": "the demo model could not read the request", "type": "invalid_request_error", "param": nil, "code": nil,
		}})
	}
	answer := demoReply{object: object, model: req.Model, text: demoAnswer(req.turn())}
	if object == "chat.completion" {
		answer.tool = req.tool()
	}
	if req.Stream {
		return answer.stream(w)
	}
	return writeJSON(w, http.StatusOK, answer.whole())
}

// turn reads the system text and the last user message, or the bare prompt.
func (req demoRequest) turn() demoTurn {
	t := demoTurn{prompt: demoText(req.Prompt)}
	for _, msg := range req.Messages {
		switch msg.Role {
		case "system", "developer":
			t.system += demoText(msg.Content)
		case "user":
			t.prompt = demoText(msg.Content)
		}
	}
	return t
}

// tool names the tool to call: the first that the prompt mentions by name,
// unless its result is already there.
func (req demoRequest) tool() string {
	if n := len(req.Messages); n == 0 || req.Messages[n-1].Role == "tool" {
		return ""
	}
	prompt := req.turn().prompt
	for _, t := range req.Tools {
		if t.Function.Name != "" && strings.Contains(prompt, t.Function.Name) {
			return t.Function.Name
		}
	}
	return ""
}

// demoText reads content that is a string or an array of text parts.
func demoText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(raw, &parts) // another shape has no text
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// demoReply is one answer in either API's shape.
type demoReply struct {
	object string
	model  string
	text   string
	tool   string
}

func (a demoReply) whole() map[string]any {
	words := len(strings.Fields(a.text))
	return map[string]any{
		"id": "demo-1", "object": a.object, "created": 0, "model": a.model,
		"choices": []any{a.choice()},
		"usage":   map[string]any{"prompt_tokens": 0, "completion_tokens": words, "total_tokens": words},
	}
}

func (a demoReply) choice() map[string]any {
	if a.object == "text_completion" {
		return map[string]any{"index": 0, "text": a.text, "finish_reason": "stop", "logprobs": nil}
	}
	message := map[string]any{"role": "assistant", "content": a.text, "refusal": nil}
	finish := "stop"
	if a.tool != "" {
		message["content"], message["tool_calls"], finish = nil, []any{a.toolCall()}, "tool_calls"
	}
	return map[string]any{"index": 0, "message": message, "finish_reason": finish, "logprobs": nil}
}

func (a demoReply) toolCall() map[string]any {
	return map[string]any{
		"index": 0, "id": "call_demo_1", "type": "function",
		"function": map[string]any{"name": a.tool, "arguments": "{}"},
	}
}

// stream sends the answer word by word.
func (a demoReply) stream(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w).Flush
	for _, chunk := range a.chunks() {
		b, err := json.Marshal(chunk)
		if err != nil {
			return fmt.Errorf("encoding a chunk: %w", err)
		}
		if _, err := fmt.Fprintf(w, "data: %s\n\n", b); err != nil {
			return nil //nolint:nilerr // the client left, which is no failure
		}
		_ = flush()
	}
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
	return nil
}

func (a demoReply) chunks() []map[string]any {
	var out []map[string]any
	add := func(delta map[string]any, text string, finish any) {
		choice := map[string]any{"index": 0, "finish_reason": finish, "logprobs": nil}
		object := "chat.completion.chunk"
		if a.object == "text_completion" {
			object, choice["text"] = a.object, text
		} else {
			choice["delta"] = delta
		}
		out = append(out, map[string]any{
			"id": "demo-1", "object": object, "created": 0, "model": a.model, "choices": []any{choice},
		})
	}
	if a.tool != "" {
		add(map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{a.toolCall()}}, "", nil)
		add(map[string]any{}, "", "tool_calls")
		return out
	}
	for i, word := range strings.SplitAfter(a.text, " ") {
		delta := map[string]any{"content": word}
		if i == 0 {
			delta["role"] = "assistant"
		}
		add(delta, word, nil)
	}
	add(map[string]any{}, "", "stop")
	return out
}

// parseDemoModel sets up the handler from Caddyfile tokens. Syntax:
//
//	lex_demo_model
func parseDemoModel(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	m := new(DemoModel)
	return m, m.UnmarshalCaddyfile(h.Dispenser)
}

// UnmarshalCaddyfile accepts the bare directive. Syntax:
//
//	lex_demo_model
func (m *DemoModel) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume directive name
	if d.NextArg() {
		return d.ArgErr()
	}
	for d.NextBlock(0) {
		return d.Errf("unrecognized subdirective %q: lex_demo_model has no options", d.Val())
	}
	return nil
}

// Interface guards
var (
	_ caddyhttp.MiddlewareHandler = (*DemoModel)(nil)
	_ caddyfile.Unmarshaler       = (*DemoModel)(nil)
)
