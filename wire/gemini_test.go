package wire_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/wire"
)

// geminiAt is the dialect at an address.
func geminiAt(t testing.TB, address string) wire.Dialect {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	d, ok := wire.Match(u)
	if !ok || d.Name() != "gemini_generate" {
		t.Fatalf("%s is not Gemini's", address)
	}
	return d
}

const (
	geminiEvents = "/v1beta/models/m:streamGenerateContent?alt=sse"
	geminiArray  = "/v1beta/models/m:streamGenerateContent"
)

// An answer in a form that nobody reads here is not asked for.
func TestGeminiAnswersInAnotherForm(t *testing.T) {
	for _, alt := range []string{"alt=media", "alt=proto", "$alt=proto"} {
		u, err := url.Parse("/v1beta/models/m:generateContent?" + alt)
		if err != nil {
			t.Fatal(err)
		}
		d, ok := wire.Match(u)
		if !ok {
			t.Fatalf("%s: no dialect", alt)
		}
		if r, err := d.Request([]byte(`{"contents":[{"parts":[{"text":"x"}]}]}`)); !errors.Is(err, wire.ErrInvalid) {
			t.Errorf("%s: %v %+v", alt, err, r)
		}
	}
}

func TestGeminiAddresses(t *testing.T) {
	for address, want := range map[string]string{ // model, stream, framing
		"/v1beta/models/gemini-2.5-flash:generateContent":                                          "gemini-2.5-flash false text/event-stream",
		"/v1/models/Gemini-X:generateContent?key=k":                                                "Gemini-X false text/event-stream",
		"/v1beta/models/m:streamGenerateContent?alt=sse":                                           "m true text/event-stream",
		"/v1beta/models/m:streamGenerateContent?key=k&$alt=SSE":                                    "m true text/event-stream",
		"/v1beta/models/m:streamGenerateContent?alt=json":                                          "m true application/json",
		"/v1beta/models/m:streamGenerateContent":                                                   "m true application/json",
		"/v1beta/models/m%3AstreamGenerateContent?alt=sse":                                         "m true text/event-stream",
		"/V1BETA/Models/M:STREAMgeneratecontent/?alt=sse":                                          "M true text/event-stream",
		"//v1beta//models/./m:generateContent/":                                                    "m false text/event-stream",
		"/v1alpha/tunedModels/mine-1:generateContent":                                              "tunedModels/mine-1 false text/event-stream",
		"/v1beta1/projects/p/locations/l/publishers/google/models/m:streamGenerateContent?alt=sse": "m true text/event-stream",
		"/v1/projects/p/locations/l/endpoints/123:generateContent":                                 "endpoints/123 false text/event-stream",
		"/base/gemini/v1beta/models/m:generateContent":                                             "m false text/event-stream",
		"/v1beta/models/a:b:generateContent":                                                       "a:b false text/event-stream",
		"/m:generateContent":                                                                       "m false text/event-stream",
		"/v1beta/models/m:countTokens":                                                             "",
		"/v1beta/models/m:embedContent":                                                            "",
		"/v1beta/models/m:batchGenerateContent":                                                    "",
		"/v1beta/models/m:generateContentX":                                                        "",
		"/v1beta/models/m:generateContent/operations":                                              "",
		"/v1beta/models/m/generateContent":                                                         "",
		"/v1beta/models":                                                                           "",
		"/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent":            "",
		"/v1beta/a:generateContent/b":                                                              "",
		"/v1beta/openai/chat/completions":                                                          "openai",
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if d, ok := wire.Match(u); ok && d.Name() == "gemini_generate" {
			r, err := d.Request([]byte(`{"contents":[{"parts":[{"text":"x"}]}]}`))
			if err != nil {
				t.Fatal(err)
			}
			got = fmt.Sprintf("%s %t %s", r.Model, r.Stream, d.Framing())
		} else if ok {
			got = "openai"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}

// geminiCall has something in every place that the API has.
const geminiCall = `{
	"systemInstruction": {"role": "system", "parts": [{"text": "You are Neko."}, {"text": "Be kind."}]},
	"contents": [
		{"role": "user", "parts": [{"text": "First"}, {"text": " question."}, {"inlineData": {"mimeType": "image/png", "data": "iVBO", "displayName": "cat.png"}}]},
		{"role": "model", "parts": [
			{"text": "Let me see.", "thought": true, "thoughtSignature": "c2ln"}, {"text": "Unsigned.", "thought": true}, {"text": "I look it up."},
			{"functionCall": {"id": "1", "name": "find", "args": {"q": ["cats", 5]}}, "thoughtSignature": "c2ln"},
			{"executableCode": {"language": "PYTHON", "code": "print(1)", "id": "e"}},
			{"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1", "id": "e"}},
			{"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["cats"]}, "id": "t"}},
			{"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "response": {"search": "nine lives"}, "id": "t"}}]},
		{"role": "user", "parts": [
			{"functionResponse": {"id": "1", "name": "find", "response": {"result": "A cat."}, "scheduling": "SILENT",
				"parts": [{"inlineData": {"mimeType": "text/plain; charset=utf-8", "data": "VGhlIGNhdC4"}}]}},
			{"text": "And now?"}]},
		{"parts": [{"fileData": {"mimeType": "video/mp4", "fileUri": "gs://b/v.mp4"}, "videoMetadata": {"fps": 1}},
			{"inlineData": {"mimeType": "application/pdf", "data": "JVBE"}}, {"inlineData": {"mimeType": "text/plain", "data": "//79"}},
			{"text": "Last question.", "mediaResolution": {"level": "x"}, "partMetadata": {"a": "b"}, "wish": "for fish"}]}
	],
	"tools": [{"functionDeclarations": [{"name": "find", "description": "Finds.", "parameters": {"type": "OBJECT", "description": "What."}, "responseJsonSchema": {"title": "T"}}]},
		{"googleSearch": {}, "codeExecution": {}, "urlContext": {}, "newTool": {"x": "y"}},
		{"mcpServers": [{"name": "files", "streamableHttpTransport": {"url": "https://mcp.test", "headers": {"Authorization": "canary-secret"}}}]}],
	"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["find"]}, "retrievalConfig": {"languageCode": "en"}},
	"generationConfig": {"stopSequences": ["END"], "candidateCount": "2", "responseMimeType": "application/json", "responseJsonSchema": {"title": "R"}, "speechConfig": {"x": 1}},
	"safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}],
	"cachedContent": "cachedContents/1", "continuationToken": "dG9rZW4=", "labels": {"team": "x"}, "serviceTier": "flex", "store": false, "novelty": {"text": "?"}
}`

// inSnakeCase is a call with every name of the API as protocol buffers write it.
func inSnakeCase(body string) string {
	var names []string
	for _, name := range []string{
		"systemInstruction", "inlineData", "mimeType", "displayName", "thoughtSignature", "functionCall", "executableCode", "codeExecutionResult",
		"toolCall", "toolType", "toolResponse", "functionResponse", "fileData", "fileUri", "videoMetadata", "mediaResolution", "partMetadata",
		"functionDeclarations", "responseJsonSchema", "googleSearch", "codeExecution", "urlContext", "mcpServers", "streamableHttpTransport",
		"toolConfig", "functionCallingConfig", "allowedFunctionNames", "retrievalConfig", "languageCode", "generationConfig", "stopSequences",
		"candidateCount", "responseMimeType", "speechConfig", "safetySettings", "cachedContent", "continuationToken", "serviceTier",
	} {
		var snake strings.Builder
		for _, c := range name {
			if c >= 'A' && c <= 'Z' {
				snake.WriteString("_" + strings.ToLower(string(c)))
			} else {
				snake.WriteRune(c)
			}
		}
		names = append(names, `"`+name+`"`, `"`+snake.String()+`"`)
	}
	return strings.NewReplacer(names...).Replace(body)
}

func TestGeminiRequest(t *testing.T) {
	want := []string{
		`system text systemInstruction.parts.0.text You are Neko.`,
		`system text systemInstruction.parts.1.text Be kind.`,
		`user text contents.0.parts.0.text First`,
		`user text contents.0.parts.1.text  question.`,
		`user name contents.0.parts.2.inlineData.displayName cat.png`,
		`user image contents.0.parts.2.inlineData.data`,
		`assistant reasoning contents.1.parts.0 Let me see.`,
		`assistant reasoning contents.1.parts.1.text Unsigned.`,
		`assistant text contents.1.parts.2.text I look it up.`,
		`assistant name contents.1.parts.3.functionCall.name find`,
		"assistant tool_call contents.1.parts.3.functionCall.args q\ncats",
		`assistant tool_call contents.1.parts.4.executableCode.code print(1)`,
		`tool text contents.1.parts.5.codeExecutionResult.output 1`,
		"assistant tool_call contents.1.parts.6.toolCall.args queries\ncats",
		"tool text contents.1.parts.7.toolResponse.response search\nnine lives",
		`tool name contents.2.parts.0.functionResponse.name find`,
		"tool text contents.2.parts.0.functionResponse.response result\nA cat.",
		`tool document contents.2.parts.0.functionResponse.parts.0.inlineData.data The cat.`,
		`user text contents.2.parts.1.text And now?`,
		`user file contents.3.parts.0.fileData.fileUri`,
		`user file contents.3.parts.1.inlineData.data`,
		`user file contents.3.parts.2.inlineData.data`,
		`user text contents.3.parts.3.text Last question.`,
		`user unknown contents.3.parts.3.sha256:`,
		`definition name tools.0.functionDeclarations.0.name find`,
		`definition text tools.0.functionDeclarations.0.description Finds.`,
		"definition schema tools.0.functionDeclarations.0.parameters type\nOBJECT\ndescription\nWhat.",
		"definition schema tools.0.functionDeclarations.0.responseJsonSchema title\nT",
		`definition unknown tools.1.sha256:`,
		`definition name tools.2.mcpServers.0.name files`,
		`definition name toolConfig.functionCallingConfig.allowedFunctionNames find`,
		`other text generationConfig.stopSequences.0 END`,
		"definition schema generationConfig.responseJsonSchema title\nR",
		`other document cachedContent`,
		`other unknown sha256:`,
	}
	r, err := geminiAt(t, geminiEvents).Request([]byte(geminiCall))
	if err != nil {
		t.Fatal(err)
	}
	got := lines(r.Parts)
	for i, line := range got {
		if before, _, unknown := strings.Cut(line, "sha256:"); unknown {
			got[i] = before + "sha256:"
		}
	}
	compare(t, got, want)
	if r.Prompt() != "Last question." || !r.Structured || r.Choices != 2 || r.Model != "m" || !r.Stream || len(r.Previous) != 64 || r.Session != "" {
		t.Errorf("%+v", r)
	}
	for _, p := range r.Parts {
		if earlier := p.Message >= 1 && p.Message <= 3; p.Earlier != earlier {
			t.Errorf("%s of message %d: earlier %v", p.Path, p.Message, p.Earlier)
		}
		if raw := geminiCall[p.Start : p.Start+p.Bytes]; !json.Valid([]byte(raw)) || strings.Contains(p.Text, "canary") {
			t.Errorf("%s stands at %q", p.Path, raw)
		}
	}
}

// Both spellings of a call are read alike.
func TestGeminiSpellingsAreOne(t *testing.T) {
	d := geminiAt(t, geminiEvents)
	camel, err1 := d.Request([]byte(geminiCall))
	snake, err2 := d.Request([]byte(inSnakeCase(geminiCall)))
	if err1 != nil || err2 != nil || len(camel.Parts) != len(snake.Parts) || camel.Previous != snake.Previous || camel.Structured != snake.Structured {
		t.Fatalf("%v, %v: %d and %d parts", err1, err2, len(camel.Parts), len(snake.Parts))
	}
	for i, p := range camel.Parts {
		q := snake.Parts[i]
		if p.Role != q.Role || p.Kind != q.Kind || p.Text != q.Text || p.Message != q.Message || p.Earlier != q.Earlier {
			t.Errorf("%s %+v is %s %+v", p.Path, p, q.Path, q)
		}
	}
}

// What the API takes in several forms is read in each.
func TestGeminiForms(t *testing.T) {
	d := dialect(t, "gemini")
	for body, want := range map[string][]string{
		`{"contents":{"parts":{"text":"a"}}}`:                                                     {`user text contents.parts.text a`},
		`{"contents":[{"role":null,"parts":[{"text":"a"}]}]}`:                                     {`user text contents.0.parts.0.text a`},
		`{"contents":[{"role":"","parts":[{"text":"a"}]}]}`:                                       {`user text contents.0.parts.0.text a`},
		`{"contents":[{"role":"function","parts":[{"text":"a"}]}]}`:                               {`tool text contents.0.parts.0.text a`},
		`{"contents":[{"role":"wizard","parts":[{"text":"a"}]}]}`:                                 {`other unknown contents.0.role`, `other text contents.0.parts.0.text a`},
		`{"contents":[{"role":5,"parts":[{"text":"a"}]}]}`:                                        {`other unknown contents.0.role`, `other text contents.0.parts.0.text a`},
		`{"contents":[],"systemInstruction":"a"}`:                                                 {`system text systemInstruction a`},
		`{"contents":[],"system_instruction":{"text":"a"}}`:                                       {`system text system_instruction.text a`},
		`{"contents":[],"systemInstruction":{"parts":{"text":"a"}}}`:                              {`system text systemInstruction.parts.text a`},
		`{"contents":[],"systemInstruction":[{"text":"a"},"b"]}`:                                  {`system text systemInstruction.0.text a`, `system text systemInstruction.1 b`},
		`{"contents":[],"systemInstruction":{"a":"b"}}`:                                           {`system unknown systemInstruction.sha256:ca978112ca1bbdca`},
		`{"contents":[],"tools":{"function_declarations":{"name":"f"}}}`:                          {`definition name tools.function_declarations.name f`},
		`{"contents":[{"parts":[{"text":"a","thought":"true"}]}]}`:                                {`user text contents.0.parts.0.text a`, `user unknown contents.0.parts.0.thought`},
		`{"contents":[{"parts":["a",5,{"text":5},{"text":null},{"text":""}]}]}`:                   {`user unknown contents.0.parts.0`, `user unknown contents.0.parts.1`, `user unknown contents.0.parts.2.text`},
		`{"contents":[{"parts":[{"functionResponse":{"name":"f","response":"plain"}}]}]}`:         {`tool name contents.0.parts.0.functionResponse.name f`, `tool text contents.0.parts.0.functionResponse.response plain`},
		`{"contents":[{"parts":[{"inlineData":{"mimeType":"TEXT/html","data":"-_-_"}}]}]}`:        {`user file contents.0.parts.0.inlineData.data`},
		`{"contents":[{"parts":[{"inlineData":{"data":"YQ==","mimeType":"text/markdown"}}]}]}`:    {`user document contents.0.parts.0.inlineData.data a`},
		`{"contents":[{"parts":[{"inline_data":{"data":"YQ","mime_type":"application/json"}}]}]}`: {`user document contents.0.parts.0.inline_data.data a`},
		`{"contents":[{"parts":[{"inlineData":{"data":5,"mimeType":"text/plain"}}]}]}`:            {`user file contents.0.parts.0.inlineData.data`},
		`{"contents":[{"parts":[{"inlineData":"x"},{"fileData":"y"}]}]}`:                          {`user unknown contents.0.parts.0.inlineData`, `user unknown contents.0.parts.1.fileData`},
		`{"contents":[{"parts":[{"audioTranscription":{"text":"a","words":[{"word":"b"}]}}]}]}`:   {`user text contents.0.parts.0.audioTranscription.text a`, "user annotation contents.0.parts.0.audioTranscription.words word\nb"},
		`{"contents":[{"parts":[{"text":"a","thought":true,"thoughtSignature":"s","new":"b"}]}]}`: {`user reasoning contents.0.parts.0.text a`, `user unknown contents.0.parts.0.sha256:11507a0e2f5e69d5`},
		`{"contents":[{"parts":[{"text":"a","thoughtSignature":"s"}]}]}`:                          {`user text contents.0.parts.0.text a`},
	} {
		r, err := d.Request([]byte(body))
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if got := lines(r.Parts); !slices.Equal(got, want) {
			t.Errorf("%s\n got %q\nwant %q", body, got, want)
		}
	}
}

func TestGeminiSwitches(t *testing.T) {
	d := dialect(t, "gemini")
	for config, want := range map[string]struct {
		structured bool
		choices    int
	}{
		`{}`:                                 {false, 1},
		`null`:                               {false, 1},
		`{"candidateCount":0}`:               {false, 1},
		`{"candidateCount":8}`:               {false, 8},
		`{"candidate_count":"3"}`:            {false, 3},
		`{"responseMimeType":"text/plain"}`:  {false, 1},
		`{"responseMimeType":"text/x.enum"}`: {true, 1},
		`{"response_mime_type":"application/json"}`: {true, 1},
		`{"responseSchema":{}}`:                     {true, 1},
		`{"response_schema":null}`:                  {false, 1},
		`{"_responseJsonSchema":{}}`:                {true, 1},
		`{"responseFormat":[{"text":{}}]}`:          {true, 1},
	} {
		r, err := d.Request([]byte(`{"contents":[],"generationConfig":` + config + `}`))
		if err != nil || r.Structured != want.structured || r.Choices != want.choices {
			t.Errorf("%s: structured %v, %d choices, %v", config, r.Structured, r.Choices, err)
		}
	}
}

// The system instruction is the first message, wherever it stands in the body.
func TestGeminiSystemIsFirst(t *testing.T) {
	const system, contents = `"systemInstruction":{"parts":[{"text":"S"}]}`,
		`"contents":[{"parts":[{"text":"a"}]},{"role":"model","parts":[{"text":"b"}]},{"parts":[{"text":"c"}]},{"role":"model","parts":[{"text":"pre"}]}]`
	d := dialect(t, "gemini")
	before, err1 := d.Request([]byte("{" + system + "," + contents + "}"))
	after, err2 := d.Request([]byte("{" + contents + "," + system + "}"))
	if err1 != nil || err2 != nil || before.Prompt() != "c" {
		t.Fatal(err1, err2, before.Prompt())
	}
	earlier := []bool{true, true, true, false, true}
	for i, p := range after.Parts {
		q := before.Parts[i]
		p.Start, q.Start = 0, 0
		if !reflect.DeepEqual(p, q) || p.Message != i+1 || p.Earlier != earlier[i] {
			t.Errorf("%+v and %+v", p, q)
		}
	}
}

// A user's message that holds only results of tools is no prompt, and results beside
// a prompt are no part of it.
func TestGeminiPrompt(t *testing.T) {
	for parts, want := range map[string]string{
		`{"functionResponse":{"name":"f","response":{"r":"tool says"}}}`:                     "first",
		`{"functionResponse":{"name":"f","response":{"r":"tool says"}}},{"text":"and then"}`: "and then",
		`{"text":"a"},{"inlineData":{"mimeType":"text/plain","data":"ZG9j"}},{"text":"b"}`:   "ab",
		`{"text":"hidden","thought":true}`:                                                   "first",
	} {
		r, err := dialect(t, "gemini").Request([]byte(`{"contents":[{"parts":[{"text":"first"}]},{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"role":"user","parts":[` + parts + `]}]}`))
		if err != nil || r.Prompt() != want {
			t.Errorf("%s: %q, %v", parts, r.Prompt(), err)
		}
	}
}

func TestGeminiInvalidRequests(t *testing.T) {
	for name, body := range map[string]string{
		"no contents":          `{"prompt":"canary"}`,
		"contents is a string": `{"contents":"canary"}`,
		"contents is null":     `{"contents":null}`,
		"a content is none":    `{"contents":["canary"]}`,
		"duplicate":            `{"contents":[],"contents":[{"parts":[{"text":"canary"}]}]}`,
		"case":                 `{"contents":[],"Contents":[{"parts":[{"text":"canary"}]}]}`,
		"case of a twin":       `{"contents":[],"System_Instruction":{"parts":[{"text":"canary"}]}}`,
		"twins":                `{"contents":[],"systemInstruction":{},"system_instruction":{"parts":[{"text":"canary"}]}}`,
		"twins, other order":   `{"system_instruction":{"parts":[{"text":"canary"}]},"contents":[],"systemInstruction":null}`,
		"escaped twins":        `{"contents":[],"system\u005finstruction":{},"system\u0049nstruction":{"parts":[{"text":"canary"}]}}`,
		"twins below":          `{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","mime_type":"text/plain","data":"canary"}}]}]}`,
		"twins of a call":      `{"contents":[{"parts":[{"function_call":{},"functionCall":{"name":"canary"}}]}]}`,
		"twins of the config":  `{"contents":[],"generationConfig":{"candidateCount":1,"candidate_count":2}}`,
		"too many choices":     `{"contents":[],"generationConfig":{"candidateCount":129}}`,
		"choices":              `{"contents":[],"generationConfig":{"candidateCount":"canary"}}`,
		"choices, a float":     `{"contents":[],"generationConfig":{"candidateCount":2.0}}`,
		"surrogate":            `{"contents":[{"parts":[{"text":"\ud800"}]}]}`,
		"not an object":        `[{"contents":[]}]`,
	} {
		checkInvalid(t, "gemini", name, body)
	}
}

// What is left is the same call with other words in the replaced places, in the form
// that the API takes there.
func TestGeminiRedact(t *testing.T) {
	d := geminiAt(t, geminiEvents)
	for _, body := range []string{geminiCall, inSnakeCase(geminiCall)} {
		before, err := d.Request([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		var texts []int
		for i, p := range before.Parts {
			if p.Text != "" {
				texts = append(texts, i)
			}
		}
		for range 200 {
			var chosen []wire.Part
			at := make(map[int]bool)
			for _, i := range texts {
				if rand.IntN(3) == 0 {
					chosen, at[i] = append(chosen, before.Parts[i]), true
				}
			}
			out := wire.Redact([]byte(body), chosen, `removed "here"`)
			after, err := d.Request(out)
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			said := fmt.Sprint(lines(after.Parts))
			for i, p := range before.Parts {
				if at[i] && len(p.Text) > 6 && strings.Contains(said, " "+p.Text) {
					t.Fatalf("%s still says %q", p.Path, p.Text)
				}
				if !at[i] && p.Text != "" && !strings.Contains(said, p.Text) {
					t.Fatalf("%s no longer says %q: %s", p.Path, p.Text, out)
				}
			}
		}
	}
}

// Each part is replaced in the form of its place, and no other byte changes.
func TestGeminiRedactForms(t *testing.T) {
	body := ` {"contents" :[ {"role":"user","parts":[{"text":"caf\u00e9"}, {"inlineData":{"mimeType":"text/plain","data":"ZG9j"}}]},` +
		`{"role":"model","parts":[{"thought":true ,"text":"hm","thoughtSignature":"c2ln"},{"functionCall":{"name":"f","args":{"a":"b"}},"thoughtSignature":"x"},{"executableCode":{"code":"p"}}]},` +
		`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"r":"s"}}}]},{"role":"model","parts":[{"text":"ok"}]},{"parts":[{"text":"b"}]} ]}` + "\n"
	d := dialect(t, "gemini")
	r, err := d.Request([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	var past []wire.Part
	for _, p := range r.Parts {
		if p.Earlier {
			past = append(past, p)
		}
	}
	got := string(wire.Redact([]byte(body), past, "gone"))
	want := strings.NewReplacer(
		`"caf\u00e9"`, `"gone"`, `"ZG9j"`, `"`+base64.StdEncoding.EncodeToString([]byte("gone"))+`"`,
		`{"thought":true ,"text":"hm","thoughtSignature":"c2ln"}`, `{"text":"gone"}`,
		`"name":"f"`, `"name":"redacted"`, `{"a":"b"}`, `{"redacted":"gone"}`, `"p"`, `"{\"redacted\":\"gone\"}"`, `{"r":"s"}`, `{"note":"gone"}`, `"ok"`, `"gone"`,
	).Replace(body)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if _, err := d.Request([]byte(got)); err != nil {
		t.Error(err)
	}
}

func TestGeminiResponse(t *testing.T) {
	d := dialect(t, "gemini")
	r, err := d.Response([]byte(`{
		"candidates": [
			{"index": 0, "finishReason": "STOP", "finishMessage": "Done.", "tokenCount": 3, "avgLogprobs": -1, "safetyRatings": [{"category": "x"}], "continuationToken": "dG9rZW4=",
			 "content": {"role": "model", "parts": [{"text": "Hm.", "thought": true}, {"text": "Par"}, {"text": "is."},
				{"functionCall": {"name": "f", "args": {"a": "b"}}}, {"functionCall": {"name": "g", "partialArgs": [{"jsonPath": "$.x", "stringValue": "y"}], "willContinue": true}},
				{"executableCode": {"code": "1+1", "language": "PYTHON"}}, {"codeExecutionResult": {"output": "2", "outcome": "OUTCOME_OK"}},
				{"toolResponse": {"response": {"found": "it"}}}, {"inlineData": {"mimeType": "image/png", "data": "iVBO"}}, {"inlineData": {"mimeType": "text/plain", "data": "ZG9j"}}]},
			 "citationMetadata": {"citations": [{"title": "T"}]}, "groundingMetadata": {"webSearchQueries": ["q"]}, "urlContextMetadata": {"urlMetadata": []}, "logprobsResult": {"chosenCandidates": []}},
			{"index": 1, "finishReason": "MAX_TOKENS", "content": {"parts": [{"text": "Lyon."}]}, "extra": {"a": "b"}}],
		"usageMetadata": {"totalTokenCount": 1}, "modelVersion": "gemini-x", "responseId": "r", "createTime": "t", "modelStatus": {"message": "old"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if r.Model != "gemini-x" || r.Finish != "STOP" || r.Text() != "Paris." || len(r.ID) != 64 {
		t.Errorf("model %q, finish %q, text %q, id %q", r.Model, r.Finish, r.Text(), r.ID)
	}
	compare(t, lines(r.Parts), []string{
		`refusal candidates.0.finishMessage Done.`,
		`reasoning candidates.0.content.parts.0.text Hm.`,
		`text candidates.0.content.parts.1.text Par`,
		`text candidates.0.content.parts.2.text is.`,
		`name candidates.0.content.parts.3.functionCall.name f`,
		"tool_call candidates.0.content.parts.3.functionCall.args a\nb",
		`name candidates.0.content.parts.4.functionCall.name g`,
		"tool_call candidates.0.content.parts.4.functionCall.partialArgs jsonPath\n$.x\nstringValue\ny",
		`tool_call candidates.0.content.parts.5.executableCode.code 1+1`,
		`tool_result candidates.0.content.parts.6.codeExecutionResult.output 2`,
		"tool_result candidates.0.content.parts.7.toolResponse.response found\nit",
		`image candidates.0.content.parts.8.inlineData.data`,
		`document candidates.0.content.parts.9.inlineData.data doc`,
		"annotation candidates.0.citationMetadata citations\ntitle\nT",
		"annotation candidates.0.groundingMetadata webSearchQueries\nq",
		"annotation candidates.0.urlContextMetadata urlMetadata",
		`logprobs candidates.0.logprobsResult`,
		`text candidates.1.content.parts.0.text Lyon.`,
		`unknown candidates.1.sha256:c8dee78f8c7b466c`,
		"annotation modelStatus message\nold",
	})
	for body, want := range map[string]string{ // text and finish reason
		`{"promptFeedback":{"blockReason":"SAFETY","blockReasonMessage":"No."}}`:    "No. SAFETY",
		`{"candidates":[{"finishReason":"SAFETY","finishMessage":"Stopped."}]}`:     "Stopped. SAFETY",
		`{"candidates":[],"usageMetadata":{}}`:                                      " ",
		`{"candidates":[{"content":{"parts":{"text":"a"}},"finishReason":"STOP"}]}`: "a STOP",
	} {
		if r, err := d.Response([]byte(body)); err != nil || r.Text()+" "+r.Finish != want {
			t.Errorf("%s: %q %q, %v", body, r.Text(), r.Finish, err)
		}
	}
	for _, body := range []string{
		``, `[]`, `{}`, `[{"candidates":[]}]`, `{"candidates":{}}`, `{"usageMetadata":{}}`,
		`{"candidates":[{"content":{"parts":[{"text":"a"}],"Parts":[{"text":"canary"}]}}]}`,
		`{"candidates":[{"content":{"parts":[{"inlineData":{},"inline_data":{}}]}}]}`,
	} {
		if r, err := d.Response([]byte(body)); !errors.Is(err, wire.ErrInvalid) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %+v, %v", body, r, err)
		}
	}
}

func TestGeminiEvents(t *testing.T) {
	type delta = wire.Delta
	for data, want := range map[string]wire.Event{
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"Par"}]},"index":0}],"usageMetadata":{"totalTokenCount":1},"modelVersion":"m","responseId":"r"}`: {Deltas: []delta{{Kind: wire.Text, Text: "Par"}}},
		`{"candidates":[{"content":{"parts":[{"text":"hm","thought":true}]}}]}`:                                                                                      {Deltas: []delta{{Kind: wire.Reasoning, Text: "hm"}}},
		`{"candidates":[{"content":{"parts":[{"text":"seen","thought":1}]}}]}`:                                                                                       {Deltas: []delta{{Kind: wire.Text, Text: "seen"}}, Unknown: []string{"candidates.0.content.parts.0.thought"}},
		`{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}]}`:                                                        {Finish: "STOP", MayEnd: true},
		`{"candidates":[{"finishReason":"FINISH_REASON_UNSPECIFIED"}]}`:                                                                                              {},
		`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":"b"}}}]}}]}`:                                                                    {Deltas: []delta{{Kind: wire.Name, Text: "f", Called: true}, {Kind: wire.Arguments, Text: "a\nb", Called: true}}, Calls: []wire.CallDelta{{}}},
		`{"candidates":[{"content":{"parts":[{"executableCode":{"code":"1"}}]}}]}`:                                                                                   {Deltas: []delta{{Kind: wire.Arguments, Text: "1"}}},
		`{"candidates":[{"index":1,"content":{"parts":[{"text":"b"}]}},{"index":0,"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}`:                       {Deltas: []delta{{Choice: 1, Kind: wire.Text, Text: "b"}, {Kind: wire.Text, Text: "a"}}, Finish: "STOP", MayEnd: true},
		`{"candidates":[{"content":{"parts":[{"text":"a"}]}},{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}]}`:                                           {Deltas: []delta{{Kind: wire.Text, Text: "a"}, {Choice: 1, Kind: wire.Text, Text: "b"}}, Finish: "STOP", MayEnd: true},
		`{"candidates":[{"index":128,"content":{"parts":[{"text":"a"}]}},{"index":"1","content":{"parts":[{"text":"b"}]}}]}`:                                         {Deltas: []delta{{Kind: wire.Text, Text: "a"}, {Kind: wire.Text, Text: "b"}}, Unknown: []string{"candidates.0.index", "candidates.1.index"}},
		`{"promptFeedback":{"blockReason":"SAFETY","blockReasonMessage":"No."}}`:                                                                                     {Deltas: []delta{{Kind: wire.RefusalText, Text: "No."}}, Finish: "SAFETY", Done: true},
		`{"promptFeedback":{"safetyRatings":[]},"candidates":[]}`:                                                                                                    {},
		`{"candidates":[{"finishReason":"SAFETY","finishMessage":"No."}]}`:                                                                                           {Deltas: []delta{{Kind: wire.RefusalText, Text: "No."}}, Finish: "SAFETY", MayEnd: true},
		`{"usageMetadata":{"totalTokenCount":1}}`:                                                                                                                    {},
		`{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}`:                                                                                       {Err: true, Deltas: []delta{{Kind: wire.Annotation, Text: "code\nmessage\noverloaded\nstatus\nUNAVAILABLE"}}},
		`{"error":{"code":1,"message":"m"},"candidates":[{"content":{"parts":[{"text":"x"}]}}]}`:                                                                     {Deltas: []delta{{Kind: wire.Annotation, Text: "code\nmessage\nm"}, {Kind: wire.Text, Text: "x"}}, Unknown: []string{"error"}},
		`{"error":null}`:             {},
		`{"candidates":[5],"x":"y"}`: {Unknown: []string{"candidates.0", "sha256:2d711642b726b044"}},
	} {
		got := event(t, "gemini", data)
		slices.SortFunc(got.Deltas, func(a, b delta) int { return strings.Compare(string(a.Kind), string(b.Kind)) })
		slices.SortFunc(want.Deltas, func(a, b delta) int { return strings.Compare(string(a.Kind), string(b.Kind)) })
		if !slices.Equal(got.Deltas, want.Deltas) || !slices.Equal(sorted(got.Unknown), sorted(want.Unknown)) || !slices.Equal(got.Finished, want.Finished) || got.MayEnd != want.MayEnd ||
			got.Finish != want.Finish || got.Done != want.Done || got.Err != want.Err || len(got.Calls) > 0 != (len(want.Calls) > 0) {
			t.Errorf("%s\n got %+v\nwant %+v", data, got, want)
		}
	}
}

// Whichever way an SDK writes the bytes of a token, the answer is the same.
func TestGeminiContinuationTokens(t *testing.T) {
	d := dialect(t, "gemini")
	whole, err := d.Response([]byte(`{"candidates":[{"finishReason":"CONTINUATION","continuationToken":"+/+/YQ=="}]}`))
	if err != nil || whole.ID == "" || strings.Contains(whole.ID, "+/") {
		t.Fatalf("%+v, %v", whole, err)
	}
	if e := event(t, "gemini", `{"candidates":[{"continuationToken":"+/+/YQ=="}]}`); e.ID != whole.ID {
		t.Errorf("streamed: %q", e.ID)
	}
	for _, token := range []string{"+/+/YQ==", "-_-_YQ==", "-_-_YQ"} {
		r, err := d.Request([]byte(`{"contents":[],"continuation_token":"` + token + `"}`))
		if err != nil || r.Previous != whole.ID {
			t.Errorf("%s: %q, %v", token, r.Previous, err)
		}
	}
	if r, err := d.Request([]byte(`{"contents":[],"continuationToken":"not base64!"}`)); err != nil || r.Previous == "" || r.Previous == whole.ID {
		t.Errorf("%+v, %v", r, err)
	}
}

// Frames that are not one data line, and the end of an array.
func TestGeminiFrames(t *testing.T) {
	events := dialect(t, "gemini").Events()
	for in, want := range map[string]wire.Event{
		": ping\n\n": {}, "\n": {}, "\r\n": {},
		"event: x\ndata: {\"candidates\":[]}\n\n": {Unknown: []string{"event"}},
		"event: x\n\n": {Unknown: []string{"event"}},
	} {
		frames, _ := decode(t, in)
		if got, err := events.Event(frames[0]); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v", in, got, err)
		}
	}
	if got, err := events.Event(wire.Frame{Raw: []byte("\r\n]"), Data: []byte("]")}); err != nil || !got.Done {
		t.Errorf("the end of an array: %+v, %v", got, err)
	}
	for _, data := range []string{"[DONE]", `[{"candidates":[]}]`, `{"candidates":[]`, "x"} {
		if e, err := events.Event(wire.Frame{Raw: []byte(data), Data: []byte(data)}); !errors.Is(err, wire.ErrInvalid) {
			t.Errorf("%s: %+v, %v", data, e, err)
		}
	}
}

// TestGeminiRefusals compares with what the official SDKs were seen to read.
func TestGeminiRefusals(t *testing.T) {
	for name, r := range map[string]wire.Refusal{
		"refusal":            {Choices: 1, Place: wire.OnlyRefusal},
		"refusal_content":    {Place: wire.OnlyContent},
		"refusal_two":        {Choices: 2},
		"refusal_everywhere": {},
	} {
		r.ID, r.Model, r.Text, r.Created = "KRN-1", "gemini-x", declined, 1700000000
		d := geminiAt(t, geminiEvents)
		whole := d.Refusal(r)
		golden(t, "gemini_generate_"+name+".json", whole)
		golden(t, "gemini_generate_"+name+".sse", d.Stream().Refusal(r))
		golden(t, "gemini_generate_"+name+"_begun.sse", refusalStream(d, r, true))
		golden(t, "gemini_generate_"+name+"_array.json", geminiAt(t, geminiArray).Stream().Refusal(r))
		read, err := d.Response(whole)
		if err != nil || read.Text() != declined || read.Model != "gemini-x" || read.Finish == "" {
			t.Errorf("%s: %+v, %v", name, read, err)
		}
	}
	d := dialect(t, "gemini")
	if r, err := d.Response(d.Refusal(wire.Refusal{Text: "no", Choices: 1 << 30})); err != nil || len(r.Parts) != wire.MaxChoices {
		t.Errorf("%d choices, %v", len(r.Parts), err)
	}
}

func TestGeminiErrors(t *testing.T) {
	d := dialect(t, "gemini")
	e := wire.Error{Status: 403, Code: "policy_refusal", Message: declined}
	golden(t, "gemini_generate_error.json", d.Error(e))
	golden(t, "gemini_generate_error.sse", d.Stream().Error(e))
	golden(t, "gemini_generate_error_array.json", geminiAt(t, geminiArray).Stream().Error(e))
	for status, want := range map[int]string{
		400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 402: "RESOURCE_EXHAUSTED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ABORTED", 413: "INVALID_ARGUMENT",
		429: "RESOURCE_EXHAUSTED", 451: "PERMISSION_DENIED", 499: "CANCELLED", 500: "INTERNAL", 501: "UNIMPLEMENTED", 502: "UNAVAILABLE", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
	} {
		out := gjson.ParseBytes(d.Error(wire.Error{Status: status, Message: "m"})).Get("error")
		if out.Get("status").Str != want || out.Get("code").Int() != int64(status) || out.Get("message").Str != "m" || out.Get("details").Exists() {
			t.Errorf("%d gives %s", status, out)
		}
	}
	frames, rest := decode(t, string(d.Stream().Error(e)))
	if got, err := d.Events().Event(frames[0]); err != nil || len(frames) != 1 || rest != "" || !got.Err {
		t.Errorf("read back as %+v, %v", got, err)
	}
}

// geminiStreams are one realistic answer in each framing: reasoning, text, a call of a
// tool, more text, the end.
func geminiStreams() map[string]string {
	chunk := func(parts, rest string) string {
		return `{"candidates": [{"content": {"parts": [` + parts + `],"role": "model"},"index": 0` + rest + `}],"usageMetadata": {"totalTokenCount": 9},"modelVersion": "m","responseId": "r"}`
	}
	chunks := []string{
		chunk(`{"text": "Thinking [hard], {truly}","thought": true}`, ""),
		chunk(`{"text": "The \"capital\" "}`, ""),
		chunk(`{"text": "is Paris"}`, `,"continuationToken": "dG9rZW4="`),
		chunk(`{"executableCode": {"language": "PYTHON","code": "print(']')"}}`, ""),
		chunk(`{"codeExecutionResult": {"outcome": "OUTCOME_OK","output": "]"}}`, ""),
		chunk(`{"functionCall": {"name": "f","args": {"a": "}"}},"thoughtSignature": "c2ln"}`, ""),
		chunk(`{"text": "."}`, `,"groundingMetadata": {"webSearchQueries": ["q"]}`),
		chunk(`{"text": ""}`, `,"finishReason": "STOP"`),
	}
	return map[string]string{
		"events": "data: " + strings.Join(chunks, "\n\ndata: ") + "\n\n",
		"CRLF":   "data: " + strings.Join(chunks, "\r\n\r\ndata: ") + "\r\n\r\n",
		"array":  "[" + strings.Join(chunks, "\r\n,\r\n") + "\r\n]\r\n",
		"dense":  "[" + strings.Join(chunks, ",") + "]",
	}
}

// geminiOf is the dialect at the address that answers with a stream of geminiStreams.
func geminiOf(t testing.TB, name string) wire.Dialect {
	if name == "array" || name == "dense" {
		return geminiAt(t, geminiArray)
	}
	return geminiAt(t, geminiEvents)
}

// A stream that is refused, or that fails, is grammatical after any of its frames,
// with and without signs of life between them.
func TestGeminiStreamsEndAnywhere(t *testing.T) {
	for name, stream := range geminiStreams() {
		d := geminiOf(t, name)
		frames := split(t, d, []byte(stream))
		for sent := range len(frames) - 1 {
			for _, place := range []wire.Place{wire.Everywhere, wire.OnlyRefusal, wire.OnlyContent} {
				for _, alive := range []bool{false, true} {
					w := d.Stream()
					var begun []byte
					for _, f := range frames[:sent] {
						if alive {
							begun = append(begun, w.KeepAlive()...)
						}
						w.Sent(f)
						begun = append(begun, f.Raw...)
					}
					if alive {
						begun = append(begun, w.KeepAlive()...)
					}
					if gjson.GetBytes(frames[max(sent-1, 0)].Data, "candidates.0.finishReason").Exists() {
						continue // it has ended, and nothing of ours follows
					}
					refused := slices.Concat(begun, w.Refusal(wire.Refusal{ID: "KRN-1", Model: "m", Text: declined, Place: place, Choices: 1}))
					checkGeminiStream(t, name, refused, true)
					failed := slices.Concat(begun, w.Error(wire.Error{Status: 502, Code: "upstream_broken", Message: "m"}))
					checkGeminiStream(t, name, failed, false)
				}
			}
		}
		for _, note := range [][]byte{d.Stream().Note("x")} {
			if note != nil {
				t.Errorf("%s: a note: %q", name, note)
			}
		}
	}
}

// checkGeminiStream reads a stream as the official clients do: those of event streams
// cut it at blank lines, and those of arrays parse it as JSON. It has one end, which is
// its last element.
func checkGeminiStream(t *testing.T, name string, stream []byte, refused bool) {
	t.Helper()
	var chunks []string
	switch name {
	case "events", "CRLF":
		chunks = geminiGoSDK(t, stream)
		if js := geminiJavaScriptSDK(t, stream); !slices.Equal(js, chunks) {
			t.Fatalf("%s: one SDK reads %q, another %q", name, chunks, js)
		}
	default:
		var elements []json.RawMessage
		if err := json.Unmarshal(stream, &elements); err != nil {
			t.Fatalf("%s: %v: %s", name, err, stream)
		}
		for _, e := range elements {
			chunks = append(chunks, string(e))
		}
	}
	for i, c := range chunks {
		v, last := gjson.Parse(c), i == len(chunks)-1
		ended := v.Get("candidates.0.finishReason").Exists() || v.Get("promptFeedback.blockReason").Exists()
		if !v.IsObject() || ended != (last && refused) || v.Get("error").Exists() != (last && !refused) {
			t.Fatalf("%s: chunk %d of %d: %s", name, i, len(chunks), c)
		}
		if last && refused && !strings.Contains(v.String(), "can't help") {
			t.Fatalf("%s: the refusal does not say so: %s", name, c)
		}
	}
}

// geminiGoSDK cuts an event stream as google.golang.org/genai does: at LF LF if that
// occurs anywhere in what was read, else at CR LF CR LF. All of it was read at once.
func geminiGoSDK(t *testing.T, stream []byte) (chunks []string) {
	t.Helper()
	for len(stream) > 0 {
		i, n := bytes.Index(stream, []byte("\n\n")), 2
		if i < 0 {
			i, n = bytes.Index(stream, []byte("\r\n\r\n")), 4
		}
		if i < 0 {
			t.Fatalf("a frame has no end: %q", stream)
		}
		frame := strings.TrimSuffix(string(stream[:i]), "\r")
		stream = stream[i+n:]
		data, ok := strings.CutPrefix(frame, "data:")
		if !ok || !json.Valid([]byte(data)) {
			t.Fatalf("a frame is %q", frame)
		}
		chunks = append(chunks, strings.TrimSpace(data))
	}
	return chunks
}

// geminiJavaScriptSDK cuts an event stream as @google/genai does: white space, "data:
// ", one line and a blank line of any kind.
func geminiJavaScriptSDK(t *testing.T, stream []byte) (chunks []string) {
	t.Helper()
	rest := string(stream)
	for {
		if rest = strings.TrimLeft(rest, " \r\n\t"); rest == "" {
			return chunks
		}
		line, after, ok := strings.Cut(strings.TrimPrefix(rest, "data: "), "\n")
		if !ok || !strings.HasPrefix(rest, "data: ") || strings.TrimLeft(after, "\r\n") == after {
			t.Fatalf("the rest is %q", rest)
		}
		chunks, rest = append(chunks, strings.TrimSuffix(line, "\r")), after
	}
}

// Any split of a stream gives the same events, and every framing the same deltas.
func TestGeminiStreamSplits(t *testing.T) {
	read := func(d wire.Dialect, pieces []string) (out []string, deltas []wire.Delta) {
		s, events := wire.NewSplitter(d.Framing(), 0), d.Events()
		take := func(f wire.Frame) {
			e, err := events.Event(f)
			if err != nil {
				t.Fatal(err)
			}
			out, deltas = append(out, fmt.Sprintf("%q %+v", f.Raw, e)), append(deltas, e.Deltas...)
		}
		for _, p := range pieces {
			if err := s.Push([]byte(p)); err != nil {
				t.Fatal(err)
			}
			for f, ok := s.Next(); ok; f, ok = s.Next() {
				take(f)
			}
		}
		if f, ok := s.Last(); ok {
			take(f)
		}
		return out, deltas
	}
	_, same := read(geminiOf(t, "events"), []string{geminiStreams()["events"]})
	for name, stream := range geminiStreams() {
		d := geminiOf(t, name)
		want, deltas := read(d, []string{stream})
		if !slices.Equal(deltas, same) {
			t.Errorf("%s: %+v", name, deltas)
		}
		for range 50 {
			var pieces []string
			for rest := stream; rest != ""; {
				n := min(len(rest), 1+rand.IntN(40))
				pieces, rest = append(pieces, rest[:n]), rest[n:]
			}
			if got, _ := read(d, pieces); !slices.Equal(got, want) {
				t.Fatalf("%s as %q", name, pieces)
			}
		}
	}
}

func TestGeminiAsk(t *testing.T) {
	asker := dialect(t, "gemini").(wire.Asker)
	ask := wire.Ask{
		Model: "gemini-x", System: "Be kind.", Prompt: "And Italy?",
		History: []wire.Message{{Role: wire.User, Text: "Capital of France?"}, {Role: wire.Assistant, Text: "Paris."}},
	}
	call := asker.Ask(ask)
	want := `{"systemInstruction":{"parts":[{"text":"Be kind."}]},"contents":[{"role":"user","parts":[{"text":"Capital of France?"}]},` +
		`{"role":"model","parts":[{"text":"Paris."}]},{"role":"user","parts":[{"text":"And Italy?"}]}]}`
	if call.Path != "/v1beta/models/gemini-x:generateContent" || string(call.Body) != want {
		t.Errorf("%s %s", call.Path, call.Body)
	}
	for path, ask := range map[string]wire.Ask{
		"/v1beta/models/m:streamGenerateContent?alt=sse": {Model: "m", Prompt: "x", Stream: true},
		"/v1beta/tunedModels/t:generateContent":          {Model: "tunedModels/t", Prompt: "x"},
	} {
		call := asker.Ask(ask)
		r, err := geminiAt(t, call.Path).Request(call.Body)
		if err != nil || call.Path != path || r.Model != ask.Model || r.Stream != ask.Stream || r.Prompt() != "x" || len(r.Parts) != 1 {
			t.Errorf("%s: %+v, %v", call.Path, r, err)
		}
	}
	if name, value := asker.Authorize("k"); name != "X-Goog-Api-Key" || value != "k" {
		t.Errorf("%s: %s", name, value)
	}
}

// FuzzGeminiRequest: nothing panics, each part is where its path says, and the order of
// members changes nothing.
func FuzzGeminiRequest(f *testing.F) {
	f.Add([]byte(geminiCall))
	f.Add([]byte(inSnakeCase(geminiCall)))
	f.Add([]byte(`{"contents":{"parts":{"inline_data":{"data":"YQ==","mime_type":"text/plain"}}},"systemInstruction":"x"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		d := dialect(t, "gemini")
		r, err := d.Request(body)
		if err != nil {
			if !errors.Is(err, wire.ErrInvalid) {
				t.Fatalf("%v is not ErrInvalid", err)
			}
			return
		}
		var read []wire.Part
		for _, p := range r.Parts {
			if p.Kind != wire.Document && p.Kind != wire.Reasoning { // their texts are not the values
				read = append(read, p)
			}
		}
		checkPaths(t, body, read)
		again, err := d.Request(shuffled(t, body))
		if err != nil {
			t.Fatalf("%q cannot be read in another order: %v", body, err)
		}
		if !slices.Equal(byPath(r.Parts), byPath(again.Parts)) || r.Choices != again.Choices || r.Structured != again.Structured || r.Previous != again.Previous {
			t.Fatalf("%q is read differently in another order", body)
		}
		var texts []wire.Part
		for _, p := range r.Parts {
			if p.Text != "" {
				texts = append(texts, p)
			}
		}
		if out := wire.Redact(body, texts, "gone"); !json.Valid(out) {
			t.Fatalf("%q is redacted to %q", body, out)
		} else if _, err := d.Request(out); err != nil {
			t.Fatalf("%q is redacted to %q: %v", body, out, err)
		}
	})
}

// FuzzGeminiAnswer: nothing panics, and a chunk of a stream holds what the same whole
// answer holds.
func FuzzGeminiAnswer(f *testing.F) {
	for _, stream := range geminiStreams() {
		f.Add([]byte(stream))
	}
	f.Add([]byte(`{"promptFeedback":{"blockReason":"SAFETY","blockReasonMessage":"No."}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		d := geminiAt(t, geminiArray)
		for _, frame := range cutArray(t, string(body)) {
			w := d.Stream()
			w.Sent(frame)
			_ = w.Refusal(wire.Refusal{Text: "no"})
			e, err := d.Events().Event(frame)
			whole, wholeErr := d.Response(frame.Data)
			if err != nil || wholeErr != nil {
				continue
			}
			parts := 0
			for _, p := range whole.Parts {
				if p.Kind != wire.Unknown {
					if d := e.Deltas[parts]; d.Kind != p.Kind || d.Text != p.Text {
						t.Fatalf("%q: part %+v, delta %+v", frame.Data, p, d)
					}
					parts++
				}
			}
			if parts != len(e.Deltas) || e.ID != whole.ID {
				t.Fatalf("%q: %d parts, %d deltas", frame.Data, parts, len(e.Deltas))
			}
		}
	})
}

func BenchmarkGeminiEvent(b *testing.B) {
	for _, name := range []string{"events", "array"} {
		b.Run(name, func(b *testing.B) {
			d := geminiOf(b, name)
			stream := []byte(geminiStreams()[name])
			frames := len(split(b, d, stream))
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				s, events, w := wire.NewSplitter(d.Framing(), 0), d.Events(), d.Stream()
				_ = s.Push(stream)
				for f, ok := s.Next(); ok; f, ok = s.Next() {
					if _, err := events.Event(f); err != nil {
						b.Fatal(err)
					}
					w.Sent(f)
				}
				n += frames
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/frame")
		})
	}
}
