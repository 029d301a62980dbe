package wire_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"github.com/caddy-lex/lex/wire"
)

func TestGeminiTools(t *testing.T) {
	for _, body := range []string{
		`{"contents":[],"tools":[{"functionDeclarations":[{"name":"f","description":"d","parameters":{"type" : "OBJECT"}},{"name":"g","parametersJsonSchema":{}},{"description":"no name"}]},{"googleSearch":{}}]}`,
		`{"contents":[],"tools":{"function_declarations":[{"name":"f","description":"d","parameters":{"type" : "OBJECT"}},{"name":"g","parameters_json_schema":{}}]}}`,
	} {
		r, err := dialect(t, "gemini").Request([]byte(body))
		if want := []wire.ToolDefinition{{Name: "f", Description: "d", Schema: []byte(`{"type" : "OBJECT"}`)}, {Name: "g", Schema: []byte("{}")}}; err != nil || !reflect.DeepEqual(r.Tools, want) {
			t.Errorf("%+v, %v", r.Tools, err)
		}
	}
}

// geminiWhole is an answer of two choices with parallel calls, of which the first is
// signed.
const geminiWhole = ` {"candidates": [{"content": {"role":"model", "parts": [{"text":"hm","thought":true}, {"text":"Let me \u006cook."},
	{"functionCall": {"id":"i1","name":"first","args":{"a": "one"}}, "thoughtSignature":"c2ln" } ,{"functionCall":{"name":"second","args":{}}}]},
	"finishReason":"STOP","index":0,"logprobsResult":{"chosenCandidates":[{"token":"first"}]}},
	{"index":1,"content":{"parts":[{"function_call":{"name":"third"}}]},"finishReason":"STOP"}],"usageMetadata":{"totalTokenCount":9}}
`

