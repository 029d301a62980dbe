package wire_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"github.com/caddy-lex/lex/wire"
)

func TestAnthropicTools(t *testing.T) {
	body := `{"messages":[{"role":"user","content":"hi"},{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"late","input_schema":{}}}},` +
		`{"type":"tool_removal","tool":{"type":"tool_reference","tool_name":"weather"}}]}],"tools":[{"name":"weather","description":"d","input_schema":{"type" : "object"},"eager_input_streaming":true},` +
		`{"type":"bash_20250124","name":"bash"},{"type":"web_search_20250305","name":"web_search"},{"type":"mcp_toolset","mcp_server_name":"m"},{"name":"none","input_schema":null}]}`
	r, err := dialect(t, "anthropic").Request([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if want := []wire.ToolDefinition{
		{Name: "weather", Description: "d", Schema: []byte(`{"type" : "object"}`)}, {Name: "bash"}, {Name: "none"}, {Name: "late", Schema: []byte("{}")},
	}; !reflect.DeepEqual(r.Tools, want) {
		t.Errorf("%+v", r.Tools)
	}
}

// claudeWhole is an answer with a block of each kind.
const claudeWhole = ` {"id":"msg_1","type":"message","role":"assistant","model":"m" , "content": [
	{"type":"thinking","thinking":"hm","signature":"c2ln"}, {"type":"text","text":"Let me \u006cook."},
	{"type":"tool_use","id":"t1","name":"first","input":{"a": "one"}, "caller":{"type":"direct"}},
	{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"q"}},
	{"type":"tool_use","id":"t2","name":"second","input":{ }} ],"stop_reason" :"tool_use","stop_sequence":null,"usage":{"output_tokens":5}}
`

func TestAnthropicWholeCalls(t *testing.T) {
	d := dialect(t, "anthropic")
	r, err := d.Response([]byte(claudeWhole))
	if err != nil {
		t.Fatal(err)
	}
	if want := []wire.ToolCall{
		{Key: "2", ID: "t1", Name: "first", Arguments: `{"a": "one"}`}, {Key: "4", ID: "t2", Name: "second", Arguments: "{ }"},
	}; !slices.Equal(r.Calls, want) {
		t.Fatalf("%+v", r.Calls)
	}
	first, second := `{"type":"tool_use","id":"t1","name":"first","input":{"a": "one"}, "caller":{"type":"direct"}}`, `{"type":"tool_use","id":"t2","name":"second","input":{ }}`
	for name, test := range map[string]struct {
		blocked []wire.BlockedCall
		changes []string
	}{
		"none":       {nil, nil},
		"the first":  {[]wire.BlockedCall{{Key: "2", Note: "No \"x\"."}}, []string{first, `{"type":"text","text":"No \"x\"."}`}},
		"the second": {[]wire.BlockedCall{{Key: "4", Note: "No."}}, []string{second, `{"type":"text","text":"No."}`}},
		"all": {[]wire.BlockedCall{{Key: "4", Note: "No."}, {Key: "2", Note: "Nor this."}}, []string{
			first, `{"type":"text","text":"Nor this."}`, second, `{"type":"text","text":"No."}`, `"stop_reason" :"tool_use"`, `"stop_reason" :"end_turn"`,
		}},
	} {
		out, err := d.(wire.CallEditor).WithoutCalls([]byte(claudeWhole), test.blocked)
		if want := strings.NewReplacer(test.changes...).Replace(claudeWhole); err != nil || string(out) != want {
			t.Errorf("%s: %v\n got %s\nwant %s", name, err, out, want)
		}
	}
	// Where texts are parsed, the block goes and the note stands in the details of the end.
	refusal := func(key, note string) wire.BlockedCall {
		return wire.BlockedCall{Key: key, Note: note, Place: wire.OnlyRefusal}
	}
	details := func(note string) string {
		return `{"stop_details":{"type":"refusal","category":null,"explanation":"` + note + `"},"id":"msg_1"`
	}
	for name, test := range map[string]struct {
		blocked []wire.BlockedCall
		changes []string
	}{
		"the first": {[]wire.BlockedCall{refusal("2", "No.")}, []string{",\n\t" + first, "", `{"id":"msg_1"`, details("No.")}},
		"one of each": {[]wire.BlockedCall{{Key: "4", Note: "Nor."}, refusal("2", "No.")}, []string{
			",\n\t" + first, "", second, `{"type":"text","text":"Nor."}`, `{"id":"msg_1"`, details("No."), `"stop_reason" :"tool_use"`, `"stop_reason" :"refusal"`,
		}},
		"all": {[]wire.BlockedCall{refusal("4", "Nor."), refusal("2", "No.")}, []string{
			",\n\t" + first, "", ",\n\t" + second, "", `{"id":"msg_1"`, details(`No.\nNor.`), `"stop_reason" :"tool_use"`, `"stop_reason" :"refusal"`,
		}},
	} {
		out, err := d.(wire.CallEditor).WithoutCalls([]byte(claudeWhole), test.blocked)
		if want := strings.NewReplacer(test.changes...).Replace(claudeWhole); err != nil || string(out) != want {
			t.Errorf("%s: %v\n got %s\nwant %s", name, err, out, want)
		}
	}
	null := strings.Replace(claudeWhole, `"usage"`, `"stop_details": null,"usage"`, 1)
	if out, err := d.(wire.CallEditor).WithoutCalls([]byte(null), []wire.BlockedCall{refusal("2", "No.")}); err != nil || gjson.GetBytes(out, "stop_details.explanation").Str != "No." || !json.Valid(out) {
		t.Errorf("%s, %v", out, err)
	}
	limit := strings.Replace(claudeWhole, `"stop_reason" :"tool_use"`, `"stop_reason":"max_tokens"`, 1)
	if out, err := d.(wire.CallEditor).WithoutCalls([]byte(limit), []wire.BlockedCall{{Key: "2", Note: "a"}, {Key: "4", Note: "b"}}); err != nil || gjson.GetBytes(out, "stop_reason").Str != "max_tokens" {
		t.Errorf("%s, %v", out, err)
	}
	for name, test := range map[string]struct{ body, key, note string }{
		"no such call":     {claudeWhole, "9", "No."},
		"a provider's":     {claudeWhole, "3", "No."},
		"a text":           {claudeWhole, "1", "No."},
		"no note":          {claudeWhole, "2", ""},
		"no answer":        {`{"content":`, "2", "No."},
		"two contents":     {`{"content":[{"type":"tool_use"}],"content":[]}`, "0", "No."},
		"another spelling": {`{"content":[{"type":"tool_use"}],"Content":[]}`, "0", "No."},
	} {
		if out, err := d.(wire.CallEditor).WithoutCalls([]byte(test.body), []wire.BlockedCall{{Key: test.key, Note: test.note}}); !errors.Is(err, wire.ErrCalls) || out != nil {
			t.Errorf("%s: %s, %v", name, out, err)
		}
	}
}

// Frames of a stream of Claude's, as short as they can be told apart.
func claudeBegin(index int, block string) string {
	return typedFrame("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, block))
}

// untyped are frames whose data have no type.
func untyped(frames string) string {
	return regexp.MustCompile(`data: \{"type":"[a-z_]+",`).ReplaceAllString(frames, "data: {")
}

func claudeUse(index int, id, name, input string) string {
	return claudeBegin(index, fmt.Sprintf(`{"type":"tool_use","id":"%s","name":"%s","input":%s}`, id, name, input))
}

func claudeDelta(index int, kind, member, text string) string {
	return typedFrame("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"%s","%s":%s}}`, index, kind, member, jsonOf(text)))
}

func claudeInput(index int, piece string) string {
	return claudeDelta(index, "input_json_delta", "partial_json", piece)
}

func claudeStop(index int) string {
	return typedFrame("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index))
}

func claudeStart(content string) string {
	return typedFrame("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[`+content+`],"stop_reason":null,"usage":{"output_tokens":1}}}`)
}

func claudeEnd(reason string) string {
	return typedFrame("message_delta", `{"type":"message_delta","delta":{"stop_reason":"`+reason+`","stop_sequence":null},"usage":{"output_tokens":9}}`) +
		typedFrame("message_stop", `{"type":"message_stop"}`)
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// gathered puts the calls of a stream together.
func gathered(t testing.TB, d wire.Dialect, stream []byte) ([]wire.ToolCall, error) {
	t.Helper()
	var g wire.CallGatherer
	events := d.Events()
	for _, f := range split(t, d, stream) {
		e, err := events.Event(f)
		if err != nil {
			return nil, err
		}
		if err := g.Add(e.Calls); err != nil {
			return nil, err
		}
	}
	return g.Calls(), nil
}

// editStream takes calls out of a stream as the proxy does: what stands before the first
// frame with a piece of a call has been sent.
func editStream(t testing.TB, d wire.Dialect, stream []byte, blocked []wire.BlockedCall) ([]byte, error) {
	t.Helper()
	events, w := d.Events(), d.Stream()
	var sent []byte
	frames := split(t, d, stream)
	for i, f := range frames {
		e, err := events.Event(f)
		if err != nil {
			t.Fatal(err)
		}
		if len(e.Calls) > 0 {
			out, err := w.(wire.StreamCallEditor).WithoutCalls(frames[i:], blocked)
			return append(sent, out...), err
		}
		w.Sent(f)
		sent = append(sent, f.Raw...)
	}
	out, err := w.(wire.StreamCallEditor).WithoutCalls(nil, blocked)
	return append(sent, out...), err
}

func TestAnthropicStreamedCalls(t *testing.T) {
	type call = wire.ToolCall
	d := dialect(t, "anthropic")
	for name, test := range map[string]struct {
		stream string
		want   []call // nil: the calls are unclear
	}{
		"pieces":             {claudeStart("") + claudeUse(0, "t", "f", "{}") + claudeInput(0, "") + claudeInput(0, `{"a":`) + claudeInput(0, `1}`) + claudeStop(0), []call{{Key: "0", ID: "t", Name: "f", Arguments: `{"a":1}`}}},
		"no piece":           {claudeStart("") + claudeUse(0, "t", "f", "{}") + claudeStop(0), []call{{Key: "0", ID: "t", Name: "f", Arguments: "{}"}}},
		"an empty piece":     {claudeStart("") + claudeUse(0, "t", "f", "{}") + claudeInput(0, "") + claudeStop(0), []call{{Key: "0", ID: "t", Name: "f", Arguments: "{}"}}},
		"an empty object":    {claudeStart("") + claudeUse(0, "t", "f", "{}") + claudeInput(0, "{}") + claudeStop(0), []call{{Key: "0", ID: "t", Name: "f", Arguments: "{}"}}},
		"whole":              {claudeStart("") + claudeUse(0, "t", "f", `{"a":1}`) + claudeInput(0, "") + claudeStop(0), []call{{Key: "0", ID: "t", Name: "f", Arguments: `{"a":1}`}}},
		"cut":                {claudeStart("") + claudeUse(0, "t", "f", "{}") + claudeInput(0, `{"a":`), []call{{Key: "0", ID: "t", Name: "f", Arguments: `{"a":`}}},
		"in the beginning":   {claudeStart(`{"type":"text","text":"a"},{"type":"tool_use","id":"t","name":"f","input":{}}`) + claudeUse(2, "u", "g", "{}") + claudeStop(2), []call{{Key: "1", ID: "t", Name: "f", Arguments: "{}"}, {Key: "2", ID: "u", Name: "g", Arguments: "{}"}}},
		"a provider's":       {claudeStart("") + claudeBegin(0, `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`) + claudeInput(0, `{"query":"q"}`) + claudeStop(0), []call{}},
		"two with one id":    {claudeStart("") + claudeUse(0, "t", "f", "{}") + claudeStop(0) + claudeUse(1, "t", "f", "{}") + claudeStop(1), []call{{Key: "0", ID: "t", Name: "f", Arguments: "{}"}, {Key: "1", ID: "t", Name: "f", Arguments: "{}"}}},
		"interleaved":        {claudeStart("") + claudeUse(0, "t", "f", "{}") + claudeUse(1, "u", "g", "{}") + claudeInput(0, `{"a":`) + claudeInput(1, `{"b":`) + claudeInput(0, `1}`) + claudeStop(0) + claudeInput(1, `2}`) + claudeStop(1), []call{{Key: "0", ID: "t", Name: "f", Arguments: `{"a":1}`}, {Key: "1", ID: "u", Name: "g", Arguments: `{"b":2}`}}},
		"another delta type": {claudeStart("") + claudeUse(0, "t", "f", "{}") + claudeDelta(0, "text_delta", "partial_json", `{"a":1}`) + claudeStop(0), []call{{Key: "0", ID: "t", Name: "f", Arguments: "{}"}}},

		// The JavaScript SDK takes the pieces, the Go SDK both, one behind the other.
		"whole and pieces":              {claudeStart("") + claudeUse(0, "t", "f", `{"a":1}`) + claudeInput(0, `{"a":2}`), nil},
		"a piece of one that was whole": {claudeStart(`{"type":"tool_use","id":"t","name":"f","input":{}}`) + claudeInput(0, `{"a":2}`), nil},
		// The AI SDK forgets a block at its end, the others go on.
		"a piece behind the end":      {claudeStart("") + claudeUse(0, "t", "f", "{}") + claudeInput(0, "{}") + claudeStop(0) + claudeInput(0, " "), nil},
		"a piece behind an empty end": {claudeStart("") + claudeUse(0, "t", "f", "{}") + claudeStop(0) + claudeInput(0, `{"a":1}`), nil},
		// The official SDKs count the blocks, others go by the index.
		"one index twice":              {claudeStart("") + claudeUse(0, "t", "f", "{}") + claudeUse(0, "u", "g", "{}"), nil},
		"a gap":                        {claudeStart("") + claudeUse(1, "t", "f", "{}"), nil},
		"a gap before":                 {claudeStart("") + claudeBegin(1, `{"type":"text","text":""}`) + claudeUse(1, "t", "f", "{}"), nil},
		"a negative index":             {claudeStart("") + claudeUse(-1, "t", "f", "{}"), nil},
		"a name that is no text":       {claudeStart("") + strings.Replace(claudeUse(0, "t", "f", "{}"), `"name":"f"`, `"name":["f"]`, 1) + claudeStop(0), nil},
		"a begun name that is no text": {claudeStart(`{"type":"tool_use","id":"t","name":["f"],"input":{}}`), nil},
		"an odd index":                 {claudeStart("") + strings.Replace(claudeUse(0, "t", "f", "{}"), `"index":0`, `"index":"0"`, 1), nil},
		"no index":                     {claudeStart("") + strings.Replace(claudeUse(0, "t", "f", "{}"), `"index":0,`, ``, 1), nil},
		"two beginnings":               {claudeStart("") + claudeBegin(0, `{"type":"text","text":""}`) + claudeStart("") + claudeUse(0, "t", "f", "{}"), nil},
		"a late beginning":             {claudeBegin(0, `{"type":"text","text":""}`) + claudeStart(`{"type":"tool_use","id":"t","name":"f","input":{}}`), nil},
		"another event":                {claudeStart("") + strings.Replace(claudeUse(0, "t", "f", "{}"), "event: content_block_start", "event: ping", 1), nil},
		"a skipped block":              {claudeStart("") + strings.Replace(claudeBegin(0, `{"type":"text","text":""}`), "event: content_block_start", "event: ping", 1) + claudeUse(1, "t", "f", "{}"), nil},
		"a skipped piece":              {claudeStart("") + claudeUse(0, "t", "f", "{}") + strings.Replace(claudeInput(0, "{}"), "event: content_block_delta", "event: ping", 1), nil},
		"a negative piece":             {claudeStart("") + claudeUse(0, "t", "f", "{}") + claudeInput(-1, `{"a":1}`), nil},
		"an odd piece":                 {claudeStart("") + claudeUse(0, "t", "f", "{}") + strings.Replace(claudeInput(0, `{"a":1}`), `"index":0`, `"index":"0"`, 1), nil},
		// Some SDKs put the event's name in the place of a type that is missing, others skip the frame.
		"no types":                {claudeStart("") + untyped(claudeUse(0, "t", "f", "{}")+claudeInput(0, `{"a":1}`)+claudeStop(0)), nil},
		"no type of a piece":      {claudeStart("") + claudeUse(0, "t", "f", "{}") + untyped(claudeInput(0, `{"a":1}`)) + claudeStop(0), nil},
		"no type of a text":       {claudeStart("") + untyped(claudeBegin(0, `{"type":"text","text":""}`)) + claudeUse(1, "t", "f", "{}"), nil},
		"no type in the start":    {untyped(claudeStart(`{"type":"tool_use","id":"t","name":"f","input":{}}`)), nil},
		"another type":            {claudeStart("") + strings.Replace(claudeUse(0, "t", "f", "{}"), `"type":"content_block_start"`, `"type":"ping"`, 1), nil},
		"another type of a piece": {claudeStart("") + strings.Replace(claudeInput(0, `{"a":1}`), `"type":"content_block_delta"`, `"type":"ping"`, 1), nil},
		// Who gathers by index puts together what came before the beginning with what comes behind.
		"a piece before its block":        {claudeStart("") + claudeInput(0, `{"a":1}`) + claudeUse(0, "t", "f", "{}") + claudeStop(0), nil},
		"a piece before the second block": {claudeStart("") + claudeUse(0, "t", "f", "{}") + claudeInput(1, `{"a":1}`) + claudeStop(0) + claudeUse(1, "u", "g", "{}"), nil},
		"a piece without a block":         {claudeStart("") + claudeInput(0, `{"a":1}`), nil},
		"a piece of nobody":               {claudeStart("") + claudeUse(0, "t", "f", "{}") + strings.Replace(claudeInput(0, `{"a":1}`), `"index":0,`, "", 1), nil},
	} {
		got, err := gathered(t, d, []byte(test.stream))
		if test.want == nil {
			if !errors.Is(err, wire.ErrCalls) {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
			if out, err := editStream(t, d, []byte(test.stream), []wire.BlockedCall{{Key: "0", Note: "No."}, {Key: "1", Note: "No."}}); !errors.Is(err, wire.ErrCalls) {
				t.Errorf("%s is edited: %s, %v", name, out, err)
			}
		} else if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestAnthropicStreamsWithoutCalls(t *testing.T) {
	d := dialect(t, "anthropic")
	text := claudeBegin(0, `{"type":"text","text":""}`) + claudeDelta(0, "text_delta", "text", "Let me look.") + claudeStop(0)
	ping := typedFrame("ping", `{"type":"ping"}`)
	first := claudeUse(1, "t1", "first", "{}") + claudeInput(1, "") + ping + claudeInput(1, `{"a":1}`) + claudeStop(1)
	thought := claudeBegin(2, `{"type":"thinking","thinking":"","signature":""}`) + claudeDelta(2, "signature_delta", "signature", "c2ln") + claudeStop(2)
	second := claudeUse(3, "t2", "second", `{"b":2}`) + claudeStop(3)
	note := func(index int, text string) string {
		return claudeBegin(index, `{"type":"text","text":""}`) + claudeDelta(index, "text_delta", "text", text)
	}
	stream := claudeStart("") + text + first + thought + second + claudeEnd("tool_use")
	for name, test := range map[string]struct {
		blocked []wire.BlockedCall
		want    string
	}{
		"none":       {nil, stream},
		"the first":  {[]wire.BlockedCall{{Key: "1", Note: "No."}}, claudeStart("") + text + note(1, "No.") + ping + claudeStop(1) + thought + second + claudeEnd("tool_use")},
		"the second": {[]wire.BlockedCall{{Key: "3", Note: "No."}}, claudeStart("") + text + first + thought + note(3, "No.") + claudeStop(3) + claudeEnd("tool_use")},
		"all": {[]wire.BlockedCall{{Key: "1", Note: "No."}, {Key: "3", Note: "Nor this."}}, claudeStart("") + text + note(1, "No.") + ping + claudeStop(1) + thought +
			note(3, "Nor this.") + claudeStop(3) + claudeEnd("end_turn")},
	} {
		out, err := editStream(t, d, []byte(stream), test.blocked)
		if err != nil || string(out) != test.want {
			t.Errorf("%s: %v\n got %s\nwant %s", name, err, out, test.want)
		}
		streamed(t, d, out)
	}
	// Where texts are parsed, the blocks behind move up.
	out, err := editStream(t, d, []byte(stream), []wire.BlockedCall{{Key: "1", Note: "No.", Place: wire.OnlyRefusal}})
	moved := strings.NewReplacer(`"index":2`, `"index":1`, `"index":3`, `"index":2`).Replace(thought + second)
	if want := claudeStart("") + text + ping + moved +
		strings.Replace(claudeEnd("tool_use"), `"delta":{`, `"delta":{"stop_details":{"type":"refusal","category":null,"explanation":"No."},`, 1); err != nil || string(out) != want {
		t.Errorf("%v\n got %s\nwant %s", err, out, want)
	}
	// Blocks that stand in the beginning, over several lines of data.
	early := claudeStart(`{"type":"text","text":"a"},{"type":"tool_use","id":"t","name":"secret","input":{"a":1}}`)
	for _, begin := range []string{early, strings.Replace(early, `"message":`, "\ndata: \"message\":", 1), strings.ReplaceAll("id: 7\n"+early, "\n", "\r\n")} {
		out, err := editStream(t, d, []byte(begin+claudeEnd("tool_use")), []wire.BlockedCall{{Key: "1", Note: "No."}})
		if err != nil || bytes.Contains(out, []byte("secret")) || !bytes.Contains(out, []byte(`{"type":"text","text":"No."}`)) {
			t.Fatalf("%s, %v", out, err)
		}
		if got := streamed(t, d, out); got.text != "aNo." || got.Finish != "end_turn" {
			t.Errorf("%+v", got)
		}
	}
	out, err = editStream(t, d, []byte(early+claudeUse(2, "u", "left", "{}")+claudeInput(2, "{}")+claudeStop(2)+claudeEnd("tool_use")), []wire.BlockedCall{{Key: "1", Note: "No.", Place: wire.OnlyRefusal}})
	if err != nil || bytes.Contains(out, []byte("secret")) {
		t.Fatalf("%s, %v", out, err)
	}
	if got := streamed(t, d, out); got.text != "a" || got.refusal != "No." || !slices.Equal(got.ran, []string{"left"}) {
		t.Errorf("%+v in %s", got, out)
	}
	// A reason of its own stays, and one behind the frames is not ours to change.
	for _, reason := range []string{"max_tokens", "pause_turn", "refusal"} {
		out, err := editStream(t, d, []byte(claudeStart("")+claudeUse(0, "t", "f", "{}")+claudeStop(0)+claudeEnd(reason)), []wire.BlockedCall{{Key: "0", Note: "No."}})
		if got := streamed(t, d, out); err != nil || got.Finish != reason {
			t.Errorf("%s: %+v, %v", reason, got, err)
		}
	}
	for name, stream := range map[string]string{
		"no such call":       claudeStart("") + claudeUse(0, "t", "f", "{}"),
		"the other's":        claudeStart("") + claudeBegin(0, `{"type":"text","text":""}`) + claudeUse(1, "t", "f", "{}") + claudeStop(1) + claudeUse(2, "u", "g", "{}"),
		"an index again":     claudeStart("") + claudeUse(0, "t", "f", "{}") + claudeStop(0) + claudeUse(1, "u", "g", "{}") + claudeStop(1) + claudeBegin(0, `{"type":"text","text":""}`) + claudeDelta(0, "text_delta", "text", "a"),
		"a frame to no mind": claudeStart("") + claudeBegin(0, `{"type":"text","text":""}`) + claudeUse(1, "t", "f", "{}") + "event: x\ndata: {\n\n",
	} {
		w := d.Stream()
		if out, err := w.(wire.StreamCallEditor).WithoutCalls(split(t, d, []byte(stream)), []wire.BlockedCall{{Key: "0", Note: "No."}, {Key: "1", Note: "No."}}); !errors.Is(err, wire.ErrCalls) || out != nil {
			t.Errorf("%s: %s, %v", name, out, err)
		}
	}
}

// An answer is drawn as a list of blocks, and is written whole and as a stream.
type drawnBlock struct {
	kind, text, name string
	pieces           []string
}

func drawClaude(t *rapid.T) (blocks []drawnBlock) {
	n := rapid.IntRange(1, 6).Draw(t, "blocks")
	for i := range n {
		b := drawnBlock{kind: rapid.SampledFrom([]string{"text", "tool_use", "tool_use", "thinking", "server_tool_use"}).Draw(t, "kind")}
		b.text = rapid.StringMatching(`[a-zäß "\\{}]{1,9}`).Draw(t, "text")
		b.name = fmt.Sprintf("Name%d", i)
		if strings.HasSuffix(b.kind, "tool_use") {
			arguments := jsonOf(map[string]any{fmt.Sprintf("Arg%d", i): b.text})
			if rapid.Bool().Draw(t, "empty") {
				arguments = "{}"
			}
			b.pieces = cutAnywhere(t, arguments)
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// cutAnywhere cuts a text into pieces, between characters.
func cutAnywhere(t *rapid.T, s string) (pieces []string) {
	for rest := []rune(s); len(rest) > 0; {
		n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
		pieces, rest = append(pieces, string(rest[:n])), rest[n:]
	}
	return pieces
}

func claudeAnswers(blocks []drawnBlock) (whole, stream string) {
	var content []string
	reason := "end_turn"
	stream = claudeStart("")
	for i, b := range blocks {
		switch b.kind {
		case "text":
			content = append(content, fmt.Sprintf(`{"type":"text","text":%s}`, jsonOf(b.text)))
			stream += claudeBegin(i, `{"type":"text","text":""}`) + claudeDelta(i, "text_delta", "text", b.text)
		case "thinking":
			content = append(content, fmt.Sprintf(`{"type":"thinking","thinking":%s,"signature":"sig%d"}`, jsonOf(b.text), i))
			stream += claudeBegin(i, `{"type":"thinking","thinking":"","signature":""}`) + claudeDelta(i, "thinking_delta", "thinking", b.text) +
				claudeDelta(i, "signature_delta", "signature", "sig"+strconv.Itoa(i))
		default:
			name := b.name
			if b.kind == "tool_use" {
				reason = "tool_use"
			} else {
				name = "web_search"
			}
			head := fmt.Sprintf(`{"type":"%s","id":"Id%d","name":"%s","input":`, b.kind, i, name)
			content = append(content, head+strings.Join(b.pieces, "")+"}")
			stream += claudeBegin(i, head+"{}}")
			for _, piece := range b.pieces {
				stream += claudeInput(i, piece)
			}
		}
		stream += claudeStop(i)
	}
	whole = `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[` + strings.Join(content, ", ") + `],"stop_reason":"` + reason + `","usage":{"output_tokens":1}}`
	return whole, stream + claudeEnd(reason)
}

// Whatever is blocked, the rest is read as it was, whole and streamed, and of what is
// blocked nothing is left.
func TestAnthropicWithoutAnyCalls(t *testing.T) {
	d := dialect(t, "anthropic")
	rapid.Check(t, func(rt *rapid.T) {
		blocks := drawClaude(rt)
		whole, stream := claudeAnswers(blocks)
		read, err := d.Response([]byte(whole))
		if err != nil {
			rt.Fatal(err)
		}
		fromStream, err := gathered(t, d, []byte(stream))
		if err != nil || !slices.Equal(fromStream, read.Calls) {
			rt.Fatalf("streamed %+v, whole %+v, %v", fromStream, read.Calls, err)
		}
		var blocked []wire.BlockedCall
		var left []wire.ToolCall
		var gone, told []string
		text := ""
		calls := read.Calls
		for i, b := range blocks {
			switch b.kind {
			case "text":
				text += b.text
			case "tool_use":
				call := calls[0]
				calls = calls[1:]
				if rapid.Bool().Draw(rt, "blocked") {
					note := wire.BlockedCall{Key: call.Key, Note: fmt.Sprintf("[note %d]", i)}
					if rapid.Bool().Draw(rt, "parsed") {
						note.Place = wire.OnlyRefusal
						told = append(told, note.Note)
					} else {
						text += note.Note
					}
					blocked = append(blocked, note)
					gone = append(gone, call.Name, call.ID+`"`, "Arg"+strconv.Itoa(i))
				} else {
					left = append(left, call)
				}
			}
		}
		edited, err := d.(wire.CallEditor).WithoutCalls([]byte(whole), blocked)
		if err != nil {
			rt.Fatal(err)
		}
		streamedEdit, err := editStream(t, d, []byte(stream), blocked)
		if err != nil {
			rt.Fatal(err)
		}
		if len(blocked) == 0 && (string(edited) != whole || string(streamedEdit) != stream) {
			rt.Fatal("nothing is blocked, and something changed")
		}
		again, err := d.Response(edited)
		if err != nil || !slices.Equal(withoutKeys(again.Calls), withoutKeys(left)) || again.Text() != cmp.Or(text, strings.Join(told, "\n")) {
			rt.Fatalf("%+v %q, want %+v %q: %v", again.Calls, again.Text(), left, text, err)
		}
		if fromStream, err := gathered(t, d, streamedEdit); err != nil || !slices.Equal(fromStream, again.Calls) {
			rt.Fatalf("%+v, want %+v: %v", fromStream, again.Calls, err)
		}
		got := streamed(t, d, streamedEdit)
		if got.text != text || got.refusal != strings.Join(told, "\n") || got.Finish != again.Finish || got.blocks != len(blocks)-len(told) ||
			(again.Finish == "tool_use") != (len(left) > 0) || (again.Finish == "refusal") != (len(left) == 0 && len(told) > 0) {
			rt.Fatalf("%+v ends in %q, the whole in %q", got, got.Finish, again.Finish)
		}
		for _, trace := range gone {
			if bytes.Contains(edited, []byte(trace)) || bytes.Contains(streamedEdit, []byte(trace)) {
				rt.Fatalf("%s is left in %s and %s", trace, edited, streamedEdit)
			}
		}
	})
}

// FuzzAnthropicWithoutCalls: nothing panics, and what is edited can be read, and has all
// the calls but the first.
func FuzzAnthropicWithoutCalls(f *testing.F) {
	f.Add([]byte(claudeWhole), []byte(claudeStart("")+claudeUse(0, "t", "f", "{}")+claudeInput(0, `{"a":1}`)+claudeStop(0)+claudeUse(1, "u", "g", "{}")+claudeStop(1)+claudeEnd("tool_use")))
	f.Add([]byte(`{"content":[{"type":"tool_use"},{"type":"tool_use","input":"x"}]}`), []byte(claudeStart(`{"type":"tool_use"}`)+claudeEnd("tool_use")))
	f.Fuzz(func(t *testing.T, body, stream []byte) {
		d := dialect(t, "anthropic")
		if r, err := d.Response(body); err == nil && len(r.Calls) > 0 {
			out, err := d.(wire.CallEditor).WithoutCalls(body, []wire.BlockedCall{{Key: r.Calls[0].Key, Note: "No."}})
			if err != nil {
				t.Fatal(err)
			}
			again, err := d.Response(out)
			if err != nil || !slices.Equal(again.Calls, r.Calls[1:]) {
				t.Fatalf("%+v of %+v, %v", again.Calls, r.Calls, err)
			}
		}
		checkStreamEdit(t, d, stream)
	})
}

// checkStreamEdit takes the first call out of any stream.
func checkStreamEdit(t *testing.T, d wire.Dialect, stream []byte) {
	t.Helper()
	calls, err := gathered(t, d, stream)
	frames := split(t, d, stream)
	blocked := []wire.BlockedCall{{Key: "0", Note: "No."}}
	if len(calls) > 0 && err == nil {
		blocked[0].Key = calls[0].Key
	}
	out, editErr := d.Stream().(wire.StreamCallEditor).WithoutCalls(frames, blocked)
	if editErr != nil {
		if !errors.Is(editErr, wire.ErrCalls) || out != nil {
			t.Fatalf("%s, %v of %+v", out, editErr, calls)
		}
		return
	}
	left, err := gathered(t, d, out)
	if err != nil || !slices.Equal(left, calls[1:]) {
		t.Fatalf("%+v of %+v, %v\n%s", left, calls, err, out)
	}
}
