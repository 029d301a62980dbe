package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/caddy-lex/lex/wire"
)

// claudeCall has every place of a request in which a text can stand.
const claudeCall = `{
	"model": "claude-x", "max_tokens": 9, "stream": true, "temperature": 1, "service_tier": "auto", "speed": null,
	"metadata": {"user_id": "u", "session_id": "s1"}, "thread": {"type": "continue", "previous_message_id": "msg_0"},
	"thinking": {"type": "adaptive", "display": "omitted"}, "container": {"id": "c", "skills": [{"skill_id": "k", "type": "custom", "version": "1"}]},
	"messages": [
		{"role": "user", "content": [
			{"type": "text", "text": "Weather?", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
			{"type": "container_upload", "file_id": "f"}
		]},
		{"role": "assistant", "content": [
			{"type": "thinking", "thinking": "hm", "signature": "c2ln"}, {"type": "redacted_thinking", "data": "AA"},
			{"type": "thinking", "thinking": "unsigned", "signature": ""},
			{"type": "compaction", "content": "summary", "encrypted_content": null, "signature": "c2ln"},
			{"type": "text", "text": "Let me look.", "citations": [{"type": "char_location", "cited_text": "a b", "document_index": 0}]},
			{"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "K\u00f6ln"}, "caller": {"type": "direct"}},
			{"type": "tool_use", "id": "t2", "name": "navigate", "toolset_name": "browser", "input": {"url": "https://a.test"}},
			{"type": "server_tool_use", "id": "t3", "name": "web_search", "input": {"query": "q"}},
			{"type": "web_search_tool_result", "tool_use_id": "t3", "content": [
				{"type": "web_search_result", "title": "T", "url": "https://b.test", "encrypted_content": "AA", "page_age": "1 day"}]},
			{"type": "web_fetch_tool_result", "tool_use_id": "t4", "content": {"type": "web_fetch_result", "url": "https://c.test", "content":
				{"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "page"}, "title": "P"}}},
			{"type": "code_execution_tool_result", "tool_use_id": "t5", "content": {"type": "code_execution_result", "stdout": "out", "stderr": "err",
				"return_code": 0, "content": [{"type": "code_execution_output", "file_id": "f"}]}},
			{"type": "code_execution_tool_result", "tool_use_id": "t6", "content": {"type": "encrypted_code_execution_result", "encrypted_stdout": "AA",
				"stderr": "", "return_code": 0, "content": []}},
			{"type": "text_editor_code_execution_tool_result", "tool_use_id": "t7", "content": {"type": "text_editor_code_execution_view_result", "content": "view", "file_type": "text"}},
			{"type": "text_editor_code_execution_tool_result", "tool_use_id": "t8", "content": {"type": "text_editor_code_execution_str_replace_result", "lines": ["-a", "+b"]}},
			{"type": "tool_search_tool_result", "tool_use_id": "t9", "content": {"type": "tool_search_tool_search_result", "tool_references": [{"type": "tool_reference", "tool_name": "found"}]}},
			{"type": "advisor_tool_result", "tool_use_id": "ta", "content": {"type": "advisor_result", "text": "advice", "stop_reason": null}},
			{"type": "mcp_tool_use", "id": "tb", "name": "lookup", "server_name": "srv", "input": {"k": "v"}},
			{"type": "mcp_tool_result", "tool_use_id": "tb", "is_error": false, "content": [{"type": "text", "text": "mcp"}]},
			{"type": "bash_code_execution_tool_result", "tool_use_id": "tc", "content": {"type": "bash_code_execution_tool_result_error", "error_code": "unavailable"}},
			{"type": "mcp_tool_listing", "mcp_server_name": "srv", "tools": [{"name": "lookup", "input_schema": {}, "description": "looks"}]},
			{"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}}
		]},
		{"role": "system", "content": [{"type": "text", "text": "Be kind."},
			{"type": "tool_addition", "tool": {"type": "tool_definition", "definition": {"name": "late", "input_schema": {"type": "object"}}}}], "clear_at": "never"},
		{"role": "user", "content": [
			{"type": "tool_result", "tool_use_id": "t1", "content": "rain", "is_error": false},
			{"type": "tool_result", "tool_use_id": "t2", "toolset_name": "browser", "content": [
				{"type": "text", "text": "seen"}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}},
				{"type": "document", "source": {"type": "content", "content": "inner"}},
				{"type": "search_result", "source": "https://d.test", "title": "D", "content": [{"type": "text", "text": "found it"}]},
				{"type": "browser_state", "tabs": [{"tab_id": "1", "title": "Tab", "url": "https://e.test"}], "state_changes": [{"type": "tab_opened", "tab_id": "1"}]}]},
			{"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "report"}, "title": "R", "context": "C", "citations": {"enabled": true}},
			{"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AA"}},
			{"type": "document", "source": {"type": "url", "url": "https://f.test/x.pdf"}},
			{"type": "image", "source": {"type": "url", "url": "https://f.test/x.png"}},
			{"type": "text", "text": "And "}, {"type": "text", "text": "now?"}
		]}
	],
	"system": [{"type": "text", "text": "You are a bot.", "cache_control": {"type": "ephemeral"}}],
	"tools": [
		{"name": "weather", "description": "Says it", "input_schema": {"properties": {"city": {"description": "a \u0043ity"}}}, "input_examples": [{"city": "Bonn"}]},
		{"type": "bash_20250124", "name": "bash"},
		{"type": "web_search_20260318", "name": "web_search", "max_uses": 3, "allowed_domains": ["g.test"], "user_location": {"type": "approximate", "city": "Bonn"}},
		{"type": "mcp_toolset", "mcp_server_name": "srv", "configs": {"lookup": {"enabled": true}}, "tools": [{"name": "lookup", "input_schema": {}}]}
	],
	"mcp_servers": [{"type": "url", "url": "https://h.test", "name": "srv", "authorization_token": "canary-token", "tool_configuration": {"allowed_tools": ["lookup"]}}],
	"tool_choice": {"type": "tool", "name": "weather"},
	"output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {"title": "T"}}},
	"context_management": {"edits": [{"type": "compact_20260112", "instructions": "Keep names.", "trigger": {"type": "input_tokens", "value": 1}},
		{"type": "clear_tool_uses_20250919", "exclude_tools": ["weather"], "clear_tool_inputs": true}]},
	"fallbacks": [{"model": "b"}], "fallback_credit_token": "canary-credit", "stop_sequences": ["END"]
}`