func TestGeminiWholeCalls(t *testing.T) {
	d := dialect(t, "gemini")
	r, err := d.Response([]byte(geminiWhole))
	if err != nil {
		t.Fatal(err)
	}
	if want := []wire.ToolCall{
		{Key: "0", ID: "i1", Name: "first", Arguments: `{"a": "one"}`}, {Key: "1", Name: "second", Arguments: "{}"}, {Key: "2", Choice: 1, Name: "third"},
	}; !slices.Equal(r.Calls, want) {
		t.Fatalf("%+v", r.Calls)
	}
	first := `{"functionCall": {"id":"i1","name":"first","args":{"a": "one"}}, "thoughtSignature":"c2ln" }`
	second, third := `{"functionCall":{"name":"second","args":{}}}`, `{"function_call":{"name":"third"}}`
	logprobs := `{"chosenCandidates":[{"token":"first"}]}`
	note := func(key string) wire.BlockedCall { return wire.BlockedCall{Key: key, Note: "No " + key + "."} }
	for name, test := range map[string]struct {
		blocked []wire.BlockedCall
		changes []string
	}{
		"none":               {nil, nil},
		"the signed":         {[]wire.BlockedCall{note("0")}, []string{first, `{"text":"No 0."}`, second, `{"thoughtSignature":"c2ln","functionCall":{"name":"second","args":{}}}`, logprobs, "null"}},
		"the unsigned":       {[]wire.BlockedCall{note("1")}, []string{second, `{"text":"No 1."}`, logprobs, "null"}},
		"all of a choice":    {[]wire.BlockedCall{note("0"), note("1")}, []string{first, `{"text":"No 0.","thoughtSignature":"c2ln"}`, second, `{"text":"No 1."}`, logprobs, "null"}},
		"of the other":       {[]wire.BlockedCall{note("2")}, []string{third, `{"text":"No 2."}`}},
		"all of all choices": {[]wire.BlockedCall{note("2"), note("1"), note("0")}, []string{first, `{"text":"No 0.","thoughtSignature":"c2ln"}`, second, `{"text":"No 1."}`, logprobs, "null", third, `{"text":"No 2."}`}},
	} {
		out, err := d.(wire.CallEditor).WithoutCalls([]byte(geminiWhole), test.blocked)
		if want := strings.NewReplacer(test.changes...).Replace(geminiWhole); err != nil || string(out) != want {
			t.Errorf("%s: %v\n got %s\nwant %s", name, err, out, want)
		}
	}
	// One part may stand for the list, and a reason that blames the call goes with it.
	for body, want := range map[string]string{
		`{"candidates":[{"content":{"parts":{"functionCall":{"name":"f"}}}}]}`:                                                                                    `{"candidates":[{"content":{"parts":{"text":"No."}}}]}`,
		`{"candidates":[{"finishReason":"UNEXPECTED_TOOL_CALL","finishMessage":"f(x)","content":{"parts":[{"functionCall":{"name":"f"}}]}}]}`:                     `{"candidates":[{"finishReason":"STOP","finishMessage":null,"content":{"parts":[{"text":"No."}]}}]}`,
		`{"candidates":[{"finishReason":"MAX_TOKENS","content":{"parts":[{"functionCall":{"name":"f"},"thought":true}]}}]}`:                                       `{"candidates":[{"finishReason":"MAX_TOKENS","content":{"parts":[{"text":"No."}]}}]}`,
		`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","willContinue":true}},{"functionCall":{"partialArgs":[]}},{"text":"x"}]}}]}`:             `{"candidates":[{"content":{"parts":[{"text":"No."},{"text":"x"}]}}]}`,
		`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}},{"functionCall":{"name":"g"},"thought_signature":"own"}]}}]}`:                          `{"candidates":[{"content":{"parts":[{"text":"No."},{"functionCall":{"name":"g"},"thought_signature":"own"}]}}]}`,
		`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"},"thought_signature":"one"},{"functionCall":{"name":"g"},"thoughtSignature":"two"}]}}]}`: `{"candidates":[{"content":{"parts":[{"text":"No.","thoughtSignature":"one"},{"functionCall":{"name":"g"},"thoughtSignature":"two"}]}}]}`,
	} {
		out, err := d.(wire.CallEditor).WithoutCalls([]byte(body), []wire.BlockedCall{{Key: "0", Note: "No."}})
		if err != nil || string(out) != want {
			t.Errorf("%s becomes\n%s, %v, want\n%s", body, out, err, want)
		}
	}
	for name, test := range map[string]struct{ body, key, note string }{
		"no such call":     {geminiWhole, "3", "No."},
		"no note":          {geminiWhole, "0", ""},
		"no answer":        {`{"candidates":`, "0", "No."},
		"more than a call": {`{"candidates":[{"content":{"parts":[{"text":"a","functionCall":{"name":"f"}}]}}]}`, "0", "No."},
		"another spelling": {`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]},"Content":{}}]}`, "0", "No."},
		"two spellings":    {`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"},"function_call":{"name":"g"}}]}}]}`, "0", "No."},
		"args and pieces":  {`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{},"partialArgs":[{"jsonPath":"$.a","numberValue":1}]}}]}}]}`, "0", "No."},
		"a piece of none":  {`{"candidates":[{"content":{"parts":[{"functionCall":{}}]}}]}`, "0", "No."},
	} {
		if out, err := d.(wire.CallEditor).WithoutCalls([]byte(test.body), []wire.BlockedCall{{Key: test.key, Note: test.note}}); !errors.Is(err, wire.ErrCalls) || out != nil {
			t.Errorf("%s: %s, %v", name, out, err)
		}
	}
	r, err = d.Response([]byte(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{},"partialArgs":[{"jsonPath":"$.a","numberValue":1}]}}]}}]}`))
	if err != nil || len(r.Calls) != 1 || r.Calls[0].Name != "f" || !r.Calls[0].Unclear {
		t.Errorf("%+v, %v", r.Calls, err)
	}
}

func geminiChunkOf(parts, rest string) string {
	return `{"candidates": [{"content": {"parts": [` + parts + `],"role": "model"},"index": 0` + rest + `}],"usageMetadata": {"totalTokenCount": 9}}`
}

func sseOf(chunks ...string) string {
	return "data: " + strings.Join(chunks, "\r\n\r\ndata: ") + "\r\n\r\n"
}

func arrayOf(chunks ...string) string { return "[" + strings.Join(chunks, "\r\n,\r\n") + "\r\n]\r\n" }

func partialCall(members string) string { return `{"functionCall": {` + members + `}}` }

func TestGeminiStreamedCalls(t *testing.T) {
	type call = wire.ToolCall
	const goesOn = `,"willContinue": true`
	piece := func(path, value string) string {
		return `"partialArgs": [{"jsonPath": "` + path + `",` + value + `}]`
	}
	for name, test := range map[string]struct {
		chunks []string
		want   []call // nil: the calls are unclear
	}{
		"whole":          {[]string{geminiChunkOf(`{"functionCall":{"id":"i","name":"f","args":{"a" : 1}}}`, "")}, []call{{Key: "0", ID: "i", Name: "f", Arguments: `{"a" : 1}`}}},
		"parallel":       {[]string{geminiChunkOf(`{"functionCall":{"name":"f"}},{"functionCall":{"name":"f"}}`, ""), geminiChunkOf(`{"functionCall":{"name":"g"}}`, "")}, []call{{Key: "0", Name: "f"}, {Key: "1", Name: "f"}, {Key: "2", Name: "g"}}},
		"escaped":        {[]string{geminiChunkOf(`{"\u0066unctionCall":{"name":"f"}}`, "")}, []call{{Key: "0", Name: "f"}}},
		"a thought":      {[]string{geminiChunkOf(`{"thought":true,"functionCall":{"name":"f"}}`, "")}, []call{{Key: "0", Name: "f"}}},
		"null":           {[]string{geminiChunkOf(`{"text":"a","functionCall":null}`, "")}, []call{}},
		"the provider's": {[]string{geminiChunkOf(`{"toolCall":{"toolType":"GOOGLE_SEARCH","args":{}}},{"executableCode":{"code":"1"}}`, "")}, []call{}},
		"choices": {
			[]string{`{"candidates":[{"index":1,"content":{"parts":[{"functionCall":{"name":"f"}}]}},{"index":0,"content":{"parts":[{"functionCall":{"name":"g"}}]}}]}`},
			[]call{{Key: "1", Name: "g"}, {Key: "0", Choice: 1, Name: "f"}},
		},
		"in pieces": {[]string{
			geminiChunkOf(partialCall(`"id": "i","name": "f"`+goesOn), ""),
			geminiChunkOf(partialCall(piece("$.city", `"stringValue": "New "`+goesOn)+goesOn), ""),
			geminiChunkOf(partialCall(piece("$.city", `"stringValue": "\"York\""`+goesOn)+goesOn), ""),
			geminiChunkOf(partialCall(piece("$.city", `"stringValue": ""`)+goesOn), ""),
			geminiChunkOf(partialCall(`"partialArgs": [{"jsonPath": "$.days[0].n","numberValue": 1.50},{"jsonPath": "$.days[1].b","boolValue": false},{"jsonPath": "$.days[]"},{"jsonPath": "x","nullValue": "NULL_VALUE"}]`+goesOn), ""),
			geminiChunkOf(partialCall(""), ""),
		}, []call{{Key: "0", ID: "i", Name: "f", Arguments: `{"city":"New \"York\"","days":[{"n":1.50},{"b":false}],"x":null}`}}},
		"containers": {[]string{
			geminiChunkOf(partialCall(`"name": "f","partialArgs": [{"jsonPath": "$.none[]"},{"jsonPath": "$.empty"},{"jsonPath": "$.later","willContinue": true},{"jsonPath": "$.list[0]","stringValue": "a","willContinue": true},`+
				`{"jsonPath": "$.list[0]"},{"jsonPath": "$.list.1","numberValue": 2},{"jsonPath": "$.list[]"},{"jsonPath": "$.deep[0][0].x","boolValue": true},{"jsonPath": "$.text","stringValue": ""}]`), ""),
		}, []call{{Key: "0", Name: "f", Arguments: `{"none":[],"empty":{},"list":["a",2],"deep":[[{"x":true}]],"text":""}`}}},
		"in one piece":      {[]string{geminiChunkOf(partialCall(`"name": "f",`+piece("$.a", `"numberValue": 1`)), "")}, []call{{Key: "0", Name: "f", Arguments: `{"a":1}`}}},
		"without arguments": {[]string{geminiChunkOf(partialCall(`"name": "f"`+goesOn), ""), geminiChunkOf(partialCall(""), "")}, []call{{Key: "0", Name: "f", Arguments: "{}"}}},
		"ended by the choice": {
			[]string{geminiChunkOf(partialCall(`"name": "f"`+goesOn), ""), geminiChunkOf(partialCall(piece("$.a", `"numberValue": 1`)+goesOn), ""), geminiChunkOf(`{"text": ""}`, `,"finishReason": "STOP"`)},
			[]call{{Key: "0", Name: "f", Arguments: `{"a":1}`}},
		},
		"one after the other": {
			[]string{geminiChunkOf(partialCall(`"name": "f"`+goesOn), ""), geminiChunkOf(partialCall(""), ""), geminiChunkOf(partialCall(`"name": "g",`+piece("$.a", `"boolValue": true`)+goesOn), ""), geminiChunkOf(partialCall(""), "")},
			[]call{{Key: "0", Name: "f", Arguments: "{}"}, {Key: "1", Name: "g", Arguments: `{"a":true}`}},
		},

		// Some clients take the pieces, some what is whole.
		"args and pieces":       {[]string{geminiChunkOf(partialCall(`"name": "f","args": {"a": 1},`+piece("$.a", `"numberValue": 2`)), "")}, nil},
		"args that go on":       {[]string{geminiChunkOf(partialCall(`"name": "f","args": {"a": 1}`+goesOn), "")}, nil},
		"args in the middle":    {[]string{geminiChunkOf(partialCall(`"name": "f"`+goesOn), ""), geminiChunkOf(partialCall(`"args": {"a": 1}`), "")}, nil},
		"a name in the middle":  {[]string{geminiChunkOf(partialCall(`"name": "f"`+goesOn), ""), geminiChunkOf(partialCall(`"name": "g"`+goesOn), "")}, nil},
		"another id":            {[]string{geminiChunkOf(partialCall(`"id": "i","name": "f"`+goesOn), ""), geminiChunkOf(partialCall(`"id": "j"`+goesOn), "")}, nil},
		"a piece of none":       {[]string{geminiChunkOf(partialCall(piece("$.a", `"numberValue": 1`)), "")}, nil},
		"behind the end":        {[]string{geminiChunkOf(partialCall(`"name": "f"`), ""), geminiChunkOf(partialCall(piece("$.a", `"numberValue": 1`)), "")}, nil},
		"a value twice":         {[]string{geminiChunkOf(partialCall(`"name": "f","partialArgs": [{"jsonPath": "$.a","numberValue": 1},{"jsonPath": "$.a","numberValue": 2}]`), "")}, nil},
		"a text twice":          {[]string{geminiChunkOf(partialCall(`"name": "f","partialArgs": [{"jsonPath": "$.a","stringValue": "1"},{"jsonPath": "$.a","stringValue": "2"}]`), "")}, nil},
		"two values at once":    {[]string{geminiChunkOf(partialCall(`"name": "f","partialArgs": [{"jsonPath": "$.a","stringValue": "1","numberValue": 2}]`), "")}, nil},
		"a text and a number":   {[]string{geminiChunkOf(partialCall(`"name": "f","partialArgs": [{"jsonPath": "$.a","stringValue": "1","willContinue": true},{"jsonPath": "$.a","numberValue": 2}]`), "")}, nil},
		"a value below a text":  {[]string{geminiChunkOf(partialCall(`"name": "f","partialArgs": [{"jsonPath": "$.a","stringValue": "1"},{"jsonPath": "$.a.b","numberValue": 2}]`), "")}, nil},
		"a text above a value":  {[]string{geminiChunkOf(partialCall(`"name": "f","partialArgs": [{"jsonPath": "$.a.b","stringValue": "1"},{"jsonPath": "$.a","numberValue": 2}]`), "")}, nil},
		"a list and an object":  {[]string{geminiChunkOf(partialCall(`"name": "f","partialArgs": [{"jsonPath": "$.a[0]","stringValue": "1"},{"jsonPath": "$.a.b","numberValue": 2}]`), "")}, nil},
		"a gap":                 {[]string{geminiChunkOf(partialCall(`"name": "f",`+piece("$.a[1]", `"numberValue": 2`)), "")}, nil},
		"a wildcard":            {[]string{geminiChunkOf(partialCall(`"name": "f",`+piece("$.*", `"numberValue": 2`)), "")}, nil},
		"a slice":               {[]string{geminiChunkOf(partialCall(`"name": "f",`+piece("$.a[0:1]", `"numberValue": 2`)), "")}, nil},
		"a filter":              {[]string{geminiChunkOf(partialCall(`"name": "f",`+piece("$.a[?@.b]", `"numberValue": 2`)), "")}, nil},
		"a name in quotes":      {[]string{geminiChunkOf(partialCall(`"name": "f",`+piece("$['a b']", `"numberValue": 2`)), "")}, nil},
		"a root of a list":      {[]string{geminiChunkOf(partialCall(`"name": "f",`+piece("$[0]", `"numberValue": 2`)), "")}, nil},
		"an odd index":          {[]string{geminiChunkOf(partialCall(`"name": "f",`+piece("$.a[00]", `"numberValue": 2`)), "")}, nil},
		"behind an index":       {[]string{geminiChunkOf(partialCall(`"name": "f",`+piece("$.a[0]b", `"numberValue": 2`)), "")}, nil},
		"an open index":         {[]string{geminiChunkOf(partialCall(`"name": "f",`+piece("$.a[0", `"numberValue": 2`)), "")}, nil},
		"a list and a value":    {[]string{geminiChunkOf(partialCall(`"name": "f",`+piece("$.a[]", `"numberValue": 2`)), "")}, nil},
		"a value behind a list": {[]string{geminiChunkOf(partialCall(`"name": "f","partialArgs": [{"jsonPath": "$.a[]"},{"jsonPath": "$.a","numberValue": 2}]`), "")}, nil},
		"no path":               {[]string{geminiChunkOf(partialCall(`"name": "f",`+piece("", `"numberValue": 2`)), "")}, nil},
		"the root":              {[]string{geminiChunkOf(partialCall(`"name": "f",`+piece("$", `"numberValue": 2`)), "")}, nil},
		"a number in quotes":    {[]string{geminiChunkOf(partialCall(`"name": "f",`+piece("$.a", `"numberValue": "2"`)), "")}, nil},
		"a path too deep":       {[]string{geminiChunkOf(partialCall(`"name": "f",`+piece("$"+strings.Repeat(".a", 200), `"numberValue": 2`)), "")}, nil},
	} {
		for address, stream := range map[string]string{geminiEvents: sseOf(test.chunks...), geminiArray: arrayOf(test.chunks...)} {
			d := geminiAt(t, address)
			got, err := gathered(t, d, []byte(stream))
			if test.want == nil {
				if !errors.Is(err, wire.ErrCalls) {
					t.Errorf("%s: %+v, %v", name, got, err)
				}
				if out, err := editStream(t, d, []byte(stream), []wire.BlockedCall{{Key: "0", Note: "No."}}); !errors.Is(err, wire.ErrCalls) {
					t.Errorf("%s is edited: %s, %v", name, out, err)
				}
			} else if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
	}
	// The closing bracket of an array ends a call that goes on.
	d := geminiAt(t, geminiArray)
	got, err := gathered(t, d, []byte(arrayOf(geminiChunkOf(partialCall(`"name": "f",`+piece("$.a", `"numberValue": 1`)+goesOn), ""))))
	if err != nil || len(got) != 1 || got[0].Arguments != `{"a":1}` {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestGeminiStreamsWithoutCalls(t *testing.T) {
	text := geminiChunkOf(`{"text": "Let me look."}`, "")
	first := geminiChunkOf(`{"functionCall": {"name": "first","args": {"a": 1}},"thoughtSignature": "c2ln"}`, `,"logprobsResult": {"chosenCandidates": [{"token": "first"}]}`)
	between := geminiChunkOf(`{"text": "And."}`, "")
	begin := geminiChunkOf(partialCall(`"name": "second","willContinue": true`), "")
	more := geminiChunkOf(partialCall(`"partialArgs": [{"jsonPath": "$.b","numberValue": 2}],"willContinue": true`), "")
	end := geminiChunkOf(partialCall(""), "")
	last := geminiChunkOf(`{"functionCall": {"name": "third"}}`, `,"finishReason": "STOP"`)
	chunks := []string{text, first, between, begin, more, end, last}
	noted := func(note, rest string) string { return geminiChunkOf(`{"text":"`+note+`"}`, rest) }
	moved := func(chunk string) string {
		return strings.Replace(chunk, `{"functionCall"`, `{"thoughtSignature":"c2ln","functionCall"`, 1)
	}
	for name, test := range map[string]struct {
		blocked []wire.BlockedCall
		want    []string
	}{
		"none":       {nil, chunks},
		"the signed": {[]wire.BlockedCall{{Key: "0", Note: "No."}}, []string{text, noted("No.", `,"logprobsResult": null`), between, moved(begin), more, end, last}},
		"in pieces":  {[]wire.BlockedCall{{Key: "1", Note: "No."}}, []string{text, strings.Replace(first, `{"chosenCandidates": [{"token": "first"}]}`, "null", 1), between, noted("No.", ""), last}},
		"the last":   {[]wire.BlockedCall{{Key: "2", Note: "No."}}, []string{text, strings.Replace(first, `{"chosenCandidates": [{"token": "first"}]}`, "null", 1), between, begin, more, end, noted("No.", `,"finishReason": "STOP"`)}},
		"two": {[]wire.BlockedCall{{Key: "0", Note: "a"}, {Key: "1", Note: "b"}}, []string{
			text, noted("a", `,"logprobsResult": null`), between, noted("b", ""), moved(last),
		}},
		"all": {[]wire.BlockedCall{{Key: "0", Note: "a"}, {Key: "1", Note: "b"}, {Key: "2", Note: "c"}}, []string{
			text, geminiChunkOf(`{"text":"a","thoughtSignature":"c2ln"}`, `,"logprobsResult": null`), between, noted("b", ""), noted("c", `,"finishReason": "STOP"`),
		}},
	} {
		out, err := editStream(t, geminiAt(t, geminiEvents), []byte(sseOf(chunks...)), test.blocked)
		if want := sseOf(test.want...); err != nil || string(out) != want {
			t.Errorf("%s: %v\n got %s\nwant %s", name, err, out, want)
		}
		out, err = editStream(t, geminiAt(t, geminiArray), []byte(arrayOf(chunks...)), test.blocked)
		if want := arrayOf(test.want...); err != nil || string(out) != want {
			t.Errorf("%s: %v\n got %s\nwant %s", name, err, out, want)
		}
	}
	// A chunk that says more than the blocked call stays, with an empty text.
	ending := []string{begin, geminiChunkOf(partialCall(""), `,"finishReason": "STOP"`)}
	out, err := editStream(t, geminiAt(t, geminiEvents), []byte(sseOf(ending...)), []wire.BlockedCall{{Key: "0", Note: "No."}})
	if want := sseOf(noted("No.", ""), geminiChunkOf(`{"text":""}`, `,"finishReason": "STOP"`)); err != nil || string(out) != want {
		t.Errorf("%v\n got %s\nwant %s", err, out, want)
	}
	// Data over several lines stays one frame.
	out, err = editStream(t, geminiAt(t, geminiEvents), []byte("data: {\"candidates\":[{\"content\":\ndata: {\"parts\":[{\"functionCall\":{\"name\":\"f\"}}]}}]}\n\n"), []wire.BlockedCall{{Key: "0", Note: "No."}})
	if want := "data: {\"candidates\":[{\"content\": {\"parts\":[{\"text\":\"No.\"}]}}]}\n\n"; err != nil || string(out) != want {
		t.Errorf("%q, %v", out, err)
	}
	for name, stream := range map[string]string{
		"no such call":  sseOf(text),
		"an odd frame":  sseOf(first, "{"),
		"beside a text": sseOf(geminiChunkOf(`{"text": "a","functionCall": {"name": "f"}}`, "")),
	} {
		w := geminiAt(t, geminiEvents).Stream()
		if out, err := w.(wire.StreamCallEditor).WithoutCalls(split(t, geminiAt(t, geminiEvents), []byte(stream)), []wire.BlockedCall{{Key: "0", Note: "No."}}); !errors.Is(err, wire.ErrCalls) || out != nil {
			t.Errorf("%s: %s, %v", name, out, err)
		}
	}
}

// A drawnPart is a part of one choice.
type drawnPart struct {
	kind, text, name string
	signed           bool
}

func (p drawnPart) arguments() string {
	if p.text == "" {
		return "{}"
	}
	return jsonOf(map[string]any{"Arg" + p.name: p.text})
}

// whole is the part in one piece.
func (p drawnPart) whole() string {
	signature := ""
	if p.signed {
		signature = `,"thoughtSignature":"c2ln` + p.name + `"`
	}
	switch p.kind {
	case "text":
		return `{"text":` + jsonOf(p.text) + signature + `}`
	case "thought":
		return `{"text":` + jsonOf(p.text) + `,"thought":true` + signature + `}`
	}
	return `{"functionCall":{"id":"Id` + p.name + `","name":"Name` + p.name + `","args":` + p.arguments() + `}` + signature + `}`
}

// pieces are the part as a stream brings it.
func (p drawnPart) pieces(t *rapid.T) []string {
	if p.kind != "call" || !rapid.Bool().Draw(t, "in pieces") {
		return []string{p.whole()}
	}
	signature := ""
	if p.signed {
		signature = `,"thoughtSignature":"c2ln` + p.name + `"`
	}
	out := []string{`{"functionCall":{"id":"Id` + p.name + `","name":"Name` + p.name + `","willContinue":true}` + signature + `}`}
	if p.text != "" {
		for _, piece := range cutAnywhere(t, p.text) {
			out = append(out, `{"functionCall":{"partialArgs":[{"jsonPath":"$.Arg`+p.name+`","stringValue":`+jsonOf(piece)+`,"willContinue":true}],"willContinue":true}}`)
		}
	}
	return append(out, `{"functionCall":{}}`)
}

// Whatever is blocked, in one choice or in several, the rest is read as it was, whole and
// streamed, and of what is blocked nothing is left.
func TestGeminiWithoutAnyCalls(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		choices := rapid.IntRange(1, 3).Draw(rt, "choices")
		var candidates, chunks []string
		var drawn [][]drawnPart
		for c := range choices {
			var parts []drawnPart
			for i := range rapid.IntRange(1, 5).Draw(rt, "parts") {
				parts = append(parts, drawnPart{
					kind: rapid.SampledFrom([]string{"text", "call", "call", "thought"}).Draw(rt, "kind"),
					text: rapid.StringMatching(`[a-zäß "\\{}]{0,9}`).Draw(rt, "text"),
					name: fmt.Sprintf("%dx%d", c, i), signed: rapid.Bool().Draw(rt, "signed"),
				})
			}
			drawn = append(drawn, parts)
			var whole []string
			for _, p := range parts {
				whole = append(whole, p.whole())
			}
			candidates = append(candidates, fmt.Sprintf(`{"content":{"parts":[%s],"role":"model"},"index":%d,"finishReason":"STOP"}`, strings.Join(whole, ", "), c))
			var streamed []string
			for _, p := range parts {
				streamed = append(streamed, p.pieces(rt)...)
			}
			for len(streamed) > 0 {
				n := rapid.IntRange(1, len(streamed)).Draw(rt, "in one chunk")
				rest := ""
				if n == len(streamed) {
					rest = `,"finishReason":"STOP"`
				}
				chunks = append(chunks, fmt.Sprintf(`{"candidates":[{"content":{"parts":[%s]},"index":%d%s}]}`, strings.Join(streamed[:n], ","), c, rest))
				streamed = streamed[n:]
			}
		}
		whole := `{"candidates":[` + strings.Join(candidates, ",") + `],"usageMetadata":{}}`
		d := geminiAt(t, geminiEvents)
		read, err := d.Response([]byte(whole))
		if err != nil {
			rt.Fatal(err)
		}
		var blocked []wire.BlockedCall
		var left []wire.ToolCall
		var gone []string
		texts := make([]string, choices)
		calls := read.Calls
		for c, parts := range drawn {
			for _, p := range parts {
				switch p.kind {
				case "text":
					texts[c] += p.text
				case "call":
					call := calls[0]
					calls = calls[1:]
					if rapid.Bool().Draw(rt, "blocked") {
						note := "[note " + p.name + "]"
						blocked, texts[c] = append(blocked, wire.BlockedCall{Key: call.Key, Note: note}), texts[c]+note
						gone = append(gone, call.Name+`"`, call.ID+`"`, "Arg"+p.name+`"`)
					} else {
						left = append(left, withoutKey(call))
					}
				}
			}
		}
		edited, err := d.(wire.CallEditor).WithoutCalls([]byte(whole), blocked)
		if err != nil {
			rt.Fatal(err)
		}
		again, err := d.Response(edited)
		if err != nil || !slices.Equal(withoutKeys(again.Calls), left) || again.Text() != texts[0] {
			rt.Fatalf("%+v %q, want %+v %q: %v", again.Calls, again.Text(), left, texts, err)
		}
		checkSignatures(rt, whole, edited)
		for address, stream := range map[string]string{geminiEvents: sseOf(chunks...), geminiArray: arrayOf(chunks...)} {
			d := geminiAt(t, address)
			calls, err := gathered(t, d, []byte(stream))
			if err != nil || !slices.Equal(calls, read.Calls) {
				rt.Fatalf("streamed %+v, whole %+v, %v", calls, read.Calls, err)
			}
			out, err := editStream(t, d, []byte(stream), blocked)
			if err != nil {
				rt.Fatal(err)
			}
			if len(blocked) == 0 && (string(edited) != whole || string(out) != stream) {
				rt.Fatal("nothing is blocked, and something changed")
			}
			if calls, err := gathered(t, d, out); err != nil || !slices.Equal(withoutKeys(calls), left) {
				rt.Fatalf("%+v, want %+v: %v", calls, left, err)
			}
			checkGeminiEdit(t, rt, d, address, out, texts)
			for _, trace := range gone {
				if bytes.Contains(edited, []byte(trace)) || bytes.Contains(out, []byte(trace)) {
					rt.Fatalf("%s is left in %s and %s", trace, edited, out)
				}
			}
		}
	})
}

