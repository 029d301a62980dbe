// Package demo is the Caddy handler lex_demo_model, a deterministic stand-in for a
// language model. Importing it registers the handler and its directive. It does not
// know about governance: for Lex it is a model like any other.
package demo

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

func init() {
	caddy.RegisterModule(Model{})
	httpcaddyfile.RegisterHandlerDirective("lex_demo_model", parseModel)
	httpcaddyfile.RegisterDirectiveOrder("lex_demo_model", httpcaddyfile.Before, "respond")
}

// bodyLimit bounds a request to the demo model, in bytes.
const bodyLimit = 1 << 20

// Model is a small deterministic stand-in for a language model. It speaks the
// OpenAI chat and completions APIs, streamed and not, so that everything can be
// tried without a provider key. It answers by fixed rules and starts every answer
// with its name. It does what a prompt asks unless a system prompt constrains it, and
// it never produces harmful text.
type Model struct{}

// CaddyModule returns the Caddy module information.
func (Model) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.lex_demo_model",
		New: func() caddy.Module { return new(Model) },
	}
}

// ServeHTTP answers the two generating endpoints and the list of models, and
// passes everything else to the next handler.
func (m Model) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
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

// chatRequest holds the members of a chat or completions request that the demo
// model reads.
type chatRequest struct {
	Model    string         `json:"model"`
	Stream   bool           `json:"stream"`
	Prompt   jsontext.Value `json:"prompt"`
	Messages []message      `json:"messages"`
	Tools    []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
}

type message struct {
	Role    string         `json:"role"`
	Content jsontext.Value `json:"content"`
}

func (m Model) serve(w http.ResponseWriter, r *http.Request, object string) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, bodyLimit))
	var req chatRequest
	if err != nil || json.Unmarshal(body, &req, lenient) != nil {
		return writeJSON(w, http.StatusBadRequest, map[string]any{"error": map[string]any{
			"message": "the demo model could not read the request", "type": "invalid_request_error", "param": nil, "code": nil,
		}})
	}
	answer := reply{object: object, model: req.Model, text: answerTo(req.question())}
	if object == "chat.completion" {
		answer.tool = req.tool()
	}
	if req.Stream {
		return answer.stream(w)
	}
	return writeJSON(w, http.StatusOK, answer.whole())
}

// question reads the system text and the last user message, or the bare prompt.
func (req chatRequest) question() question {
	q := question{prompt: textOf(req.Prompt)}
	for _, msg := range req.Messages {
		switch msg.Role {
		case "system", "developer":
			q.system += textOf(msg.Content)
		case "user":
			q.prompt = textOf(msg.Content)
		}
	}
	return q
}

// tool returns the name of the tool to call: the first one that the prompt mentions,
// or "" if there is none or the result of the call has already arrived.
func (req chatRequest) tool() string {
	if n := len(req.Messages); n == 0 || req.Messages[n-1].Role == "tool" {
		return ""
	}
	prompt := req.question().prompt
	for _, t := range req.Tools {
		if t.Function.Name != "" && strings.Contains(prompt, t.Function.Name) {
			return t.Function.Name
		}
	}
	return ""
}

// textOf reads content that is a string or an array of text parts.
func textOf(raw jsontext.Value) string {
	var s string
	if json.Unmarshal(raw, &s, lenient) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(raw, &parts, lenient) // another shape has no text
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// A reply is one answer, in the shape of either API.
type reply struct {
	object string
	model  string
	text   string
	tool   string
}

func (a reply) whole() map[string]any {
	words := len(strings.Fields(a.text))
	return map[string]any{
		"id": "demo-1", "object": a.object, "created": 0, "model": a.model,
		"choices": []any{a.choice()},
		"usage":   map[string]any{"prompt_tokens": 0, "completion_tokens": words, "total_tokens": words},
	}
}

func (a reply) choice() map[string]any {
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

func (a reply) toolCall() map[string]any {
	return map[string]any{
		"index": 0, "id": "call_demo_1", "type": "function",
		"function": map[string]any{"name": a.tool, "arguments": "{}"},
	}
}

// stream sends the answer word by word.
func (a reply) stream(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w).Flush
	for _, chunk := range a.chunks() {
		b, err := encodeJSON(chunk)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "data: %s\n\n", b); err != nil {
			return nil //nolint:nilerr // the client left, which is no failure
		}
		_ = flush()
	}
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
	return nil
}

func (a reply) chunks() []map[string]any {
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

// lenient reads JSON as model servers do, which do not insist on one form.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), json.MatchCaseInsensitiveNames(true))

// encodeJSON encodes v with sorted members of maps, and without characters that a
// browser could take for markup.
func encodeJSON(v any) ([]byte, error) {
	text, err := json.Marshal(v, json.Deterministic(true), jsontext.EscapeForHTML(true), jsontext.EscapeForJS(true))
	if err != nil {
		return nil, fmt.Errorf("encoding an answer: %w", err)
	}
	return text, nil
}

// writeJSON answers with v. An error means that the client left, because the values
// of this package always encode.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	body, err := encodeJSON(v)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)+1))
	h.Set("X-Content-Type-Options", "nosniff")
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	w.WriteHeader(status)
	_, err = w.Write(append(body, '\n'))
	return err
}

// parseModel sets up the handler from Caddyfile tokens. Syntax:
//
//	lex_demo_model
func parseModel(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	m := new(Model)
	return m, m.UnmarshalCaddyfile(h.Dispenser)
}

// UnmarshalCaddyfile accepts the bare directive. Syntax:
//
//	lex_demo_model
func (m *Model) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
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
	_ caddyhttp.MiddlewareHandler = (*Model)(nil)
	_ caddyfile.Unmarshaler       = (*Model)(nil)
)
