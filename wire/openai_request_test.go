package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/wire"
)

func dialect(t testing.TB, name string) wire.Dialect {
	t.Helper()
	d, ok := wire.Named(name)
	if !ok {
		t.Fatalf("no dialect %q", name)
	}
	return d
}

// lines writes parts as role kind path text, for tables.
func lines(parts []wire.Part) []string {
	var out []string
	for _, p := range parts {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", p.Role, p.Kind, p.Path, p.Text)))
	}
	return out
}

func compare(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

const agentCall = `{
	"model": "gpt-x", "stream": true, "n": 3, "temperature": 0.20, "metadata": {"a": "b", "session_id": "s1"}, "user": "u",
	"stream_options": {"include_usage": true}, "seed": null,
	"messages": [
		{"role": "developer", "content": "Be brief."},
		{"role": "user", "name": "ann", "content": "Weather?"},
		{"role": "assistant", "content": null, "refusal": null, "reasoning_content": "hm", "tool_calls": [
			{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"K\u00f6ln\"}"}},
			{"id": "c2", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
		]},
		{"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "rain"}]},
		{"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}], "audio": {"id": "a1"}, "annotations": []},
		{"role": "user", "content": [
			{"type": "text", "text": "Look "}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
			{"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
			{"type": "file", "file": {"file_id": "f"}}, {"type": "text", "text": "here."}
		]},
		{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x.test/i.png"}}]}
	],
	"tools": [
		{"type": "function", "function": {"name": "weather", "description": "Says it", "strict": true,
			"parameters": {"type": "object", "properties": {"city": {"description": "a \u0043ity"}}}}},
		{"type": "custom", "custom": {"name": "sql", "description": "Runs", "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: A"}}}}
	],
	"functions": [{"name": "old", "description": "Old", "parameters": {}}],
	"tool_choice": {"type": "function", "function": {"name": "weather"}},
	"response_format": {"type": "json_schema", "json_schema": {"name": "out", "description": "Out", "schema": {"title": "T"}}},
	"prediction": {"type": "content", "content": "maybe"},
	"stop": ["END", ""],
	"web_search_options": {"user_location": {"approximate": {"city": "Bonn"}}}
}`

func compareTools(t *testing.T, got, want []wire.ToolDefinition) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("tools %+v, want %+v", got, want)
	}
}

func TestChatRequest(t *testing.T) {
	r, err := dialect(t, "openai").Request([]byte(agentCall))
	if err != nil {
		t.Fatal(err)
	}
	if r.Model != "gpt-x" || !r.Stream || !r.TellsUsage || !r.Structured || r.Choices != 3 || r.Prompt() != "Look here." || r.Session != "s1" {
		t.Errorf("read as %q, stream %v, structured %v, %d choices, prompt %q, session %q", r.Model, r.Stream, r.Structured, r.Choices, r.Prompt(), r.Session)
	}
	compareTools(t, r.Tools, []wire.ToolDefinition{
		{Name: "weather", Description: "Says it", Schema: []byte(`{"type": "object", "properties": {"city": {"description": "a \u0043ity"}}}`)},
		{Name: "sql", Description: "Runs"},
		{Name: "old", Description: "Old", Schema: []byte(`{}`)},
	})
	compare(t, lines(r.Parts), []string{
		`system text messages.0.content Be brief.`,
		`user name messages.1.name ann`,
		`user text messages.1.content Weather?`,
		`assistant reasoning messages.2.reasoning_content hm`,
		`assistant name messages.2.tool_calls.0.function.name weather`,
		`assistant tool_call messages.2.tool_calls.0.function.arguments {"city":"Köln"}`,
		`assistant name messages.2.tool_calls.1.custom.name sql`,
		`assistant tool_call messages.2.tool_calls.1.custom.input select 1`,
		`tool text messages.3.content.0.text rain`,
		`assistant refusal messages.4.content.0.refusal No.`,
		`user text messages.5.content.0.text Look`,
		`user image messages.5.content.1.image_url`,
		`user audio messages.5.content.2.input_audio`,
		`user file messages.5.content.3.file`,
		`user text messages.5.content.4.text here.`,
		`user image messages.6.content.0.image_url`,
		`definition name tools.0.function.name weather`,
		`definition text tools.0.function.description Says it`,
		"definition schema tools.0.function.parameters type\nobject\nproperties\ncity\ndescription\na City",
		`definition name tools.1.custom.name sql`,
		`definition text tools.1.custom.description Runs`,
		`definition schema tools.1.custom.format.grammar.definition start: A`,
		`definition name functions.0.name old`,
		`definition text functions.0.description Old`,
		"definition name tool_choice type\nfunction\nfunction\nname\nweather",
		`definition name response_format.json_schema.name out`,
		`definition text response_format.json_schema.description Out`,
		"definition schema response_format.json_schema.schema title\nT",
		`other text prediction.content maybe`,
		`other text stop.0 END`,
		"other text web_search_options.user_location approximate\ncity\nBonn",
	})
}