func withoutKey(c wire.ToolCall) wire.ToolCall { c.Key = ""; return c }

func withoutKeys(calls []wire.ToolCall) (out []wire.ToolCall) {
	for _, c := range calls {
		out = append(out, withoutKey(c))
	}
	return out
}

// checkSignatures: of the calls that are left, the first of each choice is signed if the
// first of all was.
func checkSignatures(t *rapid.T, whole string, edited []byte) {
	signed := func(body string) (out []string) {
		gjson.Get(body, "candidates").ForEach(func(_, candidate gjson.Result) bool {
			out = append(out, candidate.Get("content.parts.#(functionCall).thoughtSignature").Str)
			return true
		})
		return out
	}
	before, after := signed(whole), signed(string(edited))
	for i := range before {
		if gjson.GetBytes(edited, "candidates."+strconv.Itoa(i)+".content.parts.#(functionCall)").Exists() && before[i] != "" && after[i] == "" {
			t.Fatalf("no signature in %s, which was %s", edited, whole)
		}
	}
}

// checkGeminiEdit reads a stream as the SDKs do, and its texts as we do.
func checkGeminiEdit(t *testing.T, rt *rapid.T, d wire.Dialect, address string, stream []byte, want []string) {
	if address == geminiEvents {
		if sdk := geminiGoSDK(t, stream); !slices.Equal(sdk, geminiJavaScriptSDK(t, stream)) {
			rt.Fatalf("%s", stream)
		}
	} else if !gjson.ValidBytes(stream) {
		rt.Fatalf("%s", stream)
	}
	texts, ended := make([]string, len(want)), 0
	events := d.Events()
	for _, f := range split(t, d, stream) {
		if f.Comment {
			continue
		}
		e, err := events.Event(f)
		if err != nil || len(e.Unknown) > 0 {
			rt.Fatalf("%s: %+v, %v", f.Raw, e, err)
		}
		gjson.GetBytes(f.Data, "candidates").ForEach(func(_, candidate gjson.Result) bool {
			if candidate.Get("content.parts.#").Int() == 0 {
				rt.Fatalf("%s has no parts", f.Raw)
			}
			return true
		})
		for _, delta := range e.Deltas {
			if delta.Kind == wire.Text {
				texts[delta.Choice] += delta.Text
			}
		}
		if e.Finish != "" {
			ended++
		}
	}
	if !slices.Equal(texts, want) || ended != len(want) {
		rt.Fatalf("%q, want %q; %d ended", texts, want, ended)
	}
}

