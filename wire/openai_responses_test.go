package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"github.com/caddy-lex/lex/wire"
)

// responsesCall has every kind of item that a client may send back.
const responsesCall = `{
	"model": "gpt-x", "stream": true, "temperature": 0.20, "store": false, "metadata": {"session_id": "s1", "b": "c"}, "client_metadata": {"turn_id": "t1"}, "include": ["reasoning.encrypted_content"],
	"instructions": "Be brief.", "reasoning": {"effort": "low", "summary": "auto"}, "truncation": "auto",
	"input": [
		{"role": "developer", "content": "House rules.", "internal_chat_message_metadata_passthrough": {"turn_id": "t1", "create_time": 1.5, "content_item_kinds": ["host_skills.instructions", "permissions.instructions"]}},
		{"role": "user", "content": "Weather?"},
		{"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "content": [{"type": "reasoning_text", "text": "mm"}], "encrypted_content": "AA", "internal_chat_message_metadata_passthrough": {"turn_id": "t1", "create_time": 1.5, "content_item_kinds": ["host_skills.instructions", "permissions.instructions"]}},
		{"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "AA"},
		{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "commentary", "content": [
			{"type": "output_text", "text": "Let me see.", "annotations": [{"type": "url_citation", "title": "T"}], "logprobs": []}, {"type": "refusal", "refusal": "No."}]},
		{"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weather", "arguments": "{\"city\":\"K\u00f6ln\"}", "status": "completed"},
		{"type": "function_call_output", "call_id": "c1", "output": "rain", "internal_chat_message_metadata_passthrough": {"turn_id": "t1", "create_time": 1.5, "content_item_kinds": ["host_skills.instructions", "permissions.instructions"]}},
		{"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "wind"}, {"type": "input_image", "image_url": "data:image/png;base64,AA"}]},
		{"type": "custom_tool_call", "call_id": "c2", "name": "sql", "input": "select 1"},
		{"type": "custom_tool_call_output", "call_id": "c2", "output": "1"},
		{"type": "computer_call", "id": "cu_1", "call_id": "c3", "action": {"type": "type", "text": "typed", "x": 1}, "pending_safety_checks": [{"id": "x", "code": "y", "message": "careful"}], "status": "completed"},
		{"type": "computer_call_output", "call_id": "c3", "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,AA"}},
		{"type": "shell_call", "call_id": "c4", "action": {"commands": ["ls", "pwd"], "timeout_ms": 1}},
		{"type": "shell_call_output", "call_id": "c4", "output": [{"stdout": "file", "stderr": "warn", "outcome": {"type": "exit", "exit_code": 0}}]},
		{"type": "local_shell_call", "id": "l1", "call_id": "c5", "status": "completed", "action": {"type": "exec", "command": ["cat", "x"], "env": {"A": "b"}}},
		{"type": "local_shell_call_output", "id": "l1", "output": "local"},
		{"type": "apply_patch_call", "call_id": "c6", "status": "completed", "operation": {"type": "update_file", "path": "a.go", "diff": "+x"}},
		{"type": "apply_patch_call_output", "call_id": "c6", "status": "completed", "output": "patched"},
		{"type": "tool_search_call", "arguments": {"goal": "find"}, "execution": "client"},
		{"type": "tool_search_output", "tools": [{"type": "function", "name": "found", "description": "Finds"}]},
		{"type": "mcp_list_tools", "id": "m1", "server_label": "srv", "tools": [{"name": "t", "description": "Lists", "input_schema": {"title": "I"}}]},
		{"type": "mcp_approval_request", "id": "m2", "server_label": "srv", "name": "t", "arguments": "{}"},
		{"type": "mcp_approval_response", "approval_request_id": "m2", "approve": true, "reason": "fine"},
		{"type": "mcp_call", "id": "m3", "server_label": "srv", "name": "t", "arguments": "{\"a\":1}", "output": "called", "error": null},
		{"type": "web_search_call", "id": "w1", "status": "completed", "action": {"type": "search", "query": "q", "queries": ["q1"], "sources": [{"type": "url", "url": "https://x.test"}]}},
		{"type": "file_search_call", "id": "f1", "status": "completed", "queries": ["fq"], "results": [{"file_id": "x", "filename": "n.txt", "score": 1, "text": "found text", "attributes": {"k": "v"}}]},
		{"type": "code_interpreter_call", "id": "ci1", "status": "completed", "code": "print(1)", "container_id": "c", "outputs": [{"type": "logs", "logs": "1"}, {"type": "image", "url": "https://x.test/i"}]},
		{"type": "image_generation_call", "id": "ig1", "status": "completed", "result": "AA", "revised_prompt": "a cat"},
		{"type": "program", "id": "p1", "call_id": "c", "code": "go()", "fingerprint": "x"},
		{"type": "program_output", "id": "p2", "call_id": "c", "result": "went", "status": "completed"},
		{"type": "item_reference", "id": "msg_0"}, {"id": "msg_00"},
		{"type": "compaction", "id": "cm", "encrypted_content": "AA"}, {"type": "compaction_trigger"},
		{"type": "additional_tools", "role": "developer", "tools": [{"type": "function", "name": "more", "description": "More tools"}]},
		{"type": "configuration_update", "text": {"format": {"type": "json_schema", "name": "cfg", "schema": {"title": "C"}}}},
		{"type": "hologram", "text": "new"},
		{"role": "user", "content": [
			{"type": "input_text", "text": "Look "}, {"type": "input_image", "file_id": "f", "detail": "auto"}, {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
			{"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA"}, {"type": "smell", "text": "?"}, {"type": "input_text", "text": "here."}]}
	],
	"tools": [
		{"type": "function", "name": "weather", "description": "Says it", "strict": true, "parameters": {"properties": {"city": {"description": "a \u0043ity"}}}},
		{"type": "custom", "name": "sql", "description": "Runs", "format": {"type": "grammar", "syntax": "lark", "definition": "start: A"}},
		{"type": "namespace", "name": "ns", "description": "Group", "tools": [{"type": "function", "name": "inner", "description": "Inside"}]},
		{"type": "mcp", "server_label": "srv", "server_description": "Served", "server_url": "https://x.test", "authorization": "canary-secret", "headers": {"X": "canary-secret"}, "allowed_tools": ["t"], "require_approval": "never"},
		{"type": "shell", "environment": {"type": "local", "skills": [{"name": "sk", "description": "Skilled", "path": "/x"}]}}
	],
	"tool_choice": {"type": "function", "name": "weather"},
	"text": {"verbosity": "low", "format": {"type": "text"}},
	"mystery": {"text": "?"}
}`