// Frameworks add members that their users cannot leave out. They are known, so that what
// nobody knows stands out among them.
func TestMembersOfFrameworks(t *testing.T) {
	for _, c := range []struct{ dialect, body string }{
		{"openai_chat", `{"messages":[{"role":"assistant","content":"Hi.","prefix":false}]}`},
		{"openai_chat", `{"messages":[{"role":"assistant","content":[{"type":"text","text":"Hi.","role":"assistant","refusal":null}]}]}`},
		{"openai_chat", `{"messages":[{"role":"assistant","content":[{"type":"text","text":"Hi.","annotations":[]}]}]}`},
		{"openai_chat", `{"messages":[{"role":"assistant","content":"{}","parsed":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}","parsed_arguments":null}}]}]}`},
		{"openai_chat", `{"messages":[{"role":"assistant","content":"{}","parsed":{"a":"b"},"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}","parsed_arguments":{"a":"b"}}}]}]}`},
		{"openai_chat", `{"messages":[],"response_format":{"type":"json_object","schema":{"type":"object"}}}`},
		{"ollama_chat", `{"messages":[],"tools":[{"type":"function","function":{"name":"f","strict":true}}]}`},
		{"ollama_chat", `{"messages":[],"tool_choice":"auto"}`},
	} {
		d, _ := wire.Named(c.dialect)
		r, err := d.Request([]byte(c.body))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range r.Parts {
			if p.Kind == wire.Unknown {
				t.Errorf("%s: %s is not known", c.body, p.Path)
			}
		}
	}
}

// What the dialect does not know is listed, wherever it stands.
func TestChatRequestUnknown(t *testing.T) {
	r, err := dialect(t, "openai").Request([]byte(`{
		"messages": [
			{"role": "narrator", "content": "x", "a.b*": "y"},
			{"role": "user", "content": {"text": "object"}},
			{"role": "user", "content": ["bare", 5, {"type": "video_url", "video_url": {}}, {"type": "text", "text": {"value": "z"}}]},
			{"content": "no role"}
		],
		"tools": [{"type": "browser"}, 7], "extra_body": {"messages": "hidden"}, "temperature": {"text": "t"}, "tool_choice": 5,
		"` + strings.Repeat("é", 40) + `": 1
	}`))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, lines(r.Parts), []string{
		`other unknown messages.0.role`,
		`other text messages.0.content x`,
		`other unknown messages.0.sha256:a8e204ef28abcd68`,
		`user unknown messages.1.content`,
		`user text messages.2.content.0 bare`,
		`user unknown messages.2.content.1`,
		`user unknown messages.2.content.2.type`,
		`user unknown messages.2.content.2.sha256:991e4f504ff88160`,
		`user unknown messages.2.content.3.text`,
		`other text messages.3.content no role`,
		`definition unknown tools.0.type`,
		`definition unknown tools.1`,
		`other unknown sha256:5685a97ace93ef06`,
		`other unknown temperature`,
		`definition unknown tool_choice`,
		`other unknown sha256:84fe2e03d50dd3a1`,
	})
}