func TestAnthropicRequest(t *testing.T) {
	r, err := dialect(t, "anthropic").Request([]byte(claudeCall))
	if err != nil {
		t.Fatal(err)
	}
	if r.Model != "claude-x" || !r.Stream || !r.Structured || r.Choices != 1 || r.Prompt() != "And now?" || r.Session != "s1" || r.Previous != "msg_0" {
		t.Errorf("read as %+v, prompt %q", r, r.Prompt())
	}
	compare(t, lines(r.Parts), []string{
		`system text system.0.text You are a bot.`,
		`user text messages.0.content.0.text Weather?`,
		`user file messages.0.content.1.file_id`,
		`assistant reasoning messages.1.content.0 hm`,
		`assistant reasoning messages.1.content.1.data`,
		`assistant reasoning messages.1.content.2.thinking unsigned`,
		`assistant document messages.1.content.3 summary`,
		`assistant text messages.1.content.4.text Let me look.`,
		"assistant annotation messages.1.content.4.citations type\nchar_location\ncited_text\na b\ndocument_index",
		`assistant name messages.1.content.5.name weather`,
		"assistant tool_call messages.1.content.5.input city\nKöln",
		"assistant tool_call messages.1.content.6.input url\nhttps://a.test",
		"assistant tool_call messages.1.content.7.input query\nq",
		`tool text messages.1.content.8.content.0.title T`,
		`tool text messages.1.content.8.content.0.url https://b.test`,
		`tool document messages.1.content.8.content.0.encrypted_content`,
		`tool name messages.1.content.8.content.0.page_age 1 day`,
		`tool text messages.1.content.9.content.url https://c.test`,
		`tool document messages.1.content.9.content.content.source.data page`,
		`tool document messages.1.content.9.content.content.title P`,
		`tool text messages.1.content.10.content.stdout out`,
		`tool text messages.1.content.10.content.stderr err`,
		`tool file messages.1.content.10.content.content.0.file_id`,
		`tool document messages.1.content.11.content.encrypted_stdout`,
		`tool text messages.1.content.12.content.content view`,
		`tool text messages.1.content.13.content.lines.0 -a`,
		`tool text messages.1.content.13.content.lines.1 +b`,
		`tool name messages.1.content.14.content.tool_references.0.tool_name found`,
		`tool text messages.1.content.15.content.text advice`,
		`assistant name messages.1.content.16.name lookup`,
		`assistant name messages.1.content.16.server_name srv`,
		"assistant tool_call messages.1.content.16.input k\nv",
		`tool text messages.1.content.17.content.0.text mcp`,
		`tool name messages.1.content.19.mcp_server_name srv`,
		"tool schema messages.1.content.19.tools name\nlookup\ninput_schema\ndescription\nlooks",
		`system text messages.2.content.0.text Be kind.`,
		`definition name messages.2.content.1.tool.definition.name late`,
		"definition schema messages.2.content.1.tool.definition.input_schema type\nobject",
		`tool text messages.3.content.0.content rain`,
		`tool text messages.3.content.1.content.0.text seen`,
		`tool image messages.3.content.1.content.1.source.data`,
		`tool document messages.3.content.1.content.2.source.content inner`,
		`tool document messages.3.content.1.content.3.source https://d.test`,
		`tool document messages.3.content.1.content.3.title D`,
		`tool document messages.3.content.1.content.3.content.0.text found it`,
		`tool text messages.3.content.1.content.4.tabs.0.title Tab`,
		`tool text messages.3.content.1.content.4.tabs.0.url https://e.test`,
		`user document messages.3.content.2.source.data report`,
		`user document messages.3.content.2.title R`,
		`user document messages.3.content.2.context C`,
		`user file messages.3.content.3.source.data`,
		`user file messages.3.content.4.source.url`,
		`user image messages.3.content.5.source.url`,
		`user text messages.3.content.6.text And`,
		`user text messages.3.content.7.text now?`,
		`definition name tools.0.name weather`,
		`definition text tools.0.description Says it`,
		"definition schema tools.0.input_schema properties\ncity\ndescription\na City",
		"definition schema tools.0.input_examples city\nBonn",
		`definition name tools.1.name bash`,
		`definition name tools.2.name web_search`,
		`definition name tools.2.allowed_domains g.test`,
		"definition text tools.2.user_location type\napproximate\ncity\nBonn",
		`definition name tools.3.mcp_server_name srv`,
		"definition name tools.3.configs lookup\nenabled",
		`definition name tools.3.tools.0.name lookup`,
		`definition name mcp_servers.0.name srv`,
		`definition name mcp_servers.0.tool_configuration.allowed_tools lookup`,
		`definition name tool_choice.name weather`,
		"definition schema output_config.format.schema title\nT",
		`definition text context_management.edits.0.instructions Keep names.`,
		`definition name context_management.edits.1.exclude_tools weather`,
		`other text stop_sequences.0 END`,
	})
	for _, p := range r.Parts {
		if raw := claudeCall[p.Start : p.Start+p.Bytes]; !json.Valid([]byte(raw)) || strings.Contains(raw, "canary") {
			t.Errorf("%s stands at %s", p.Path, raw)
		}
		if p.Role == wire.Definition && p.Message != 0 || (p.Role == wire.System || p.Role == wire.User) && p.Message == 0 {
			t.Errorf("%s is of message %d", p.Path, p.Message)
		}
	}
}

