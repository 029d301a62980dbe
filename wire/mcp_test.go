package wire_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/wire"
)

func TestMCPMatch(t *testing.T) {
	for path, want := range map[string]string{
		"/mcp": "mcp", "/MCP/": "mcp", "//base/./mcp": "mcp", "/v1/mcp": "mcp",
		"/mcp/tools": "", "/xmcp": "", "/messages": "", "/sse": "",
	} {
		if got := nameOf(wire.Match(&url.URL{Path: path})); got != want {
			t.Errorf("%q is %q, want %q", path, got, want)
		}
	}
	for body, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`:                "mcp",
		`{"JSONRPC":"2.0","id":1,"Method":"tools/call"}`:                            "mcp",
		"\xef\xbb\xbf" + `[{"jsonrpc":"2.0","method":"notifications/initialized"}]`: "mcp",
		`{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[]}`:                  "",
		`{"jsonrpc":"1.0","id":1,"method":"tools/call"}`:                            "",
		`{"id":1,"method":"tools/call"}`:                                            "",
		`[]`:                                                                        "", `[1]`: "", `"tools/call"`: "",
	} {
		if got := nameOf(wire.Resembles([]byte(body))); got != want {
			t.Errorf("%s is %q, want %q", body, got, want)
		}
	}
	server, ok := dialect(t, "mcp").(wire.ToolServer)
	if !ok || !server.Listens("GET") || server.Listens("DELETE") || server.Listens("POST") || server.SessionHeader() != "Mcp-Session-Id" {
		t.Errorf("%T is no server of tools that is listened to by GET", server)
	}
}

// hashed stands in a path for an unknown name.
func hashed(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "sha256:" + hex.EncodeToString(sum[:8])
}

func mcpCall(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
}

func mcpResult(result string) string { return `{"jsonrpc":"2.0","id":1,"result":` + result + `}` }

func TestMCPRequest(t *testing.T) {
	for name, test := range map[string]struct {
		body  string
		parts []string
	}{
		"nothing": {"", nil},
		"arguments": {
			mcpCall("tools/call", `{"name":"kill","arguments":{"a":{"b":["x",{"c":"y"}]},"n":1}}`),
			[]string{"tool name params.name kill", "user tool_call params.arguments a\nb\nx\nc\ny\nn"},
		},
		"arguments that are a string": {mcpCall("tools/call", `{"arguments":"x"}`), []string{"user tool_call params.arguments x"}},
		"a notification":              {`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":2,"message":"half"}}`, []string{"user text params.message half"}},
		"a form": {
			mcpResult(`{"action":"accept","content":{"name":"Ada","tags":["x"],"type":"text2"}}`),
			[]string{"tool text result.content name\nAda\ntags\nx\ntype\ntext2"},
		},
		"a form with a type": {mcpResult(`{"action":"accept","content":{"type":"text","name":"Ada"}}`), []string{"tool name result.content.name Ada"}},
		"roots":              {mcpResult(`{"roots":[{"uri":"file:///a","name":"A"}]}`), []string{"tool name result.roots.0.uri file:///a", "tool name result.roots.0.name A"}},
		"an error":           {`{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"User rejected","data":"why"}}`, []string{"tool text error.message User rejected", "tool text error.data why"}},
		"a request and an answer in one": {
			`{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"result":{"content":[{"type":"text","text":"x"}]}}`,
			[]string{"user text result.content.0.text x"},
		},
		"sampling that only a server asks for": {
			mcpCall("sampling/createMessage", `{"systemPrompt":"obey","tools":[{"name":"t","description":"d"}]}`),
			[]string{"user text params.systemPrompt obey", "user name params.tools.0.name t", "user text params.tools.0.description d"},
		},
		"an unknown method":   {mcpCall("vendor/do", `{"text":"x"}`), []string{"user unknown params"}},
		"positional params":   {mcpCall("tools/call", `["x"]`), []string{"user unknown params"}},
		"unknown members":     {mcpCall("ping", `{"system":"x","_meta":{"system":"y","progressToken":{"a":1}}}`), []string{"user unknown params." + hashed("system"), "user unknown params._meta." + hashed("system"), "user unknown params._meta.progressToken"}},
		"null is nothing":     {mcpCall("tools/list", `null`), nil},
		"an unknown block":    {mcpResult(`{"content":[{"type":"video","text":"x","data":"AA"}]}`), []string{"tool unknown result.content.0.type", "tool text result.content.0.text x", "tool image result.content.0.data"}},
		"a tool in a message": {mcpResult(`{"content":{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":"rain"}]}}`), []string{"tool text result.content.content.0.text rain"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := dialect(t, "mcp").Request([]byte(test.body))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, lines(r.Parts), test.parts)
			if r.Stream || r.Structured || r.Session != "" || r.Previous != "" {
				t.Errorf("%+v", r)
			}
			for _, p := range r.Parts {
				if raw := test.body[p.Start : p.Start+p.Bytes]; p.Text != "" && p.Kind == wire.Text && p.Earlier || !json.Valid([]byte(raw)) {
					t.Errorf("%s is %s", p.Path, raw)
				}
			}
		})
	}
}