func TestCompletionsRequest(t *testing.T) {
	for body, want := range map[string]struct {
		prompt  string
		choices int
		parts   []string
	}{
		`{"model":"m","prompt":"Once","suffix":"end","stop":"."}`: {
			"Once", 1, []string{`user text prompt Once`, `user text suffix end`, `other text stop .`},
		},
		`{"prompt":["a","b"],"n":2,"best_of":4,"echo":true}`: {"ab", 4, []string{`user text prompt.0 a`, `user text prompt.1 b`}},
		`{"prompt":[1,2,3]}`:           {"", 1, []string{`user tokens prompt`}},
		`{"prompt":[[1,2],[3]]}`:       {"", 2, []string{`user tokens prompt.0`, `user tokens prompt.1`}},
		`{"prompt":[1,"x",[2,""]]}`:    {"x", 3, []string{`user unknown prompt.0`, `user text prompt.1 x`, `user unknown prompt.2`}},
		`{"prompt":null}`:              {"", 1, nil},
		`{"prompt":{"text":"x"}}`:      {"", 1, []string{`user unknown prompt`}},
		`{"prompt":"x","messages":[]}`: {"x", 1, []string{`user text prompt x`, `other unknown sha256:f5cccfb737512bed`}},
	} {
		r, err := dialect(t, "openai_completions").Request([]byte(body))
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if r.Prompt() != want.prompt || r.Choices != want.choices || r.Structured {
			t.Errorf("%s: prompt %q, %d choices, structured %v", body, r.Prompt(), r.Choices, r.Structured)
		}
		compare(t, lines(r.Parts), want.parts)
	}
}

func TestStructured(t *testing.T) {
	for format, want := range map[string]bool{
		`null`: false, `{"type":"text"}`: false, `{"type":"json_object"}`: true, `{"type":"json_schema"}`: true, `{"type":"new"}`: true,
	} {
		r, err := dialect(t, "openai").Request([]byte(`{"messages":[],"response_format":` + format + `}`))
		if err != nil || r.Structured != want {
			t.Errorf("%s: %v, %v", format, r.Structured, err)
		}
	}
}