func TestResponsesRequest(t *testing.T) {
	r, err := dialect(t, "openai_responses").Request([]byte(responsesCall))
	if err != nil {
		t.Fatal(err)
	}
	if r.Model != "gpt-x" || !r.Stream || !r.Structured || r.Choices != 1 || r.Session != "s1" || r.Previous != "" || r.Prompt() != "Look here." {
		t.Errorf("%+v, prompt %q", r, r.Prompt())
	}
	compare(t, lines(r.Parts), []string{
		`system text instructions Be brief.`,
		`system text input.0.content House rules.`,
		`user text input.1.content Weather?`,
		`assistant reasoning input.2 hmmm`,
		`assistant reasoning input.3.encrypted_content`,
		`assistant text input.4.content.0.text Let me see.`,
		"assistant annotation input.4.content.0.annotations type\nurl_citation\ntitle\nT",
		`assistant refusal input.4.content.1.refusal No.`,
		`assistant name input.5.name weather`,
		`assistant tool_call input.5.arguments {"city":"Köln"}`,
		`tool text input.6.output rain`,
		`tool text input.7.output.0.text wind`,
		`tool image input.7.output.1.image_url`,
		`assistant name input.8.name sql`,
		`assistant tool_call input.8.input select 1`,
		`tool text input.9.output 1`,
		`assistant tool_call input.10.action.text typed`,
		`assistant annotation input.10.pending_safety_checks.0.message careful`,
		`tool image input.11.output.image_url`,
		`assistant tool_call input.12.action.commands.0 ls`,
		`assistant tool_call input.12.action.commands.1 pwd`,
		`tool text input.13.output.0.stdout file`,
		`tool text input.13.output.0.stderr warn`,
		`assistant tool_call input.14.action.command.0 cat`,
		`assistant tool_call input.14.action.command.1 x`,
		"assistant tool_call input.14.action.env A\nb",
		`tool text input.15.output local`,
		`assistant tool_call input.16.operation.path a.go`,
		`assistant tool_call input.16.operation.diff +x`,
		`tool text input.17.output patched`,
		"assistant tool_call input.18.arguments goal\nfind",
		"definition schema input.19.tools type\nfunction\nname\nfound\ndescription\nFinds",
		`assistant name input.20.server_label srv`,
		"definition schema input.20.tools name\nt\ndescription\nLists\ninput_schema\ntitle\nI",
		`assistant name input.21.server_label srv`,
		`assistant name input.21.name t`,
		`assistant tool_call input.21.arguments {}`,
		`tool text input.22.reason fine`,
		`assistant name input.23.server_label srv`,
		`assistant name input.23.name t`,
		`assistant tool_call input.23.arguments {"a":1}`,
		`tool text input.23.output called`,
		`assistant tool_call input.24.action.query q`,
		`assistant tool_call input.24.action.queries.0 q1`,
		"tool annotation input.24.action.sources type\nurl\nurl\nhttps://x.test",
		`assistant tool_call input.25.queries.0 fq`,
		`tool name input.25.results.0.filename n.txt`,
		`tool text input.25.results.0.text found text`,
		"tool annotation input.25.results.0.attributes k\nv",
		`assistant tool_call input.26.code print(1)`,
		`tool text input.26.outputs.0.logs 1`,
		`tool image input.26.outputs.1.url`,
		`assistant image input.27.result`,
		`assistant tool_call input.27.revised_prompt a cat`,
		`assistant tool_call input.28.code go()`,
		`tool text input.29.result went`,
		`assistant stored input.30.id`,
		`assistant stored input.31.id`,
		`assistant stored input.32.encrypted_content`,
		`definition name input.34.tools.0.name more`,
		`definition text input.34.tools.0.description More tools`,
		`definition name input.35.text.format.name cfg`,
		"definition schema input.35.text.format.schema title\nC",
		`other unknown input.36`,
		`user text input.37.content.0.text Look`,
		`user image input.37.content.1.file_id`,
		`user audio input.37.content.2.input_audio`,
		`user name input.37.content.3.filename a.pdf`,
		`user file input.37.content.3.file_data`,
		`user unknown input.37.content.4`,
		`user text input.37.content.5.text here.`,
		`definition name tools.0.name weather`,
		`definition text tools.0.description Says it`,
		"definition schema tools.0.parameters properties\ncity\ndescription\na City",
		`definition name tools.1.name sql`,
		`definition text tools.1.description Runs`,
		`definition schema tools.1.format.definition start: A`,
		`definition name tools.2.name ns`,
		`definition text tools.2.description Group`,
		`definition name tools.2.tools.0.name inner`,
		`definition text tools.2.tools.0.description Inside`,
		`definition name tools.3.server_label srv`,
		`definition text tools.3.server_description Served`,
		`definition name tools.3.allowed_tools t`,
		`definition name tools.4.environment.skills.0.name sk`,
		`definition text tools.4.environment.skills.0.description Skilled`,
		"definition name tool_choice type\nfunction\nname\nweather",
		`other unknown sha256:` + hashOf(t, "mystery"),
	})
	newest := len(r.Parts)
	for i, p := range r.Parts {
		raw := gjson.Parse(responsesCall).Get(p.Path)
		if !strings.Contains(p.Path, "sha256:") && (raw.Index != p.Start || len(raw.Raw) != p.Bytes) {
			t.Errorf("%s is at %d, %d bytes; the part says %d, %d", p.Path, raw.Index, len(raw.Raw), p.Start, p.Bytes)
		}
		if p.Role == wire.User && !p.Earlier {
			newest = min(newest, i)
		}
		if strings.Contains(p.Text, "canary") {
			t.Errorf("a credential is a part: %s", p.Path)
		}
	}
	if got := r.Parts[newest].Path; got != "input.37.content.0.text" {
		t.Errorf("the newest turn begins at %s", got)
	}
}

// hashOf is how an unknown name stands in a path.
func hashOf(t *testing.T, name string) string {
	t.Helper()
	r, err := dialect(t, "openai_responses").Request([]byte(`{"input":"x","` + name + `":1}`))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(r.Parts[1].Path, "sha256:")
}

func TestResponsesState(t *testing.T) {
	for body, want := range map[string][3]string{
		`{"input":"a"}`: {"", "", "a"},
		`{"input":"a","conversation":"conv_1","metadata":{"session_id":"s"}}`:                                    {"conv_1", "", "a"},
		`{"input":"a","conversation":{"id":"conv_2"},"previous_response_id":"resp_1"}`:                           {"conv_2", "resp_1", "a"},
		`{"input":"a","conversation":null,"metadata":{"session_id":5},"background":true}`:                        {"", "", "a"},
		`{"input":"a","prompt":{"id":"p","variables":{"v":"b"}}}`:                                                {"", "", "a"},
		`{"prompt":{"id":"p","variables":{"v":"b"}}}`:                                                            {"", "", "b"},
		`{"input":[{"type":"function_call_output","call_id":"c","output":"b"}],"previous_response_id":"resp_1"}`: {"", "resp_1", ""},
		`{"previous_response_id":"resp_1"}`:                                                                      {"", "resp_1", ""},
	} {
		r, err := dialect(t, "openai_responses").Request([]byte(body))
		if got := [3]string{r.Session, r.Previous, r.Prompt()}; err != nil || got != want {
			t.Errorf("%s: %q, %v", body, got, err)
		}
	}
}

