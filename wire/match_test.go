package wire_test

import (
	"net/url"
	"testing"

	"github.com/caddy-lex/lex/wire"
)

func nameOf(d wire.Dialect, ok bool) string {
	if !ok {
		return ""
	}
	return d.Name()
}

func TestMatch(t *testing.T) {
	const chat, completions, responses, ollamaChat, ollamaGenerate = "openai_chat", "openai_completions", "openai_responses", "ollama_chat", "ollama_generate"
	for path, want := range map[string]string{
		"/v1/chat/completions":                       chat,
		"v1/chat/completions":                        chat,
		"//v1//chat///completions":                   chat,
		"/v1/chat/completions/":                      chat,
		"/v1/./chat/x/../completions/.":              chat,
		"/V1/Chat/COMPLETIONS":                       chat,
		"/openai/deployments/gpt-x/chat/completions": chat,
		"/v1beta/openai/chat/completions":            chat,
		"/chat/completions":                          chat,
		"/base/path/v1/chat/completions":             chat,
		"/v1/completions":                            completions,
		"/v1/Completions//":                          completions,
		"/base/v1/completions":                       completions,
		"/openai/deployments/gpt-x/completions":      completions,
		"/v1/engines/davinci/completions":            completions,
		"/":                                          "",
		"":                                           "",
		"/completions":                               "",
		"/shell/completions":                         "",
		"/v1/chat/completions/chatcmpl-1":            "",
		"/v1/chat/completions/chatcmpl-1/messages":   "",
		"/v1/xchat/completions":                      "",
		"/v1/models":                                 "",
		"/v1/responses":                              responses,
		"//V1/Responses/":                            responses,
		"/base/v1/responses":                         responses,
		"/openai/responses":                          responses,
		"/openai/v1/responses":                       responses,
		"/responses":                                 responses,
		"/survey/responses":                          "",
		"/v1/responses/resp_1":                       "",
		"/v1/responses/resp_1/input_items":           "",
		"/v1/responses/input_tokens":                 "",
		"/api/chat":                                  ollamaChat,
		"//api/./CHAT/":                              ollamaChat,
		"/ollama/api/chat":                           ollamaChat,
		"/api/generate":                              ollamaGenerate,
		"/ollama/api/generate":                       ollamaGenerate,
		"/api/chat/x":                                "",
		"/xapi/chat":                                 "",
		"/api/embed":                                 "",
		"/api/tags":                                  "",
	} {
		if got := nameOf(wire.Match(&url.URL{Path: path})); got != want {
			t.Errorf("%q is %q, want %q", path, got, want)
		}
	}
}

// Claude behind Bedrock's InvokeModel is known by its body, at every spelling of the address.
func TestMatchBody(t *testing.T) {
	const claude = `{"anthropic_version":"bedrock-2023-05-31","messages":[{"role":"user","content":"Hi."}]}`
	for path, want := range map[string]string{
		"/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Aprovisioned-model%2Fx/invoke": "anthropic_messages",
		"/base/Model/arn:aws:bedrock:eu-west-1:1:imported-model/x//INVOKE/":         "anthropic_messages",
		"/model/x;a/invoke-with-response-stream;b":                                  "anthropic_messages",
		"/model/x/invoke-with-bidirectional-stream":                                 "",
		"/model/x/converse/invoke/y":                                                "",
		"/model/invoke":                                                             "",
		"/x/invoke":                                                                 "",
	} {
		address, err := url.Parse("http://site.test" + path)
		if err != nil {
			t.Fatal(err)
		}
		if _, claimed := wire.Match(address); claimed {
			t.Errorf("%s is known without a body", path)
		}
		if got := nameOf(wire.MatchBody(address, []byte(claude))); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
		if got := nameOf(wire.MatchBody(address, []byte(`{"messages":[{"role":"user","content":"Hi."}]}`))); got != "" {
			t.Errorf("%s is %q whatever the body says", path, got)
		}
	}
}

// Some servers drop the parameters of a path, before they decode it or after. Those that
// do not find nothing there, so a call is governed in any of these readings.
func TestMatchWithoutPathParameters(t *testing.T) {
	for target, want := range map[string]string{
		"/mcp;x":                                  "mcp",
		"/mcp;":                                   "mcp",
		"/mcp%3Bx":                                "mcp",
		"/mcp;x=%2F..":                            "mcp",
		"/mcp;%2Fv1%2Fresponses":                  "mcp",
		"/mcp;x=%2F..%2F../":                      "mcp",
		"/a/..;/mcp;v=1":                          "mcp",
		"/v1/responses;a=b":                       "openai_responses",
		"/v1;a/responses":                         "openai_responses",
		"/v1;a=b;c/chat;d/completions;e,f":        "openai_chat",
		"/v1/files/..;/messages":                  "anthropic_messages",
		"/api/chat;jsessionid=1":                  "ollama_chat",
		"/v1beta/models/x:generateContent;a":      "gemini_generate",
		"/v1beta;a/models;b/x:generateContent":    "gemini_generate",
		"/v1beta/models/x;y:generateContent":      "gemini_generate",
		"/v1beta/models/x;y:z":                    "",
		"/v1beta/models/x;:generateContent/a":     "",
		"/v1/x;/chat;completions":                 "",
		"/;mcp":                                   "",
		"/v1/chat/completions;/v1/moderations":    "",
		"/v1/responses;a/resp_1":                  "",
		"/v1beta/models/x:generateContent;/a:b;c": "",
	} {
		address, err := url.Parse("http://site.test" + target)
		if err != nil {
			t.Fatal(err)
		}
		if got := nameOf(wire.Match(address)); got != want {
			t.Errorf("%q is %q, want %q", target, got, want)
		}
	}
}