// The system prompt is the first message, wherever in the body it stands, so that the
// history of the next turn begins as this one does.
func TestAnthropicSystemIsTheFirstMessage(t *testing.T) {
	for _, body := range []string{
		`{"system":"s","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`,
		`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}],"system":[{"type":"text","text":"s"}]}`,
	} {
		r, err := dialect(t, "anthropic").Request([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for _, p := range r.Parts {
			fmt.Fprintf(&got, "%d%s%c ", p.Message, p.Text, "nE"[b2i(p.Earlier)])
		}
		if got.String() != "1sE 2aE 3bE 4cn " {
			t.Errorf("%s: %s", body, got.String())
		}
	}
	r, err := dialect(t, "anthropic").Request([]byte(`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"system":"s"}`))
	if err != nil || r.Parts[1].Earlier || !r.Parts[2].Earlier {
		t.Errorf("a prefill: %+v, %v", r.Parts, err)
	}
}

// A thread that goes on has a history that the provider keeps, and the member that names it is
// what nobody has read.
func TestAnthropicThreads(t *testing.T) {
	for thread, want := range map[string]wire.Request{
		`null`:              {},
		`{"type":"create"}`: {Kept: true},
		`{"type":"continue","previous_message_id":"msg_0"}`: {Kept: true, Previous: "msg_0", HistoryPath: "thread.previous_message_id"},
		`{"type":"continue"}`:                               {Kept: true, HistoryPath: "thread.previous_message_id"},
	} {
		r, err := dialect(t, "anthropic").Request([]byte(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"Go on"}],"thread":` + thread + `}`))
		if err != nil || r.Kept != want.Kept || r.Previous != want.Previous || r.HistoryPath != want.HistoryPath {
			t.Errorf("%s: %v kept %v, previous %q, history at %q", thread, err, r.Kept, r.Previous, r.HistoryPath)
		}
	}
}

// What a tool returned is no prompt.
func TestAnthropicPrompt(t *testing.T) {
	for messages, want := range map[string]string{
		`{"role":"user","content":"a"}`: "a",
		`{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"c"}]}`:                           "a",
		`{"role":"user","content":"a"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"c"},{"type":"text","text":"d"},{"type":"text","text":"e"}]}`:        "de",
		`{"role":"user","content":[{"type":"text","text":"d"},{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"c"}]},{"type":"text","text":"e"}]}`:             "de",
		`{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"doc"}},{"type":"text","text":"d"}]},{"role":"assistant","content":"{"}`: "d",
		`{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"doc"}}]}`:                                                               "",
	} {
		r, err := dialect(t, "anthropic").Request([]byte(`{"messages":[` + messages + `]}`))
		if err != nil || r.Prompt() != want {
			t.Errorf("%s: %q, want %q, %v", messages, r.Prompt(), want, err)
		}
	}
}

// What the dialect does not know is listed, wherever it stands.
func TestAnthropicRequestUnknown(t *testing.T) {
	r, err := dialect(t, "anthropic").Request([]byte(`{
		"messages": [
			{"role": "narrator", "content": "x"},
			{"role": "user", "content": {"type": "text", "text": "object"}},
			{"role": "user", "content": ["bare", 5, {"type": "hologram", "text": "h"}, {"text": "untyped"}, {"type": "text", "text": "a", "source": "b"}, {"type": "text", "text": ["c"]}]},
			{"role": "user", "content": [{"type": "document", "source": {"type": "cloud", "text": "d"}}, {"type": "tool_result", "content": [{"type": "thinking", "thinking": "e"}]}]},
			{"role": "assistant", "content": [{"type": "server_tool_use", "id": "s", "name": "rm", "input": {}}, {"type": "thinking", "thinking": "t", "signature": "s", "more": "m"}]},
			{"role": "user", "content": "y", "prefix": "z"}
		],
		"tools": [{"type": "robot_20990101", "name": "r"}, 7], "system": [{"type": "image", "source": {}}], "max_tokens": {"text": "t"},
		"metadata": {"note": "n"}, "cache_control": {"type": "eternal"}, "n": 2, "instructions": "i"
	}`))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, lines(r.Parts), []string{
		`system unknown system.0`,
		`other unknown messages.0.role`,
		`other text messages.0.content x`,
		`user unknown messages.1.content`,
		`user unknown messages.2.content.0`,
		`user unknown messages.2.content.1`,
		`user unknown messages.2.content.2`,
		`user unknown messages.2.content.3`,
		`user text messages.2.content.4.text a`,
		`user unknown messages.2.content.4.sha256:41cf6794ba4200b8`,
		`user unknown messages.2.content.5.text`,
		`user unknown messages.3.content.0.source`,
		`tool unknown messages.3.content.1.content.0`,
		`assistant unknown messages.4.content.0.name`,
		`assistant reasoning messages.4.content.1.thinking t`,
		`assistant unknown messages.4.content.1.sha256:187897ce0afcf20b`,
		`user text messages.5.content y`,
		`user unknown messages.5.sha256:e7a2e8b216e5aec3`,
		`definition unknown tools.0.type`,
		`definition name tools.0.name r`,
		`definition unknown tools.1`,
		`other unknown max_tokens`,
		`other unknown metadata.sha256:edb465624291e405`,
		`other unknown cache_control.type`,
		`other unknown sha256:1b16b1df538ba12d`,
		`definition unknown sha256:238fa28a94976c7d`,
	})
}

func TestInvalidAnthropicRequests(t *testing.T) {
	for _, body := range []string{
		``, `[]`, `{}`, `{"messages":"canary"}`, `{"messages":{}}`, `{"messages":["canary"]}`, `{"messages":[null]}`,
		`{"messages":[],"stream":"canary"}`, `{"messages":[],"stream":1}`, `{"messages":[],"model":["canary"]}`,
		`{"messages":[],"messages":[]}`, `{"messages":[],"Messages":[]}`, `{"messages":[],"System":"canary"}`,
		`{"messages":[{"role":"user","Content":"canary","content":"a"}]}`, `{"messages":[{"role":"user","content":[{"Type":"text","text":"canary"}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"text","Text":"canary","text":"a"}]}]}`, `{"messages":[],"system":[{"type":"text","TEXT":"canary"}]}`,
		`{"messages":[{"role":"user","content":"\u0000canary"}]}`, `{"messages":[{"role":"user","content":"\ud800"}]}`, `{"messages":[]}{}`,
	} {
		r, err := dialect(t, "anthropic").Request([]byte(body))
		if !errors.Is(err, wire.ErrInvalid) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %+v, %v", body, r, err)
		}
	}
}

// A redacted call is one that the API accepts: of the same shape, with a call for each
// result, without a signature whose text was changed.
func TestAnthropicRedact(t *testing.T) {
	d := dialect(t, "anthropic")
	before, err := d.Request([]byte(claudeCall))
	if err != nil {
		t.Fatal(err)
	}
	var texts []wire.Part
	for _, p := range before.Parts {
		if p.Text != "" && p.Message > 0 && p.Role != wire.System {
			texts = append(texts, p)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		chosen := rapid.SliceOfDistinct(rapid.SampledFrom(texts), func(p wire.Part) string { return p.Path }).Draw(t, "chosen")
		out := wire.Redact([]byte(claudeCall), chosen, `removed "here"`)
		after, err := d.Request(out)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		at := make(map[string]wire.Part)
		for _, p := range after.Parts {
			if at[p.Path] = p; p.Kind == wire.Unknown {
				t.Fatalf("%s became unknown: %s", p.Path, out)
			}
		}
		for _, p := range before.Parts {
			got := at[p.Path]
			changed := slices.ContainsFunc(chosen, func(c wire.Part) bool { return c.Path == p.Path })
			if got.Start = p.Start; changed == reflect.DeepEqual(got, p) {
				t.Fatalf("%s (chosen: %v) is %+v", p.Path, changed, got)
			}
			if changed && got.Text == p.Text {
				t.Fatalf("%s still says %q", p.Path, p.Text)
			}
		}
	})
	for from, want := range map[string]string{
		`{"type":"thinking","thinking":"a","signature":"s"}`:                                                                                         `{"text":"gone","type":"text"}`,
		`{"type":"tool_use","id":"t","name":"f","input":{"a":1}}`:                                                                                    `{"type":"tool_use","id":"t","name":"redacted","input":{"redacted":"gone"}}`,
		`{"type":"server_tool_use","id":"t","name":"web_search","input":{"query":"a"}}`:                                                              `{"type":"server_tool_use","id":"t","name":"web_search","input":{"redacted":"gone"}}`,
		`{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"a"}]}`:                                                            `{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"gone"}]}`,
		`{"type":"text","text":"caf\u00e9","citations":[{"cited_text":"a"}]}`:                                                                        `{"type":"text","text":"gone","citations":[]}`,
		`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a"}}`:                                                          `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"gone"}}`,
		`{"type":"web_search_tool_result","tool_use_id":"t","content":[{"type":"web_search_result","title":"a","url":"b","encrypted_content":"E"}]}`: `{"type":"web_search_tool_result","tool_use_id":"t","content":[{"type":"web_search_result","title":"gone","url":"gone","encrypted_content":"E"}]}`,
	} {
		body := ` {"messages" : [{"role":"assistant","content":[ %s ]}, {"role":"user","content":"c"}] } `
		r, err := d.Request(fmt.Appendf(nil, body, from))
		if err != nil {
			t.Fatal(err)
		}
		var parts []wire.Part
		for _, p := range r.Parts {
			if p.Earlier && p.Text != "" {
				parts = append(parts, p)
			}
		}
		if got := string(wire.Redact(fmt.Appendf(nil, body, from), parts, "gone")); got != fmt.Sprintf(body, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A block that nobody knows is replaced by a text, once its text was read.
func TestAnthropicRedactUnknownBlock(t *testing.T) {
	body := []byte(`{"messages":[{"role":"assistant","content":[{"type":"hologram","text":"a"}]},{"role":"user","content":"c"}]}`)
	r, err := dialect(t, "anthropic").Request(body)
	if err != nil {
		t.Fatal(err)
	}
	got := string(wire.Redact(body, r.Parts[:1], "gone"))
	if want := strings.Replace(string(body), `{"type":"hologram","text":"a"}`, `{"text":"gone","type":"text"}`, 1); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAnthropicResponse(t *testing.T) {
	r, err := dialect(t, "anthropic").Response([]byte(`{
		"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "container": {"id": "c", "expires_at": "t", "skills": null}, "usage": {"input_tokens": 1},
		"content": [
			{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "redacted_thinking", "data": "AA"},
			{"type": "text", "text": "Par", "citations": null}, {"type": "text", "text": "is.", "citations": [{"cited_text": "c"}]},
			{"type": "server_tool_use", "id": "s", "name": "web_fetch", "input": {"url": "u"}},
			{"type": "web_fetch_tool_result", "tool_use_id": "s", "content": {"type": "web_fetch_result", "url": "u", "retrieved_at": null,
				"content": {"type": "document", "title": null, "citations": null, "source": {"type": "text", "media_type": "text/plain", "data": "page"}}}},
			{"type": "tool_use", "id": "t", "name": "f", "input": {"a": "b"}},
			{"type": "hologram", "text": "?"}
		],
		"stop_reason": "tool_use", "stop_sequence": null, "stop_details": null, "x": 1}`))
	if err != nil {
		t.Fatal(err)
	}
	if r.ID != "msg_1" || r.Model != "m" || r.Finish != "tool_use" || r.Text() != "Paris." {
		t.Errorf("%+v, text %q", r, r.Text())
	}
	compare(t, lines(r.Parts), []string{
		`reasoning content.0.thinking hm`,
		`reasoning content.1.data`,
		`text content.2.text Par`,
		`text content.3.text is.`,
		"annotation content.3.citations cited_text\nc",
		"tool_call content.4.input url\nu",
		`tool_result content.5.content.url u`,
		`tool_result content.5.content.content.source.data page`,
		`name content.6.name f`,
		"tool_call content.6.input a\nb",
		`unknown content.7`,
		`unknown sha256:2d711642b726b044`,
	})
	for _, p := range r.Parts {
		if p.Message != 1 || p.Role != "" {
			t.Errorf("%+v", p)
		}
	}
	r, err = dialect(t, "anthropic").Response([]byte(`{"content":[],"stop_reason":"refusal","stop_details":{"type":"refusal","category":"cyber","explanation":"No."}}`))
	if err != nil || r.Text() != "No." || r.Parts[0].Kind != wire.RefusalText {
		t.Errorf("a refusal: %+v, %v", r, err)
	}
	for _, body := range []string{
		``, `canary`, `[]`, `{}`, `{"error":{"message":"canary"}}`, `{"content":"canary"}`,
		`{"content":[{"type":"text","text":"a","text":"canary"}]}`, `{"content":[{"type":"text","Text":"canary"}]}`, `{"content":[]}x`,
	} {
		if r, err := dialect(t, "anthropic").Response([]byte(body)); !errors.Is(err, wire.ErrInvalid) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %+v, %v", body, r, err)
		}
	}
}

func TestAnthropicEvents(t *testing.T) {
	type delta = wire.Delta
	for _, test := range []struct {
		event, data string
		want        wire.Event
	}{
		{"message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"m","stop_reason":null,"usage":{}}}`, wire.Event{ID: "msg_1"}},
		{"message_start", `{"type":"message_start","message":{"content":[{"type":"text","text":"early"},{"type":"tool_use","id":"t","name":"f","input":{}}]}}`, wire.Event{Deltas: []delta{{Kind: wire.Text, Text: "early"}, {Kind: wire.Name, Text: "f", Called: true}}, Calls: []wire.CallDelta{{ToolCall: wire.ToolCall{Key: "1", ID: "t", Name: "f", Arguments: "{}"}, Whole: true}}}},
		{"ping", `{"type":"ping"}`, wire.Event{}},
		{"ping", ``, wire.Event{}},
		{"content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"A","citations":null}}`, wire.Event{Deltas: []delta{{Kind: wire.Text, Text: "A"}}}},
		{"content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Par"}}`, wire.Event{Deltas: []delta{{Kind: wire.Text, Text: "Par"}}}},
		{"content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm","estimated_tokens":1}}`, wire.Event{Deltas: []delta{{Kind: wire.Reasoning, Text: "hm"}}}},
		{"content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}`, wire.Event{}},
		{"content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"compaction_delta","content":"c","encrypted_content":"E"}}`, wire.Event{Deltas: []delta{{Kind: wire.Document, Text: "c"}, {Kind: wire.Document}}, Silent: map[wire.Kind]int{wire.Document: 3}}},
		{"content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"sound_delta","text":"?"}}`, wire.Event{Unknown: []string{"delta"}}},
		{"content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{"a":"b"}}}`, wire.Event{Deltas: []delta{{Kind: wire.Name, Text: "f", Called: true}, {Kind: wire.Arguments, Text: "a\nb", Called: true}}, Calls: []wire.CallDelta{{ToolCall: wire.ToolCall{Key: "0", ID: "t", Name: "f", Arguments: `{"a":"b"}`}, Whole: true}}}},
		{"content_block_start", `{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"t","name":"web_search","input":{}}}`, wire.Event{}},
		{"content_block_start", `{"type":"content_block_start","index":1,"content_block":{"type":"hologram"}}`, wire.Event{Unknown: []string{"content_block"}}},
		{"content_block_stop", `{"type":"content_block_stop","index":1}`, wire.Event{}},
		{"message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":1}}`, wire.Event{Finish: "end_turn", Finished: []int{0}, Ending: true}},
		{"message_delta", `{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"type":"refusal","explanation":"No."}},"usage":{}}`, wire.Event{Finish: "refusal", Finished: []int{0}, Ending: true, Deltas: []delta{{Kind: wire.RefusalText, Text: "No."}}}},
		{"message_delta", `{"type":"message_delta","delta":{"stop_reason":null},"usage":{"output_tokens":1}}`, wire.Event{}},
		{"message_stop", `{"type":"message_stop"}`, wire.Event{Done: true}},
		{"error", `{"type":"error","error":{"type":"overloaded_error","message":"m"},"request_id":null}`, wire.Event{Err: true, Deltas: []delta{{Kind: wire.Annotation, Text: "type\noverloaded_error\nmessage\nm"}}}},
		// Hostile: clients go by the event field or by the type.
		{"error", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}`, wire.Event{Deltas: []delta{{Kind: wire.Text, Text: "x"}}, Unknown: []string{"event"}}},
		{"ping", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}`, wire.Event{Deltas: []delta{{Kind: wire.Text, Text: "x"}}, Unknown: []string{"event"}}},
		{"", `{"type":"message_stop"}`, wire.Event{Done: true, Unknown: []string{"event"}}},
		{"x", `{"type":"error","error":{}}`, wire.Event{Unknown: []string{"event"}}},
		{"message_stop", ``, wire.Event{Unknown: []string{"event"}}},
		{"content_block_delta", `{"index":0,"delta":{"type":"text_delta","text":"x"}}`, wire.Event{Deltas: []delta{{Kind: wire.Text, Text: "x"}}, Unknown: []string{"event"}}},
		{"completion", `{"type":"completion","completion":"old"}`, wire.Event{Unknown: []string{"frame"}}},
		{"content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x","y":1},"z":2}`, wire.Event{Deltas: []delta{{Kind: wire.Text, Text: "x"}}, Unknown: []string{"delta.sha256:a1fce4363854ff88", "sha256:594e519ae499312b"}}},
	} {
		got, err := dialect(t, "anthropic").Events().Event(wire.Frame{Event: test.event, Data: []byte(test.data)})
		if err != nil || !reflect.DeepEqual(withoutParts(got), test.want) {
			t.Errorf("%s %s\n got %+v, %v\nwant %+v", test.event, test.data, got, err, test.want)
		}
	}
	if e, err := dialect(t, "anthropic").Events().Event(wire.Frame{Comment: true}); err != nil || !reflect.DeepEqual(e, wire.Event{}) {
		t.Errorf("a comment: %+v, %v", e, err)
	}
	for _, data := range []string{`canary`, `[DONE]`, `{"type":"ping","type":"canary"}`, `{"Type":"canary"}`, `{"type":"content_block_delta","Delta":"canary"}`, `{}{}`} {
		if _, err := dialect(t, "anthropic").Events().Event(wire.Frame{Event: "ping", Data: []byte(data)}); !errors.Is(err, wire.ErrInvalid) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", data, err)
		}
	}
}