func TestInvalidResponsesRequests(t *testing.T) {
	for _, body := range []string{
		``, `[]`, `{"input":5}`, `{"input":{"role":"user"}}`, `{"input":["canary"]}`, `{"input":"x","Input":"canary"}`, `{"input":"x","input":"canary"}`,
		`{"input":"x","stream":"true"}`, `{"input":"x","background":"true"}`, `{"input":"x","model":5}`, `{"input":"x","conversation":5}`, `{"input":"x","conversation":{}}`,
		`{"input":"x","previous_response_id":5}`, `{"input":[{"role":"user","content":"x","Content":"canary"}]}`, `{"input":[{"Type":"function_call_output","role":"user","content":"x"}]}`,
		`{"input":[{"type":"function_call_output","Output":"canary"}]}`, `{"input":"\u0000"}`, `{"input":"\ud800"}`,
	} {
		r, err := dialect(t, "openai_responses").Request([]byte(body))
		if !errors.Is(err, wire.ErrInvalid) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %+v, %v", body, r, err)
		}
	}
}

// Whatever of the history is removed, the body keeps the form that the API takes: it is
// read as before, and no other byte differs.
func TestResponsesRedact(t *testing.T) {
	d := dialect(t, "openai_responses")
	r, err := d.Request([]byte(responsesCall))
	if err != nil {
		t.Fatal(err)
	}
	const removed = `[removed "by" policy]`
	var all []wire.Part
	for _, p := range r.Parts {
		if !p.Earlier {
			continue
		}
		if p.Kind == wire.Unknown {
			p.Text = "?"
		}
		if p.Text == "" {
			continue
		}
		all = append(all, p)
		out := wire.Redact([]byte(responsesCall), []wire.Part{p}, removed)
		again, err := d.Request(out)
		if err != nil {
			t.Errorf("%s: %v", p.Path, err)
		}
		end := p.Start + p.Bytes
		if !bytes.HasPrefix(out, []byte(responsesCall[:p.Start])) || !bytes.HasSuffix(out, []byte(responsesCall[end:])) {
			t.Errorf("%s: other bytes changed", p.Path)
		}
		for _, q := range again.Parts {
			if q.Kind == wire.Unknown && !slices.ContainsFunc(r.Parts, func(p wire.Part) bool { return p.Path == q.Path && p.Kind == wire.Unknown }) {
				t.Errorf("redacting %s leaves %s unknown", p.Path, q.Path)
			}
		}
	}
	if len(all) < 40 {
		t.Fatalf("only %d parts of the history", len(all))
	}
	out := wire.Redact([]byte(responsesCall), all, removed)
	again, err := d.Request(out)
	if err != nil || again.Prompt() != "Look here." || strings.Contains(string(out), "hm") {
		t.Errorf("%v: %s", err, out)
	}
	for path, want := range map[string]string{
		"input.1.content":        removed,
		"input.2.type":           "message",
		"input.2.role":           "assistant",
		"input.2.content":        removed,
		"input.4.content.0.text": removed,
		"input.5.name":           "redacted",
		"input.5.arguments":      `{"redacted":"[removed \"by\" policy]"}`,
		"input.6.output":         removed,
		"input.20.tools":         "[]",
	} {
		if got := gjson.GetBytes(out, path).String(); got != want {
			t.Errorf("%s is %s", path, got)
		}
	}
}

// What has no form of its own in the dialect is replaced by one that stands at its place.
func TestResponsesRedactUnknown(t *testing.T) {
	d := dialect(t, "openai_responses")
	body := []byte(`{"input":[{"type":"hologram","text":"a"},{"role":"user","content":[{"type":"smell","text":"b"}]},{"role":"assistant","content":[{"type":"smell","text":"c"}]},{"role":"user","content":"d"}]}`)
	r, err := d.Request(body)
	if err != nil || len(r.Parts) != 4 {
		t.Fatalf("%+v, %v", r, err)
	}
	got := string(wire.Redact(body, r.Parts[:3], "gone"))
	want := `{"input":[{"content":"gone","role":"assistant","type":"message"},{"role":"user","content":[{"text":"gone","type":"input_text"}]},{"role":"assistant","content":[{"text":"gone","type":"output_text"}]},{"role":"user","content":"d"}]}`
	if got != want {
		t.Errorf("got %s", got)
	}
}

func TestResponsesHistoryOfTheProvider(t *testing.T) {
	for body, want := range map[string]string{
		`{"input":"x"}`: "",
		`{"input":"x","previous_response_id":null,"conversation":null}`:            "",
		`{"input":"x","previous_response_id":"resp_1"}`:                            "previous_response_id",
		`{"input":"x","conversation":"conv_1"}`:                                    "conversation",
		`{"input":"x","conversation":{"id":"conv_1"},"metadata":{"session_id":1}}`: "conversation.id",
		`{"input":"x","metadata":{"session_id":"s"}}`:                              "",
	} {
		if r, err := dialect(t, "openai_responses").Request([]byte(body)); err != nil || r.HistoryPath != want {
			t.Errorf("%s: history at %q, %v", body, r.HistoryPath, err)
		}
	}
}