// FuzzGeminiWithoutCalls: nothing panics, and what is edited can be read, and has all the
// calls but the first.
func FuzzGeminiWithoutCalls(f *testing.F) {
	for _, stream := range geminiStreams() {
		f.Add([]byte(geminiWhole), []byte(stream))
	}
	f.Add([]byte(`{"candidates":{"content":{"parts":{"functionCall":{"name":"f"}}}}}`),
		[]byte(arrayOf(geminiChunkOf(partialCall(`"name":"f","partialArgs":{"jsonPath":"$.a[0].b","stringValue":"x","willContinue":true},"willContinue":true`), ""), geminiChunkOf(partialCall(""), ""))))
	f.Fuzz(func(t *testing.T, body, stream []byte) {
		d := geminiAt(t, geminiEvents)
		if r, err := d.Response(body); err == nil && len(r.Calls) > 0 {
			out, err := d.(wire.CallEditor).WithoutCalls(body, []wire.BlockedCall{{Key: r.Calls[0].Key, Note: "No."}})
			switch {
			case errors.Is(err, wire.ErrCalls):
			case err != nil:
				t.Fatal(err)
			default:
				again, err := d.Response(out)
				if err != nil || !slices.Equal(withoutKeys(again.Calls), withoutKeys(r.Calls[1:])) {
					t.Fatalf("%+v of %+v, %v", again.Calls, r.Calls, err)
				}
			}
		}
		for _, address := range []string{geminiEvents, geminiArray} {
			d := geminiAt(t, address)
			calls, err := gathered(t, d, stream)
			blocked := []wire.BlockedCall{{Key: "0", Note: "No."}}
			if err == nil && len(calls) > 0 {
				blocked[0].Key = calls[0].Key
			}
			out, editErr := d.Stream().(wire.StreamCallEditor).WithoutCalls(split(t, d, stream), blocked)
			if editErr != nil {
				if !errors.Is(editErr, wire.ErrCalls) || out != nil {
					t.Fatalf("%s, %v of %+v", out, editErr, calls)
				}
				continue
			}
			left, err := gathered(t, d, out)
			if err != nil || !slices.Equal(withoutKeys(left), withoutKeys(calls[1:])) {
				t.Fatalf("%+v of %+v, %v\n%s", left, calls, err, out)
			}
		}
	})
}