// typedFrame is a frame as the API writes it.
func typedFrame(event, data string) string { return "event: " + event + "\ndata: " + data + "\n\n" }

func TestAnthropicRefusals(t *testing.T) {
	d := dialect(t, "anthropic")
	for name, place := range map[string]wire.Place{"": wire.Everywhere, "_refusal": wire.OnlyRefusal, "_content": wire.OnlyContent} {
		r := wire.Refusal{ID: "KRN-1", Model: "claude-x", Text: declined, Created: 1700000000, Place: place, Choices: 1}
		golden(t, "anthropic_refusal"+name+".json", d.Refusal(r))
		golden(t, "anthropic_refusal"+name+".sse", d.Stream().Refusal(r))
		whole, err := d.Response(d.Refusal(r))
		if err != nil || whole.Text() != declined || whole.Model != "claude-x" {
			t.Errorf("%s: %+v, %v", place, whole, err)
		}
		if got := streamed(t, d, d.Stream().Refusal(r)); got.Text() != declined || got.Finish != whole.Finish || got.blocks != len(slices.DeleteFunc(whole.Parts, func(p wire.Part) bool { return p.Kind != wire.Text })) {
			t.Errorf("%s: the stream is %+v, the whole %+v", place, got, whole)
		}
	}
	e := wire.Error{Status: 403, Code: "policy_refusal", Message: declined}
	golden(t, "anthropic_error.json", d.Error(e))
	golden(t, "anthropic_error.sse", d.Stream().Error(e))
	golden(t, "anthropic_keepalive.sse", append(d.Stream().KeepAlive(), d.Stream().Note("x: y")...))
	for status, want := range map[int]string{
		400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error", 404: "not_found_error", 409: "invalid_request_error",
		413: "request_too_large", 422: "invalid_request_error", 429: "rate_limit_error", 500: "api_error", 502: "api_error", 503: "api_error", 504: "timeout_error", 529: "overloaded_error",
	} {
		if out := string(d.Error(wire.Error{Status: status})); !strings.Contains(out, `"error":{"type":"`+want+`"`) {
			t.Errorf("%d gives %s", status, out)
		}
	}
	if got := split(t, d, d.Stream().Error(e)); len(got) != 1 {
		t.Errorf("an error of %d frames", len(got))
	} else if event, err := d.Events().Event(got[0]); err != nil || !event.Err || event.Done || len(event.Unknown) > 0 {
		t.Errorf("read back as %+v, %v", event, err)
	}
}

