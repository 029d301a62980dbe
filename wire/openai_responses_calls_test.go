package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"github.com/caddy-lex/lex/wire"
)

// responsesCallItems has a call of each type, and calls that the provider has run.
const responsesCallItems = `
	{"type":"function_call","id":"fc_1","call_id":"c1","name":"weather","arguments":"{\"city\":\"K\u00f6ln\"}","status":"completed"},
	{"type":"function_call","id":"fc_2","call_id":"c2","namespace":"crm","name":"delete","arguments":"{}","async":true},
	{"type":"custom_tool_call","id":"ct_1","call_id":"c3","name":"sql","input":"select 1"},
	{"type":"local_shell_call","id":"ls_1","call_id":"c4","status":"completed","action":{"type":"exec","command":["cat","x"],"env":{"A":"b"},"timeout_ms":1000}},
	{"type":"shell_call","id":"sh_1","call_id":"c5","status":"completed","action":{"commands":["ls", "pwd"],"timeout_ms":null},"environment":{"type":"local"}},
	{"type":"shell_call","id":"sh_2","call_id":"c6","action":{"commands":["ls"]},"environment":{"type":"container_reference","container_id":"x"}},
	{"type":"apply_patch_call","id":"ap_1","call_id":"c7","status":"completed","operation":{"type":"update_file","path":"a.go","diff":"+x"}},
	{"type":"computer_call","id":"cu_1","call_id":"c8","status":"completed","action":{"type":"click","x":1,"y":2},"pending_safety_checks":[]},
	{"type":"computer_call","id":"cu_2","call_id":"c9","status":"completed","actions":[{"type":"type","text":"hi"}],"pending_safety_checks":[]},
	{"type":"tool_search_call","id":"ts_1","call_id":"c10","execution":"client","arguments":{"goal":"find"}},
	{"type":"tool_search_call","id":"ts_2","call_id":null,"execution":"server","arguments":{"goal":"find"}},
	{"type":"mcp_approval_request","id":"mr_1","server_label":"srv","name":"roll","arguments":"{\"dice\":1}"},
	{"type":"mcp_call","id":"mc_1","server_label":"srv","name":"roll","arguments":"{}","output":"4"},
	{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}},
	{"type":"code_interpreter_call","id":"ci_1","status":"completed","code":"print(1)"}`