func TestNamed(t *testing.T) {
	for name, want := range map[string]string{
		"openai": "openai_chat", "openai_chat": "openai_chat", "openai_completions": "openai_completions",
		"openai_responses": "openai_responses", "OpenAI": "", "": "",
		"gemini": "gemini_generate", "gemini_generate": "gemini_generate",
		"bedrock": "bedrock_converse", "bedrock_converse": "bedrock_converse",
		"ollama": "ollama_chat", "ollama_chat": "ollama_chat", "ollama_generate": "ollama_generate",
	} {
		if got := nameOf(wire.Named(name)); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

// A body is recognised as leniently as the most lenient server reads it, so
// that no spelling slips by; whether it is valid is another question.
func TestResembles(t *testing.T) {
	const chat, completions, responses, ollamaChat, ollamaGenerate = "openai_chat", "openai_completions", "openai_responses", "ollama_chat", "ollama_generate"
	for body, want := range map[string]string{
		`{"messages":[{"role":"user","content":"hi"}]}`:          chat,
		`{"model":"m","Messages":[{"content":"hi"}]}`:            chat,
		`{"messag\u0065s":[{"ROLE":"user"}]}`:                    chat,
		"\xef\xbb\xbf" + `{"messages":[{"role":"user"}]}`:        chat,
		`{"messages":[1,{"role":"user"}]}`:                       chat,
		`{"messages":5,"messages":[{"role":"user"}]}`:            chat,
		`{"messages":[{"role":"user","content":"hi"}]} trailing`: chat,
		`{"messages":[{"role":"user","content":"hi"`:             chat,
		`{"prompt":"x","messages":[{"role":"user"}]}`:            chat,
		`{"prompt":"hi"}`:        completions,
		`{"Prompt":["a","b"]}`:   completions,
		`{"prompt":5}`:           "",
		`{"messages":["a","b"]}`: "",
		`{"messages":"x"}`:       "",
		`{"input":"x"}`:          "",
		`{"input":["x","y"]}`:    "",
		`{"input":[{"type":"text","text":"moderations"}]}`:           "",
		`{"input":"speak","voice":"alloy","instructions":"slowly"}`:  "",
		`{"Input":[{"Role":"user","content":"hi"}]}`:                 responses,
		`{"input":[1,{"type":"function_call_output","output":"x"}]}`: responses,
		`[{"messages":[{"role":"user"}]}]`:                           "",
		``:                                                           "",
		`hello`:                                                      "",
		`{"keep_alive":"5m","messages":[{"role":"user","content":"hi"}]}`:   ollamaChat,
		`{"messages":[{"role":"user","content":"hi"}],"Keep_Alive":0}`:      ollamaChat,
		`{"prompt":"hi","keep_alive":0}`:                                    ollamaGenerate,
		`{"keep_alive":0}`:                                                  "",
		`{"params":{"messages":[{"role":"user","content":"not ours"}]}}`:    "",
		`{"messages":[],"prompt":"the messages are empty, the prompt not"}`: completions,
		`{"contents":[{"parts":[{"text":"hi"}]}]}`:                          "gemini_generate",
		`{"Contents":[5,{"PARTS":[]}],"prompt":"x"}`:                        "gemini_generate",
		`{"contents":{"parts":{"text":"hi"}}}`:                              "gemini_generate",
		`{"messages":[{"role":"user","content":[{"text":"hi"}]}]}`:          "bedrock_converse",
		`{"messages":[5,{"content":[{"toolResult":{"content":[]}}]}]}`:      "bedrock_converse",
		`{"messages":[{"role":"user","content":[{}]}]}`:                     chat,
		`{"contents":["hi"]}`:                                               "",
		`{"contents":"hi"}`:                                                 "",
		`{"contents":{"text":"hi"}}`:                                        "",
	} {
		if got := nameOf(wire.Resembles([]byte(body))); got != want {
			t.Errorf("%s resembles %q, want %q", body, got, want)
		}
	}
}