// A claudeStream is a stream as the newest SDK takes it in.
type claudeStream struct {
	wire.Response
	text, refusal string
	blocks        int
	ran           []string // the calls that the SDK's tool runner starts
}

func (c claudeStream) Text() string {
	if c.text != "" {
		return c.text
	}
	return c.refusal
}

// streamed checks a stream against the grammar of the API and reads it.
func streamed(t testing.TB, d wire.Dialect, stream []byte) (got claudeStream) {
	t.Helper()
	var block struct {
		open  bool
		kind  string
		index int
	}
	state, call := "", ""
	events := d.Events()
	for _, f := range split(t, d, stream) {
		if f.Comment {
			continue
		}
		e, err := events.Event(f)
		if err != nil || len(e.Unknown) > 0 {
			t.Fatalf("%s: %+v, %v", f.Raw, e, err)
		}
		var data struct {
			Type         string
			Index        *int
			ContentBlock struct{ Type, Name string } `json:"content_block"`
			Delta        struct{ Type string }
			Message      struct {
				ID, Type, Role string
				Content        []any
			}
			Usage *struct {
				OutputTokens *int `json:"output_tokens"`
			}
		}
		if err := json.Unmarshal(f.Data, &data); err != nil || data.Type != f.Event {
			t.Fatalf("%v: %s", err, f.Raw)
		}
		legal := true
		switch data.Type {
		case "ping":
		case "message_start":
			legal = state == "" && data.Message.Type == "message" && data.Message.Role == "assistant" && data.Message.ID != ""
			state, got.blocks = "content", len(data.Message.Content)
		case "content_block_start":
			legal = state == "content" && !block.open && data.Index != nil && *data.Index == got.blocks
			block.open, block.kind, block.index = true, data.ContentBlock.Type, got.blocks
			got.blocks++
			if call != "" {
				got.ran, call = append(got.ran, call), ""
			}
			if block.kind == "tool_use" {
				call = data.ContentBlock.Name
			}
		case "content_block_delta":
			want := map[string]string{"text_delta": "text", "citations_delta": "text", "thinking_delta": "thinking", "signature_delta": "thinking"}[data.Delta.Type]
			legal = block.open && *data.Index == block.index && (want == block.kind || data.Delta.Type == "input_json_delta" && strings.HasSuffix(block.kind, "tool_use"))
		case "content_block_stop":
			legal = block.open && *data.Index == block.index
			block.open = false
		case "message_delta":
			legal = (state == "content" || state == "end") && !block.open && data.Usage != nil && data.Usage.OutputTokens != nil
			state, got.Finish = "end", e.Finish
			if call != "" && e.Finish == "tool_use" {
				got.ran = append(got.ran, call)
			}
		case "message_stop":
			legal = state == "end" && got.Finish != ""
			state = "over"
		}
		if !legal {
			t.Fatalf("%s is out of order in\n%s", f.Raw, stream)
		}
		for _, delta := range e.Deltas {
			switch delta.Kind {
			case wire.Text:
				got.text += delta.Text
			case wire.RefusalText:
				got.refusal += delta.Text
			}
		}
	}
	if state != "over" {
		t.Fatalf("the stream ends in %q:\n%s", state, stream)
	}
	return got
}