func TestMCPPrompt(t *testing.T) {
	r, err := dialect(t, "mcp").Request([]byte("[" + mcpCall("tools/call", `{"name":"n","arguments":{"a":"ig"}}`) + "," + mcpResult(`{"content":{"type":"text","text":"t"}}`) + "," + mcpCall("prompts/get", `{"arguments":"nore"}`) + "]"))
	if want := "a\nignore"; err != nil || r.Prompt() != want || r.Choices != 2 {
		t.Errorf("%q, %d, %v", r.Prompt(), r.Choices, err)
	}
}

func TestMCPCalls(t *testing.T) {
	body := `[{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"f","arguments":{"x" : 1.0}}},` +
		`{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"name":"g","task":{"ttl":1}}},` +
		`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"h","arguments":"?"}},` +
		`{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"p","arguments":{}}}]`
	d := dialect(t, "mcp")
	r, err := d.Request([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if want := []wire.ToolCall{
		{Key: `"a"`, Name: "f", Arguments: `{"x" : 1.0}`}, {Key: "9007199254740993", Name: "g"}, {Name: "h", Arguments: `"?"`},
	}; !slices.Equal(r.Calls, want) {
		t.Errorf("%+v", r.Calls)
	}
	refusal := wire.Refusal{Text: "Not now.", Reply: r.Reply, Blocked: []wire.BlockedCall{{Key: `"a"`, Note: "Not f."}, {Key: "9007199254740993", Note: "Not g."}}}
	answer := d.Refusal(refusal)
	for path, want := range map[string]string{
		"0.id": "a", "0.result.content.0.text": "Not f.", "0.result.isError": "true", "1.error.message": "Not g.", "2.error.message": "Not now.", "3": "",
	} {
		if got := gjson.GetBytes(answer, path).String(); got != want {
			t.Errorf("%s is %q in %s", path, got, answer)
		}
	}
	stream := d.Stream().Refusal(refusal)
	for _, note := range []string{"Not f.", "Not g.", "Not now."} {
		if bytes.Count(stream, []byte(note)) != 1 {
			t.Errorf("%q in %s", note, stream)
		}
	}
	single, err := d.Request([]byte(mcpCall("tools/call", `{"name":"f"}`)))
	if err != nil || len(single.Calls) != 1 || single.Calls[0].Arguments != "" {
		t.Fatalf("%+v, %v", single.Calls, err)
	}
	one := d.Refusal(wire.Refusal{Text: "No.", Reply: single.Reply, Blocked: []wire.BlockedCall{{Key: single.Calls[0].Key, Note: "Not f."}}})
	if got := gjson.GetBytes(one, "result.content.0.text").Str; got != "Not f." {
		t.Errorf("%s", one)
	}
	if r, err := d.Request([]byte(mcpCall("prompts/get", `{"name":"f"}`))); err != nil || len(r.Calls) > 0 {
		t.Errorf("%+v, %v", r.Calls, err)
	}
}

// What a server says of its tools, in an answer and in a stream.
func TestMCPTools(t *testing.T) {
	yes, no := true, false
	d := dialect(t, "mcp")
	body := []byte(mcpResult(`{"tools":[{"name":"read","description":"d","inputSchema":{"type" : "object"},"annotations":{"readOnlyHint":true,"destructiveHint":false}},` +
		`{"name":"write","annotations":{"readOnlyHint":"yes"}},{"description":"no name"},5]}`))
	want := []wire.ToolDefinition{
		{Name: "read", Description: "d", Schema: []byte(`{"type" : "object"}`), ReadOnly: &yes, Destructive: &no}, {Name: "write"},
	}
	r, err := d.Response(body)
	if err != nil || !reflect.DeepEqual(r.Tools, want) {
		t.Errorf("%+v, %v", r.Tools, err)
	}
	e, err := d.Events().Event(wire.Frame{Data: body})
	if err != nil || !reflect.DeepEqual(e.Tools, want) {
		t.Errorf("%+v, %v", e.Tools, err)
	}
	for _, other := range []string{
		mcpResult(`{"content":[],"tools":[{"name":"f","annotations":{"readOnlyHint":true}}]}`),
		mcpCall("sampling/createMessage", `{"tools":[{"name":"f"}]}`),
	} {
		if r, err := d.Response([]byte(other)); err != nil || len(r.Tools) > 0 {
			t.Errorf("%s: %+v, %v", other, r.Tools, err)
		}
	}
}

func TestMCPInvalidRequests(t *testing.T) {
	many := strings.Repeat(","+mcpCall("ping", "{}"), wire.MaxChoices+1)
	for name, body := range map[string]string{
		"a number": "1", "a batch of numbers": "[1]", "no message": `{"jsonrpc":"2.0"}`, "text": "hello",
		"two calls with one id":      "[" + mcpCall("tools/call", `{"name":"f"}`) + "," + mcpCall("tools/call", `{"name":"g"}`) + "]",
		"a method that is no string": `{"jsonrpc":"2.0","id":1,"method":["tools/call"]}`,
		"id null":                    `{"jsonrpc":"2.0","id":null,"method":"ping"}`,
		"id object":                  `{"jsonrpc":"2.0","id":{},"method":"ping"}`,
		"a method twice":             `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}`,
		"a case variant":             `{"jsonrpc":"2.0","id":1,"method":"ping","Params":{"arguments":"x"}}`,
		"a case variant below":       mcpCall("tools/call", `{"arguments":{},"Arguments":{}}`),
		"too many":                   "[" + many[1:] + "]",
		"NUL":                        mcpCall("tools/call", `{"arguments":"\u0000"}`),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := dialect(t, "mcp").Request([]byte(body))
			if !errors.Is(err, wire.ErrInvalid) || strings.Contains(err.Error(), "tools") || strings.Contains(err.Error(), "hello") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestMCPResponse(t *testing.T) {
	for name, test := range map[string]struct {
		body  string
		parts []string
	}{
		"accepted": {"", nil},
		"tools": {
			mcpResult(`{"tools":[{"name":"n","description":"d","inputSchema":{"type":"object","description":"s"}}]}`),
			[]string{"instruction result.tools.0.name n", "instruction result.tools.0.description d", "instruction result.tools.0.inputSchema type\nobject\ndescription\ns"},
		},
		"a result": {
			mcpResult(`{"content":[{"type":"text","text":"t"},{"type":"audio","data":"AA"}],"structuredContent":{"a":["b"]}}`),
			[]string{"tool_result result.content.0.text t", "audio result.content.1.data", "tool_result result.structuredContent a\nb"},
		},
		"a prompt":         {mcpResult(`{"messages":[{"role":"user","content":{"type":"text","text":"do"}}]}`), []string{"instruction result.messages.0.content.text do"}},
		"an unknown part":  {mcpResult(`{"extra":{"deep":["\u0069gnore"]}}`), []string{"unknown result." + hashed("extra") + " ignore"}},
		"an unknown block": {mcpResult(`{"content":[{"type":"html","text":"t"}]}`), []string{"unknown result.content.0.type html", "tool_result result.content.0.text t"}},
		"short values": {
			`{"jsonrpc":"2.0","id":"1 b","result":{"serverInfo":{"name":"n","version":"1 c","websiteUrl":"https://x.test/a_b"},"requestState":"AA/+==","nextCursor":"2 d",
				"resultType":"complete","messages":[{"role":"user, e","content":{"type":"text","text":"t"}}],
				"content":[{"type":"image","data":"AA","mimeType":"image/png f","size":12,"annotations":{"audience":["user","g h"],"priority":"1 i","lastModified":"2025-01-12T15:00:58Z"}}],
				"_meta":{"progressToken":"3 j"}}}`,
			[]string{
				"tool_result id 1 b", "instruction result.serverInfo.name n", "instruction result.serverInfo.version 1 c", "tool_result result.nextCursor 2 d",
				"instruction result.messages.0.role user, e", "instruction result.messages.0.content.text t",
				"image result.content.0.data", "tool_result result.content.0.mimeType image/png f", "tool_result result.content.0.annotations.audience.1 g h",
				"tool_result result.content.0.annotations.priority 1 i", "tool_result result._meta.progressToken 3 j",
			},
		},
		"words in capabilities": {
			mcpResult(`{"capabilities":{"tools":{"listChanged":true},"experimental":{"plain":["ab_c","4 k"],"5 l":[{"6 m":"7 n"}]}}}`),
			[]string{
				"tool_result result.capabilities." + hashed("experimental") + "." + hashed("5 l") + " 5 l",
				"tool_result result.capabilities." + hashed("experimental") + "." + hashed("plain") + ".1 4 k",
				"tool_result result.capabilities." + hashed("experimental") + "." + hashed("5 l") + ".0." + hashed("6 m") + " 6 m",
				"tool_result result.capabilities." + hashed("experimental") + "." + hashed("5 l") + ".0." + hashed("6 m") + " 7 n",
			},
		},
		"two answers": {
			"[" + mcpResult(`{"content":[{"type":"text","text":"t"}]}`) + `,{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":"m"}}]`,
			[]string{"tool_result 0.result.content.0.text t", "tool_result 1.error.message m"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := dialect(t, "mcp").Response([]byte(test.body))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, lines(r.Parts), test.parts)
			if r.Text() != "" {
				t.Errorf("text %q: no model said it", r.Text())
			}
		})
	}
	for _, body := range []string{"Bad Request", `"x"`, "[1]", `{"a":1}{"b":2}`} {
		if _, err := dialect(t, "mcp").Response([]byte(body)); !errors.Is(err, wire.ErrInvalid) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestMCPEvents(t *testing.T) {
	events := dialect(t, "mcp").Events()
	for i, test := range []struct {
		frame string
		want  wire.Event
	}{
		{": ping\n\n", wire.Event{}},
		{"id: 1\ndata:\n\n", wire.Event{}},
		{"data: " + `{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"l"}}` + "\n\n", wire.Event{Deltas: []wire.Delta{{Kind: wire.ToolResult, Text: "l"}}}},
		{"event: odd\ndata: " + mcpCall("elicitation/create", `{"message":"m","x":{"y":"z"}}`) + "\n\n", wire.Event{
			Deltas: []wire.Delta{{Kind: wire.Instruction, Text: "m"}, {Kind: wire.Instruction, Text: "z"}}, Unknown: []string{"params." + hashed("x")},
		}},
		{"data: " + mcpResult(`{"content":[{"type":"image","data":"AA"}]}`) + "\n\n", wire.Event{Deltas: []wire.Delta{{Kind: wire.Image}}, Silent: map[wire.Kind]int{wire.Image: 4}, Finish: "result", Finished: []int{0}}},
		{"data: [" + mcpResult(`{}`) + `,{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":"m"}}]` + "\n\n", wire.Event{
			Deltas: []wire.Delta{{Kind: wire.ToolResult, Text: "m"}}, Finish: "error", Finished: []int{1, 2},
		}},
		{"data: {\"id\":1,\"id\":2,\"result\":\"\\u0069gnore\"}\n\n", wire.Event{
			Deltas: []wire.Delta{{Kind: wire.ToolResult, Text: "ignore"}}, Unknown: []string{"frame"}, Finish: "error", Finished: []int{3},
		}},
		{"data: ping\n\n", wire.Event{Deltas: []wire.Delta{{Kind: wire.ToolResult, Text: "ping"}}, Unknown: []string{"frame"}}},
		{"data: x\nevent: y\ndata: " + `{"a":"\u0062"}` + "\n\n", wire.Event{
			Deltas: []wire.Delta{{Kind: wire.ToolResult, Text: "x\n" + `{"a":"\u0062"}` + "\nb"}}, Unknown: []string{"frame"}, Finish: "error", Finished: []int{4},
		}},
	} {
		frames, _ := decode(t, test.frame)
		if got, err := events.Event(frames[0]); err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%d: got %+v, %v, want %+v", i, got, err, test.want)
		}
	}
}

// Only what answers a request of the call ends its choice. What some client may take for
// that answer counts as it.
func TestMCPEventsOfACall(t *testing.T) {
	const one, two = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"f"}}`
	batch := "[" + one + "," + two + "]"
	for name, test := range map[string]struct {
		call string
		ids  []string // of the answers
		want []int    // the choices that they end
	}{
		"the answer":                  {one, []string{"1"}, []int{0}},
		"an id of nobody":             {one, []string{"99", "1"}, []int{0}},
		"a text of nobody":            {two, []string{`"b"`, `"a"`}, []int{0}},
		"a number, otherwise written": {one, []string{"1.0"}, []int{0}},
		"a text, otherwise written":   {two, []string{`"\u0061"`}, []int{0}},
		"a number as a text":          {one, []string{`"1"`}, []int{0}},
		"nothing":                     {one, []string{"null"}, []int{0}},
		"a list":                      {one, []string{"[1]"}, []int{0}},
		"a batch":                     {batch, []string{"1", `"a"`}, []int{0, 1}},
		"a batch, the other way":      {batch, []string{`"a"`, "1"}, []int{1, 0}},
		"one of a batch twice":        {batch, []string{`"a"`, `"a"`}, []int{1, 1}},
		"two that nobody can place":   {batch, []string{"null", "true"}, []int{0, 1}},
	} {
		d := dialect(t, "mcp")
		call, err := d.Request([]byte(test.call))
		if err != nil {
			t.Fatal(err)
		}
		answering := d.(wire.AnswerReader).Answering(call)
		events := answering.Events()
		var got []int
		for i, id := range test.ids {
			if i == 1 {
				events = events.Rest()
			}
			message := `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":"said"}]}}`
			e, err := events.Event(wire.Frame{Data: []byte(message)})
			if err != nil || len(e.Deltas) != 1 || e.Deltas[0].Text != "said" {
				t.Errorf("%s: %+v, %v", name, e, err)
			}
			got = append(got, e.Finished...)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

// mcpRefusals are calls and the ids that a refusal must answer.
var mcpRefusals = map[string]struct {
	call string
	ids  []string
}{
	"tool":         {mcpCall("tools/call", `{"name":"f"}`), []string{"1"}},
	"odd_id":       {`{"jsonrpc":"2.0","id":1.50e2,"method":"tools/call"}`, []string{"1.50e2"}},
	"text_id":      {`{"jsonrpc":"2.0","id":"a<\u00e9\"","method":"tools/call"}`, []string{`"a<\u00e9\""`}},
	"task":         {mcpCall("tools/call", `{"name":"f","task":{"ttl":1}}`), []string{"1"}},
	"prompt":       {mcpCall("prompts/get", `{"name":"f"}`), []string{"1"}},
	"batch":        {"[" + mcpCall("ping", "{}") + `,{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":"b","method":"tools/call"}]`, []string{"1", `"b"`}},
	"batch_of_one": {"[" + mcpCall("tools/call", "{}") + "]", []string{"1"}},
	"notification": {`{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil},
	"answer":       {mcpResult(`{}`), nil},
	"listening":    {"", nil},
}

func TestMCPRefusals(t *testing.T) {
	d := dialect(t, "mcp")
	for name, test := range mcpRefusals {
		t.Run(name, func(t *testing.T) {
			call, err := d.Request([]byte(test.call))
			if err != nil || call.Choices != len(test.ids) {
				t.Fatal(call.Choices, err)
			}
			r := wire.Refusal{Text: declined, Reply: call.Reply}
			whole := d.Refusal(r)
			if len(test.ids) == 0 && whole != nil {
				t.Fatalf("nobody waits for %s", whole)
			}
			var answers []map[string]json.RawMessage
			switch {
			case whole == nil:
			case strings.HasPrefix(test.call, "["):
				err = json.Unmarshal(whole, &answers)
			default:
				answers = make([]map[string]json.RawMessage, 1)
				err = json.Unmarshal(whole, &answers[0])
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, answer := range answers {
				if string(answer["id"]) != test.ids[i] {
					t.Errorf("id %s, want %s", answer["id"], test.ids[i])
				}
			}
			golden(t, "mcp_refusal_"+name+".json", whole)
			golden(t, "mcp_refusal_"+name+".sse", d.Stream().Refusal(r))
			checkMCPEnd(t, d.Stream().Refusal(r), len(test.ids))
			checkMCPEnd(t, d.Stream().Error(wire.Error{Status: 503, Reply: call.Reply}), len(test.ids))
		})
	}
}

// checkMCPEnd is the grammar of a stream's end: one answer a frame, for all that wait.
func checkMCPEnd(t *testing.T, stream []byte, answers int) {
	t.Helper()
	frames, rest := decode(t, string(stream))
	found := 0
	for _, f := range frames {
		var message struct {
			JSONRPC string `json:"jsonrpc"`
			Method  string
			ID      any
		}
		if err := json.Unmarshal(f.Data, &message); err != nil || message.JSONRPC != "2.0" || f.HasID || (message.Method == "") != (message.ID != nil) {
			t.Errorf("%s: %v", f.Raw, err)
		}
		if message.ID != nil {
			found++
		}
	}
	if found != answers || rest != "" {
		t.Errorf("%d answers, want %d: %s", found, answers, stream)
	}
}

// Wherever a stream is ended, it stays a stream of messages, and all requests are
// answered.
func TestMCPStreamRefusedAnywhere(t *testing.T) {
	d := dialect(t, "mcp")
	body, err := os.ReadFile("testdata/examples/mcp/tools_call.stream")
	if err != nil {
		t.Fatal(err)
	}
	call, err := d.Request([]byte(`{"jsonrpc":"2.0","id":"c-1","method":"tools/call"}`))
	if err != nil {
		t.Fatal(err)
	}
	frames := split(t, d, body)
	for n := range len(frames) { // the last has the answer and never leaves before the end
		stream := d.Stream()
		for _, f := range frames[:n] {
			stream.Sent(f)
		}
		checkMCPEnd(t, stream.Refusal(wire.Refusal{Text: declined, Reply: call.Reply}), 1)
		checkMCPEnd(t, stream.Error(wire.Error{Status: 502, Reply: call.Reply}), 1)
		if resumable := stream.(wire.Resumer).Resumable(); resumable != (n > 0) {
			t.Errorf("after %d frames: resumable %t", n, resumable)
		}
	}
	stream := d.Stream()
	for _, raw := range []string{": id: 1\n\n", "retry: 1\n\n", "data: {\"a\":\"id:\"}\n\n", "data: x\ndata: id: 1\n\n"} {
		f, _ := decode(t, raw)
		stream.Sent(f[0])
	}
	if stream.(wire.Resumer).Resumable() {
		t.Error("there was no id")
	}
}

func TestMCPErrors(t *testing.T) {
	d := dialect(t, "mcp")
	golden(t, "mcp_error.json", d.Error(wire.Error{Status: 403, Code: "policy_refusal", Message: declined}))
	for status, code := range map[int]int{400: -32600, 401: -32000, 403: -32000, 413: -32600, 415: -32600, 429: -32000, 500: -32603, 503: -32603} {
		if out := string(d.Error(wire.Error{Status: status})); !strings.Contains(out, fmt.Sprintf(`"code":%d,`, code)) {
			t.Errorf("%d gives %s", status, out)
		}
	}
}

// An id may be written over several lines, which would cut an event.
func TestMCPIDsStayOnOneLine(t *testing.T) {
	d := dialect(t, "mcp")
	call, err := d.Request([]byte("{\"jsonrpc\":\"2.0\",\"id\": \n 7 \r\n,\"method\":\"ping\"}"))
	if err != nil {
		t.Fatal(err)
	}
	checkMCPEnd(t, d.Stream().Refusal(wire.Refusal{Reply: call.Reply}), 1)
}

// The id of a refused frame stands before the refusal, but not what Python takes for a line of
// its own behind it.
func TestMCPRefusedIDsHaveOneLine(t *testing.T) {
	for id, want := range map[string]bool{"id: 7": true, "id: 7\u2028data: {}": false, "id: 7\x85data: {}": false} {
		stream := dialect(t, "mcp").Stream()
		stream.(wire.Resumer).Refused(wire.Frame{Raw: []byte(id + "\ndata: {}\n\n"), Data: []byte("{}")})
		if out := stream.Refusal(wire.Refusal{Text: "no"}); strings.HasPrefix(string(out), id) != want {
			t.Errorf("%q: %q", id, out)
		}
	}
}

// Redacting any part of a call leaves a call that can be read.
func TestMCPRedact(t *testing.T) {
	d := dialect(t, "mcp")
	for _, file := range []string{"tools_call_retry", "sampling_result", "batch", "completion"} {
		body, err := os.ReadFile("testdata/examples/mcp/" + file + ".request.json")
		if err != nil {
			t.Fatal(err)
		}
		r, err := d.Request(body)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range r.Parts {
			out := wire.Redact(body, []wire.Part{p}, "removed")
			if _, err := d.Request(out); err != nil || !bytes.HasPrefix(out, body[:p.Start]) || !bytes.HasSuffix(out, body[p.Start+p.Bytes:]) {
				t.Errorf("%s of %s: %v: %s", p.Path, file, err, out)
			}
		}
	}
}

// However a stream is cut, it has the same events.
func TestMCPStreamSplits(t *testing.T) {
	d := dialect(t, "mcp")
	body, err := os.ReadFile("testdata/examples/mcp/tools_call.stream")
	if err != nil {
		t.Fatal(err)
	}
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
	want := read(split(t, d, body))
	for range 200 {
		var pieces []string
		for rest := string(body); rest != ""; {
			n := min(len(rest), 1+rand.IntN(120))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		if frames, rest := decode(t, pieces...); rest != "" || !reflect.DeepEqual(read(frames), want) {
			t.Fatalf("cut at %q", pieces)
		}
	}
}

func FuzzMCPRequest(f *testing.F) {
	for _, test := range mcpRefusals {
		f.Add([]byte(test.call))
	}
	f.Add([]byte(mcpCall("tools/call", `{"name":"f","arguments":{"a":["b"]},"inputResponses":{"k":{"content":{"type":"text","text":"t"}}}}`)))
	f.Fuzz(func(t *testing.T, body []byte) {
		d := dialect(t, "mcp")
		r, err := d.Request(body)
		if err != nil {
			if !errors.Is(err, wire.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		for _, p := range r.Parts {
			if p.Message < 1 || p.Earlier || !json.Valid(body[p.Start:p.Start+p.Bytes]) {
				t.Fatalf("%+v", p)
			}
		}
		refusal := d.Refusal(wire.Refusal{Text: "no", Reply: r.Reply})
		if (refusal == nil) != (r.Choices == 0) || refusal != nil && !json.Valid(refusal) {
			t.Fatalf("%s for %d", refusal, r.Choices)
		}
		checkMCPEnd(t, d.Stream().Refusal(wire.Refusal{Text: "no", Reply: r.Reply}), r.Choices)
	})
}

// What a whole answer says, the same answer says as a frame.
func FuzzMCPAnswer(f *testing.F) {
	files, err := os.ReadDir("testdata/examples/mcp")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file.Name(), ".response.json") {
			body, err := os.ReadFile("testdata/examples/mcp/" + file.Name())
			if err != nil {
				f.Fatal(err)
			}
			f.Add(bytes.TrimSpace(body))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		d := dialect(t, "mcp")
		r, failed := d.Response(body)
		e, err := d.Events().Event(wire.Frame{Data: body})
		if err != nil {
			t.Fatal(err)
		}
		if failed != nil {
			if !slices.Equal(e.Unknown, []string{"frame"}) || (len(e.Finished) == 1) != bytes.Contains(body, []byte("{")) {
				t.Fatalf("%+v", e)
			}
			return
		}
		var whole, streamed []string
		for _, p := range r.Parts {
			if p.Text != "" {
				whole = append(whole, p.Text)
			}
		}
		for _, delta := range e.Deltas {
			if delta.Text != "" {
				streamed = append(streamed, delta.Text)
			}
		}
		if !slices.Equal(whole, streamed) {
			t.Fatalf("whole %q, streamed %q", whole, streamed)
		}
	})
}

func BenchmarkMCPEvent(b *testing.B) {
	d := dialect(b, "mcp")
	frames, _ := decode(b, "id: 4\ndata: "+`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"abc123","progress":50,"total":100,"message":"Reticulating splines..."}}`+"\n\n")
	events, stream := d.Events(), d.Stream()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := events.Event(frames[0]); err != nil {
			b.Fatal(err)
		}
		stream.Sent(frames[0])
	}
}