func TestResponsesResponse(t *testing.T) {
	d := dialect(t, "openai_responses")
	r, err := d.Response([]byte(`{"id":"resp_1","object":"response","model":"m","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},
		"instructions":"Be brief.","x":{"text":"?"},"error":{"code":"c","message":"m"},"output_text":"Paris. Lyon.","usage":{"total_tokens":1},
		"output":[
			{"type":"message","id":"m1","role":"assistant","content":[{"type":"output_text","text":"Paris. ","annotations":[],"logprobs":[{"token":"P"}]}]},
			{"type":"function_call_output","id":"o","call_id":"c","output":"rain"},
			{"type":"image_generation_call","id":"i","result":"AA"},
			{"type":"hologram"},
			{"type":"message","id":"m2","role":"assistant","content":[{"type":"output_text","text":"Lyon."},{"type":"refusal","refusal":"No."}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if r.ID != "resp_1" || r.Model != "m" || r.Finish != "max_output_tokens" || r.Text() != "Paris. Lyon." {
		t.Errorf("%+v, text %q", r, r.Text())
	}
	compare(t, lines(r.Parts), []string{
		`text output.0.content.0.text Paris.`, `logprobs output.0.content.0.logprobs`, `tool_result output.1.output rain`,
		`image output.2.result`, `unknown output.3`, `text output.4.content.0.text Lyon.`, `refusal output.4.content.1.refusal No.`,
		`document instructions Be brief.`, `unknown sha256:2d711642b726b044`, "annotation error code\nc\nmessage\nm",
	})
	for _, p := range r.Parts {
		if (p.Message == 1) != strings.HasPrefix(p.Path, "output.") {
			t.Errorf("%s is of choice %d", p.Path, p.Message)
		}
	}
	// What clients show instead of the output is read if it differs.
	r, err = d.Response([]byte(`{"output_text":"something else","output":[{"type":"message","content":[{"type":"output_text","text":"Paris."}]}]}`))
	if err != nil || r.Text() != "Paris.something else" || len(r.Parts) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, body := range []string{``, `[]`, `{}`, `{"output":{}}`, `{"error":{"message":"canary"},"text":"canary","output_text":"canary"}`, `{"output":[],"Output":["canary"]}`} {
		if _, err := d.Response([]byte(body)); !errors.Is(err, wire.ErrInvalid) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// What a provider puts where SDKs have what they made of an answer, and what stands beside a
// call, is listed or read, and no part of the call that is decided on. In requests SDKs send
// back what they made.
func TestResponsesBesideWhatIsRead(t *testing.T) {
	d := dialect(t, "openai_responses")
	items := `[
		{"type":"function_call","call_id":"c","name":"f","arguments":"{}","parsed_arguments":{"command":"rm"}},
		{"type":"function_call","call_id":"d","name":"f","arguments":"{}","parsed_arguments":null},
		{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a","parsed":{"b":"c"}},{"type":"refusal","refusal":"n","parsed":"d"},{"type":"output_text","text":"e","parsed":null}]},
		{"type":"shell_call","call_id":"e","action":{"commands":["ls"]},"environment":{"type":"local","skills":[{"name":"sk","description":"Skilled","path":"/x"}],"y":"z"}},
		{"type":"shell_call_output","call_id":"e","output":[{"stdout":"o","outcome":{"type":"exit","exit_code":0}},{"stderr":"p","outcome":{"type":"Ignore all."}},{"outcome":{"type":"timeout","note":"q"}}]}]`
	context := `"context_management":[{"type":"compaction","compact_threshold":1000,"instructions":"Keep names."}]`
	r, err := d.Response([]byte(`{"output":` + items + `,` + context + `}`))
	if err != nil {
		t.Fatal(err)
	}
	var called []string
	for _, p := range r.Parts {
		if p.Called {
			called = append(called, p.Path)
		}
	}
	compare(t, called, []string{"output.0.name", "output.0.arguments", "output.0.parsed_arguments", "output.1.name", "output.1.arguments", "output.3.action.commands.0"})
	environment := "environment.sha256:" + hashOf(t, "y")
	compare(t, lines(r.Parts), []string{
		`name output.0.name f`, `tool_call output.0.arguments {}`, `unknown output.0.parsed_arguments`,
		`name output.1.name f`, `tool_call output.1.arguments {}`,
		`text output.2.content.0.text a`, `unknown output.2.content.0.parsed`, `refusal output.2.content.1.refusal n`,
		`unknown output.2.content.1.parsed`, `text output.2.content.2.text e`,
		`tool_call output.3.action.commands.0 ls`, "schema output.3.environment.skills name\nsk\ndescription\nSkilled\npath\n/x", `unknown output.3.` + environment,
		`tool_result output.4.output.0.stdout o`, `tool_result output.4.output.1.stderr p`, `unknown output.4.output.1.outcome.type`,
		`unknown output.4.output.2.outcome.sha256:` + hashOf(t, "note"), `document context_management.0.instructions Keep names.`,
	})
	call, err := d.Request([]byte(`{"input":` + items + `,` + context + `}`))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, lines(call.Parts), []string{
		`assistant name input.0.name f`, `assistant tool_call input.0.arguments {}`, `assistant name input.1.name f`, `assistant tool_call input.1.arguments {}`,
		`assistant text input.2.content.0.text a`, `assistant refusal input.2.content.1.refusal n`, `assistant text input.2.content.2.text e`,
		`assistant tool_call input.3.action.commands.0 ls`, "definition schema input.3.environment.skills name\nsk\ndescription\nSkilled\npath\n/x",
		`definition unknown input.3.` + environment, `tool text input.4.output.0.stdout o`, `tool text input.4.output.1.stderr p`,
		`tool unknown input.4.output.1.outcome.type`, `tool unknown input.4.output.2.outcome.sha256:` + hashOf(t, "note"),
		`definition text context_management.0.instructions Keep names.`,
	})
	// Read whole or in a stream, it is the same.
	for i, item := range gjson.Parse(items).Array() {
		e, err := d.Events().Event(wire.Frame{Data: []byte(fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i, item.Raw))})
		if unknown := strings.Contains(item.Raw, `{"command"`) || strings.Contains(item.Raw, "parsed\":{") || i > 2; err != nil || unknown != (len(e.Unknown) > 0) {
			t.Errorf("item %d: unknown %v, %v", i, e.Unknown, err)
		}
		for _, delta := range e.Deltas {
			if delta.Called == (delta.Kind == wire.Schema) && len(e.Calls) > 0 {
				t.Errorf("item %d: %+v", i, delta)
			}
		}
	}
}

// readStream reads the frames of a stream and returns its text by kind.
func readStream(t testing.TB, stream []byte) (texts map[wire.Kind]string, events []wire.Event) {
	t.Helper()
	d := dialect(t, "openai_responses")
	reader := d.Events()
	texts = make(map[wire.Kind]string)
	for _, f := range split(t, d, stream) {
		e, err := reader.Event(f)
		if err != nil {
			t.Fatalf("%s: %v", f.Raw, err)
		}
		events = append(events, e)
		for _, delta := range e.Deltas {
			if delta.Choice != 0 {
				t.Fatalf("choice %d", delta.Choice)
			}
			texts[delta.Kind] += delta.Text
		}
	}
	return texts, events
}

func example(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/examples/openai_responses/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A stream says what its last frame says as a whole, and says it once.
func TestResponsesStreamEqualsWhole(t *testing.T) {
	for _, name := range []string{"streaming.stream", "agent.stream", "incomplete.stream"} {
		stream := example(t, name)
		texts, events := readStream(t, stream)
		frames := split(t, dialect(t, "openai_responses"), stream)
		whole, err := dialect(t, "openai_responses").Response([]byte(gjson.GetBytes(frames[len(frames)-1].Data, "response").Raw))
		if err != nil {
			t.Fatal(err)
		}
		want := make(map[wire.Kind]string)
		for _, p := range whole.Parts {
			want[p.Kind] += p.Text
		}
		if texts[wire.Text] != whole.Text() || !maps.Equal(texts, want) {
			t.Errorf("%s: streamed %q, whole %q", name, texts, want)
		}
		for i, e := range events {
			if last := i == len(events)-1; e.Done != last || (len(e.Finished) == 1) != last || e.Err || len(e.Unknown) > 0 {
				t.Errorf("%s, frame %d: %+v", name, i, e)
			}
		}
		if events[0].ID != whole.ID || events[len(events)-1].Finish != whole.Finish {
			t.Errorf("%s: %+v", name, events[0])
		}
	}
}

// Text that stands only in a frame that should repeat what came before is read all the
// same, wherever an upstream puts it.
func TestResponsesCopiesThatDiffer(t *testing.T) {
	stream := string(example(t, "streaming.stream"))
	const said = "Hi there! How can I assist you today?"
	for n := range strings.Count(stream, said) {
		at := 0
		for range n {
			at += strings.Index(stream[at:], said) + len(said)
		}
		at += strings.Index(stream[at:], said)
		for put, want := range map[string]string{
			"EVIL":         said + "EVIL",
			said + " EVIL": said + " EVIL",
			"EVIL" + said:  said + "EVIL" + said,
			said[:5]:       said + said[:5],
			said:           said,
			"":             said,
		} {
			hostile := stream[:at] + put + stream[at+len(said):]
			texts, _ := readStream(t, []byte(hostile))
			if got := texts[wire.Text]; !strings.HasPrefix(got, want) {
				t.Errorf("copy %d as %q reads as %q", n, put, got)
			}
		}
	}
	// In frames whose text clients take although nothing like it should be there.
	for _, frame := range []string{
		`{"type":"response.in_progress","response":{"output":[{"type":"message","content":[{"type":"output_text","text":"EVIL"}]}]}}`,
		`{"type":"response.in_progress","response":{"output":[],"output_text":"EVIL"}}`,
		`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"EVIL"}]}}`,
		`{"type":"response.content_part.added","output_index":0,"content_index":0,"part":{"type":"output_text","text":"EVIL"}}`,
		`{"type":"response.output_text.done","output_index":0,"content_index":0,"text":"EVIL"}`,
		`{"type":"response.content_part.done","output_index":7,"content_index":3,"part":{"type":"text","text":"EVIL"}}`,
		`{"type":"response.output_item.done","output_index":"x","item":{"role":"assistant","content":"EVIL"}}`,
		`{"type":"response.completed","response":{"output":[{},{"type":"message","content":[{"type":"output_text","text":"EVIL"}]}]}}`,
		`{"type":"response.audio.transcript.delta","delta":"EVIL"}`,
	} {
		if texts, _ := readStream(t, wire.AppendEvent(nil, []byte(frame))); texts[wire.Text] != "EVIL" {
			t.Errorf("%s reads as %q", frame, texts)
		}
	}
	// Items in another order are another answer.
	two := `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"A"}|{"type":"response.output_text.delta","output_index":2,"content_index":0,"delta":"B"}|`
	completed := `{"type":"response.completed","response":{"output":[{"type":"message","content":[{"type":"output_text","text":"%s"}]},{"type":"message","content":[{"type":"output_text","text":"%s"}]}]}}`
	for order, want := range map[string]string{fmt.Sprintf(completed, "A", "B"): "AB", fmt.Sprintf(completed, "B", "A"): "ABBA"} {
		var stream []byte
		for _, f := range strings.Split(two+order, "|") {
			stream = wire.AppendEvent(stream, []byte(f))
		}
		if texts, _ := readStream(t, stream); texts[wire.Text] != want {
			t.Errorf("%s reads as %q", order, texts)
		}
	}
}

func TestResponsesEvents(t *testing.T) {
	type delta = wire.Delta
	for _, test := range []struct {
		data string
		want wire.Event
	}{
		{`{"type":"response.refusal.delta","output_index":0,"content_index":0,"delta":"No"}`, wire.Event{Deltas: []delta{{Kind: wire.RefusalText, Text: "No"}}}},
		{`{"type":"response.reasoning_text.delta","output_index":0,"content_index":0,"delta":"hm"}`, wire.Event{Deltas: []delta{{Kind: wire.Reasoning, Text: "hm"}}}},
		{`{"type":"response.shell_call_output_content.delta","output_index":0,"command_index":0,"delta":{"stdout":"a","stderr":"b"}}`, wire.Event{Deltas: []delta{{Kind: wire.ToolResult, Text: "a"}, {Kind: wire.ToolResult, Text: "b"}}, Piece: true}},
		{`{"type":"response.output_text.delta","delta":"a","logprobs":[{"token":"a"}],"x":1}`, wire.Event{Deltas: []delta{{Kind: wire.Text, Text: "a"}, {Kind: wire.Logprobs}}, Unknown: []string{"sha256:2d711642b726b044"}}},
		{`{"type":"response.image_generation_call.partial_image","partial_image_b64":"AA"}`, wire.Event{Deltas: []delta{{Kind: wire.Image}}}},
		{`{"type":"response.hologram.delta","delta":"?"}`, wire.Event{Unknown: []string{"frame.sha256:4a58f9b07e9ac654"}}},
		{`{"delta":"?"}`, wire.Event{Unknown: []string{"frame.sha256:e3b0c44298fc1c14"}}},
		{`{"type":"response.output_item.added","output_index":0,"item":{"type":"hologram"}}`, wire.Event{Unknown: []string{"item"}}},
		{`{"type":"response.output_item.added","output_index":0,"item":{"type":"computer_call","action":{"type":"click"}}}`, wire.Event{Calls: []wire.CallDelta{{}}}},
		{`{"type":"response.output_item.added","output_index":0,"item":{"type":"shell_call","environment":{"type":"local"}}}`, wire.Event{Calls: []wire.CallDelta{{}}}},
		{`{"type":"response.output_item.added","output_index":0,"item":{"type":"shell_call","environment":{"type":"container_reference"}}}`, wire.Event{Calls: []wire.CallDelta{{}}}},
		{`{"type":"response.output_item.done","output_index":0,"item":{"type":"tool_search_call","execution":"server"}}`, wire.Event{Calls: []wire.CallDelta{{}}}},
		{`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{"}`, wire.Event{Calls: []wire.CallDelta{{}}, Deltas: []delta{{Kind: wire.Arguments, Text: "{", Called: true}}}},
		{`{"type":"keepalive","sequence_number":3}`, wire.Event{}},
		{`{"type":"error","code":"c","message":"m","param":null}`, wire.Event{Err: true, Deltas: []delta{{Kind: wire.Annotation, Text: "m"}}}},
		{`{"type":"error","error":{"message":"m"}}`, wire.Event{Err: true}},
		{`{"error":{"message":"m"}}`, wire.Event{Err: true}},
		{`[DONE]`, wire.Event{Done: true}},
	} {
		got := event(t, "openai_responses", test.data)
		if !slices.Equal(got.Deltas, test.want.Deltas) || !slices.Equal(got.Unknown, test.want.Unknown) ||
			len(got.Calls) > 0 != (len(test.want.Calls) > 0) || got.Done != test.want.Done || got.Err != test.want.Err {
			t.Errorf("%s\n got %+v\nwant %+v", test.data, got, test.want)
		}
	}
	frames, _ := decode(t, "event: response.completed\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n")
	if e, err := dialect(t, "openai_responses").Events().Event(frames[0]); err != nil || e.Done || !slices.Equal(e.Unknown, []string{"event"}) {
		t.Errorf("%+v, %v", e, err)
	}
	for _, data := range []string{`canary`, `{"type":"response.output_text.delta","delta":"a","Delta":"canary"}`, `{}{}`} {
		if _, err := dialect(t, "openai_responses").Events().Event(wire.Frame{Data: []byte(data)}); !errors.Is(err, wire.ErrInvalid) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", data, err)
		}
	}
}