// longStream has a block of each kind.
func longStream(t testing.TB) []byte {
	t.Helper()
	var out []byte
	for _, name := range []string{"thinking", "web_search", "tools", "basic"} {
		stream, err := os.ReadFile("testdata/examples/anthropic_messages/" + name + ".stream")
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, stream...)
	}
	// One answer: without the ends and beginnings between, with the indexes counted on.
	d, blocks := dialect(t, "anthropic"), -1
	var one []byte
	frames := split(t, d, out)
	for i, f := range frames {
		last := i >= len(frames)-2
		switch {
		case f.Event == "message_start" && i > 0, (f.Event == "message_delta" || f.Event == "message_stop") && !last:
			continue
		case f.Event == "content_block_start":
			blocks++
		}
		var data map[string]any
		if err := json.Unmarshal(f.Data, &data); err != nil {
			t.Fatal(err)
		}
		if _, there := data["index"]; there {
			data["index"] = blocks
		}
		b, _ := json.Marshal(data)
		one = append(one, typedFrame(f.Event, string(b))...)
	}
	return one
}

// Wherever a stream is refused, the rest makes it a whole one, with the refusal in it,
// and no call runs that had not been running.
func TestAnthropicStreamsAreRefusedAnywhere(t *testing.T) {
	d := dialect(t, "anthropic")
	stream := longStream(t)
	if got := streamed(t, d, stream); got.blocks != 9 || !slices.Equal(got.ran, []string{"get_weather"}) {
		t.Fatalf("%+v", got)
	}
	frames := split(t, d, stream)
	for _, place := range []wire.Place{wire.Everywhere, wire.OnlyRefusal, wire.OnlyContent} {
		for n := range len(frames) {
			w := d.Stream()
			var sent []byte
			ran, call := 0, false
			for _, f := range frames[:n] {
				sent = append(sent, f.Raw...)
				w.Sent(f)
				if f.Event == "content_block_start" {
					ran += b2i(call)
					call = bytes.Contains(f.Data, []byte(`"tool_use"`))
				}
			}
			w.Sent(split(t, d, w.Note("receipt"))[0])
			got := streamed(t, d, append(sent, w.Refusal(wire.Refusal{ID: "1", Text: declined, Place: place})...))
			if !strings.HasSuffix(got.Text(), declined) && got.refusal != declined {
				t.Errorf("%s after %d frames: no refusal: %+v", place, n, got)
			}
			if want := place != wire.OnlyRefusal && !call && n < len(frames)-1; strings.HasSuffix(got.text, declined) != want {
				t.Errorf("%s after %d frames: the text is %q", place, n, got.text)
			}
			if got.Finish != "refusal" && (place != wire.OnlyContent || got.Finish != "end_turn" || call) {
				t.Errorf("%s after %d frames: it ends in %q", place, n, got.Finish)
			}
			if len(got.ran) != ran {
				t.Errorf("%s after %d frames: %v ran", place, n, got.ran)
			}
		}
	}
	w := d.Stream()
	for _, f := range frames {
		w.Sent(f)
	}
	if rest := w.Refusal(wire.Refusal{Text: declined}); len(rest) > 0 {
		t.Errorf("behind the end: %s", rest)
	}
}

