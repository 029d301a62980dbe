package wire_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/wire"
)

// bedrockAt is the dialect at an address of Bedrock.
func bedrockAt(t testing.TB, path string) wire.Dialect {
	t.Helper()
	d, ok := wire.Match(&url.URL{Path: path})
	if !ok {
		t.Fatalf("%s is no call", path)
	}
	return d
}

func TestMatchBedrock(t *testing.T) {
	const arn = "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-x"
	for path, want := range map[string]string{
		"/model/amazon.nova/converse":                                   "bedrock_converse amazon.nova false",
		"/model/amazon.nova/converse-stream":                            "bedrock_converse amazon.nova true",
		"/base/Model/anthropic.claude-x-v1:0/CONVERSE":                  "bedrock_converse anthropic.claude-x-v1:0 false",
		"/model/" + arn + "/converse-stream":                            "bedrock_converse " + arn + " true",
		"/model/" + arn + "/invoke":                                     "anthropic_messages  false",
		"/model/us.anthropic.claude-x-v1:0/invoke-with-response-stream": "anthropic_messages  true",
		"/model/amazon.nova/invoke":                                     "",
		"/model/meta.llama3/invoke-with-response-stream":                "",
		"/model/anthropic.claude-x/count-tokens":                        "",
		"/model/converse":                                               "",
		"/converse":                                                     "",
		"/model/x/converse/y":                                           "",
	} {
		got := ""
		if d, ok := wire.Match(&url.URL{Path: path}); ok {
			r, err := d.Request([]byte(`{"messages":[]}`))
			if err != nil {
				t.Fatal(err)
			}
			got = fmt.Sprintf("%s %s %t", d.Name(), r.Model, r.Stream)
		}
		if got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	// A call whose model is the name of a resource has its slash escaped.
	address, err := url.Parse("https://site.test/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aprompt%2FP/converse")
	if err != nil {
		t.Fatal(err)
	}
	d, ok := wire.Match(address)
	if !ok {
		t.Fatal("no call")
	}
	if r, err := d.Request([]byte(`{"promptVariables":{"topic":{"text":"tea"}}}`)); err != nil || r.Model != "arn:aws:bedrock:us-east-1:1:prompt/P" || r.Prompt() != "tea" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestConverseRequest(t *testing.T) {
	d := dialect(t, "bedrock")
	const body = `{"messages":[{"role":"user","content":[{"text":"Hello"},{"text":", there."}]}],
		"system":[{"text":"Be kind."},{"cachePoint":{"type":"default"}}],
		"toolConfig":{"tools":[{"toolSpec":{"name":"f","description":"d","inputSchema":{"json":{"type" : "object"}}}},{"systemTool":{"name":"nova_grounding"}},{"cachePoint":{"type":"default","ttl":"5m"}}],"toolChoice":{"any":{}}},
		"outputConfig":{"textFormat":{"type":"json_schema","structure":{"jsonSchema":{"schema":"{}","name":"n"}}}},
		"requestMetadata":{"team":"blue ones"},"guardrailConfig":{"guardrailIdentifier":"g","guardrailVersion":"1"},"inferenceConfig":{"maxTokens":9}}`
	r, err := d.Request([]byte(body))
	if err != nil || r.Prompt() != "Hello, there." || !r.Structured || r.Choices != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if want := []wire.ToolDefinition{{Name: "f", Description: "d", Schema: []byte(`{"type" : "object"}`)}}; !reflect.DeepEqual(r.Tools, want) {
		t.Errorf("%+v", r.Tools)
	}
	for _, p := range r.Parts {
		if p.Kind == wire.Unknown {
			t.Errorf("unknown: %s", p.Path)
		}
	}
	for body, want := range map[string]string{
		`{}`:                            "messages is not an array",
		`{"messages":{}}`:               "messages is not an array",
		`{"messages":null}`:             "messages is not an array",
		`{"messages":["hi"]}`:           "a message is not an object",
		`{"messages":[],"Messages":[]}`: "case only",
		`{"messages":[`:                 "JSON",
	} {
		if _, err := d.Request([]byte(body)); !errors.Is(err, wire.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// Of a block every text is read, and what is no text is told by its kind.
func TestConverseBlocks(t *testing.T) {
	d := dialect(t, "bedrock")
	for block, want := range map[string]string{
		`{"text":"T"}`: "user text T",
		`{"image":{"format":"png","source":{"bytes":"aGk="}}}`:                                            "user image ",
		`{"video":{"format":"mp4","source":{"s3Location":{"uri":"s3://b/k","bucketOwner":"1"}}}}`:         "user file ",
		`{"audio":{"format":"wav","source":{"bytes":"aGk="}}}`:                                            "user audio ",
		`{"document":{"format":"pdf","name":"N n","source":{"bytes":"aGk="},"context":"C"}}`:              "user name N n; user file ; user document C",
		`{"document":{"format":"txt","name":"n.","source":{"bytes":"SGkgdGhlcmU="}}}`:                     "user name n.; user document Hi there",
		`{"document":{"format":"csv","name":"n.","source":{"bytes":"_w=="}}}`:                             "user name n.; user file ",
		`{"document":{"format":"txt","name":"n.","source":{"text":"D"}}}`:                                 "user name n.; user document D",
		`{"document":{"format":"txt","name":"n.","source":{"content":[{"text":"D"}]}}}`:                   "user name n.; user document D",
		`{"guardContent":{"text":{"text":"G","qualifiers":["query"]}}}`:                                   "user text G",
		`{"searchResult":{"source":"S","title":"T","content":[{"text":"C"}],"citations":{}}}`:             "user document S; user document T; user document C",
		`{"toolUse":{"toolUseId":"t","name":"f","input":{"a":"A"}}}`:                                      "user name f; user tool_call a\nA",
		`{"toolResult":{"toolUseId":"t","status":"success","content":[{"text":"R"},{"json":{"k":"J"}}]}}`: "tool text R; tool text k\nJ",
		`{"reasoningContent":{"reasoningText":{"text":"R","signature":"s"}}}`:                             "user reasoning R",
		`{"reasoningContent":{"redactedContent":"eA=="}}`:                                                 "user reasoning ",
		`{"citationsContent":{"content":[{"text":"C"}],"citations":[{"title":"T"}]}}`:                     "user text C; user annotation title\nT",
		`{"toolRemoval":{"tool":{"type":"tool_reference","name":"f"}}}`:                                   "definition name f",
		`{"cachePoint":{"type":"default"}}`:                                                               "",
		`{"novel":{"text":"N"}}`:                                                                          "user unknown ",
		`{"type":"text","text":"T"}`:                                                                      "user unknown ; user text T",
	} {
		r, err := d.Request([]byte(`{"messages":[{"role":"user","content":[` + block + `]}]}`))
		if err != nil {
			t.Errorf("%s: %v", block, err)
			continue
		}
		var got []string
		for _, p := range r.Parts {
			got = append(got, fmt.Sprintf("%s %s %s", p.Role, p.Kind, p.Text))
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s:\n got %q\nwant %q", block, strings.Join(got, "; "), want)
		}
	}
}

// What is redacted has the form that the API checks.
func TestConverseRedacted(t *testing.T) {
	d := dialect(t, "bedrock")
	for block, want := range map[string]string{
		`{"text":"T"}`: `{"text":"X"}`,
		`{"image":{"format":"png","source":{"bytes":"aGk="}}}`:                         `{"text":"X"}`,
		`{"document":{"format":"txt","name":"n","source":{"bytes":"SGk="}}}`:           `{"document":{"format":"txt","name":"redacted","source":{"bytes":"WA=="}}}`,
		`{"reasoningContent":{"reasoningText":{"text":"R","signature":"s"}}}`:          `{"text":"X"}`,
		`{"toolResult":{"toolUseId":"t","content":[{"json":{"a":"b"}},{"text":"c"}]}}`: `{"toolResult":{"toolUseId":"t","content":[{"json":{"note":"X"}},{"text":"X"}]}}`,
		`{"toolUse":{"toolUseId":"t","name":"f","input":{"a":"b"}}}`:                   `{"toolUse":{"toolUseId":"t","name":"redacted","input":{"redacted":"X"}}}`,
	} {
		body := []byte(`{"messages":[{"role":"user","content":[` + block + `]}]}`)
		r, err := d.Request(body)
		if err != nil {
			t.Fatal(err)
		}
		if got := gjson.GetBytes(wire.Redact(body, r.Parts, "X"), "messages.0.content.0").Raw; got != want {
			t.Errorf("%s becomes\n%s, want\n%s", block, got, want)
		}
	}
}

const converseWhole = ` {"output": {"message": {"role": "assistant", "content": [ {"text":"Let me \u006cook."},
	{"toolUse": {"toolUseId":"t1","name":"first","input":{"a" : 1}}} , {"toolUse":{"toolUseId":"t2","name":"second","input":{}}}]}},
	"stopReason":"tool_use", "usage":{"inputTokens":3,"outputTokens":4,"totalTokens":7},"metrics":{"latencyMs":5}}
`

func TestConverseWholeCalls(t *testing.T) {
	d := dialect(t, "bedrock")
	r, err := d.Response([]byte(converseWhole))
	if err != nil || r.Text() != "Let me look." || r.Finish != "tool_use" {
		t.Fatalf("%+v, %v", r, err)
	}
	want := []wire.ToolCall{{Key: "1", ID: "t1", Name: "first", Arguments: `{"a" : 1}`}, {Key: "2", ID: "t2", Name: "second", Arguments: "{}"}}
	if !reflect.DeepEqual(r.Calls, want) {
		t.Fatalf("%+v", r.Calls)
	}
	first, second := `{"toolUse": {"toolUseId":"t1","name":"first","input":{"a" : 1}}}`, `{"toolUse":{"toolUseId":"t2","name":"second","input":{}}}`
	note := func(key string, place wire.Place) wire.BlockedCall {
		return wire.BlockedCall{Key: key, Note: "No " + key + ".", Place: place}
	}
	for name, test := range map[string]struct {
		blocked []wire.BlockedCall
		changes []string
	}{
		"none":   {nil, nil},
		"one":    {[]wire.BlockedCall{note("1", "")}, []string{first, `{"text":"No 1."}`}},
		"all":    {[]wire.BlockedCall{note("2", ""), note("1", "")}, []string{first, `{"text":"No 1."}`, second, `{"text":"No 2."}`, `"tool_use"`, `"end_turn"`}},
		"hidden": {[]wire.BlockedCall{note("2", wire.OnlyRefusal)}, []string{` , ` + second, "", ` {"output"`, ` {"additionalModelResponseFields":{"refusal":"No 2."},"output"`}},
		"all hidden": {
			[]wire.BlockedCall{note("2", wire.OnlyRefusal), note("1", wire.OnlyRefusal)},
			[]string{",\n\t" + first + ` , ` + second, "", ` {"output"`, ` {"additionalModelResponseFields":{"refusal":"No 1.\nNo 2."},"output"`, `"tool_use"`, `"guardrail_intervened"`},
		},
	} {
		out, err := d.(wire.CallEditor).WithoutCalls([]byte(converseWhole), test.blocked)
		if want := strings.NewReplacer(test.changes...).Replace(converseWhole); err != nil || string(out) != want {
			t.Errorf("%s: %v\n got %s\nwant %s", name, err, out, want)
		}
	}
	// No answer is without content.
	const alone = `{"output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"t","name":"n","input":{}}} ,{"toolUse":{"toolUseId":"u","name":"n","input":{}}}]}},"stopReason":"tool_use"}`
	out, err := d.(wire.CallEditor).WithoutCalls([]byte(alone), []wire.BlockedCall{note("0", wire.OnlyRefusal), note("1", wire.OnlyRefusal)})
	if want := `{"additionalModelResponseFields":{"refusal":"No 0.\nNo 1."},"output":{"message":{"role":"assistant","content":[{"text":"No 0.\nNo 1."}]}},"stopReason":"guardrail_intervened"}`; err != nil || string(out) != want {
		t.Errorf("%v\n got %s\nwant %s", err, out, want)
	}
	for name, test := range map[string]struct{ body, key, note string }{
		"no such call": {converseWhole, "3", "No."},
		"a text":       {converseWhole, "0", "No."},
		"no note":      {converseWhole, "1", ""},
		"no answer":    {`{"output":`, "0", "No."},
	} {
		if out, err := d.(wire.CallEditor).WithoutCalls([]byte(test.body), []wire.BlockedCall{{Key: test.key, Note: test.note}}); !errors.Is(err, wire.ErrCalls) || out != nil {
			t.Errorf("%s: %s, %v", name, out, err)
		}
	}
	// Each SDK shows another member of a block with several.
	for _, block := range []string{
		`{"toolUse":{"name":"f","input":{}},"text":"a"}`, `{"toolUse":{"name":["f"],"input":{}}}`, `{"toolUse":{"name":"f","arguments":"{}"}}`, `{"toolUse":"f"}`,
	} {
		r, err := d.Response([]byte(`{"output":{"message":{"role":"assistant","content":[` + block + `]}},"stopReason":"tool_use"}`))
		if err != nil || len(r.Calls) != 1 || !r.Calls[0].Unclear {
			t.Errorf("%s: %+v, %v", block, r.Calls, err)
		}
	}
}

// An answer that is none is told from the report of an error.
func TestConverseErrors(t *testing.T) {
	d := dialect(t, "bedrock")
	for body, want := range map[string]bool{`{"message":"Too many requests"}`: true, `{"__type":"ThrottlingException","Message":"x"}`: true, `{"message":"x","output":{}}`: false, `{}`: false} {
		r, err := d.Response([]byte(body))
		if want != (err == nil) || r.Err != want {
			t.Errorf("%s: %+v, %v", body, r, err)
		}
	}
}

// converseStream is a stream of a text and of two calls.
func converseStream(t testing.TB) []string {
	t.Helper()
	event := func(name, payload string) string { return amazonEvent(t, name, payload) }
	return []string{
		event("messageStart", `{"role":"assistant","p":"abc"}`),
		event("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"Let me "},"p":"abcdefg"}`),
		event("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"look."}}`),
		event("contentBlockStop", `{"contentBlockIndex":0}`),
		event("contentBlockStart", `{"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"t1","name":"first"}}}`),
		event("contentBlockDelta", `{"contentBlockIndex":1,"delta":{"toolUse":{"input":"{\"a\":"}},"p":"ab"}`),
		event("contentBlockDelta", `{"contentBlockIndex":1,"delta":{"toolUse":{"input":" 1}"}}}`),
		event("contentBlockStop", `{"contentBlockIndex":1}`),
		event("contentBlockStart", `{"contentBlockIndex":2,"start":{"toolUse":{"toolUseId":"t2","name":"second"}}}`),
		event("contentBlockStop", `{"contentBlockIndex":2}`),
		event("messageStop", `{"stopReason":"tool_use"}`),
		event("metadata", `{"usage":{"inputTokens":3,"outputTokens":4,"totalTokens":7},"metrics":{"latencyMs":5}}`),
	}
}

func TestConverseStream(t *testing.T) {
	d := dialect(t, "bedrock")
	events := d.Events()
	var text string
	var g wire.CallGatherer
	for i, f := range split(t, d, []byte(strings.Join(converseStream(t), ""))) {
		e, err := events.Event(f)
		if err != nil || len(e.Unknown) > 0 || e.Err || e.MayEnd != (i == 10) || e.Done != (i == 11) {
			t.Fatalf("%s: %+v, %v", f.Data, e, err)
		}
		if err := g.Add(e.Calls); err != nil {
			t.Fatal(err)
		}
		for _, delta := range e.Deltas {
			if delta.IsText() {
				text += delta.Text
			}
		}
	}
	want := []wire.ToolCall{{Key: "1", ID: "t1", Name: "first", Arguments: `{"a": 1}`}, {Key: "2", ID: "t2", Name: "second", Arguments: "{}"}}
	if text != "Let me look." || !reflect.DeepEqual(g.Calls(), want) {
		t.Errorf("%q, %+v", text, g.Calls())
	}
}

// Every kind of text in an event is told, and nothing else counts as one.
func TestConverseEvents(t *testing.T) {
	for payload, want := range map[string]string{
		`contentBlockDelta {"contentBlockIndex":3,"delta":{"text":"T"}}`:                                     "text T in 3",
		`contentBlockDelta {"contentBlockIndex":3,"delta":{"reasoningContent":{"text":"R"}}}`:                "reasoning R in 3",
		`contentBlockDelta {"contentBlockIndex":3,"delta":{"reasoningContent":{"signature":"eHg="}}}`:        "",
		`contentBlockDelta {"contentBlockIndex":3,"delta":{"reasoningContent":{"redactedContent":"x"}}}`:     "reasoning  in ",
		`contentBlockDelta {"contentBlockIndex":3,"delta":{"toolResult":[{"text":"T"},{"json":{"a":"J"}}]}}`: "tool_result T in ; tool_result a\nJ in ; piece",
		`contentBlockDelta {"contentBlockIndex":3,"delta":{"citation":{"title":"C"}}}`:                       "annotation title\nC in ",
		`contentBlockDelta {"contentBlockIndex":3,"delta":{"text":"T"},"p":"I am DAN"}`:                      "text T in 3; unknown p",
		`contentBlockDelta {"contentBlockIndex":3,"delta":{"text":"T"},"q":"x"}`:                             "text T in 3; unknown",
		`contentBlockDelta ["x"]`: "invalid",
		`messageStop {"stopReason":"end_turn","additionalModelResponseFields":{"stop_sequence":"S"}}`: "annotation stop_sequence\nS in ; finish end_turn",
		`metadata {"usage":{},"trace":{"guardrail":{"modelOutput":["before"]}}}`:                      "annotation modelOutput\nbefore in ",
		`novel {"text":"N"}`:                "invalid",
		`messageStart nothing`:              "invalid",
		`messageStart {"role":"assistant"}`: "",
	} {
		name, data, _ := strings.Cut(payload, " ")
		frames, _, err := cutAmazon(amazonEvent(t, name, data))
		if err != nil {
			t.Fatal(err)
		}
		e, err := dialect(t, "bedrock").Events().Event(frames[0])
		var got []string
		for _, d := range e.Deltas {
			got = append(got, fmt.Sprintf("%s %s in %s", d.Kind, d.Text, d.Part))
		}
		for _, path := range e.Unknown {
			got = append(got, strings.TrimSpace("unknown "+map[bool]string{false: path}[strings.HasPrefix(path, "sha256:")]))
		}
		if e.Finish != "" {
			got = append(got, "finish "+e.Finish)
		}
		if e.Piece {
			got = append(got, "piece")
		}
		if errors.Is(err, wire.ErrInvalid) {
			got = append(got, "invalid")
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s: %q, want %q", payload, strings.Join(got, "; "), want)
		}
	}
	for name, message := range map[string]string{
		"an exception": amazonException(t, "throttlingException", `{"message":"slow"}`),
		"an error":     amazonMessage(t, "", ":message-type", "error", ":error-code", "E", ":error-message", "slow"),
	} {
		frames, _, _ := cutAmazon(message)
		e, err := dialect(t, "bedrock").Events().Event(frames[0])
		if err != nil || !e.Err || len(e.Deltas) != 1 || e.Deltas[0].Kind != wire.Annotation || !strings.Contains(e.Deltas[0].Text, "slow") {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
	frames, _, _ := cutAmazon(amazonException(t, "throttlingException", `slow`))
	if e, err := dialect(t, "bedrock").Events().Event(frames[0]); err == nil || !e.Err {
		t.Errorf("no JSON: %+v, %v", e, err)
	}
}

// Where two kinds of clients put the calls of a stream together in different ways, they are
// unclear.
func TestConverseUnclearCalls(t *testing.T) {
	start := func(index, name string) string {
		return `contentBlockStart {"contentBlockIndex":` + index + `,"start":{"toolUse":{"toolUseId":"t` + index + `","name":"` + name + `"}}}`
	}
	input := func(index, piece string) string {
		return `contentBlockDelta {"contentBlockIndex":` + index + `,"delta":{"toolUse":{"input":"` + piece + `"}}}`
	}
	said := func(index string) string {
		return `contentBlockDelta {"contentBlockIndex":` + index + `,"delta":{"text":"x"}}`
	}
	stop := func(index string) string { return `contentBlockStop {"contentBlockIndex":` + index + `}` }
	for name, test := range map[string]struct {
		events  []string
		unclear bool
	}{
		"one":                        {[]string{start("0", "f"), input("0", "{}"), stop("0")}, false},
		"two":                        {[]string{start("0", "f"), stop("0"), start("3", "g"), input("3", "{}"), stop("3")}, false},
		"not ended":                  {[]string{start("0", "f"), input("0", "{}")}, false},
		"a text between":             {[]string{start("0", "f"), said("1"), input("0", "{}"), stop("0")}, false},
		"a text and its end between": {[]string{start("0", "f"), said("1"), stop("1"), input("0", "{}"), stop("0")}, true},
		"another begins":             {[]string{start("0", "f"), start("1", "g")}, true},
		"another's input":            {[]string{start("0", "f"), stop("0"), start("1", "g"), input("0", "{}")}, true},
		"input behind the end":       {[]string{start("0", "f"), stop("0"), input("0", "{}")}, true},
		"input of none":              {[]string{input("0", "{}")}, true},
		"input before":               {[]string{input("0", "{}"), start("0", "f"), stop("0")}, true},
		"a number twice":             {[]string{start("0", "f"), stop("0"), start("0", "g")}, true},
		"numbers fall":               {[]string{start("4", "f"), stop("4"), start("2", "g")}, true},
		"no number":                  {[]string{`contentBlockStart {"start":{"toolUse":{"name":"f"}}}`}, true},
		"a negative number":          {[]string{start("-1", "f")}, true},
		"input without a number":     {[]string{start("0", "f"), `contentBlockDelta {"delta":{"toolUse":{"input":"{}"}}}`}, true},
		"an end without a number":    {[]string{start("0", "f"), `contentBlockStop {}`}, true},
		"input that is no text":      {[]string{start("0", "f"), `contentBlockDelta {"contentBlockIndex":0,"delta":{"toolUse":{"input":{"a":1}}}}`}, true},
		"a text beside input":        {[]string{start("0", "f"), `contentBlockDelta {"contentBlockIndex":0,"delta":{"toolUse":{"input":"{}"},"text":"x"}}`}, true},
		"a name that is none":        {[]string{`contentBlockStart {"contentBlockIndex":0,"start":{"toolUse":{"name":["f"]}}}`}, true},
		"input at the start":         {[]string{`contentBlockStart {"contentBlockIndex":0,"start":{"toolUse":{"name":"f","input":{}}}}`}, true},
		"an image beside":            {[]string{`contentBlockStart {"contentBlockIndex":0,"start":{"toolUse":{"name":"f"},"image":{"format":"png"}}}`}, true},
	} {
		var stream []byte
		for _, e := range test.events {
			name, payload, _ := strings.Cut(e, " ")
			stream = append(stream, amazonEvent(t, name, payload)...)
		}
		if _, err := gather(t, "bedrock", stream); errors.Is(err, wire.ErrCalls) != test.unclear {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConverseStreamWithoutCalls(t *testing.T) {
	d := dialect(t, "bedrock")
	stream := converseStream(t)
	head, tail := stream[:4], stream[4:]
	note := func(index string) string {
		return amazonEvent(t, "contentBlockDelta", `{"delta":{"text":"No."},"contentBlockIndex":`+index+`}`)
	}
	end := func(payload string) string { return amazonEvent(t, "messageStop", payload) }
	for name, test := range map[string]struct {
		blocked []wire.BlockedCall
		want    []string
	}{
		"none":  {nil, tail},
		"first": {[]wire.BlockedCall{{Key: "1", Note: "No."}}, []string{note("1"), tail[3], tail[4], tail[5], tail[6], tail[7]}},
		"both":  {[]wire.BlockedCall{{Key: "1", Note: "No."}, {Key: "2", Note: "No."}}, []string{note("1"), tail[3], note("2"), tail[5], end(`{"stopReason":"end_turn"}`), tail[7]}},
		"first, hidden": {[]wire.BlockedCall{{Key: "1", Note: "No.", Place: wire.OnlyRefusal}}, []string{
			amazonEvent(t, "contentBlockStart", `{"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"t2","name":"second"}}}`),
			amazonEvent(t, "contentBlockStop", `{"contentBlockIndex":1}`),
			end(`{"additionalModelResponseFields":{"refusal":"No."},"stopReason":"tool_use"}`), tail[7],
		}},
		"both, hidden": {[]wire.BlockedCall{{Key: "1", Note: "No.", Place: wire.OnlyRefusal}, {Key: "2", Note: "Nor.", Place: wire.OnlyRefusal}}, []string{
			end(`{"additionalModelResponseFields":{"refusal":"No.\nNor."},"stopReason":"guardrail_intervened"}`), tail[7],
		}},
	} {
		w := d.Stream()
		for _, f := range split(t, d, []byte(strings.Join(head, ""))) {
			w.Sent(f)
		}
		out, err := w.(wire.StreamCallEditor).WithoutCalls(split(t, d, []byte(strings.Join(tail, ""))), test.blocked)
		if want := strings.Join(test.want, ""); err != nil || string(out) != want {
			t.Errorf("%s: %v\n got %q\nwant %q", name, err, out, want)
		}
	}
	for name, frames := range map[string][]string{
		"no such call":   {tail[6]},
		"an unclear one": {tail[0], tail[0]},
		"no event":       {amazonEvent(t, "novel", `{}`), tail[0]},
	} {
		out, err := d.Stream().(wire.StreamCallEditor).WithoutCalls(split(t, d, []byte(strings.Join(frames, ""))), []wire.BlockedCall{{Key: "1", Note: "No."}})
		if !errors.Is(err, wire.ErrCalls) || out != nil {
			t.Errorf("%s: %q, %v", name, out, err)
		}
	}
}

// The rest of a stream fits to what was sent of it.
func TestConverseRefusals(t *testing.T) {
	d := dialect(t, "bedrock")
	stream := converseStream(t)
	events := func(list ...string) string {
		var out string
		for _, e := range list {
			name, payload, _ := strings.Cut(e, " ")
			out += amazonEvent(t, name, payload)
		}
		return out
	}
	const metadata = `metadata {"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0},"metrics":{"latencyMs":0}}`
	for name, test := range map[string]struct {
		sent  int
		place wire.Place
		want  string
	}{
		"the whole":            {0, "", events(`messageStart {"role":"assistant"}`, `contentBlockDelta {"delta":{"text":"No."},"contentBlockIndex":0}`, `contentBlockStop {"contentBlockIndex":0}`, `messageStop {"stopReason":"guardrail_intervened"}`, metadata)},
		"an ordinary one":      {0, wire.OnlyContent, events(`messageStart {"role":"assistant"}`, `contentBlockDelta {"delta":{"text":"No."},"contentBlockIndex":0}`, `contentBlockStop {"contentBlockIndex":0}`, `messageStop {"stopReason":"end_turn"}`, metadata)},
		"of structured output": {0, wire.OnlyRefusal, events(`messageStart {"role":"assistant"}`, `contentBlockDelta {"delta":{"text":"No."},"contentBlockIndex":0}`, `contentBlockStop {"contentBlockIndex":0}`, `messageStop {"stopReason":"guardrail_intervened","additionalModelResponseFields":{"refusal":"No."}}`, metadata)},
		"in a text":            {2, "", events(`contentBlockStop {"contentBlockIndex":0}`, `contentBlockDelta {"delta":{"text":"No."},"contentBlockIndex":1}`, `contentBlockStop {"contentBlockIndex":1}`, `messageStop {"stopReason":"guardrail_intervened"}`, metadata)},
		"behind a text":        {4, "", events(`contentBlockDelta {"delta":{"text":"No."},"contentBlockIndex":1}`, `contentBlockStop {"contentBlockIndex":1}`, `messageStop {"stopReason":"guardrail_intervened"}`, metadata)},
		"in a call":            {6, "", events(`messageStop {"stopReason":"guardrail_intervened","additionalModelResponseFields":{"refusal":"No."}}`, metadata)},
		"behind a call":        {8, "", events(`contentBlockDelta {"delta":{"text":"No."},"contentBlockIndex":2}`, `contentBlockStop {"contentBlockIndex":2}`, `messageStop {"stopReason":"guardrail_intervened"}`, metadata)},
		"behind the end":       {11, "", ""},
	} {
		w := d.Stream()
		for _, f := range split(t, d, []byte(strings.Join(stream[:test.sent], ""))) {
			w.Sent(f)
		}
		if out := w.Refusal(wire.Refusal{ID: "KRN-1", Text: "No.", Place: test.place}); string(out) != test.want {
			t.Errorf("%s:\n got %q\nwant %q", name, out, test.want)
		}
	}
	if ping := unchunked(t, bedrockAt(t, "/model/anthropic.c/invoke-with-response-stream").Stream().KeepAlive()); ping != "event: ping\ndata: {\"type\":\"ping\"}\n\n" {
		t.Errorf("%s", ping)
	}
	for place, want := range map[wire.Place]string{
		"":               `{"output":{"message":{"role":"assistant","content":[{"text":"No."}]}},"stopReason":"guardrail_intervened","usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0},"metrics":{"latencyMs":0}}`,
		wire.OnlyContent: `{"output":{"message":{"role":"assistant","content":[{"text":"No."}]}},"stopReason":"end_turn","usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0},"metrics":{"latencyMs":0}}`,
		wire.OnlyRefusal: `{"output":{"message":{"role":"assistant","content":[{"text":"No."}]}},"stopReason":"guardrail_intervened","usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0},"metrics":{"latencyMs":0},"additionalModelResponseFields":{"refusal":"No."}}`,
	} {
		out := d.Refusal(wire.Refusal{Text: "No.", Place: place})
		if r, err := d.Response(out); string(out) != want || err != nil || r.Err {
			t.Errorf("%q: %s, %v", place, out, err)
		}
	}
	if w := d.Stream(); w.KeepAlive() != nil || w.Note("x") != nil {
		t.Error("the API has no frame without content")
	}
}

// A stream that fails ends in an exception of those that streams have.
func TestBedrockStreamErrors(t *testing.T) {
	for status, want := range map[int]string{
		400: "validationException", 403: "validationException", 429: "throttlingException", 500: "internalServerException", 503: "serviceUnavailableException",
	} {
		for _, path := range []string{"/model/amazon.nova/converse-stream", "/model/anthropic.c/invoke-with-response-stream"} {
			out := bedrockAt(t, path).Stream().Error(wire.Error{Status: status, Message: "No."})
			if string(out) != amazonException(t, want, `{"message":"No."}`) {
				t.Errorf("%s: %d gives %q", path, status, out)
			}
		}
	}
}

func TestBedrockAsks(t *testing.T) {
	d := dialect(t, "bedrock").(wire.Asker)
	ask := wire.Ask{Model: "arn:aws:x/y", System: "S", History: []wire.Message{{Role: wire.User, Text: "a"}, {Role: wire.Assistant, Text: "b"}}, Prompt: "P"}
	call := d.Ask(ask)
	if want := `{"system":[{"text":"S"}],"messages":[{"role":"user","content":[{"text":"a"}]},{"role":"assistant","content":[{"text":"b"}]},{"role":"user","content":[{"text":"P"}]}]}`; call.Path != "/model/arn:aws:x%2Fy/converse" || string(call.Body) != want {
		t.Errorf("%s %s", call.Path, call.Body)
	}
	if call := d.Ask(wire.Ask{Model: "m", Prompt: "P", Stream: true}); call.Path != "/model/m/converse-stream" {
		t.Errorf("%s", call.Path)
	}
	if name, value := d.Authorize("k"); name != "Authorization" || value != "Bearer k" {
		t.Errorf("%s: %s", name, value)
	}
}

// anthropicEvents are the events of a stream of Anthropic's with a call.
var anthropicEvents = []string{
	`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"c","content":[],"stop_reason":null,"usage":{"input_tokens":3,"output_tokens":1}}}`,
	`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Let me look."}}`,
	`{"type":"content_block_stop","index":0}`,
	`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{}}}`,
	`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}`,
	`{"type":"content_block_stop","index":1}`,
	`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":4}}`,
	`{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":3}}`,
}

// unchunked is a stream of chunks as Anthropic's own API sends it.
func unchunked(t *testing.T, stream []byte) string {
	t.Helper()
	var out bytes.Buffer
	for _, f := range split(t, bedrockAt(t, "/model/anthropic.c/invoke-with-response-stream"), stream) {
		fmt.Fprintf(&out, "event: %s\ndata: %s\n\n", gjson.GetBytes(f.Data, "type").Str, f.Data)
	}
	return out.String()
}

// In the chunks of Bedrock the events of a model are read as in a stream of its own, and so is
// what we write.
func TestBedrockChunks(t *testing.T) {
	d, direct := bedrockAt(t, "/model/anthropic.c/invoke-with-response-stream"), dialect(t, "anthropic")
	var chunks, events []byte
	for _, e := range anthropicEvents {
		chunks = append(chunks, amazonChunk(t, e)...)
		events = append(append(events, "event: "+gjson.Get(e, "type").Str+"\n"...), "data: "+e+"\n\n"...)
	}
	if d.Framing() != wire.AmazonStream || d.Name() != "anthropic_messages" {
		t.Fatalf("%s, %s", d.Framing(), d.Name())
	}
	read, want := d.Events(), direct.Events()
	theirs := split(t, direct, events)
	for i, f := range split(t, d, chunks) {
		got, err := read.Event(f)
		wanted, err2 := want.Event(theirs[i])
		if err != nil || err2 != nil || !reflect.DeepEqual(got, wanted) {
			t.Errorf("%s: %+v, %v, want %+v, %v", f.Data, got, err, wanted, err2)
		}
	}
	for sent := range len(anthropicEvents) {
		w, direct := d.Stream(), direct.Stream()
		for i, f := range split(t, d, chunks)[:sent] {
			w.Sent(f)
			direct.Sent(theirs[i])
		}
		for _, place := range []wire.Place{"", wire.OnlyRefusal, wire.OnlyContent} {
			r := wire.Refusal{ID: "KRN-1", Model: "m", Text: declined, Place: place}
			if got, want := unchunked(t, w.Refusal(r)), string(direct.Refusal(r)); got != want {
				t.Errorf("behind %d events:\n got %s\nwant %s", sent, got, want)
			}
		}
	}
	for _, place := range []wire.Place{"", wire.OnlyRefusal} {
		blocked := []wire.BlockedCall{{Key: "1", Note: "No.", Place: place}}
		w, direct := d.Stream(), direct.Stream()
		for i, f := range split(t, d, chunks)[:4] {
			w.Sent(f)
			direct.Sent(theirs[i])
		}
		failure := amazonException(t, "modelStreamErrorException", `{"message":"x"}`)
		out, err := w.(wire.StreamCallEditor).WithoutCalls(append(split(t, d, chunks)[4:], split(t, d, []byte(failure))...), blocked)
		want, err2 := direct.(wire.StreamCallEditor).WithoutCalls(theirs[4:], blocked)
		rest, ended := bytes.CutSuffix(out, []byte(failure))
		if err != nil || err2 != nil || !ended || unchunked(t, rest) != string(want) {
			t.Errorf("%v, %v\n got %s\nwant %s", err, err2, unchunked(t, rest), want)
		}
	}
	frames := split(t, d, chunks)[4:]
	if out, err := d.Stream().(wire.StreamCallEditor).WithoutCalls(frames, nil); err != nil || !bytes.HasSuffix(chunks, out) || len(out) == 0 {
		t.Errorf("nothing is blocked: %q, %v", out, err)
	}
	for name, stream := range map[string]string{"an event that is no chunk": amazonEvent(t, "messageStart", `{"role":"assistant"}`), "base64 that is none": amazonEvent(t, "chunk", `{"bytes":"???"}`)} {
		if e, err := d.Events().Event(split(t, d, []byte(stream))[0]); !errors.Is(err, wire.ErrInvalid) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
		if _, err := d.Stream().(wire.StreamCallEditor).WithoutCalls(split(t, d, []byte(stream)), []wire.BlockedCall{{Key: "1", Note: "No."}}); !errors.Is(err, wire.ErrCalls) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// SDKs of both kinds find the error where they look for it.
	body := d.Error(wire.Error{Status: 403, Code: "c", Message: "No."})
	for path, want := range map[string]string{"__type": "AccessDeniedException", "message": "No.", "type": "error", "error.type": "permission_error", "error.message": "No."} {
		if got := gjson.GetBytes(body, path).Str; got != want || !gjson.ValidBytes(body) {
			t.Errorf("%s is %q in %s", path, got, body)
		}
	}
}

func FuzzConverse(f *testing.F) {
	f.Add([]byte(converseWhole), "1")
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"text":"hi"},{"document":{"format":"txt","source":{"bytes":"aGk="}}}]}]}`), "0")
	f.Fuzz(func(t *testing.T, body []byte, key string) {
		d := dialect(t, "bedrock")
		if r, err := d.Request(body); err == nil {
			inFiles := func(p wire.Part) bool { return strings.HasSuffix(p.Path, ".bytes") }
			checkPaths(t, body, slices.DeleteFunc(r.Parts, inFiles)) // their text is in base64
		}
		r, err := d.Response(body)
		if err != nil {
			return
		}
		checkPaths(t, body, r.Parts)
		out, err := d.(wire.CallEditor).WithoutCalls(body, []wire.BlockedCall{{Key: key, Note: "No."}})
		if err != nil {
			return
		}
		if after, err := d.Response(out); err != nil || len(after.Calls) != len(r.Calls)-1 {
			t.Errorf("%s\nbecomes %s: %v", body, out, err)
		}
	})
}