var responsesPlaces = map[string]wire.Place{"everywhere": wire.Everywhere, "refusal": wire.OnlyRefusal, "content": wire.OnlyContent}

// responsesKind is what a refusal is read as. It stands in one part of a message: clients
// throw at a part of the type refusal, show nothing of it, or show a text beside it too.
func responsesKind(place wire.Place) wire.Kind {
	if place == wire.OnlyRefusal {
		return wire.RefusalText
	}
	return wire.Text
}

func TestResponsesRefusals(t *testing.T) {
	d := dialect(t, "openai_responses")
	for name, place := range responsesPlaces {
		r := wire.Refusal{ID: "KRN-1", Model: "gpt-x", Text: declined, Created: 1700000000, Place: place, Choices: 3}
		kind := responsesKind(place)
		body := d.Refusal(r)
		golden(t, "openai_responses_refusal_"+name+".json", body)
		whole, err := d.Response(body)
		if err != nil || whole.Text() != declined || whole.Finish != "completed" || whole.Model != "gpt-x" || len(whole.Parts) != 1 || whole.Parts[0].Kind != kind {
			t.Errorf("%s: %+v, %v", name, whole, err)
		}
		stream := d.Stream().Refusal(r)
		golden(t, "openai_responses_refusal_"+name+".sse", stream)
		checkResponsesStream(t, stream)
		if texts, _ := readStream(t, stream); texts[kind] != declined || len(texts) != 1 {
			t.Errorf("%s: %q", name, texts)
		}
		if r.Place = ""; place != wire.OnlyRefusal && (!bytes.Equal(d.Refusal(r), body) || !bytes.Equal(d.Stream().Refusal(r), stream)) {
			t.Errorf("%s is not what no place is", name)
		}
	}
	golden(t, "openai_responses_error.json", d.Error(wire.Error{Status: 403, Code: "policy_refusal", Message: declined}))
	golden(t, "openai_responses_error.sse", d.Stream().Error(wire.Error{Status: 403, Code: "policy_refusal", Message: declined}))
	if _, events := readStream(t, d.Stream().Error(wire.Error{Status: 503})); len(events) != 1 || !events[0].Err || events[0].Done {
		t.Errorf("an error reads as %+v", events)
	}
}