// However the network cuts a stream, the events are the same.
func TestAnthropicStreamsInPieces(t *testing.T) {
	d := dialect(t, "anthropic")
	stream := longStream(t)
	read := func(frames []wire.Frame) (out []wire.Event) {
		events := d.Events()
		for _, f := range frames {
			e, err := events.Event(f)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, e)
		}
		return out
	}
	want := read(split(t, d, stream))
	rapid.Check(t, func(t *rapid.T) {
		s := wire.NewSplitter(d.Framing(), 0)
		var frames []wire.Frame
		for rest := stream; len(rest) > 0; {
			n := rapid.IntRange(1, min(len(rest), 400)).Draw(t, "cut")
			if err := s.Push(rest[:n]); err != nil {
				t.Fatal(err)
			}
			for f, ok := s.Next(); ok; f, ok = s.Next() {
				frames = append(frames, f)
			}
			rest = rest[n:]
		}
		if got := read(frames); !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v", got)
		}
	})
}

func TestAnthropicAsk(t *testing.T) {
	d := dialect(t, "anthropic")
	asker, ok := d.(wire.Asker)
	if !ok {
		t.Fatal("the dialect cannot ask")
	}
	ask := wire.Ask{Model: "m", System: "s", History: []wire.Message{{Role: wire.User, Text: "a"}, {Role: wire.Assistant, Text: "b"}}, Prompt: "c \"d\"", Stream: true}
	call := asker.Ask(ask)
	if got := nameOf(wire.Match(&url.URL{Path: call.Path})); got != d.Name() || call.Header["anthropic-version"] != "2023-06-01" {
		t.Errorf("%+v is %q", call, got)
	}
	if !sameJSON(t, call.Body, `{"model":"m","max_tokens":4096,"system":"s","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c \"d\""}],"stream":true}`) {
		t.Errorf("%s", call.Body)
	}
	r, err := d.Request(call.Body)
	if err != nil || r.Prompt() != ask.Prompt || !r.Stream || len(r.Parts) != 4 {
		t.Errorf("read back as %+v, %v", r, err)
	}
	if name, value := asker.Authorize("k"); name != "x-api-key" || value != "k" {
		t.Errorf("%s: %s", name, value)
	}
}