// hostingResponses is the dialect of an answer to a request whose tools the provider runs.
func hostingResponses(t testing.TB) wire.Dialect {
	t.Helper()
	d := dialect(t, "openai_responses")
	call, err := d.Request([]byte(`{"input":"x","tools":[{"type":"shell","environment":{"type":"container_auto"}},{"type":"tool_search"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return d.(wire.AnswerReader).Answering(call)
}

func TestResponsesCalls(t *testing.T) {
	r, err := hostingResponses(t).Response([]byte(`{"id":"resp_1","status":"completed","output":[` + responsesCallItems + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []wire.ToolCall{
		{Key: "0", ID: "c1", Name: "weather", Arguments: `{"city":"Köln"}`},
		{Key: "1", ID: "c2", Name: "crm.delete", Bare: "delete", Arguments: `{}`},
		{Key: "2", ID: "custom_tool_call:c3", Name: "sql", Arguments: `select 1`, Free: true},
		{Key: "3", ID: "local_shell_call:c4", Name: "local_shell", Arguments: `{"command":["cat","x"],"env":{"A":"b"},"timeout_ms":1000,"type":"exec"}`},
		{Key: "4", ID: "shell_call:c5", Name: "shell", Arguments: `{"commands":["ls","pwd"],"timeout_ms":null}`},
		{Key: "6", ID: "apply_patch_call:c7", Name: "apply_patch", Arguments: `{"diff":"+x","path":"a.go","type":"update_file"}`},
		{Key: "7", ID: "computer_call:c8", Name: "computer", Arguments: `{"type":"click","x":1,"y":2}`},
		{Key: "8", ID: "computer_call:c9", Name: "computer", Arguments: `{"action":null,"actions":[{"text":"hi","type":"type"}]}`},
		{Key: "9", ID: "tool_search_call:c10", Name: "tool_search", Arguments: `{"goal":"find"}`},
		{Key: "11", ID: "mcp_approval_request:mr_1", Name: "srv.roll", Bare: "roll", Arguments: `{"dice":1}`},
	}
	if !slices.Equal(r.Calls, want) {
		t.Errorf("got %+v", r.Calls)
	}
}

// Whether the provider runs a command, or a search for tools, is what the request's tools
// say, and not the answer alone.
func TestResponsesCallsOfHostedTools(t *testing.T) {
	const container, server = `"environment":{"type":"container_reference","container_id":"x"}`, `"execution":"server"`
	d := dialect(t, "openai_responses")
	for name, test := range map[string]struct{ request, item, calls string }{
		"nothing said":                      {`{}`, container, "shell"},
		"a shell without an environment":    {`{"tools":[{"type":"shell"}]}`, container, "shell"},
		"a shell with null":                 {`{"tools":[{"type":"shell","environment":null}]}`, container, "shell"},
		"a local shell":                     {`{"tools":[{"type":"shell","environment":{"type":"local"}}]}`, container, "shell"},
		"one of each":                       {`{"tools":[{"type":"shell","environment":{"type":"container_auto"}},{"type":"shell"}]}`, container, "shell"},
		"a container":                       {`{"tools":[{"type":"function","name":"f"},{"type":"shell","environment":{"type":"container_auto"}}]}`, container, ""},
		"the client's container":            {`{"tools":[{"type":"shell","environment":{"type":"container_reference","container_id":"x"}}]}`, container, ""},
		"a local call beside a container":   {`{"tools":[{"type":"shell","environment":{"type":"container_auto"}}]}`, `"environment":{"type":"local"}`, "shell"},
		"a container in an earlier answer":  {`{"input":[{"type":"tool_search_output","tools":[{"type":"shell","environment":{"type":"container_auto"}}]}]}`, container, "shell"},
		"a container among additional ones": {`{"input":[{"type":"additional_tools","role":"developer","tools":[{"type":"shell","environment":{"type":"container_auto"}}]}]}`, container, "shell"},
		"no search":                         {`{}`, server, "tool_search"},
		"a search by the client":            {`{"tools":[{"type":"tool_search","execution":"client"}]}`, server, "tool_search"},
		"a search by somebody":              {`{"tools":[{"type":"tool_search","execution":1}]}`, server, "tool_search"},
		"a search by the server":            {`{"tools":[{"type":"tool_search","execution":"server"}]}`, server, ""},
		"a search":                          {`{"tools":[{"type":"tool_search"}]}`, server, ""},
		"a search that the client is to do": {`{"tools":[{"type":"tool_search"}]}`, `"execution":"client"`, "tool_search"},
	} {
		call, err := d.Request([]byte(test.request))
		if err != nil {
			t.Fatal(err)
		}
		d := d.(wire.AnswerReader).Answering(call)
		item := `{"type":"shell_call","call_id":"c","action":{"commands":["ls"]},` + test.item + `}`
		if strings.Contains(test.item, "execution") {
			item = `{"type":"tool_search_call","call_id":"c","arguments":{"goal":"find"},` + test.item + `}`
		}
		whole, err := d.Response([]byte(`{"id":"r","status":"completed","output":[` + item + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		streamed, _, err := gatherFrom(t, d, responsesStream(
			`{"type":"response.output_item.added","output_index":0,"item":`+item+`}`, `{"type":"response.output_item.done","output_index":0,"item":`+item+`}`,
			`{"type":"response.completed","response":{"id":"r","status":"completed","output":[`+item+`]}}`))
		if err != nil {
			t.Fatal(err)
		}
		for way, calls := range map[string][]wire.ToolCall{"whole": whole.Calls, "streamed": streamed} {
			var names []string
			for _, c := range calls {
				names = append(names, c.Name)
			}
			if got := strings.Join(names, " "); got != test.calls {
				t.Errorf("%s, %s: %q, want %q", name, way, got, test.calls)
			}
		}
		for _, p := range whole.Parts {
			if p.Kind == wire.Arguments && p.Called != (test.calls != "") {
				t.Errorf("%s: %s is called: %v", name, p.Path, p.Called)
			}
		}
	}
}

func TestResponsesCallsWhoseNamesAreNoText(t *testing.T) {
	for item, unclear := range map[string]bool{
		`{"type":"function_call","call_id":"c","name":["f"],"arguments":"{}"}`:                          true,
		`{"type":"custom_tool_call","call_id":"c","name":5,"input":""}`:                                 true,
		`{"type":"mcp_approval_request","id":"m","server_label":["s"],"name":"f","arguments":"{}"}`:     true,
		`{"type":"function_call","call_id":"c","name":"f","namespace":{},"arguments":"{}"}`:             true,
		`{"type":"function_call","call_id":"c","name":"f","namespace":null,"arguments":"{}"}`:           false,
		`{"type":"shell_call","call_id":"c","action":{"commands":["ls"]},"name":["nobody looks here"]}`: false,
	} {
		r, err := dialect(t, "openai_responses").Response([]byte(`{"id":"r","status":"completed","output":[` + item + `]}`))
		if err != nil || len(r.Calls) != 1 || r.Calls[0].Unclear != unclear {
			t.Errorf("%s: %+v, %v", item, r.Calls, err)
		}
	}
}

func TestResponsesToolDefinitions(t *testing.T) {
	r, err := dialect(t, "openai_responses").Request([]byte(`{"input":[
		{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"more","description":"More"}]},
		{"type":"tool_search_output","tools":[{"type":"namespace","name":"found","tools":[{"type":"function","name":"f"}]}]},
		{"type":"mcp_list_tools","id":"m1","server_label":"srv","tools":[{"name":"t","description":"Lists","input_schema":{"title":"I"}}]},
		{"role":"user","content":"x"}],
	"tools":[
		{"type":"function","name":"weather","description":"Says it","parameters":{"type": "object"}},
		{"type":"custom","name":"sql","format":{"type":"text"}},
		{"type":"namespace","name":"ns","tools":[{"type":"function","name":"inner","parameters":null},{"type":"namespace","name":"no","tools":[{"name":"x"}]}]},
		{"type":"shell"},{"type":"local_shell"},{"type":"apply_patch"},{"type":"computer_use_preview"},{"type":"computer"},
		{"type":"mcp","server_label":"srv","server_url":"https://x.test"},{"type":"web_search"},{"type":"function"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range r.Tools {
		got = append(got, fmt.Sprintf("%s|%s|%s", d.Name, d.Description, d.Schema))
	}
	compare(t, got, []string{
		`weather|Says it|{"type": "object"}`, "sql||", "ns.inner||", "shell||", "local_shell||", "apply_patch||", "computer||", "computer||",
		"more|More|", "found.f||", `srv.t|Lists|{"title":"I"}`,
	})
}

// responsesStream makes a stream of the data of events, without sequence numbers.
func responsesStream(events ...string) (stream []byte) {
	for _, e := range events {
		stream = append(stream, "event: "+gjson.Get(e, "type").Str+"\n"...)
		stream = wire.AppendEvent(stream, []byte(e))
	}
	return stream
}

// gatherCalls puts the calls of a stream together.
func gatherCalls(t testing.TB, stream []byte) (calls []wire.ToolCall, unknown []string, err error) {
	t.Helper()
	return gatherFrom(t, dialect(t, "openai_responses"), stream)
}

func gatherFrom(t testing.TB, d wire.Dialect, stream []byte) (calls []wire.ToolCall, unknown []string, err error) {
	t.Helper()
	reader, g := d.Events(), new(wire.CallGatherer)
	for _, f := range split(t, d, stream) {
		e, err := reader.Event(f)
		if err != nil {
			t.Fatalf("%s: %v", f.Raw, err)
		}
		unknown = append(unknown, e.Unknown...)
		if err := g.Add(e.Calls); err != nil {
			return nil, unknown, err
		}
	}
	return g.Calls(), unknown, nil
}

// The calls of a stream are those that its last frame says it has.
func TestResponsesStreamedCalls(t *testing.T) {
	d := dialect(t, "openai_responses")
	stream := example(t, "agent.stream")
	frames := split(t, d, stream)
	whole, err := d.Response([]byte(gjson.GetBytes(frames[len(frames)-1].Data, "response").Raw))
	if err != nil {
		t.Fatal(err)
	}
	if calls, _, err := gatherCalls(t, stream); err != nil || len(calls) != 2 || !slices.Equal(calls, whole.Calls) {
		t.Errorf("got %+v, %v, want %+v", calls, err, whole.Calls)
	}
}

// Clients take a call from different frames. So a call that is not the same in all of
// them is none: the gatherer refuses it, or there are two.
func TestResponsesAmbiguousCalls(t *testing.T) {
	added := func(index string, members string) string {
		return `{"type":"response.output_item.added","output_index":` + index + `,"item":{` + members + `}}`
	}
	done := func(index string, members string) string {
		return `{"type":"response.output_item.done","output_index":` + index + `,"item":{` + members + `}}`
	}
	completed := func(items string) string {
		return `{"type":"response.completed","response":{"id":"r","status":"completed","output":[` + items + `]}}`
	}
	const f = `"type":"function_call","id":"fc_1","call_id":"c1","name":"f",`
	const shell = `"type":"shell_call","id":"sh_1","call_id":"c1",`
	delta := `{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"fc_1","delta":"{}"}`
	command := func(kind, text string) string {
		return `{"type":"response.shell_call_command.` + kind + `","output_index":0,"command_index":0,` + text + `}`
	}
	for name, events := range map[string][]string{
		"the item that is done differs":        {added("0", f+`"arguments":""`), delta, done("0", f+`"arguments":"{\"x\":1}"`)},
		"the arguments that are done differ":   {added("0", f+`"arguments":""`), delta, `{"type":"response.function_call_arguments.done","output_index":0,"arguments":"[]"}`},
		"the last frame differs":               {added("0", f+`"arguments":""`), delta, completed(`{` + f + `"arguments":"[]"}`)},
		"arguments go on behind their end":     {added("0", f+`"arguments":""`), delta, done("0", f+`"arguments":"{}"`), delta},
		"two items at one index":               {added("0", f+`"arguments":""`), added("0", `"type":"function_call","call_id":"c2","name":"f","arguments":""`)},
		"another name at the end":              {added("0", f+`"arguments":""`), `{"type":"response.function_call_arguments.done","output_index":0,"arguments":"","name":"g"}`},
		"another namespace at the end":         {added("0", f+`"arguments":""`), done("0", f+`"namespace":"ns","arguments":""`)},
		"a name cut differently at the end":    {done("0", `"type":"function_call","call_id":"c1","namespace":"a","name":"b.c","arguments":"{}"`), done("0", `"type":"function_call","call_id":"c1","namespace":"a.b","name":"c","arguments":"{}"`)},
		"another type at the end":              {added("0", f+`"arguments":""`), done("0", `"type":"custom_tool_call","call_id":"c1","name":"f","input":"{}"`)},
		"arguments as text and as an object":   {added("0", f+`"arguments":""`), delta, done("0", f+`"arguments":{"x":1}`)},
		"a name that is no text":               {done("0", `"type":"function_call","call_id":"c1","name":["f"],"arguments":"{}"`)},
		"a name that is no text in the end":    {added("0", f+`"arguments":""`), `{"type":"response.function_call_arguments.done","output_index":0,"arguments":"","name":["f"]}`},
		"a namespace that is no text":          {done("0", f+`"namespace":["x"],"arguments":"{}"`)},
		"a server that is no text":             {done("0", `"type":"mcp_approval_request","id":"m","server_label":1,"name":"f","arguments":"{}"`)},
		"a piece that is an object":            {added("0", f+`"arguments":""`), `{"type":"response.function_call_arguments.delta","output_index":0,"delta":{"x":1}}`, done("0", f+`"arguments":"{}"`)},
		"the calls change places":              {added("0", f+`"arguments":""`), added("1", `"type":"function_call","call_id":"c2","name":"f","arguments":""`), completed(`{"type":"function_call","call_id":"c2","name":"f","arguments":""},{` + f + `"arguments":""}`)},
		"a command that is not what it began":  {added("0", shell+`"status":"in_progress","action":{"commands":["ls"]}`), done("0", shell+`"action":{"commands":["rm"]}`)},
		"a command in progress that is done":   {added("0", shell+`"status":"completed","action":{"commands":["ls"]}`), done("0", shell+`"action":{"commands":["ls -l"]}`)},
		"a command that is not its pieces":     {added("0", shell+`"status":"in_progress","action":{"commands":[]}`), command("added", `"command":""`), command("delta", `"delta":"rm"`), done("0", shell+`"action":{"commands":["ls"]}`)},
		"a command fewer":                      {added("0", shell+`"status":"in_progress","action":{"commands":[]}`), command("added", `"command":"rm"`), done("0", shell+`"action":{"commands":[]}`)},
		"a command that ends differently":      {added("0", shell+`"status":"in_progress","action":{"commands":[]}`), command("delta", `"delta":"rm"`), command("done", `"command":"ls"`), done("0", shell+`"action":{"commands":["ls"]}`)},
		"a command only in the last frame":     {added("0", shell+`"status":"in_progress","action":{"commands":["ls"]}`), completed(`{` + shell + `"action":{"commands":["rm"]}}`)},
		"a patch that is not its pieces":       {added("0", `"type":"apply_patch_call","call_id":"c1","status":"in_progress","operation":{"type":"update_file","path":"a","diff":""}`), `{"type":"response.apply_patch_call_operation_diff.delta","output_index":0,"delta":"+x"}`, done("0", `"type":"apply_patch_call","call_id":"c1","operation":{"type":"update_file","path":"a","diff":"+y"}`)},
		"a patch of another file in the end":   {added("0", `"type":"apply_patch_call","call_id":"c1","status":"in_progress","operation":{"type":"update_file","path":"a","diff":""}`), done("0", `"type":"apply_patch_call","call_id":"c1","operation":{"type":"update_file","path":"b","diff":"+y"}`)},
		"begun with arguments and told again":  {added("0", f+`"arguments":"{}"`), delta, done("0", f+`"arguments":"{}"`)},
		"in the first frame and then":          {`{"type":"response.created","response":{"output":[{` + f + `"arguments":"{}"}]}}`, `{"type":"response.in_progress","response":{"output":[{` + f + `"arguments":"[]"}]}}`},
		"a patch that clients take both parts": {added("0", `"type":"computer_call","call_id":"c1","status":"completed","action":{"type":"wait"}`), done("0", `"type":"computer_call","call_id":"c1","action":{"type":"wait"},"actions":[]`)},
	} {
		if calls, _, err := gatherCalls(t, responsesStream(events...)); !errors.Is(err, wire.ErrCalls) {
			t.Errorf("%s: %+v, %v", name, calls, err)
		}
	}
	for name, test := range map[string]struct {
		events  []string
		calls   string
		unknown string
	}{
		"in pieces":                  {[]string{added("0", f+`"arguments":""`), delta, done("0", f+`"arguments":"{}"`), completed(`{` + f + `"arguments":"{}"}`)}, "f {}", ""},
		"only done":                  {[]string{done("0", f+`"arguments":"{}"`)}, "f {}", ""},
		"only in the last frame":     {[]string{completed(`{` + f + `"arguments":"{}"}`)}, "f {}", ""},
		"in the first frame":         {[]string{`{"type":"response.created","response":{"output":[{` + f + `"arguments":"{}"}]}}`}, "f {}", ""},
		"another one in the end":     {[]string{done("0", f+`"arguments":"{}"`), completed(`{` + f + `"arguments":"{}"},{"type":"function_call","name":"g","arguments":"[]"}`)}, "f {}|g []", ""},
		"pieces before the item":     {[]string{delta, added("0", f+`"arguments":""`)}, "f {}", ""},
		"pieces of nothing":          {[]string{delta}, " {}", ""},
		"no index":                   {[]string{`{"type":"response.output_item.done","item":{` + f + `"arguments":"{}"}}`}, "f {}", "output_index"},
		"an odd index":               {[]string{done("1.0", f+`"arguments":"{}"`), done("-1", f+`"arguments":"{}"`)}, "f {}|f {}", "output_index|output_index"},
		"an index and another id":    {[]string{added("0", f+`"arguments":""`), added("1", `"type":"function_call","id":"fc_2","call_id":"c2","name":"g","arguments":""`), `{"type":"response.function_call_arguments.delta","output_index":1,"item_id":"fc_1","delta":"{}"}`}, "f {}|g {}", "item_id"},
		"only the id":                {[]string{added("0", f+`"arguments":""`), `{"type":"response.function_call_arguments.delta","item_id":"fc_1","delta":"{}"}`}, "f {}", "output_index"},
		"an id of nobody":            {[]string{added("0", f+`"arguments":""`), `{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"fc_9","delta":"{}"}`}, "f {}", ""},
		"arguments that are no text": {[]string{added("0", f+`"arguments":{"x":1}`), done("0", f+`"arguments":{ "x":1 }`)}, `f {"x":1}`, ""},
		"a command in pieces": {[]string{
			added("0", shell+`"status":"in_progress","action":{"commands":[],"timeout_ms":null}`), command("added", `"command":""`), command("delta", `"delta":"l"`), command("delta", `"delta":"s"`), command("done", `"command":"ls"`),
			done("0", shell+`"action":{"timeout_ms":5,"commands":["ls"]}`), completed(`{` + shell + `"action":{"commands":["ls"],"timeout_ms":5}}`),
		}, `shell {"commands":["ls"],"timeout_ms":5}`, ""},
	} {
		calls, unknown, err := gatherCalls(t, responsesStream(test.events...))
		var got []string
		for _, c := range calls {
			got = append(got, c.Name+" "+c.Arguments)
		}
		if err != nil || strings.Join(got, "|") != test.calls || strings.Join(unknown, "|") != test.unknown {
			t.Errorf("%s: %q, unknown %q, %v", name, got, unknown, err)
		}
	}
}

const blockedNote = `The tool was not called: <b>"why"</b>.`

// ourMessage is the message that stands for a call in an answer, up to its id.
func ourMessage(t *testing.T, item gjson.Result, note string) bool {
	t.Helper()
	return strings.HasPrefix(item.Get("id").Str, "msg_lex_") && item.Get("type").Str == "message" && item.Get("role").Str == "assistant" &&
		item.Get("status").Str == "completed" && item.Get("content.#").Int() == 1 && item.Get("content.0.text").Str+item.Get("content.0.refusal").Str == note
}

// Each test is the types of the items, and those that are left: a capital letter is a
// call that is blocked, - its note.
func TestResponsesWithoutCalls(t *testing.T) {
	d := dialect(t, "openai_responses")
	for before, after := range map[string]string{
		"A":       "-",
		"a":       "a",
		"mA":      "m-",
		"AmB":     "-m-",
		"aBc":     "a-c",
		"rA":      "-",   // no item of the reasoning is left
		"rrAB":    "--",  //
		"rAb":     "rb-", // behind reasoning comes an item of its own
		"rABcD":   "rc---",
		"rAm":     "rm-",
		"raB":     "ra-",
		"rmA":     "rm-",
		"rArB":    "--",
		"rArb":    "-rb",
		"rarB":    "ra-",
		"rwrA":    "rw-",
		"r":       "r",
		"Ar":      "-r",
		"wA":      "w-",
		"AB":      "--",
		"mrAmrBc": "mrm-rc-",
	} {
		var items []string
		var blocked []wire.BlockedCall
		for i, c := range before {
			id := fmt.Sprintf(`"id":"%c%d"`, c, i)
			switch c {
			case 'm':
				items = append(items, `{`+id+`, "type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"said"}]}`)
			case 'r':
				items = append(items, `{`+id+`, "type":"reasoning","summary":[],"encrypted_content":"gAA`+strconv.Itoa(i)+`"}`)
			case 'w':
				items = append(items, `{`+id+`, "type":"web_search_call","status":"completed"}`)
			default:
				items = append(items, fmt.Sprintf(`{%s, "type":"function_call","call_id":"c%d","name":"tool%c","arguments":"{}"}`, id, i, c))
				if c < 'a' {
					blocked = append(blocked, wire.BlockedCall{Key: strconv.Itoa(i), Note: blockedNote})
				}
			}
		}
		body := "\n{\"id\":\"resp_1\",\n \"status\":\"completed\", \"output\": [ " + strings.Join(items, " ,\n") + " ] ,\"usage\":{\"x\":1.0}}\n"
		editor, ok := d.(wire.CallEditor)
		if !ok {
			t.Fatal("the dialect edits no calls")
		}
		got, err := editor.WithoutCalls([]byte(body), blocked)
		if err != nil {
			t.Errorf("%s: %v", before, err)
			continue
		}
		left, ids := "", make(map[string]bool)
		for _, item := range gjson.GetBytes(got, "output").Array() {
			ids[item.Get("id").Str] = true
			if ourMessage(t, item, blockedNote) {
				left += "-"
				continue
			}
			left += item.Get("id").Str[:1]
			if !slices.Contains(items, item.Raw) {
				t.Errorf("%s: an item changed: %s", before, item.Raw)
			}
		}
		start := strings.Index(body, "[ ") + 2
		if left != after || len(ids) != len(left) || !strings.HasPrefix(string(got), body[:start]) || !strings.HasSuffix(string(got), " ] ,\"usage\":{\"x\":1.0}}\n") {
			t.Errorf("%s becomes %s: %s", before, left, got)
		}
		if len(blocked) == 0 && string(got) != body {
			t.Errorf("%s: nothing is blocked, and the body is %s", before, got)
		}
		if r, err := d.Response(got); err != nil || len(r.Calls) != strings.Count(strings.ToLower(before), "a")+strings.Count(strings.ToLower(before), "b")+strings.Count(strings.ToLower(before), "c")+strings.Count(before, "D")-len(blocked) {
			t.Errorf("%s: calls %+v, %v", before, r.Calls, err)
		}
	}
}

// The note stands where clients parse nothing, and in the copy of all text.
func TestResponsesNotes(t *testing.T) {
	editor := dialect(t, "openai_responses").(wire.CallEditor)
	const call = `{"type":"function_call","id":"f","call_id":"c","name":"n","arguments":"{}"}`
	const said = `{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"Hi. "}]}`
	for name, test := range map[string]struct{ members, text, refusal, copied string }{
		"prose":                {``, blockedNote, "", ""},
		"prose, explicitly":    {`"text":{"format":{"type":"text"}},`, blockedNote, "", ""},
		"JSON":                 {`"text":{"format":{"type":"json_schema"}},`, "", blockedNote, ""},
		"asked for JSON":       {``, "", blockedNote, ""},
		"a copy":               {`"output_text":"Hi. ",`, blockedNote, "", "Hi. " + blockedNote},
		"a copy, JSON":         {`"output_text":"Hi. ","text":{"format":{"type":"json_object"}},`, "", blockedNote, "Hi. "},
		"a copy that is none":  {`"output_text":"Ho.",`, blockedNote, "", "Ho."},
		"a copy that is empty": {`"output_text":"",`, blockedNote, "", ""},
	} {
		blocked := []wire.BlockedCall{{Key: "1", Note: blockedNote}}
		if name == "asked for JSON" {
			blocked[0].Place = wire.OnlyRefusal
		}
		got, err := editor.WithoutCalls([]byte(`{"id":"r",`+test.members+`"output":[`+said+`,`+call+`]}`), blocked)
		answer := gjson.ParseBytes(got)
		if err != nil || answer.Get("output.0").Raw != said || answer.Get("output.1.content.0.text").Str != test.text || answer.Get("output.1.content.0.refusal").Str != test.refusal || answer.Get("output_text").Str != test.copied {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// What cannot be taken out safely is refused.
func TestResponsesCallsThatStay(t *testing.T) {
	editor := dialect(t, "openai_responses").(wire.CallEditor)
	for name, test := range map[string]struct{ body, key string }{
		"no answer":             {`canary`, "0"},
		"no such position":      {`{"output":[]}`, "0"},
		"no output":             {`{}`, "0"},
		"a key of something":    {`{"output":[]}`, "canary"},
		"a message":             {`{"output":[{"type":"message","content":"canary"}]}`, "0"},
		"a call of the server":  {`{"output":[{"type":"mcp_call","name":"canary"}]}`, "0"},
		"a call of a program":   {`{"output":[{"type":"function_call","call_id":"c","name":"canary","caller":{"type":"program","caller_id":"p"}}]}`, "0"},
		"a computer":            {`{"output":[{"type":"computer_call","call_id":"c","action":{"type":"type","text":"canary"}}]}`, "0"},
		"twice the same member": {`{"output":[],"output":[{"type":"function_call"}]}`, "0"},
	} {
		if got, err := editor.WithoutCalls([]byte(test.body), []wire.BlockedCall{{Key: test.key, Note: "n"}}); !errors.Is(err, wire.ErrCalls) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	d := dialect(t, "openai_responses")
	for name, stream := range map[string][]byte{
		"a frame that cannot be read": []byte("data: canary\n\n"),
		"an item out of order":        responsesStream(`{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"c"}}`, `{"type":"response.output_item.added","output_index":0,"item":{"type":"message"}}`),
		"an item twice":               responsesStream(`{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"c"}}`, `{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"c"}}`),
		"an index that is none":       responsesStream(`{"type":"response.output_item.done","output_index":1.5,"item":{"type":"function_call","call_id":"c"}}`),
		"an event of two items":       responsesStream(`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"a"}}`, `{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"b"}}`, `{"type":"response.function_call_arguments.delta","output_index":1,"item_id":"a","delta":"canary"}`),
		"an item that is no call":     responsesStream(`{"type":"response.output_item.added","output_index":1,"item":{"type":"message"}}`),
		"an item of two types":        responsesStream(`{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call"}}`, `{"type":"response.output_item.done","output_index":1,"item":{"type":"reasoning"}}`),
		"two items of one id":         responsesStream(`{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"a"}}`, `{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","id":"a"}}`),
		"an item without an index":    responsesStream(`{"type":"response.output_item.added","item":{"type":"function_call","id":"a"}}`),
		"a call in what was sent":     responsesStream(`{"type":"response.output_item.added","output_index":1,"item":{"type":"message"}}`, `{"type":"response.function_call_arguments.delta","output_index":1,"delta":"canary"}`),
		"a frame that is cut":         responsesStream(`{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call"}}`, `{"type":"canary`),
		"no such call":                responsesStream(`{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call"}}`),
		"a computer":                  responsesStream(`{"type":"response.output_item.added","output_index":1,"item":{"type":"computer_call"}}`),
	} {
		writer, frames := d.Stream(), split(t, d, stream)
		if strings.HasSuffix(name, "sent") {
			writer.Sent(frames[0])
			frames = frames[1:]
		}
		got, err := writer.(wire.StreamCallEditor).WithoutCalls(frames, []wire.BlockedCall{{Key: "1", Note: "n"}})
		if !errors.Is(err, wire.ErrCalls) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// Of a stream that is longer than what is kept of it nobody knows what its end would repeat.
func TestResponsesLongStreamsKeepTheirCalls(t *testing.T) {
	call := responsesStream(`{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"b","call_id":"c","name":"f"}}`)
	for times, fits := range map[int]bool{1: true, 2: false} {
		d := dialect(t, "openai_responses")
		writer := d.Stream()
		writer.Sent(split(t, d, responsesStream(`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"a"}}`))[0])
		long := split(t, d, responsesStream(`{"type":"response.output_text.delta","output_index":0,"item_id":"a","content_index":0,"delta":"`+strings.Repeat("x", wire.MaxFrame*3/4)+`"}`))[0]
		for range times {
			writer.Sent(long)
		}
		_, err := writer.(wire.StreamCallEditor).WithoutCalls(split(t, d, call), []wire.BlockedCall{{Key: "1", Note: "n"}})
		if fits != (err == nil) || err != nil && !errors.Is(err, wire.ErrCalls) {
			t.Errorf("%d times: %v", times, err)
		}
	}
}

// A drawnAnswer is a random answer as a stream, and as a whole.
type drawnAnswer struct {
	stream, whole []byte
	tokens        map[string]string // what stands in no other call, by the id of a call
}

func drawAnswer(r *rapid.T) drawnAnswer {
	a := drawnAnswer{tokens: make(map[string]string)}
	var items []string
	var runs [][][]string // the events of items that come beside each other
	structured := rapid.Bool().Draw(r, "structured")
	for i := range rapid.IntRange(0, 7).Draw(r, "items") {
		kind := rapid.SampledFrom([]string{"message", "reasoning", "web_search_call", "function_call", "function_call", "custom_tool_call", "shell_call", "local_shell_call", "apply_patch_call", "mcp_approval_request"}).Draw(r, "type")
		item, events := drawItem(r, &a, i, kind)
		items = append(items, item)
		call := !slices.Contains([]string{"message", "reasoning", "web_search_call"}, kind)
		if last := len(runs) - 1; call && last >= 0 && a.tokens[fmt.Sprint("item", i-1)] != "" && rapid.Bool().Draw(r, "parallel") {
			runs[last] = append(runs[last], events)
		} else {
			runs = append(runs, [][]string{events})
		}
	}
	head := `"id":"resp_1","object":"response","created_at":1741476542,"model":"m","error":null,"incomplete_details":null,"instructions":null,"metadata":{},"parallel_tool_calls":true,"tool_choice":"auto","tools":[]`
	if structured {
		head += `,"text":{"format":{"type":"json_schema"}}`
	}
	a.whole = []byte(`{` + head + `,"status":"completed","output":[` + strings.Join(items, ", ") + `],"usage":{"input_tokens":3,"output_tokens":4,"total_tokens":7}}`)
	events := []string{`{"type":"response.created","response":{` + head + `,"status":"in_progress","output":[]}}`}
	for _, run := range runs {
		events = append(events, merge(r, run)...)
	}
	sequence := 0
	for _, e := range append(events, `{"type":"response.completed","response":`+string(a.whole)+`}`) {
		a.stream = append(a.stream, responsesStream(`{"sequence_number":`+strconv.Itoa(sequence)+`,`+e[1:])...)
		sequence += rapid.IntRange(1, 3).Draw(r, "gap")
		if rapid.IntRange(0, 9).Draw(r, "comment") == 0 {
			a.stream = append(a.stream, ": keep-alive\n\n"...)
		}
	}
	return a
}

// merge mixes the events of items whose beginnings come in order.
func merge(r *rapid.T, run [][]string) (events []string) {
	begun := 0
	for slices.ContainsFunc(run, func(e []string) bool { return len(e) > 0 }) {
		i := rapid.IntRange(0, min(begun, len(run)-1)).Draw(r, "next")
		if len(run[i]) == 0 {
			continue
		}
		begun = max(begun, i+1)
		events, run[i] = append(events, run[i][0]), run[i][1:]
	}
	return events
}

// drawItem draws an item, and the events that bring it.
func drawItem(r *rapid.T, a *drawnAnswer, i int, kind string) (item string, events []string) {
	id, call := fmt.Sprintf("item%d", i), fmt.Sprintf("call%d", i)
	at := fmt.Sprintf(`"output_index":%d,"item_id":"%s"`, i, id)
	event := func(kind, members string) { events = append(events, `{"type":"response.`+kind+`",`+at+`,`+members+`}`) }
	begin := func(item string) {
		events = append(events, fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":%s}`, i, item))
	}
	token := fmt.Sprintf("zq%dzq", i)
	free := rapid.SampledFrom([]string{"", "\"\n\\", "\x7f<b>", strings.Repeat("x", 30)}).Draw(r, "text") + token
	arguments := `{"a":` + strconv.Quote(token) + `,"n":1.50}`
	head := `"id":"` + id + `","type":"` + kind + `"`
	quote := func(s string) string { return string(mustJSON(s)) }
	switch kind {
	case "message":
		part := `{"type":"output_text","annotations":[],"logprobs":[],"text":` + quote(free) + `}`
		item = `{` + head + `,"status":"completed","role":"assistant","content":[` + part + `]}`
		begin(`{` + head + `,"status":"in_progress","role":"assistant","content":[]}`)
		event("content_part.added", `"content_index":0,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}`)
		for _, s := range cuts(r, free) {
			event("output_text.delta", `"content_index":0,"logprobs":[],"delta":`+quote(s))
		}
		event("output_text.done", `"content_index":0,"logprobs":[],"text":`+quote(free))
		event("content_part.done", `"content_index":0,"part":`+part)
	case "reasoning":
		item = `{` + head + `,"summary":[],"encrypted_content":"gAA` + id + `"}`
		begin(`{` + head + `,"summary":[],"encrypted_content":"g"}`)
	case "web_search_call":
		item = `{` + head + `,"status":"completed","action":{"type":"search","query":"q"}}`
		begin(`{` + head + `,"status":"in_progress"}`)
		event("web_search_call.searching", `"stream_id":null`)
	case "function_call", "mcp_approval_request":
		members := `,"call_id":"` + call + `","name":"tool` + token + `"`
		if kind == "mcp_approval_request" {
			item = `{` + head + `,"server_label":"srv","name":"tool` + token + `", "arguments":` + quote(arguments) + `}`
			begin(item)
			break
		}
		item = `{` + head + members + `,"status":"completed", "arguments":` + quote(arguments) + `}`
		begin(`{` + head + members + `,"status":"in_progress","arguments":""}`)
		for _, s := range cuts(r, arguments) {
			event("function_call_arguments.delta", `"obfuscation":"x","delta":`+quote(s))
		}
		event("function_call_arguments.done", `"name":"tool`+token+`","arguments":`+quote(arguments))
	case "custom_tool_call":
		members := `,"call_id":"` + call + `","name":"tool` + token + `"`
		item = `{` + head + members + `,"status":"completed","input":` + quote(free) + `}`
		begin(`{` + head + members + `,"status":"in_progress","input":""}`)
		for _, s := range cuts(r, free) {
			event("custom_tool_call_input.delta", `"delta":`+quote(s))
		}
		event("custom_tool_call_input.done", `"input":`+quote(free))
	case "shell_call":
		members := `,"call_id":"` + call + `"`
		item = `{` + head + members + `,"status":"completed","action":{"commands":[` + quote(free) + `],"timeout_ms":null}}`
		begin(`{` + head + members + `,"status":"in_progress","action":{"commands":[]}}`)
		event("shell_call_command.added", `"command_index":0,"command":""`)
		for _, s := range cuts(r, free) {
			event("shell_call_command.delta", `"command_index":0,"delta":`+quote(s))
		}
		event("shell_call_command.done", `"command_index":0,"command":`+quote(free))
	case "local_shell_call":
		item = `{` + head + `,"call_id":"` + call + `","status":"completed","action":{"type":"exec","command":[` + quote(free) + `],"env":{}}}`
		begin(strings.Replace(item, "completed", "in_progress", 1))
	case "apply_patch_call":
		members := `,"call_id":"` + call + `"`
		operation := func(diff string) string {
			return `,"operation":{"type":"update_file","path":"` + token + `","diff":` + quote(diff) + `}`
		}
		item = `{` + head + members + `,"status":"completed"` + operation(free) + `}`
		begin(`{` + head + members + `,"status":"in_progress"` + operation("") + `}`)
		for _, s := range cuts(r, free) {
			event("apply_patch_call_operation_diff.delta", `"delta":`+quote(s))
		}
		event("apply_patch_call_operation_diff.done", `"diff":`+quote(free))
	}
	if kind != "message" && kind != "reasoning" && kind != "web_search_call" {
		a.tokens[id] = token
	}
	events = append(events, fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i, item))
	return item, events
}

// holdCalls reads a stream as the proxy does: what is before the first call is sent.
func holdCalls(t testing.TB, stream []byte) (writer wire.StreamWriter, sent []byte, held []wire.Frame, calls []wire.ToolCall) {
	t.Helper()
	d := dialect(t, "openai_responses")
	reader, g := d.Events(), new(wire.CallGatherer)
	writer = d.Stream()
	for _, f := range split(t, d, stream) {
		e, err := reader.Event(f)
		if err != nil || len(e.Unknown) > 0 {
			t.Fatalf("%s: %v, unknown %v", f.Raw, err, e.Unknown)
		}
		if err := g.Add(e.Calls); err != nil {
			t.Fatalf("%s: %v\n%s", f.Raw, err, stream)
		}
		if len(held) > 0 || len(e.Calls) > 0 || e.Done {
			held = append(held, f)
			continue
		}
		writer.Sent(f)
		sent = append(sent, f.Raw...)
	}
	return writer, sent, held, g.Calls()
}

// Whatever calls of whatever answer are blocked, clients get the others and the notes, and
// a stream says what the whole answer says.
func TestResponsesWithoutAnyCalls(t *testing.T) {
	d := dialect(t, "openai_responses")
	rapid.Check(t, func(r *rapid.T) {
		a := drawAnswer(r)
		writer, sent, held, calls := holdCalls(t, a.stream)
		before, err := d.Response(a.whole)
		if err != nil || !slices.Equal(before.Calls, calls) || len(calls) != len(a.tokens) {
			r.Fatalf("streamed calls %+v, whole %+v, %v", calls, before.Calls, err)
		}
		var blocked []wire.BlockedCall
		var allowed []string
		for _, c := range calls {
			if rapid.Bool().Draw(r, "blocked") {
				blocked = append(blocked, wire.BlockedCall{Key: c.Key, Note: "note " + c.Key + "."})
			} else {
				allowed = append(allowed, c.ID+c.Name+c.Arguments)
			}
		}
		rest, err := writer.(wire.StreamCallEditor).WithoutCalls(held, blocked)
		if err != nil {
			r.Fatalf("%v\n%s", err, a.stream)
		}
		whole, err := d.(wire.CallEditor).WithoutCalls(a.whole, blocked)
		if err != nil {
			r.Fatal(err)
		}
		stream := slices.Concat(sent, rest)
		if len(blocked) == 0 && (!bytes.Equal(stream, a.stream) || !bytes.Equal(whole, a.whole)) {
			r.Fatalf("nothing is blocked, and the stream is %s", stream)
		}
		checkResponsesStream(t, withoutComments(stream))
		for _, b := range blocked {
			token := a.tokens["item"+b.Key]
			if bytes.Contains(stream, []byte(token)) || bytes.Contains(whole, []byte(token)) {
				r.Fatalf("%s is left in %s", token, stream)
			}
		}

		// The calls and the text are the same in both.
		left, _, err := gatherCalls(t, stream)
		after, wholeErr := d.Response(whole)
		texts, events := readStream(t, stream)
		same := func(calls []wire.ToolCall) (got []string) {
			for _, c := range calls {
				got = append(got, c.ID+c.Name+c.Arguments)
			}
			return got
		}
		slices.Sort(allowed)
		if err != nil || wholeErr != nil || !slices.Equal(slices.Sorted(slices.Values(same(left))), allowed) || !slices.Equal(same(after.Calls), same(left)) {
			r.Fatalf("allowed %q, streamed %q, %v, whole %q, %v", allowed, same(left), err, same(after.Calls), wholeErr)
		}
		said := texts[wire.Text] + texts[wire.RefusalText]
		kinds := make(map[wire.Kind]string)
		for _, p := range after.Parts {
			kinds[p.Kind] += p.Text
		}
		if kinds[wire.Text] != texts[wire.Text] || kinds[wire.RefusalText] != texts[wire.RefusalText] || after.Finish != "completed" || !events[len(events)-1].Done && !strings.HasPrefix(string(stream[len(stream)-14:]), ": ") {
			r.Fatalf("the stream says %q, the whole %q", texts, kinds)
		}
		for _, b := range blocked {
			if strings.Count(said, b.Note) != 1 {
				r.Fatalf("%q in %q", b.Note, said)
			}
		}
		checkReasoning(r, gjson.GetBytes(whole, "output").Array(), gjson.GetBytes(a.whole, "output").Array())
		var last gjson.Result
		for _, f := range split(t, d, stream) {
			if gjson.GetBytes(f.Data, "type").Str == "response.completed" {
				last = gjson.GetBytes(f.Data, "response.output")
			}
		}
		if got, want := withoutReasoning(last), withoutReasoning(gjson.GetBytes(whole, "output")); !slices.Equal(got, want) {
			r.Fatalf("the stream ends with %q, the whole has %q", got, want)
		}
	})
}

// checkReasoning checks that reasoning is as it was, or not there, and is never right
// before a message of ours.
func checkReasoning(r *rapid.T, after, before []gjson.Result) {
	for i, item := range after {
		if item.Get("type").Str != "reasoning" {
			continue
		}
		if !slices.ContainsFunc(before, func(b gjson.Result) bool { return b.Raw == item.Raw }) {
			r.Fatalf("the reasoning changed: %s", item.Raw)
		}
		if i+1 < len(after) && strings.HasPrefix(after[i+1].Get("id").Str, "msg_lex_") {
			r.Fatalf("the reasoning lost its item: %s", after[i+1].Raw)
		}
	}
}

func withoutReasoning(items gjson.Result) (raw []string) {
	for _, item := range items.Array() {
		if item.Get("type").Str != "reasoning" {
			raw = append(raw, item.Raw)
		}
	}
	return raw
}

func withoutComments(stream []byte) []byte {
	return bytes.ReplaceAll(stream, []byte(": keep-alive\n\n"), nil)
}

func mustJSON(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return b
}

// The documented stream without its calls, to look at.
func TestResponsesExampleWithoutCalls(t *testing.T) {
	writer, sent, held, calls := holdCalls(t, example(t, "agent.stream"))
	for name, keys := range map[string][]string{"one": {"5"}, "all": {"5", "6"}} {
		var blocked []wire.BlockedCall
		for _, key := range keys {
			blocked = append(blocked, wire.BlockedCall{Key: key, Note: blockedNote})
		}
		rest, err := writer.(wire.StreamCallEditor).WithoutCalls(held, blocked)
		if err != nil || len(calls) != 2 {
			t.Fatal(err, calls)
		}
		checkResponsesStream(t, slices.Concat(sent, rest))
		golden(t, "openai_responses_blocked_"+name+".sse", rest)
	}
}

// A stream may be kept and begun in its middle, have its data on several lines, and number
// its frames closely or not at all. A call may come in any frame.
func TestResponsesStreamsWithoutCalls(t *testing.T) {
	d := dialect(t, "openai_responses")
	const item = `{"type":"function_call","id":"fc_1","call_id":"c1","name":"canary","arguments":"canary"}`
	const answer = `{"id":"resp_1","status":"completed","output":[` + item + `]}`
	edit := func(stream []byte, key string) []byte {
		got, err := d.Stream().(wire.StreamCallEditor).WithoutCalls(split(t, d, stream), []wire.BlockedCall{{Key: key, Note: blockedNote}})
		if err != nil {
			t.Fatalf("%s: %v", stream, err)
		}
		return got
	}
	for name, test := range map[string]struct {
		stream []byte
		key    string
	}{
		"only done":               {responsesStream(`{"type":"response.output_item.done","output_index":0,"item":` + item + `}`), "0"},
		"only in the last frame":  {responsesStream(`{"type":"response.completed","response":` + answer + `}`), "new.0"},
		"only in the first frame": {responsesStream(`{"type":"response.created","response":` + answer + `}`), "new.0"},
		"only pieces":             {responsesStream(`{"type":"response.function_call_arguments.delta","output_index":3,"delta":"canary"}`), "3"},
		"pieces by their id":      {responsesStream(`{"type":"response.output_item.added","output_index":0,"item":`+item+`}`, `{"type":"response.function_call_arguments.done","item_id":"fc_1","arguments":"canary"}`), "0"},
		"unknown pieces":          {responsesStream(`{"type":"response.output_item.added","output_index":0,"item":`+item+`}`, `{"type":"response.hologram","output_index":0,"x":"canary"}`), "0"},
		"several lines of data":   {[]byte("event: response.completed\ndata: {\"type\":\"response.completed\",\ndata: \"response\":" + answer + "}\n\n"), "new.0"},
		"a comment with the data": {[]byte(`: {"type":"response.completed","response":` + answer + "}\r\ndata: " + `{"type":"response.completed","response":` + answer + "}\r\n\r\n"), "new.0"},
		"white space":             {[]byte("data:    { \"type\" : \"response.completed\" , \"response\": " + answer + "}  \n\n"), "new.0"},
	} {
		got := edit(test.stream, test.key)
		texts, events := readStream(t, got)
		if texts[wire.Text] != blockedNote || strings.Contains(string(got), "canary") {
			t.Errorf("%s: %q, %s", name, texts, got)
		}
		for _, e := range events {
			if len(e.Calls) > 0 || len(e.Unknown) > 0 {
				t.Errorf("%s: %+v", name, e)
			}
		}
	}
	// Every other byte stays: field order, line ends, numbers that need not change.
	before, after := "id: 7\r\ndata: {\"sequence_number\" : 9,\"type\":\"response.in_progress\",\"response\":{\"x\":1.0}}\r\nevent: response.in_progress\r\n\r\n: hi\r\n\r\n", "data: [DONE]\n\n"
	call := responsesStream(`{"type":"response.output_item.done","output_index":0,"sequence_number":10,"item":` + item + `}`)
	late := `data: {"type":"response.output_text.delta","output_index":1,"sequence_number":%d,"delta":"a"}` + "\n\n"
	got := string(edit(slices.Concat([]byte(before), call, fmt.Appendf(nil, late, 11), fmt.Appendf(nil, late, 40), []byte(after)), "0"))
	if !strings.HasPrefix(got, before) || !strings.HasSuffix(got, fmt.Sprintf(late, 16)+fmt.Sprintf(late, 40)+after) {
		t.Errorf("got %s", got)
	}
}

func TestResponsesAnswerCalls(t *testing.T) {
	answerer, ok := dialect(t, "openai_responses").(wire.CallAnswerer)
	if !ok {
		t.Fatal("the dialect answers no calls")
	}
	block := func(ids ...string) (blocked []wire.BlockedCall) {
		for _, id := range ids {
			blocked = append(blocked, wire.BlockedCall{Key: id, Note: "why"})
		}
		return blocked
	}
	const output = `{"call_id":"c1","output":"why","type":"function_call_output"}`
	for name, test := range map[string]struct {
		body    string
		blocked []wire.BlockedCall
		want    string
	}{
		"a text":                {`{"input": "Hi \u00e9", "previous_response_id":"resp_1"}`, block("c1"), `{"input": [` + output + `,{"role":"user","content":"Hi \u00e9"}], "previous_response_id":"resp_1"}`},
		"items":                 {`{"previous_response_id":"resp_1","input": [ {"role":"user","content":"Hi"} ]}`, block("c1"), `{"previous_response_id":"resp_1","input": [` + output + `, {"role":"user","content":"Hi"} ]}`},
		"no items":              {`{"previous_response_id":"resp_1","input":[ ]}`, block("c1"), `{"previous_response_id":"resp_1","input":[` + output + `]}`},
		"null":                  {`{"input":null,"conversation":"conv_1"}`, block("c1"), `{"input":[` + output + `],"conversation":"conv_1"}`},
		"no input":              {"\n{ \"conversation\":{\"id\":\"conv_1\"}}", block("c1"), "\n{\"input\":[" + output + `], "conversation":{"id":"conv_1"}}`},
		"some have results":     {`{"previous_response_id":"r","input":[{"type":"function_call_output","call_id":"c2","output":"x"},{"type":"local_shell_call_output","id":"c3","output":"x"},{"type":"mcp_approval_response","approval_request_id":"c4","approve":true}]}`, block("c2", "c1", "local_shell_call:c3", "mcp_approval_request:c4", "c1"), `{"previous_response_id":"r","input":[` + output + `,{"type":"function_call_output","call_id":"c2","output":"x"},{"type":"local_shell_call_output","id":"c3","output":"x"},{"type":"mcp_approval_response","approval_request_id":"c4","approve":true}]}`},
		"a custom tool":         {`{"previous_response_id":"r","input":[]}`, block("custom_tool_call:a:b"), `{"previous_response_id":"r","input":[{"call_id":"a:b","output":"why","type":"custom_tool_call_output"}]}`},
		"a shell":               {`{"previous_response_id":"r","input":[]}`, block("shell_call:c"), `{"previous_response_id":"r","input":[{"call_id":"c","output":[{"outcome":{"exit_code":1,"type":"exit"},"stderr":"why","stdout":""}],"type":"shell_call_output"}]}`},
		"a local shell":         {`{"previous_response_id":"r","input":[]}`, block("local_shell_call:c"), `{"previous_response_id":"r","input":[{"id":"c","output":"why","type":"local_shell_call_output"}]}`},
		"a patch":               {`{"previous_response_id":"r","input":[]}`, block("apply_patch_call:c"), `{"previous_response_id":"r","input":[{"call_id":"c","output":"why","status":"failed","type":"apply_patch_call_output"}]}`},
		"a search":              {`{"previous_response_id":"r","input":[]}`, block("tool_search_call:c"), `{"previous_response_id":"r","input":[{"call_id":"c","execution":"client","status":"completed","tools":[],"type":"tool_search_output"}]}`},
		"an approval":           {`{"previous_response_id":"r","input":[]}`, block("mcp_approval_request:c"), `{"previous_response_id":"r","input":[{"approval_request_id":"c","approve":false,"reason":"why","type":"mcp_approval_response"}]}`},
		"a call without an id":  {`{"previous_response_id":"r","input":[]}`, block("", "shell_call:"), `{"previous_response_id":"r","input":[]}`},
		"the history is here":   {`{"input":[{"role":"user","content":"Hi"}]}`, block("c1"), `{"input":[{"role":"user","content":"Hi"}]}`},
		"nothing is blocked":    {`{"previous_response_id":"resp_1","input":"Hi"}`, nil, `{"previous_response_id":"resp_1","input":"Hi"}`},
		"reasoning of a call":   {`{"input":[{"role":"user","content":"Hi"}, {"type":"reasoning","id":"rs_1"}, {"type":"message","id":"msg_lex_1","role":"assistant","content":[]}, {"role":"user","content":"Go"}]}`, nil, `{"input":[{"role":"user","content":"Hi"}, {"type":"message","id":"msg_lex_1","role":"assistant","content":[]}, {"role":"user","content":"Go"}]}`},
		"references":            {`{"input":[{"type":"item_reference","id":"rs_1"},{"id":"rs_2"},{"type":"item_reference","id":"msg_lex_1"}]}`, nil, `{"input":[{"type":"item_reference","id":"msg_lex_1"}]}`},
		"by the text":           {`{"input":[{"type":"reasoning","id":"rs_1"},{"role":"assistant","content":[{"type":"output_text","text":"why"}]}]}`, block("c1"), `{"input":[{"role":"assistant","content":[{"type":"output_text","text":"why"}]}]}`},
		"by the refusal":        {`{"input":[{"type":"reasoning","id":"rs_1"},{"role":"assistant","content":[{"type":"refusal","refusal":"why"}]}]}`, block("c1"), `{"input":[{"role":"assistant","content":[{"type":"refusal","refusal":"why"}]}]}`},
		"reasoning of a text":   {`{"input":[{"type":"reasoning","id":"rs_1"},{"role":"assistant","content":"because"},{"role":"user","content":"why"}]}`, block("c1"), `{"input":[{"type":"reasoning","id":"rs_1"},{"role":"assistant","content":"because"},{"role":"user","content":"why"}]}`},
		"what the user says":    {`{"input":[{"type":"reasoning","id":"rs_1"},{"role":"user","content":"why"}]}`, block("c1"), `{"input":[{"type":"reasoning","id":"rs_1"},{"role":"user","content":"why"}]}`},
		"of a call that stayed": {`{"input":[{"type":"reasoning","id":"rs_1"},{"type":"function_call","call_id":"c2","name":"f","arguments":"{}"},{"id":"msg_lex_1","role":"assistant","content":"why"}]}`, nil, `{"input":[{"type":"reasoning","id":"rs_1"},{"type":"function_call","call_id":"c2","name":"f","arguments":"{}"},{"id":"msg_lex_1","role":"assistant","content":"why"}]}`},
	} {
		got, err := answerer.AnswerCalls([]byte(test.body), test.blocked)
		if err != nil || string(got) != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s, %v", name, got, test.want, err)
		}
		if _, err := dialect(t, "openai_responses").Request(got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if again, err := answerer.AnswerCalls(got, test.blocked); err != nil || !bytes.Equal(again, got) {
			t.Errorf("%s, again: %s, %v", name, again, err)
		}
	}
	if got, err := answerer.AnswerCalls([]byte(`{"previous_response_id":"r","input":[]}`), block("computer_call:c")); !errors.Is(err, wire.ErrCalls) {
		t.Errorf("a computer: %s, %v", got, err)
	}
	for _, body := range []string{``, `{"input":5}`, `{"input":[],"input":[]}`} {
		if got, err := answerer.AnswerCalls([]byte(body), nil); !errors.Is(err, wire.ErrInvalid) {
			t.Errorf("%s: %s, %v", body, got, err)
		}
	}
}

// Clients refer to the messages in the place of calls, which the provider does not know.
func TestResponsesReferencesToNotes(t *testing.T) {
	d := dialect(t, "openai_responses")
	const call = `{"type":"function_call","id":"fc_%d","call_id":"c1","name":"f","arguments":"{}"}`
	body, err := d.(wire.CallEditor).WithoutCalls([]byte(`{"id":"r","output":[`+fmt.Sprintf(call, 1)+`,`+fmt.Sprintf(call, 2)+`]}`), []wire.BlockedCall{{Key: "0", Note: "a"}, {Key: "1", Note: "b"}})
	first, second := gjson.GetBytes(body, "output.0.id").Str, gjson.GetBytes(body, "output.1.id").Str
	if err != nil || first == second {
		t.Fatalf("%s, %v", body, err)
	}
	got, err := d.(wire.CallAnswerer).AnswerCalls([]byte(`{"input":[{"id":"`+first+`"}, {"type":"item_reference","id":"rs_1"},{"type":"item_reference","id":"`+first+`"},{"type":"item_reference","id":"msg_lex_x"},{"type":"message","role":"assistant","id":"`+first+`","content":"x"}]}`), []wire.BlockedCall{{Key: "c1", Note: "why"}})
	const said = `{"content":"why","role":"assistant","type":"message"}`
	if want := `{"input":[` + said + `, ` + said + `,{"type":"item_reference","id":"msg_lex_x"},{"type":"message","role":"assistant","id":"` + first + `","content":"x"}]}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
}

// The ids of the calls of an answer say which results they need.
func TestResponsesCallsAreAnswered(t *testing.T) {
	d := hostingResponses(t)
	r, err := d.Response([]byte(`{"output":[` + responsesCallItems + `,{"type":"function_call","call_id":"shell_call:x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var blocked []wire.BlockedCall
	for _, c := range r.Calls {
		if c.Name != "computer" {
			blocked = append(blocked, wire.BlockedCall{Key: c.ID, Note: "why"})
		}
	}
	got, err := d.(wire.CallAnswerer).AnswerCalls([]byte(`{"previous_response_id":"r","input":"x"}`), blocked)
	var kinds []string
	for _, item := range gjson.GetBytes(got, "input").Array() {
		kinds = append(kinds, item.Get("type").Str+" "+item.Get("call_id").Str+item.Get("id").Str+item.Get("approval_request_id").Str)
	}
	if err != nil {
		t.Fatal(err)
	}
	compare(t, kinds, []string{
		"function_call_output c1", "function_call_output c2", "custom_tool_call_output c3", "local_shell_call_output c4", "shell_call_output c5",
		"apply_patch_call_output c7", "tool_search_output c10", "mcp_approval_response mr_1", "function_call_output shell_call:x", " ",
	})
	if request, err := d.Request(got); err != nil || request.Prompt() != "x" || slices.ContainsFunc(request.Parts, func(p wire.Part) bool { return p.Kind == wire.Unknown }) {
		t.Errorf("%+v, %v", request, err)
	}
}

// FuzzResponsesWithoutCalls: nothing panics, and what comes out can be read and has no
// blocked call, whatever the answer and the stream.
func FuzzResponsesWithoutCalls(f *testing.F) {
	agent, err := os.ReadFile("testdata/examples/openai_responses/agent.stream")
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"output":[{"type":"reasoning"},`+responsesCallItems+`]}`), uint64(5))
	f.Add(agent, uint64(3))
	f.Add(responsesStream(`{"type":"response.output_item.added","output_index":0,"item":{"type":"shell_call","status":"in_progress","action":{"commands":["a"]}}}`,
		`{"type":"response.shell_call_command.delta","output_index":0,"command_index":0,"delta":"b"}`, `{"type":"response.completed","response":{"output":[{},{"type":"function_call"}]}}`), uint64(1))
	f.Fuzz(func(t *testing.T, data []byte, which uint64) {
		d := dialect(t, "openai_responses")
		if whole, err := d.Response(data); err == nil {
			blocked := someCalls(whole.Calls, which)
			out, err := d.(wire.CallEditor).WithoutCalls(data, blocked)
			after, readErr := d.Response(out)
			if err != nil && !errors.Is(err, wire.ErrCalls) || err == nil && (readErr != nil || len(after.Calls) != len(whole.Calls)-len(blocked)) {
				t.Fatalf("%v, %v: %+v\n%s", err, readErr, blocked, out)
			}
		}
		if out, err := d.(wire.CallAnswerer).AnswerCalls(data, []wire.BlockedCall{{Key: "c1", Note: "n"}}); err == nil && !json.Valid(out) {
			t.Fatalf("%s", out)
		}
		s := wire.NewSplitter(d.Framing(), 0)
		if s.Push(data) != nil {
			return
		}
		reader, writer, g, sent, held := d.Events(), d.Stream(), new(wire.CallGatherer), []byte(nil), []wire.Frame(nil)
		for frame, ok := s.Next(); ok; frame, ok = s.Next() {
			e, err := reader.Event(frame)
			if err != nil || g.Add(e.Calls) != nil {
				return
			}
			if len(held) == 0 && len(e.Calls) == 0 {
				writer.Sent(frame)
				sent = append(sent, frame.Raw...)
				continue
			}
			held = append(held, frame)
		}
		blocked := someCalls(g.Calls(), which)
		out, err := writer.(wire.StreamCallEditor).WithoutCalls(held, blocked)
		if err != nil {
			if !errors.Is(err, wire.ErrCalls) {
				t.Fatal(err)
			}
			return
		}
		// What is left is called as it was, and what is blocked is not called.
		before := make(map[string]bool)
		for _, c := range g.Calls() {
			isBlocked := slices.ContainsFunc(blocked, func(b wire.BlockedCall) bool { return b.Key == c.Key })
			before[c.ID+" "+c.Name+" "+c.Arguments] = before[c.ID+" "+c.Name+" "+c.Arguments] || !isBlocked
		}
		left, _, err := gatherCalls(t, slices.Concat(sent, out))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range left {
			if !before[c.ID+" "+c.Name+" "+c.Arguments] {
				t.Fatalf("%+v is left, %+v are blocked, of %+v:\n%s", c, blocked, g.Calls(), out)
			}
		}
	})
}

// someCalls blocks the calls whose bits are set.
func someCalls(calls []wire.ToolCall, which uint64) (blocked []wire.BlockedCall) {
	for i, c := range calls {
		if which>>(i%64)&1 == 1 {
			blocked = append(blocked, wire.BlockedCall{Key: c.Key, Note: "n"})
		}
	}
	return blocked
}

// Whatever events come in whatever order, either the calls cannot be edited, or what is
// left are the allowed ones, as they were.
func TestResponsesHostileStreams(t *testing.T) {
	d := dialect(t, "openai_responses")
	edited := 0
	rapid.Check(t, func(r *rapid.T) {
		index := rapid.SampledFrom([]string{`"output_index":0,`, `"output_index":1,`, `"output_index":2,`, `"output_index":2,`, `"output_index":3,`, ``})
		id := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		item := func() string {
			n := id.Draw(r, "item")
			return rapid.SampledFrom([]string{
				`{"type":"function_call","id":"` + n + `","call_id":"c` + n + `","name":"f","arguments":""}`,
				`{"type":"function_call","id":"` + n + `","call_id":"c` + n + `","name":"f","arguments":"{}"}`,
				`{"type":"shell_call","id":"` + n + `","call_id":"c` + n + `","action":{"commands":["ls"]}}`,
				`{"type":"custom_tool_call","id":"` + n + `","call_id":"c` + n + `","name":"g","input":"{}"}`,
				`{"type":"message","id":"` + n + `","role":"assistant","status":"completed","content":[{"type":"output_text","text":"said"}]}`,
				`{"type":"reasoning","id":"` + n + `","encrypted_content":"gA","summary":[]}`,
			}).Draw(r, "of type")
		}
		var events []string
		for n := rapid.IntRange(1, 8).Draw(r, "events"); n > 0; n-- {
			at := index.Draw(r, "index")
			switch rapid.IntRange(0, 5).Draw(r, "event") {
			case 0, 1:
				events = append(events, `{`+at+`"type":"response.output_item.added","item":`+item()+`}`)
			case 2:
				events = append(events, `{`+at+`"type":"response.output_item.done","item":`+item()+`}`)
			case 3:
				events = append(events, `{`+at+`"type":"response.function_call_arguments.delta","item_id":"`+id.Draw(r, "id")+`","delta":"{}"}`)
			case 4:
				events = append(events, `{`+at+`"type":"response.function_call_arguments.done","item_id":"`+id.Draw(r, "id")+`","arguments":"{}"}`)
			case 5:
				var items []string
				for range rapid.IntRange(0, 3).Draw(r, "items") {
					items = append(items, item())
				}
				events = append(events, `{"type":"response.completed","response":{"id":"r","status":"completed","output":[`+strings.Join(items, ",")+`]}}`)
				n = 0 // what comes behind it is not held
			}
		}
		reader, writer, g, sent, held := d.Events(), d.Stream(), new(wire.CallGatherer), []byte(nil), []wire.Frame(nil)
		for _, f := range split(t, d, responsesStream(events...)) {
			e, err := reader.Event(f)
			if err != nil || g.Add(e.Calls) != nil {
				return
			}
			if len(held) > 0 || len(e.Calls) > 0 {
				held = append(held, f)
				continue
			}
			writer.Sent(f)
			sent = append(sent, f.Raw...)
		}
		blocked := someCalls(g.Calls(), rapid.Uint64().Draw(r, "blocked"))
		out, err := writer.(wire.StreamCallEditor).WithoutCalls(held, blocked)
		if err != nil {
			if !errors.Is(err, wire.ErrCalls) {
				r.Fatal(err)
			}
			return
		}
		if len(blocked) > 0 {
			edited++
		}
		left, _, err := gatherCalls(t, slices.Concat(sent, out))
		same := func(a wire.ToolCall) func(wire.ToolCall) bool {
			return func(b wire.ToolCall) bool { return a.ID == b.ID && a.Name == b.Name && a.Arguments == b.Arguments }
		}
		for _, c := range g.Calls() {
			isBlocked := slices.ContainsFunc(blocked, func(b wire.BlockedCall) bool { return b.Key == c.Key })
			if !isBlocked && !slices.ContainsFunc(left, same(c)) {
				r.Fatalf("%+v is gone (%v): %+v, %+v are blocked\n%s", c, err, left, blocked, strings.Join(events, "\n"))
			}
		}
		for _, c := range left {
			if !slices.ContainsFunc(g.Calls(), func(b wire.ToolCall) bool {
				return same(c)(b) && !slices.ContainsFunc(blocked, func(x wire.BlockedCall) bool { return x.Key == b.Key })
			}) {
				r.Fatalf("%+v is left, %+v are blocked:\n%s", c, blocked, out)
			}
		}
	})
	if edited == 0 {
		t.Error("nothing was edited")
	}
}