// A stream can be refused behind each of its frames. What the client has then is a whole
// stream by the grammar of the API, in which everything that was sent is kept.
func TestResponsesRefusedAnywhere(t *testing.T) {
	d := dialect(t, "openai_responses")
	for _, name := range []string{"agent.stream", "streaming.stream"} {
		frames := split(t, d, example(t, name))
		for place, as := range responsesPlaces {
			for n := range frames[:len(frames)-1] {
				writer := d.Stream()
				var sent []byte
				for _, f := range frames[:n] {
					writer.Sent(f)
					sent = append(sent, f.Raw...)
				}
				before, _ := readStream(t, sent)
				rest := writer.Refusal(wire.Refusal{ID: "KRN-1", Model: "m", Text: declined, Place: as})
				stream := slices.Concat(sent, rest)
				checkResponsesStream(t, stream)
				after, events := readStream(t, stream)
				before[responsesKind(as)] += declined
				if n == 0 {
					delete(before, wire.Document)
				}
				if after[wire.Text] != before[wire.Text] || after[wire.RefusalText] != before[wire.RefusalText] || after[wire.Reasoning] != before[wire.Reasoning] || after[wire.Arguments] != before[wire.Arguments] || after[wire.Annotation] != before[wire.Annotation] {
					t.Errorf("%s, %s, frame %d: the client reads %q, had %q", name, place, n, after, before)
				}
				if end := events[len(events)-1]; !end.Done || end.Err {
					t.Errorf("%s, frame %d ends as %+v", name, n, end)
				}
				if t.Failed() {
					t.Fatalf("%s", stream)
				}
			}
		}
	}
	// Annotations of a text that is cut are kept.
	writer := d.Stream()
	for _, f := range split(t, d, example(t, "agent.stream"))[:28] {
		writer.Sent(f)
	}
	if rest := string(writer.Refusal(wire.Refusal{ID: "KRN-1", Text: declined})); strings.Count(rest, `"title":"Paris"`) != 3 {
		t.Errorf("annotations are gone: %s", rest)
	}
	// One of them to look at.
	writer = d.Stream()
	for _, f := range split(t, d, example(t, "agent.stream"))[:27] {
		writer.Sent(f)
	}
	golden(t, "openai_responses_refusal_begun.sse", writer.Refusal(wire.Refusal{ID: "KRN-1", Model: "m", Text: declined}))
}

// checkResponsesStream checks a stream by the grammar of the API, as the strictest of its
// clients does: order, numbers, identities, and an end that repeats what was sent.
func checkResponsesStream(t *testing.T, stream []byte) {
	t.Helper()
	type openItem struct {
		item  gjson.Result
		parts []string
		open  int // parts that are not done
		done  string
	}
	var items []*openItem
	sequence, id, ended := int64(-1), "", ""
	for i, f := range split(t, dialect(t, "openai_responses"), stream) {
		e := gjson.ParseBytes(f.Data)
		kind := e.Get("type").Str
		if f.Event != kind || !gjson.ValidBytes(f.Data) {
			t.Fatalf("frame %d: %s", i, f.Raw)
		}
		if n := e.Get("sequence_number").Int(); n <= sequence {
			t.Fatalf("frame %d: sequence_number %d behind %d", i, n, sequence)
		} else {
			sequence = n
		}
		if ended != "" {
			t.Fatalf("%s behind %s", kind, ended)
		}
		if (i == 0) != (kind == "response.created") || i == 0 && !e.Get("response.output").IsArray() {
			t.Fatalf("frame %d is %s", i, kind)
		}
		var at *openItem
		if index := e.Get("output_index"); index.Exists() && kind != "response.output_item.added" {
			if int(index.Int()) >= len(items) {
				t.Fatalf("%s before its item", f.Data)
			}
			if at = items[index.Int()]; at.done != "" {
				t.Fatalf("%s behind the end of its item", f.Data)
			}
			if itemID := e.Get("item_id"); itemID.Exists() && itemID.Str != at.item.Get("id").Str {
				t.Fatalf("%s: item %s", f.Data, at.item.Raw)
			}
		}
		switch {
		case kind == "response.output_item.added":
			if e.Get("output_index").Int() != int64(len(items)) || e.Get("item.id").Str == "" {
				t.Fatalf("%s as item %d", f.Data, len(items))
			}
			items = append(items, &openItem{item: e.Get("item")})
		case kind == "response.output_item.done":
			if at.open > 0 || e.Get("item.id").Str != at.item.Get("id").Str || e.Get("item.type").Str != at.item.Get("type").Str {
				t.Fatalf("%s ends %s with %d open parts", f.Data, at.item.Raw, at.open)
			}
			at.done = e.Get("item").Raw
		case strings.HasSuffix(kind, "_part.added"):
			n := e.Get("content_index").Int() + e.Get("summary_index").Int()
			if n != int64(len(at.parts)) {
				t.Fatalf("%s as part %d", f.Data, len(at.parts))
			}
			at.parts, at.open = append(at.parts, ""), at.open+1
		case strings.HasSuffix(kind, "_part.done"):
			n := e.Get("content_index").Int() + e.Get("summary_index").Int()
			if at.parts[n] == "done" {
				t.Fatalf("%s twice", f.Data)
			}
			at.parts[n] = "done"
			at.open--
		case kind == "response.completed", kind == "response.incomplete", kind == "response.failed":
			ended = kind
			response := e.Get("response")
			if response.Get("id").Str != id || "response."+response.Get("status").Str != kind || !response.Get("usage").IsObject() {
				t.Fatalf("%s ends %s", f.Data, id)
			}
			if int(response.Get("output.#").Int()) != len(items) {
				t.Fatalf("%s has other items than %d", f.Data, len(items))
			}
			for n, item := range items {
				final := response.Get(fmt.Sprintf("output.%d", n))
				if item.done == "" && kind == "response.completed" || item.done != "" && !sameJSON(t, []byte(item.done), final.Raw) || final.Get("id").Str != item.item.Get("id").Str {
					t.Fatalf("item %d ended as %s, the answer has %s", n, item.done, final.Raw)
				}
			}
		}
		if response := e.Get("response.id"); response.Exists() {
			if id != "" && id != response.Str {
				t.Fatalf("the answer changes its id from %s to %s", id, response.Str)
			}
			id = response.Str
		}
	}
	if ended == "" {
		t.Fatal("the stream has no end")
	}
}