func TestMatchAnthropic(t *testing.T) {
	const claude = "anthropic_messages"
	for path, want := range map[string]string{
		"/v1/messages": claude, "/V1//Messages/": claude, "/base/v1/messages": claude, "/anthropic/v1/x/../messages": claude,
		"/v1/projects/p/locations/l/publishers/anthropic/models/claude-x@1:rawPredict":       claude,
		"/v1/projects/p/locations/l/publishers/anthropic/models/claude-x@1:streamRawPredict": claude,
		"/v1/projects/p/locations/l/publishers/anthropic/models/claude-x@1:predict":          "",
		"/v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict":     "",
		"/v1/projects/p/locations/l/publishers/mistralai/models/m:rawPredict":                "",
		"/model/anthropic.claude-x-v1:0/invoke":                                              claude,
		"/model/us.anthropic.claude-x-v1:0/invoke":                                           claude,
		"/model/anthropic.claude-x-v1:0/invoke-with-response-stream":                         claude,
		"/model/meta.llama3/invoke":                                                          "",
		"/v1/messages/count_tokens":                                                          "",
		"/v1/messages/batches":                                                               "",
		"/v1/threads/t/messages":                                                             "",
		"/messages":                                                                          "",
	} {
		if got := nameOf(wire.Match(&url.URL{Path: path})); got != want {
			t.Errorf("%q is %q, want %q", path, got, want)
		}
	}
	for path, want := range map[string]bool{"/publishers/anthropic/models/c:rawPredict": false, "/publishers/anthropic/models/c:streamRawPredict": true} {
		d, _ := wire.Match(&url.URL{Path: path})
		if r, err := d.Request([]byte(`{"anthropic_version":"vertex-2023-10-16","anthropic_beta":["b"],"messages":[],"max_tokens":1}`)); err != nil || r.Stream != want || len(r.Parts) > 0 {
			t.Errorf("%s: %+v, %v", path, r, err)
		}
	}
	for body, want := range map[string]string{
		`{"anthropic_version":"bedrock-2023-05-31","messages":[{"role":"user","content":"hi"}]}`:               claude,
		`{"system":"s","messages":[{"role":"user","content":"hi"}]}`:                                           claude,
		`{"messages":[{"role":"user","content":"hi"}],"tools":[{"name":"f","input_schema":{}}]}`:               claude,
		`{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"hi"}]}]}`:   claude,
		`{"messages":[{"role":"user","content":"hi"}],"max_tokens":5}`:                                         "openai_chat",
		`{"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`:                               "openai_chat",
		`{"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f"}}]}`:  "openai_chat",
		`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x.test"}}]}]}`: "openai_chat",
	} {
		if got := nameOf(wire.Resembles([]byte(body))); got != want {
			t.Errorf("%s resembles %q, want %q", body, got, want)
		}
	}
	for _, name := range []string{"anthropic", "anthropic_messages"} {
		if got := nameOf(wire.Named(name)); got != claude {
			t.Errorf("%q is %q", name, got)
		}
	}
}

// FuzzAnthropicRequest: nothing panics, the parts are disjoint values of the body, and
// what Redact makes of them can be read again.
func FuzzAnthropicRequest(f *testing.F) {
	f.Add([]byte(claudeCall))
	f.Add([]byte(`{"system":"s","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"x"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":"s"}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		d := dialect(t, "anthropic")
		r, err := d.Request(body)
		if err != nil {
			if !errors.Is(err, wire.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		sorted := slices.Clone(r.Parts)
		slices.SortFunc(sorted, func(a, b wire.Part) int { return a.Start - b.Start })
		end := 0
		var texts []wire.Part
		for _, p := range sorted {
			if p.Start < end || !json.Valid(body[p.Start:p.Start+p.Bytes]) {
				t.Fatalf("%s stands at %d, behind %d", p.Path, p.Start, end)
			}
			if end = p.Start + p.Bytes; p.Text != "" {
				texts = append(texts, p)
			}
		}
		if _, err := d.Request(wire.Redact(body, texts, "gone")); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzAnthropicAnswer: an answer reads the same whole and as a stream of its blocks,
// and no frame panics a reader or a writer.
func FuzzAnthropicAnswer(f *testing.F) {
	f.Add([]byte(`[{"type":"text","text":"a","citations":[{"cited_text":"b"}]},{"type":"tool_use","id":"t","name":"f","input":{"a":1}}]`))
	f.Add([]byte(`[{"type":"web_search_tool_result","content":[{"type":"web_search_result","title":"t"}]},{"type":"hologram"},5,"text"]`))
	f.Add([]byte(`[{"type":"message_delta","delta":{"stop_reason":5},"message":{"content":[{"type":"tool_use"}]}}]`))
	f.Fuzz(func(t *testing.T, content []byte) {
		d := dialect(t, "anthropic")
		var blocks []json.RawMessage
		if json.Unmarshal(content, &blocks) != nil {
			return
		}
		whole, err := d.Response([]byte(`{"content":` + string(content) + `}`))
		var want, got []wire.Delta
		for _, p := range whole.Parts {
			if p.Kind != wire.Unknown {
				want = append(want, wire.Delta{Kind: p.Kind, Text: p.Text, Called: p.Called})
			}
		}
		events, w := d.Events(), d.Stream()
		failed := false
		for i, b := range blocks {
			frame := wire.Frame{Event: "content_block_start", Data: fmt.Appendf(nil, `{"type":"content_block_start","index":%d,"content_block":%s}`, i, b)}
			e, err := events.Event(frame)
			failed = failed || err != nil
			got = append(got, withoutParts(e).Deltas...)
			w.Sent(frame)
			bare := wire.Frame{Event: "message_start", Data: b}
			if _, err := events.Event(bare); err != nil && !errors.Is(err, wire.ErrInvalid) {
				t.Fatal(err)
			}
			w.Sent(bare)
			if rest := w.Refusal(wire.Refusal{Text: "no"}); len(rest) > 0 {
				split(t, d, rest)
			}
		}
		if err == nil && !failed && !slices.Equal(got, want) {
			t.Fatalf("streamed %+v, whole %+v", got, want)
		}
	})
}

func BenchmarkAnthropicEvent(b *testing.B) {
	d := dialect(b, "anthropic")
	f := wire.Frame{Event: "content_block_delta", Data: []byte(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" Paris"}}`)}
	events, w := d.Events(), d.Stream()
	b.ReportAllocs()
	for b.Loop() {
		e, err := events.Event(f)
		if err != nil || len(e.Deltas) != 1 {
			b.Fatal(e, err)
		}
		w.Sent(f)
	}
}