// What two readers could read differently is refused, and the error never
// repeats the body.
func TestInvalidRequests(t *testing.T) {
	const hi = `{"role":"user","content":"canary"}`
	chats := map[string]string{
		"empty":                     ``,
		"blank":                     " \n",
		"not JSON":                  `canary`,
		"truncated":                 `{"messages":[` + hi,
		"single quotes":             `{'messages':[]}`,
		"comment":                   `{"messages":[` + hi + `]/*canary*/}`,
		"trailing comma":            `{"messages":[` + hi + `,]}`,
		"NaN":                       `{"messages":[` + hi + `],"temperature":NaN}`,
		"an array":                  `[{"messages":[` + hi + `]}]`,
		"a string":                  `"canary"`,
		"trailing value":            `{"messages":[` + hi + `]}{}`,
		"trailing word":             `{"messages":[` + hi + `]} canary`,
		"duplicate at the root":     `{"messages":[` + hi + `],"messages":[]}`,
		"duplicate by escape":       `{"messages":[` + hi + `],"messag\u0065s":[]}`,
		"duplicate in a message":    `{"messages":[{"role":"user","content":"a","content":"canary"}]}`,
		"duplicate in a part":       `{"messages":[{"role":"user","content":[{"type":"text","text":"a","text":"canary"}]}]}`,
		"duplicate in a tool":       `{"messages":[],"tools":[{"type":"function","function":{"parameters":{"a":1,"a":2}}}]}`,
		"duplicate in the unknown":  `{"messages":[],"x":{"canary":1,"canary":2}}`,
		"case at the root":          `{"messages":[` + hi + `],"Messages":[]}`,
		"case alone":                `{"Messages":[` + hi + `]}`,
		"case of stream":            `{"messages":[],"STREAM":true}`,
		"case by Kelvin sign":       "{\"messages\":[],\"to\u212Aens\":1,\"model\":\"m\",\"to\u017Fl\":1,\"mes\u017Fages\":[]}",
		"case in a message":         `{"messages":[{"role":"user","content":"a","Content":"canary"}]}`,
		"case in a part":            `{"messages":[{"role":"user","content":[{"type":"text","TEXT":"canary"}]}]}`,
		"case in a call":            `{"messages":[{"role":"assistant","tool_calls":[{"function":{"Arguments":"{}"}}]}]}`,
		"lone high surrogate":       `{"messages":[{"role":"user","content":"\ud800canary"}]}`,
		"lone low surrogate":        `{"messages":[{"role":"user","content":"\udc00"}]}`,
		"surrogate in a name":       `{"messages":[],"\ud800":1}`,
		"invalid UTF-8":             "{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}",
		"overlong UTF-8":            "{\"messages\":[{\"role\":\"user\",\"content\":\"\xc0\xae\"}]}",
		"UTF-16":                    "\xff\xfe{\x00}\x00",
		"byte order mark":           "\xef\xbb\xbf{\"messages\":[" + hi + "]}",
		"NUL":                       "{\"messages\":[]}\x00",
		"NUL in a text":             "{\"messages\":[{\"role\":\"user\",\"content\":\"a\x00\"}]}",
		"escaped NUL":               `{"messages":[{"role":"user","content":"a\u0000canary"}]}`,
		"escaped NUL after a slash": `{"messages":[{"role":"user","content":"\\\u0000"}]}`,
		"raw control character":     "{\"messages\":[{\"role\":\"user\",\"content\":\"a\nb\"}]}",
		"too deep":                  `{"messages":[],"x":` + strings.Repeat(`[`, 200) + strings.Repeat(`]`, 200) + `}`,
		"endless":                   strings.Repeat(`{"a":`, 1<<17),
		"no messages":               `{"model":"m"}`,
		"messages are an object":    `{"messages":{"0":` + hi + `}}`,
		"message is a string":       `{"messages":["canary"]}`,
		"stream is a string":        `{"messages":[],"stream":"true"}`,
		"stream is a number":        `{"messages":[],"stream":1}`,
		"model is a number":         `{"messages":[],"model":5}`,
		"n is zero":                 `{"messages":[],"n":0}`,
		"n is huge":                 `{"messages":[],"n":129}`,
		"n is a fraction":           `{"messages":[],"n":2.0}`,
		"n is a string":             `{"messages":[],"n":"2"}`,
		"too many parts":            `{"messages":[` + strings.Repeat(hi+",", 1<<14) + hi + `]}`,
	}
	for name, body := range chats {
		checkInvalid(t, "openai", name, body)
	}
	for name, body := range map[string]string{
		"case":               `{"prompt":"a","Prompt":"canary"}`,
		"duplicate":          `{"prompt":"a","prompt":"canary"}`,
		"too many choices":   `{"n":2,"prompt":[` + strings.Repeat(`"canary",`, 64) + `"x"]}`,
		"stream is a string": `{"prompt":"canary","stream":"true"}`,
	} {
		checkInvalid(t, "openai_completions", name, body)
	}
}

func checkInvalid(t *testing.T, api, name, body string) {
	t.Helper()
	r, err := dialect(t, api).Request([]byte(body))
	if !errors.Is(err, wire.ErrInvalid) {
		t.Errorf("%s: read as %+v, %v", name, r, err)
		return
	}
	if strings.Contains(err.Error(), "canary") || len(err.Error()) > 120 {
		t.Errorf("%s: the error repeats the body: %v", name, err)
	}
}

// What is odd but means one thing only is read.
func TestOddButValidRequests(t *testing.T) {
	for body, want := range map[string]string{
		`{"messages":[{"role":"user","content":"\\u0000 \\ud800"}]}`:                        `\u0000 \ud800`,
		`{"messages":[{"role":"user","content":"\ud83d\ude00 \u00e9\/"}]}`:                  "😀 é/",
		`{"m\u0065ssages":[{"r\u006fle":"us\u0065r","cont\u0065nt":"esc\u0061ped"}]}`:       "escaped",
		" \t\r\n{\"messages\" : [ {\"role\" : \"user\" , \"content\" : \"spaced\" } ] } \n": "spaced",
		`{"messages":[{"role":"user","content":"first"},{"role":"user","content":""}]}`:     "first",
		`{"messages":[{"role":"User","content":"other"}]}`:                                  "",
		`{"messages":[],"n":null,"stream":null,"model":null}`:                               "",
	} {
		r, err := dialect(t, "openai").Request([]byte(body))
		if err != nil || r.Prompt() != want {
			t.Errorf("%s: %q, %v", body, r.Prompt(), err)
		}
	}
}