// A half answer in JSON is not handed to clients as a completed one, which they would
// parse. A call that the client runs is never completed by a refusal.
func TestResponsesHalfAnswers(t *testing.T) {
	d := dialect(t, "openai_responses")
	end := func(n int, name string, place wire.Place, change func(string) string) gjson.Result {
		writer := d.Stream()
		for _, f := range split(t, d, []byte(change(string(example(t, name)))))[:n] {
			writer.Sent(f)
		}
		rest := split(t, d, writer.Refusal(wire.Refusal{ID: "KRN-1", Text: declined, Place: place}))
		for _, f := range rest {
			if gjson.GetBytes(f.Data, "item.type").Str == "function_call" {
				t.Errorf("a call was closed: %s", f.Data)
			}
		}
		return gjson.ParseBytes(rest[len(rest)-1].Data).Get("response")
	}
	same := func(s string) string { return s }
	json := func(s string) string {
		return strings.ReplaceAll(s, `"text":{"format":{"type":"text"}`, `"text":{"format":{"type":"json_schema"}`)
	}
	untold := func(s string) string {
		return strings.ReplaceAll(s, `"text":{"format":{"type":"text"}`, `"text":{"format":{}`)
	}
	const completed, incomplete, text, refusal = "completed", "incomplete", "output_text", "refusal"
	for name, test := range map[string]struct {
		got          gjson.Result
		status, part string
	}{
		"prose":                      {end(8, "streaming.stream", wire.OnlyRefusal, same), completed, refusal},
		"prose, everywhere":          {end(8, "streaming.stream", wire.Everywhere, same), completed, text},
		"prose, content":             {end(8, "streaming.stream", wire.OnlyContent, same), completed, text},
		"prose, untold":              {end(8, "streaming.stream", wire.Everywhere, untold), completed, text},
		"nothing in JSON":            {end(2, "streaming.stream", wire.OnlyRefusal, json), completed, refusal},
		"nothing in JSON, untold":    {end(2, "streaming.stream", wire.OnlyRefusal, untold), completed, refusal},
		"half JSON":                  {end(8, "streaming.stream", wire.OnlyRefusal, json), incomplete, refusal},
		"half JSON, untold":          {end(8, "streaming.stream", wire.OnlyRefusal, untold), incomplete, refusal},
		"half call":                  {end(41, "agent.stream", wire.Everywhere, same), incomplete, text},
		"half call, refusal":         {end(41, "agent.stream", wire.OnlyRefusal, same), incomplete, refusal},
		"JSON for a stored prompt":   {end(2, "streaming.stream", wire.Everywhere, json), completed, refusal},
		"half JSON for such a one":   {end(8, "streaming.stream", wire.Everywhere, json), incomplete, refusal},
		"half JSON for it, content":  {end(8, "streaming.stream", wire.OnlyContent, json), incomplete, refusal},
		"half JSON for it, no place": {end(8, "streaming.stream", "", json), incomplete, refusal},
	} {
		reason := map[string]string{incomplete: "content_filter"}[test.status]
		if test.got.Get("status").Str != test.status || test.got.Get("incomplete_details.reason").Str != reason {
			t.Errorf("%s: %s", name, test.got.Raw)
		}
		items := test.got.Get("output").Array()
		parts := items[len(items)-1].Get("content").Array()
		part := parts[len(parts)-1]
		if part.Get("type").Str != test.part || part.Get("text").Str+part.Get("refusal").Str != declined {
			t.Errorf("%s: the refusal is %s", name, part.Raw)
		}
	}
}

// The answer's own members come back as upstream gave them, and ours do not appear.
func TestResponsesRefusalKeepsTheEcho(t *testing.T) {
	d := dialect(t, "openai_responses")
	writer := d.Stream()
	frames := split(t, d, example(t, "agent.stream"))
	for _, f := range frames[:30] {
		writer.Sent(f)
	}
	rest := split(t, d, writer.Refusal(wire.Refusal{ID: "KRN-1", Model: "other", Text: declined}))
	got, want := gjson.GetBytes(rest[len(rest)-1].Data, "response"), gjson.GetBytes(frames[0].Data, "response")
	for _, member := range []string{"id", "model", "instructions", "tools", "metadata", "created_at", "tool_choice", "text", "reasoning", "temperature"} {
		if !sameJSON(t, []byte(got.Get(member).Raw), want.Get(member).Raw) {
			t.Errorf("%s is %s, was %s", member, got.Get(member).Raw, want.Get(member).Raw)
		}
	}
}

// What is kept of a stream is bounded. The refusal is still a legal rest.
func TestResponsesKeepLittle(t *testing.T) {
	d := dialect(t, "openai_responses")
	writer := d.Stream()
	frames := split(t, d, example(t, "streaming.stream"))
	for _, f := range frames[:5] {
		writer.Sent(f)
	}
	long := wire.AppendEvent(nil, []byte(`{"type":"response.output_text.delta","sequence_number":6,"output_index":0,"content_index":0,"delta":"`+strings.Repeat("word ", 1<<20)+`"}`))
	for range 4 {
		writer.Sent(split(t, d, long)[0])
	}
	rest := split(t, d, writer.Refusal(wire.Refusal{ID: "KRN-1", Text: declined}))
	end := gjson.ParseBytes(rest[len(rest)-1].Data)
	if len(rest) != 7 || end.Get("type").Str != "response.incomplete" || end.Get("response.output.0.content.0.text").Str != declined {
		t.Errorf("%d frames, %.300s", len(rest), end.Raw)
	}
	if at := gjson.GetBytes(rest[0].Data, "output_index"); at.Int() != 1 {
		t.Errorf("the refusal is item %s", at.Raw)
	}
}

// However the network cuts a stream, it reads alike.
func TestResponsesSplits(t *testing.T) {
	stream := example(t, "agent.stream")
	d := dialect(t, "openai_responses")
	whole := fmt.Sprint(readStream(t, stream))
	rapid.Check(t, func(rt *rapid.T) {
		s, reader := wire.NewSplitter(d.Framing(), 0), d.Events()
		texts, events := make(map[wire.Kind]string), []wire.Event(nil)
		for at := 0; at < len(stream); {
			n := min(rapid.IntRange(1, 700).Draw(rt, "n"), len(stream)-at)
			if err := s.Push(stream[at : at+n]); err != nil {
				rt.Fatal(err)
			}
			at += n
			for f, ok := s.Next(); ok; f, ok = s.Next() {
				e, err := reader.Event(f)
				if err != nil {
					rt.Fatal(err)
				}
				events = append(events, e)
				for _, delta := range e.Deltas {
					texts[delta.Kind] += delta.Text
				}
			}
		}
		if got := fmt.Sprint(texts, events); got != strings.TrimSuffix(whole, "\n") {
			rt.Fatalf("got %s, want %s", got, whole)
		}
	})
}

// FuzzResponsesRequest: nothing panics, parts lie where they say, and what was redacted is
// still a body that can be read.
func FuzzResponsesRequest(f *testing.F) {
	f.Add([]byte(responsesCall))
	f.Add([]byte(`{"input":[{"type":"reasoning","summary":[{"text":"a"}],"x":1},{"id":"x"},{"type":5},{}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		d := dialect(t, "openai_responses")
		r, err := d.Request(body)
		if err != nil {
			if !errors.Is(err, wire.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		var redacted []wire.Part
		for _, p := range r.Parts {
			if p.Start < 0 || p.Start+p.Bytes > len(body) {
				t.Fatalf("%+v", p)
			}
			if p.Text != "" {
				redacted = append(redacted, p)
			}
		}
		if _, err := d.Request(wire.Redact(body, redacted, "removed")); err != nil {
			t.Fatalf("redacted: %v", err)
		}
		if r.Previous == "" {
			return
		}
		again, err := d.Request(wire.WithPrevious(body, r.HistoryPath, "resp_1"))
		if err != nil || again.Previous != "resp_1" {
			t.Fatalf("goes on from %q, %v", again.Previous, err)
		}
	})
}

// FuzzResponsesStream: nothing panics, and whatever was sent, the rest is valid frames
// that end the stream.
func FuzzResponsesStream(f *testing.F) {
	stream, err := os.ReadFile("testdata/examples/openai_responses/agent.stream")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(stream)
	f.Add([]byte(`data: {"type":"response.created","response":{"a":1,"a":2}}` + "\n\n" + `data: {"type":"response.output_item.added","item":{"type":"message"},"output_index":-4}` + "\n\n" +
		`data: {"type":"response.output_text.delta","output_index":-4,"content_index":9,"delta":5}` + "\n\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		d := dialect(t, "openai_responses")
		s, reader, writer := wire.NewSplitter(d.Framing(), 0), d.Events(), d.Stream()
		if s.Push(stream) != nil {
			return
		}
		for frame, ok := s.Next(); ok; frame, ok = s.Next() {
			if _, err := reader.Event(frame); err != nil && !errors.Is(err, wire.ErrInvalid) {
				t.Fatal(err)
			}
			writer.Sent(frame)
		}
		rest := split(t, d, writer.Refusal(wire.Refusal{ID: "KRN-1", Text: "declined"}))
		for _, frame := range rest {
			if !json.Valid(frame.Data) || frame.Event != gjson.GetBytes(frame.Data, "type").Str {
				t.Fatalf("%s", frame.Data)
			}
		}
		// It may repeat members of upstream's that our reader refuses, but not more.
		end := rest[len(rest)-1]
		if e, err := d.Events().Event(end); err == nil && !e.Done || !strings.Contains(string(end.Data), "declined") {
			t.Fatalf("%+v, %v: %s", e, err, end.Data)
		}
	})
}

func TestResponsesAsk(t *testing.T) {
	d := dialect(t, "openai_responses")
	asker, ok := d.(wire.Asker)
	if !ok {
		t.Fatal("the dialect cannot ask")
	}
	history := []wire.Message{{Role: wire.User, Text: "a"}, {Role: wire.Assistant, Text: "b"}}
	for want, ask := range map[string]wire.Ask{
		`{"input":[{"role":"user","content":"Hi \"you\"\n<b>"}],"store":false}`: {Prompt: "Hi \"you\"\n<b>"},
		`{"model":"m","instructions":"s","input":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}],"store":false,"stream":true}`: {
			Model: "m", System: "s", History: history, Prompt: "c", Stream: true,
		},
	} {
		call := asker.Ask(ask)
		r, err := d.Request(call.Body)
		if !sameJSON(t, call.Body, want) || err != nil || r.Prompt() != ask.Prompt || r.Stream != ask.Stream || len(call.Header) > 0 {
			t.Errorf("got %s, want %s, read as %+v, %v", call.Body, want, r, err)
		}
		if matched, ok := wire.Match(&url.URL{Path: call.Path}); !ok || matched.Name() != d.Name() {
			t.Errorf("path %s", call.Path)
		}
	}
	if name, value := asker.Authorize("k"); name != "Authorization" || value != "Bearer k" {
		t.Errorf("%s: %s", name, value)
	}
}

func BenchmarkResponsesFrame(b *testing.B) {
	d := dialect(b, "openai_responses")
	reader, writer := d.Events(), d.Stream()
	for _, f := range split(b, d, example(b, "streaming.stream"))[:4] {
		writer.Sent(f)
	}
	f := wire.Frame{Data: []byte(`{"type":"response.output_text.delta","sequence_number":5,"item_id":"msg_67c9fdcf37fc8190ba82116e33fb28c507b8b0ad4e5eb654","output_index":0,"content_index":0,"delta":" there","logprobs":[],"obfuscation":"xxxxxxxxxx"}`)}
	b.ReportAllocs()
	b.SetBytes(int64(len(f.Data)))
	for b.Loop() {
		if e, err := reader.Event(f); err != nil || len(e.Deltas) != 1 {
			b.Fatal(e, err)
		}
		writer.Sent(f)
	}
}

// BenchmarkResponsesStream is a whole stream of every kind of frame.
func BenchmarkResponsesStream(b *testing.B) {
	d := dialect(b, "openai_responses")
	frames := split(b, d, example(b, "agent.stream"))
	b.ReportAllocs()
	for b.Loop() {
		reader, writer := d.Events(), d.Stream()
		for _, f := range frames {
			if _, err := reader.Event(f); err != nil {
				b.Fatal(err)
			}
			writer.Sent(f)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(frames)), "ns/frame")
}