// FuzzRequest: nothing panics; what is accepted is JSON that the standard
// library reads too; each part is where its path says, and the order of members
// changes neither the parts nor what the call asks for.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(agentCall))
	f.Add([]byte(`{"prompt":["a","b"],"suffix":"c","n":2}`))
	f.Add([]byte(`{"messages":[{"content":"x","role":"user","a.b":[{}]},{"role":"assistant","content":[{"text":"y"}]}],"":{"#":1}}`))
	f.Add([]byte(`{"messages":[{"role":"user","content":"\ud83d\ude00"}],"stream":false,"x\\y":1,"@this":2}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, api := range []string{"openai", "openai_completions"} {
			d := dialect(t, api)
			r, err := d.Request(body)
			if err != nil {
				if !errors.Is(err, wire.ErrInvalid) {
					t.Fatalf("%v is not ErrInvalid", err)
				}
				continue
			}
			if !json.Valid(body) {
				t.Fatalf("%q is not JSON", body)
			}
			checkPaths(t, body, r.Parts)
			again, err := d.Request(shuffled(t, body))
			if err != nil {
				t.Fatalf("%q cannot be read in another order: %v", body, err)
			}
			if !slices.Equal(byPath(r.Parts), byPath(again.Parts)) || r.Stream != again.Stream || r.Choices != again.Choices || r.Model != again.Model {
				t.Fatalf("%q is read differently in another order", body)
			}
		}
	})
}

func checkPaths(t *testing.T, body []byte, parts []wire.Part) {
	t.Helper()
	seen := make(map[string]bool)
	for _, p := range parts {
		cut := strings.Contains(p.Path, "sha256:")
		if seen[p.Path] && !cut {
			t.Fatalf("%q has two parts at %q", body, p.Path)
		}
		seen[p.Path] = true
		v := gjson.GetBytes(body, p.Path)
		if !cut && len(v.Raw) != p.Bytes {
			t.Fatalf("%q at %q is %q, not of %d bytes", body, p.Path, v.Raw, p.Bytes)
		}
		if v.Type == gjson.String && p.Text != "" && v.Str != p.Text {
			t.Fatalf("%q at %q is %q, not %q", body, p.Path, v.Str, p.Text)
		}
	}
}

func byPath(parts []wire.Part) []string {
	out := lines(parts)
	for i, p := range parts {
		if p.Kind == wire.Schema || p.Kind == wire.Annotation || strings.Contains(p.Text, "\n") {
			out[i] = p.Path // the text follows the order of the members
		}
	}
	slices.Sort(out)
	return out
}

// shuffled returns the same JSON with the members of every object in another
// order, and everything else byte for byte.
func shuffled(t *testing.T, body []byte) []byte {
	t.Helper()
	random := rand.New(rand.NewPCG(1, uint64(len(body))))
	var write func(b *bytes.Buffer, v gjson.Result)
	write = func(b *bytes.Buffer, v gjson.Result) {
		var items []string
		open, end := "[", "]"
		switch {
		case v.IsObject():
			open, end = "{", "}"
		case !v.IsArray():
			b.WriteString(v.Raw)
			return
		}
		v.ForEach(func(key, value gjson.Result) bool {
			var item bytes.Buffer
			if v.IsObject() {
				item.WriteString(key.Raw + ":")
			}
			write(&item, value)
			items = append(items, item.String())
			return true
		})
		if v.IsObject() {
			random.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
		}
		b.WriteString(open + strings.Join(items, ",") + end)
	}
	var out bytes.Buffer
	write(&out, gjson.ParseBytes(body))
	return out.Bytes()
}

func BenchmarkRequest(b *testing.B) {
	var messages []string
	for i := range 50 {
		role := []string{"user", "assistant"}[i%2]
		messages = append(messages, fmt.Sprintf(`{"role":%q,"content":%q}`, role, strings.Repeat("All work and no play. ", 93)))
	}
	body := []byte(`{"model":"m","stream":true,"messages":[` + strings.Join(messages, ",") + `]}`)
	d := dialect(b, "openai")
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, err := d.Request(body); err != nil {
			b.Fatal(err)
		}
	}
}
