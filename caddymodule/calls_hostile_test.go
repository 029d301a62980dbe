package caddymodule_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/caddymodule"
	"github.com/caddy-lex/lex/store"
)

// If another turn of the session is committed first, the decisions are taken again, and the
// answer is edited again as if it were the first time.
func TestCallsAreEditedAgainAfterAConflict(t *testing.T) {
	for _, api := range callingAPIs {
		contentType, body := api.answer(weather, wipe, second)
		s := newSite(t, `{}`, answering(contentType, body))
		var tries atomic.Int32
		s.meddle(func(ctx context.Context, change store.Change, commit func(context.Context, store.Change) error) error {
			if tries.Add(1) < 3 {
				return store.ErrConflict
			}
			return commit(ctx, change)
		})
		got := s.post(api.path, api.question).Body.String()
		if strings.Contains(got, "rm -rf") || !strings.Contains(got, weather.name) || !strings.Contains(got, second.name) || strings.Count(got, "destructive_command") == 0 {
			t.Errorf("%s: %s", api.name, got)
		}
		if n := len(s.calls()); n != 3 {
			t.Errorf("%s: %d receipts of calls", api.name, n)
		}
	}
}

// A client that seems to have left may still read, for example over a connection that it has
// closed in its own direction only. No call leaves that was not decided for it.
func TestNoCallLeavesToAClientThatIsGone(t *testing.T) {
	for _, api := range callingAPIs {
		contentType, body := api.answer(weather, wipe)
		ctx, leave := context.WithCancel(t.Context())
		s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
			defer leave()
			return answering(contentType, body)(w, r)
		})
		r := httptest.NewRequest(http.MethodPost, "http://site.test"+api.path, strings.NewReader(api.question)).WithContext(ctx)
		w := httptest.NewRecorder()
		s.serve(w, r)
		if got := w.Body.String(); strings.Contains(got, "rm -rf") {
			t.Errorf("%s: %s", api.name, got)
		}
		for _, call := range s.calls() {
			left, forwarded := strings.Contains(w.Body.String(), call["tool"].(string)), call["coverage"].(map[string]any)["bytes_forwarded"] != 0.0
			if forwarded != left || (call["outcome"] == "answered") != left {
				t.Errorf("%s: left %v, but the receipt says %v and %v", api.name, left, call["outcome"], call["coverage"])
			}
		}
	}
}

// Of a name that is no text each language makes another one, and JavaScript finds the tool
// of that name in ["get_weather"]. So an answer with such a call is refused in every API.
func TestCallsWhoseNamesAreNoText(t *testing.T) {
	for _, api := range callingAPIs {
		contentType, body := api.answer(weather)
		for _, name := range []string{`["get_weather"]`, `{"get_weather":1}`, `[["get_weather"]]`} {
			s := newSite(t, `{}`, answering(contentType, caddymodule.Rewritten(body, `"get_weather"`, name)))
			got := s.post(api.path, api.question).Body.String()
			if strings.Contains(got, "get_weather") || s.receipts()[0]["outcome"] != "refused" {
				t.Errorf("%s, %s: %s", api.name, name, got)
			}
		}
	}
}

// Lenient clients take the name and the input of a call from where another API has them.
func TestCallsInTheWordsOfAnotherAPI(t *testing.T) {
	const input, name = `{"command":"rm -rf / --no-preserve-root"}`, `"name":"bash"`
	quoted := strings.ReplaceAll(input, `"`, `\"`)
	answers := map[string]struct{ path, question, answer string }{}
	for i, call := range []string{
		`{` + name + `,"arguments":` + input + `}`, `{"id":"1","type":"function",` + name + `,"arguments":"` + quoted + `"}`,
		`{"function":{` + name + `,"parameters":` + input + `}}`, `{"function":{` + name + `,"arguments":{"command":"ls"}},"args":` + input + `}`,
		`"{\"function\":{\"name\":\"bash\"}}"`, `[{"function":{` + name + `,"arguments":` + input + `}}]`,
	} {
		answers[fmt.Sprint("openai, in a delta ", i)] = struct{ path, question, answer string }{
			"/v1/chat/completions", chatQuestion,
			`{"id":"c","object":"chat.completion","choices":[{"index":0,"finish_reason":"tool_calls","message":null,"delta":{"role":"assistant","content":null,"tool_calls":[` + call + `]}}]}`,
		}
		answers[fmt.Sprint("ollama ", i)] = struct{ path, question, answer string }{
			"/api/chat", `{"model":"m","stream":false,"messages":[{"role":"user","content":"Tidy up."}]}`,
			`{"model":"m","message":{"role":"assistant","content":"","tool_calls":[` + call + `]},"done":true,"done_reason":"stop"}`,
		}
		answers[fmt.Sprint("openai ", i)] = struct{ path, question, answer string }{
			"/v1/chat/completions", chatQuestion,
			`{"id":"c","object":"chat.completion","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[` + call + `]}}]}`,
		}
	}
	answers["prototype"] = struct{ path, question, answer string }{
		"/v1/chat/completions", chatQuestion,
		`{"id":"c","object":"chat.completion","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"__proto__":{"tool_calls":[{"id":"1","type":"function","function":{` + name + `,"arguments":"` + quoted + `"}}]}}}]}`,
	}
	answers["prototype of a call"] = struct{ path, question, answer string }{
		"/v1/chat/completions", chatQuestion,
		`{"id":"c","object":"chat.completion","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"get_weather","arguments":"{}"},"\u005f_proto__":{"function":{` + name + `,"arguments":"` + quoted + `"}}}]}}]}`,
	}
	answers["no list"] = struct{ path, question, answer string }{
		"/v1/chat/completions", chatQuestion,
		`{"id":"c","object":"chat.completion","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":{"id":"1","type":"function","function":{` + name + `,"arguments":"` + quoted + `"}}}}]}`,
	}
	answers["legacy"] = struct{ path, question, answer string }{
		"/v1/chat/completions", chatQuestion,
		`{"id":"c","object":"chat.completion","choices":[{"index":0,"finish_reason":"function_call","message":{"role":"assistant","content":null,"function_call":{` + name + `,"args":` + input + `}}}]}`,
	}
	answers["anthropic"] = struct{ path, question, answer string }{
		"/v1/messages", chatQuestion,
		`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"t",` + name + `,"input":{},"arguments":` + input + `}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`,
	}
	answers["gemini"] = struct{ path, question, answer string }{
		"/v1beta/models/m:generateContent", `{"contents":[{"role":"user","parts":[{"text":"Tidy up."}]}]}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{` + name + `,"arguments":` + input + `}}]},"finishReason":"STOP","index":0}]}`,
	}
	answers["responses"] = struct{ path, question, answer string }{
		"/v1/responses", `{"model":"m","input":"Tidy up."}`,
		`{"id":"resp_1","object":"response","status":"completed","model":"m","output":[{"type":"function_call","id":"fc","call_id":"c","status":"completed",` + name + `,"arguments":"{}","input":` + input + `}]}`,
	}
	for name, c := range answers {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, `{}`, answering("application/json", c.answer))
			w := s.post(c.path, c.question)
			if r := s.turns()[0]; strings.Contains(w.Body.String(), "rm -rf") || strings.Contains(w.Body.String(), "bash") || r["denied_by"] != "tool_calls_not_separable" {
				t.Errorf("%s, denied by %v", w.Body, r["denied_by"])
			}
		})
	}
}

// A call of a form that the API did not have when this was written may say anything where nobody
// reads it. It does not pass as an unnamed call without arguments that was found clean.
func TestCallsOfAnUnknownForm(t *testing.T) {
	for _, call := range []string{
		`{"index":0,"id":"a","type":"shell","shell":{"commands":["rm -rf /"]}}`, `{"index":0,"id":"a","type":"mcp","mcp":{"name":"forbidden_x","arguments":"{}"}}`,
		`{"index":0,"shell":"rm -rf /"}`, `{"index":0,"function":null,"command":"rm -rf /"}`,
	} {
		for name, api := range map[string]struct{ path, question, contentType, answer string }{
			"whole": {
				"/v1/chat/completions", chatQuestion, "application/json",
				`{"id":"c","object":"chat.completion","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[` + call + `]}}]}`,
			},
			"streamed": {
				"/v1/chat/completions", strings.Replace(chatQuestion, "{", `{"stream":true,`, 1), "text/event-stream",
				`data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[` + call + `]}}]}` + "\n\n" +
					`data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n",
			},
			"ollama": {
				"/api/chat", `{"model":"m","stream":false,"messages":[{"role":"user","content":"Tidy up."}]}`, "application/json",
				`{"model":"m","message":{"role":"assistant","content":"","tool_calls":[` + call + `]},"done":true,"done_reason":"stop"}`,
			},
			"ollama streamed": {
				"/api/chat", `{"model":"m","messages":[{"role":"user","content":"Tidy up."}]}`, "application/x-ndjson",
				`{"model":"m","message":{"role":"assistant","content":"","tool_calls":[` + call + `]},"done":false}` + "\n" + `{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}` + "\n",
			},
		} {
			t.Run(name, func(t *testing.T) {
				s := newSite(t, `{}`, answering(api.contentType, api.answer))
				w := s.post(api.path, api.question)
				r := s.turns()[0]
				if strings.Contains(w.Body.String(), "rm -rf") || strings.Contains(w.Body.String(), "forbidden_x") || r["denied_by"] != "tool_calls_not_separable" {
					t.Errorf("%s, denied by %v", w.Body, r["denied_by"])
				}
				coverage := r["coverage"].(map[string]any)
				if text := fmt.Sprint(coverage["detectors"]); strings.Contains(text, "name:toolcall outcome:clean") || strings.Contains(text, "outcome:clean name:toolcall") {
					t.Errorf("nobody read the call, and the receipt says %s", text)
				}
			})
		}
	}

	// What belongs to no call is none: servers add members of their own beside a function.
	s := newSite(t, `{}`, answering("text/event-stream",
		`data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"a","type":"function","extra_content":{"google":{"thought_signature":"c2ln"}}}]}}]}`+"\n\n"+
			`data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"get_weather","arguments":"{}"}}]}}]}`+"\n\n"+
			`data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`+"\n\ndata: [DONE]\n\n"))
	if w := s.post("/v1/chat/completions", strings.Replace(chatQuestion, "{", `{"stream":true,`, 1)); !strings.Contains(w.Body.String(), "get_weather") || s.turns()[0]["outcome"] != "answered" {
		t.Errorf("%s: %v", w.Body, s.turns()[0]["outcome"])
	}
}

// What did not leave of a stream was not decided on, and counts as not inspected.
func TestCallsOfAStreamThatBreaksOff(t *testing.T) {
	for _, api := range callingAPIs {
		if !strings.Contains(api.name, "stream") {
			continue
		}
		contentType, body := api.answer(wipe)
		end := "\n"
		for _, blank := range []string{"\n\n", "\r\n\r\n"} {
			if strings.Contains(body, blank) {
				end = blank
			}
		}
		at := strings.LastIndex(body, "rm -rf")
		if at += strings.Index(body[at:], end) + len(end); at == len(body) {
			continue // the call comes with the end
		}
		s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
			_ = answering(contentType, body[:at])(w, r)
			panic(http.ErrAbortHandler)
		})
		s.post(api.path, api.question)
		coverage := s.turns()[0]["coverage"].(map[string]any)
		if text := fmt.Sprint(coverage["inspected"]); strings.Contains(text, "toolcall") {
			t.Errorf("%s: inspected %s", api.name, text)
		}
		if text := fmt.Sprint(coverage["skipped"]); !strings.Contains(text, "was not decided on") {
			t.Errorf("%s: skipped %s", api.name, text)
		}
	}
}

// A body that cannot be unpacked may hold calls.
func TestCallsInABodyThatCannotBeUnpacked(t *testing.T) {
	for _, api := range callingAPIs {
		contentType, body := api.answer(wipe)
		_, packed := gzipped(body)
		for name, answer := range map[string][2]string{
			"unknown": {"compress", body}, "cut": {"gzip", packed[:len(packed)-4]}, "not packed": {"gzip", body}, "wrong order": {"br, gzip", packed},
		} {
			s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
				w.Header().Set("Content-Encoding", answer[0])
				return answering(contentType, answer[1])(w, r)
			})
			got := s.post(api.path, api.question).Body.String()
			if strings.Contains(got, "rm -rf") || strings.Contains(got, answer[1]) {
				t.Errorf("%s, %s: %q", api.name, name, got)
			}
			if n := len(s.turns()); n != 1 {
				t.Errorf("%s, %s: %d receipts", api.name, name, n)
			}
		}
	}
}

// What upstream's headers say of the bytes of an answer does not stand over an edited one.
func TestEditedAnswersHaveNoDigestOfUpstream(t *testing.T) {
	names := []string{"Etag", "Digest", "Content-Digest", "Repr-Digest", "Content-Md5"}
	for _, api := range callingAPIs {
		for _, calls := range [][]askedFor{{weather}, {weather, wipe}} {
			contentType, body := api.answer(calls...)
			s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
				for _, name := range names {
					w.Header().Set(name, "upstream")
				}
				return answering(contentType, body)(w, r)
			})
			w := s.post(api.path, api.question)
			for _, name := range names {
				if edited := len(calls) > 1 && !strings.Contains(api.name, "stream") && api.name != "gemini array"; (w.Header().Get(name) == "") != edited {
					t.Errorf("%s, %d calls: %s: %q", api.name, len(calls), name, w.Header().Get(name))
				}
			}
		}
	}
}

// Several choices, each with text and calls: a blocked call goes from its own choice, and
// only that one ends differently.
func TestBlockedCallsInSeveralChoices(t *testing.T) {
	choices := map[string][3][]askedFor{
		"one":             {{weather, wipe}, nil, {second}},
		"two":             {{wipe}, {weather}, {wipe, second}},
		"all":             {{wipe}, {wipe}, {wipe}},
		"the same":        {{weather}, {weather}, {weather}},
		"the last, alone": {nil, nil, {wipe}},
	}
	for _, api := range choiceAPIs {
		for name, calls := range choices {
			for _, structured := range []bool{false, true} {
				if structured && api.structured == "" {
					continue
				}
				t.Run(api.name+" "+name, func(t *testing.T) {
					contentType, body := api.answer(calls)
					question := api.question
					if structured {
						question = api.structured
					}
					s := newSite(t, `{}`, answering(contentType, body))
					got := s.post(api.path, question).Body.String()
					if strings.Contains(got, "rm -rf") {
						t.Fatalf("%s", got)
					}
					blocked, all := 0, 0
					for choice, asked := range calls {
						for _, c := range asked {
							all++
							if c.name == wipe.name {
								blocked++
							}
						}
						if names := api.names(got, choice); !slices.Equal(names, allowedNames(asked)) {
							t.Errorf("choice %d has %v: %s", choice, names, got)
						}
						if text := api.text(got, choice); strings.Contains(text, "destructive_command") != (hasWipe(asked) && !structured) {
							t.Errorf("choice %d says %q: %s", choice, text, got)
						}
					}
					if n := strings.Count(got, "destructive_command"); blocked == 0 && n > 0 || blocked > 0 && n == 0 {
						t.Errorf("%d notes: %s", n, got)
					}
					receipts := s.receipts()
					if len(receipts) != 1+all {
						t.Errorf("%d receipts for %d calls", len(receipts), all)
					}
					checkOneSession(t, s, receipts)
				})
			}
		}
	}
}

func allowedNames(calls []askedFor) (names []string) {
	for _, c := range calls {
		if c.name != wipe.name {
			names = append(names, c.name)
		}
	}
	return names
}

func hasWipe(calls []askedFor) bool {
	return slices.ContainsFunc(calls, func(c askedFor) bool { return c.name == wipe.name })
}

// A choiceAPI is one that can answer with several choices.
type choiceAPI struct {
	name, path           string
	question, structured string
	answer               func(calls [3][]askedFor) (contentType, body string)
	names                func(body string, choice int) []string
	text                 func(body string, choice int) string
}

const threeChoices = `{"model":"m","n":3,"messages":[{"role":"user","content":"What is the capital of France?"}]}`

const jsonWanted = `"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}},`

var choiceAPIs = []choiceAPI{
	{
		"chat", "/v1/chat/completions", threeChoices, strings.Replace(threeChoices, `"n":3,`, `"n":3,`+jsonWanted, 1),
		func(calls [3][]askedFor) (string, string) {
			var choices []string
			for i, c := range calls {
				tools, finish := "", "stop"
				if len(c) > 0 {
					tools, finish = `,"tool_calls":[`+chatCalls(c)+`]`, "tool_calls"
				}
				choices = append(choices, fmt.Sprintf(`{"index":%d,"message":{"role":"assistant","content":"Paris %d."%s},"finish_reason":%q}`, i, i, tools, finish))
			}
			return "application/json", `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[` + strings.Join(choices, ",") + `]}`
		},
		func(body string, choice int) (names []string) {
			for _, v := range gjson.Get(body, fmt.Sprintf("choices.%d.message.tool_calls.#.function.name", choice)).Array() {
				names = append(names, v.Str)
			}
			return names
		},
		func(body string, choice int) string {
			return gjson.Get(body, fmt.Sprintf("choices.%d.message.content", choice)).Str
		},
	},
	{
		"chat streamed", "/v1/chat/completions", strings.Replace(threeChoices, `"n":3`, `"n":3,"stream":true`, 1), strings.Replace(threeChoices, `"n":3,`, `"n":3,"stream":true,`+jsonWanted, 1),
		func(calls [3][]askedFor) (string, string) {
			var b strings.Builder
			frame := func(choice int, delta, finish string) {
				fmt.Fprintf(&b, `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":%d,"delta":%s,"finish_reason":%s}]}`+"\n\n", choice, delta, finish)
			}
			for i := range calls {
				frame(i, fmt.Sprintf(`{"role":"assistant","content":"Paris %d."}`, i), "null")
			}
			for nth := range 2 { // the choices in turns
				for i, c := range calls {
					if nth < len(c) {
						frame(i, fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":""}}]}`, nth, c[nth].id, c[nth].name), "null")
						frame(i, fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%q}}]}`, nth, c[nth].arguments), "null")
					}
				}
			}
			for i, c := range calls {
				finish := `"stop"`
				if len(c) > 0 {
					finish = `"tool_calls"`
				}
				frame(i, "{}", finish)
			}
			return "text/event-stream", b.String() + "data: [DONE]\n\n"
		},
		func(body string, choice int) (names []string) {
			eachData(body, func(v gjson.Result) {
				for _, c := range v.Get("choices").Array() {
					for _, call := range c.Get("delta.tool_calls").Array() {
						if name := call.Get("function.name").Str; int(c.Get("index").Int()) == choice && name != "" {
							names = append(names, name)
						}
					}
				}
			})
			return names
		},
		func(body string, choice int) (text string) {
			eachData(body, func(v gjson.Result) {
				for _, c := range v.Get("choices").Array() {
					if int(c.Get("index").Int()) == choice {
						text += c.Get("delta.content").Str
					}
				}
			})
			return text
		},
	},
	{
		"gemini", geminiWhole, geminiThree, "", func(calls [3][]askedFor) (string, string) { return "application/json", geminiCandidates(calls, "STOP") },
		func(body string, choice int) []string { return geminiNames(gjson.Parse(body), choice) },
		func(body string, choice int) string { return geminiSaid(gjson.Parse(body), choice) },
	},
	{
		"gemini streamed", geminiEvents, geminiThree, "", func(calls [3][]askedFor) (string, string) {
			return "text/event-stream", "data: " + geminiCandidates([3][]askedFor{}, "") + "\r\n\r\ndata: " + geminiCandidates(calls, "") + "\r\n\r\ndata: " + geminiCandidates([3][]askedFor{}, "STOP") + "\r\n\r\n"
		},
		func(body string, choice int) (names []string) {
			eachData(body, func(v gjson.Result) { names = append(names, geminiNames(v, choice)...) })
			return names
		},
		func(body string, choice int) (text string) {
			eachData(body, func(v gjson.Result) { text += geminiSaid(v, choice) })
			return text
		},
	},
}

const geminiThree = `{"contents":[{"role":"user","parts":[{"text":"What is the capital of France?"}]}],"generationConfig":{"candidateCount":3}}`

func geminiCandidates(calls [3][]askedFor, finish string) string {
	var all []string
	for i, c := range calls {
		var parts []string
		parts = append(parts, fmt.Sprintf(`{"text":"Paris %d."}`, i))
		for _, one := range c {
			parts = append(parts, fmt.Sprintf(`{"functionCall":{"name":%q,"args":%s}}`, one.name, one.arguments))
		}
		end := ""
		if finish != "" {
			end = `,"finishReason":` + quoted(finish)
		}
		all = append(all, fmt.Sprintf(`{"content":{"role":"model","parts":[%s]},"index":%d%s}`, strings.Join(parts, ","), i, end))
	}
	return `{"candidates":[` + strings.Join(all, ",") + `],"modelVersion":"gemini-x"}`
}

func geminiCandidate(v gjson.Result, choice int) gjson.Result {
	return v.Get(fmt.Sprintf("candidates.#(index==%d)", choice))
}

func geminiNames(v gjson.Result, choice int) (names []string) {
	for _, p := range geminiCandidate(v, choice).Get("content.parts").Array() {
		if name := p.Get("functionCall.name").Str; name != "" {
			names = append(names, name)
		}
	}
	return names
}

func geminiSaid(v gjson.Result, choice int) (text string) {
	for _, p := range geminiCandidate(v, choice).Get("content.parts").Array() {
		text += p.Get("text").Str
	}
	return text
}

// eachData calls a function for the JSON of each event.
func eachData(body string, with func(gjson.Result)) {
	for line := range strings.Lines(body) {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: {"); ok {
			with(gjson.Parse("{" + data))
		}
	}
}

// An answer that gives in is refused with all its calls, however harmless, and has no
// receipt of a call.
func TestARefusedAnswerHasNoCalls(t *testing.T) {
	for _, api := range callingAPIs {
		for _, config := range []string{`{}`, `{"refuse_with":{"as":"refusal"}}`, `{"refuse_with":{"as":"content"}}`, `{"refuse_with":{"as":"status","status":422}}`} {
			contentType, body := api.answer(weather)
			body = caddymodule.Rewritten(body, "I look.", capitulation, `"look."`, quoted(capitulation))
			s := newSite(t, config, answering(contentType, body))
			got := s.post(api.path, api.question).Body.String()
			if strings.Contains(got, weather.name) || strings.Contains(got, "DAN") {
				t.Errorf("%s, %s: %s", api.name, config, got)
			}
			if receipts := s.receipts(); len(receipts) != 1 || receipts[0]["outcome"] != "refused" {
				t.Errorf("%s, %s: %d receipts, %v", api.name, config, len(receipts), receipts[0]["outcome"])
			}
		}
	}
}

// Where the network cuts a stream makes no difference, and nothing of a blocked call leaves.
func TestStreamedCallsMayBeCutAnywhere(t *testing.T) {
	for _, api := range callingAPIs {
		contentType, body := api.answer(weather, wipe, second)
		if contentType == "application/json" && !strings.HasPrefix(body, "[") {
			continue
		}
		want := ""
		for _, size := range []int{1, 2, 3, 7, 64, len(body)} {
			s := newSite(t, `{}`, inPieces(contentType, body, size))
			got := receiptNote.ReplaceAllString(s.post(api.path, api.question).Body.String(), "")
			if want = cmp.Or(want, got); got != want || strings.Contains(got, "rm -rf") {
				t.Errorf("%s in pieces of %d: %s\nwant %s", api.name, size, got, want)
			}
		}
	}
}

// A stream that dies anywhere behind the beginning of a call brings no call that was not
// decided, and each call that it brings has a receipt.
func TestStreamsThatDieBesideCalls(t *testing.T) {
	for _, api := range callingAPIs {
		contentType, body := api.answer(weather, wipe)
		if contentType == "application/json" && !strings.HasPrefix(body, "[") {
			continue
		}
		for name, failure := range map[string]error{"ends": nil, "fails": io.ErrUnexpectedEOF} {
			s := newSite(t, `{}`, nil)
			s.left = []error{}
			for at := strings.Index(body, "look."); at < len(body); at += 23 {
				s.model = caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
					_ = answering(contentType, body[:at])(w, r)
					return failure
				})
				got := s.post(api.path, api.question, "X-Lex-Session", fmt.Sprint(at)).Body.String()
				newest := s.get("/audits/recent?limit=1")["receipts"].([]any)[0].(map[string]any)["id"].(string)
				if strings.Contains(got, "rm -rf") || strings.Contains(got, weather.name) && !strings.HasPrefix(newest, "TCR-") {
					t.Fatalf("%s %s at %d: %s", api.name, name, at, got)
				}
			}
		}
	}
}

// What a hostile model puts beside a call does not make the call leave undecided, and the
// names of its tools stay out of headers, logs and metrics.
func TestOddCallsOfEveryDialect(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, api := range callingAPIs {
		for name, call := range map[string]askedFor{
			"no name":             {"call_a", "", weatherArguments},
			"control characters":  {"call_a", "get\r\nX-Lex-Receipt-Id: KRN-0\x1b[31m", weatherArguments},
			"a long name":         {"call_a", long, weatherArguments},
			"a name in Unicode":   {"call_a", "погода\u202e", weatherArguments},
			"no arguments":        {"call_a", "get_weather", `{}`},
			"arguments in a list": {"call_a", "get_weather", `["rm -rf /"]`},
			"arguments in a text": {"call_a", "bash", `"rm -rf /"`},
			"no id":               {"", "bash", wipeArguments},
			"a long id":           {long, "bash", wipeArguments},
			"the same id":         {"call_a", "bash", wipeArguments},
		} {
			contentType, body := api.answer(weather, call)
			s := newSite(t, `{"headers":"full"}`, answering(contentType, body))
			w := s.post(api.path, api.question)
			got := w.Body.String()
			if call.name == "bash" && strings.Contains(got, "rm -rf") {
				t.Errorf("%s, %s: %s", api.name, name, got)
			}
			if id := w.Header().Values("X-Lex-Receipt-Id"); len(id) > 1 || len(id) == 1 && id[0] == "KRN-0" {
				t.Errorf("%s, %s: %q", api.name, name, id)
			}
			receipts := s.receipts()
			checkOneSession(t, s, receipts)
			for _, r := range receipts {
				if tool, _ := r["tool"].(string); strings.ContainsFunc(tool, func(c rune) bool { return c < ' ' || c > '~' }) || len(tool) > 128 {
					t.Errorf("%s, %s: the tool %q", api.name, name, tool)
				}
			}
			if strings.Contains(got, call.name) && call.name != "" && len(receipts) != 3 && call.name != "bash" {
				t.Errorf("%s, %s: %d receipts: %s", api.name, name, len(receipts), got)
			}
		}
	}
}

// Frames that break the rules of a stream beside a blocked call.
func TestOddFramesBesideCalls(t *testing.T) {
	for _, api := range callingAPIs {
		contentType, body := api.answer(weather, wipe)
		if contentType == "application/json" {
			continue
		}
		end := "\n\n"
		if contentType == ndjson {
			end = "\n"
		}
		frames := strings.SplitAfter(strings.ReplaceAll(body, "\r\n", "\n"), end)
		joined := func(frames ...string) string { return strings.Join(frames, "") }
		calling := slices.IndexFunc(frames, func(f string) bool { return strings.Contains(f, "bash") })
		bad := strings.Replace(frames[calling], "{", "{,", 1)
		for name, odd := range map[string]string{
			"broken before":        joined(frames[:calling]...) + bad + joined(frames[calling:]...),
			"broken behind":        joined(frames[:calling+1]...) + bad + joined(frames[calling+1:]...),
			"broken in its place":  joined(frames[:calling]...) + bad + joined(frames[calling+1:]...),
			"twice":                joined(frames[:calling+1]...) + joined(frames[calling:]...),
			"behind the end":       strings.ReplaceAll(joined(frames...), "\x00", "") + frames[calling],
			"all again":            body + body,
			"two in one line":      joined(frames[:calling]...) + strings.TrimRight(frames[calling], "\n") + strings.TrimSpace(strings.TrimPrefix(frames[calling], "data: ")) + end + joined(frames[calling+1:]...),
			"escaped":              strings.ReplaceAll(body, "bash", `b\u0061sh`),
			"escaped members":      strings.NewReplacer(`"name"`, `"n\u0061me"`, `"tool_calls"`, `"tool_c\u0061lls"`, `"functionCall"`, `"functionC\u0061ll"`).Replace(body),
			"members of two cases": strings.NewReplacer(`"tool_calls"`, `"Tool_Calls"`, `"functionCall"`, `"FunctionCall"`).Replace(body),
			"doubled members":      strings.NewReplacer(`"name":"bash"`, `"name":"get_time","name":"bash"`).Replace(body),
			"all doubled":          doubled(body),
			"doubled behind":       joined(frames[:calling+1]...) + doubled(joined(frames[calling+1:]...)),
			"in a prototype":       strings.NewReplacer(`"tool_calls":`, `"__proto__":{"x":1},"tool_calls":`, `"functionCall":`, `"__proto__":{},"functionCall":`, `"content_block":`, `"__proto__":{},"content_block":`, `"item":`, `"__proto__":{},"item":`).Replace(body),
			"lines in CR":          strings.ReplaceAll(strings.ReplaceAll(body, "\r\n", "\n"), "\n", "\r"),
			"a byte order mark":    "\xef\xbb\xbf" + body,
			"another charset":      body,
			"a stray line":         joined(frames[:calling]...) + strings.TrimPrefix(frames[calling], "data: ") + joined(frames[calling:]...),
			"in a comment":         joined(frames[:calling]...) + ": {\u2028" + strings.ReplaceAll(frames[calling], "\ndata: ", "\u2028data: ") + joined(frames[calling+1:]...),
			"in an event's name":   joined(frames[:calling]...) + "event: \x1e" + strings.ReplaceAll(frames[calling], "\ndata: ", "\u2028data: ") + joined(frames[calling+1:]...),
			"a call and much text": joined(frames[:calling]...) + strings.Replace(frames[calling], `"name":"bash"`, `"name":"get_time","name":"bash"`, 1) + strings.Repeat(frames[0], 20) + joined(frames[calling+1:]...),
		} {
			media := contentType
			if name == "another charset" {
				media += "; charset=utf-16"
			}
			s := newSite(t, `{"hold_back":{"bytes":0,"duration":1000000000}}`, answering(media, odd))
			if got := s.post(api.path, api.question).Body.String(); strings.Contains(got, "rm -rf") || strings.Contains(got, `rm -\u0072f`) || strings.Contains(got, `{"x":1,"x":2`) && strings.Contains(got, "-rf") {
				t.Errorf("%s, %s: %s", api.name, name, got)
			}
			if n := len(s.turns()); n != 1 {
				t.Errorf("%s, %s: %d receipts", api.name, name, n)
			}
		}
	}
}

// doubled makes each document one that we cannot read and some clients can.
func doubled(body string) string {
	return regexp.MustCompile(`(?m)^(data: )?\{`).ReplaceAllString(body, `${1}{"x":1,"x":2,`)
}

// An answer in another form than the one that was asked for is decided all the same.
func TestCallsInAnotherFormThanAsked(t *testing.T) {
	for _, api := range callingAPIs {
		_, body := api.answer(weather, wipe)
		for _, contentType := range []string{"application/json", "text/event-stream", ndjson, "text/plain", "application/octet-stream", "", "application/vnd.api+json; charset=utf-8"} {
			for _, packed := range []bool{false, true} {
				for _, status := range []int{200, 201, 206} {
					s := newSite(t, `{}`, func(w http.ResponseWriter, _ *http.Request) error {
						answer := body
						w.Header()["Content-Type"] = []string{contentType}
						if packed {
							coding, zipped := gzipped(body)
							w.Header().Set("Content-Encoding", coding)
							answer = zipped
						}
						w.WriteHeader(status)
						_, err := io.WriteString(w, answer)
						return err
					})
					got := s.post(api.path, api.question).Body.String()
					if strings.Contains(got, "rm -rf") || strings.Contains(got, "\x1f\x8b") {
						t.Errorf("%s as %q, packed %v: %s", api.name, contentType, packed, got)
					}
					if strings.Contains(got, weather.name) && len(s.calls()) != 2 {
						t.Errorf("%s as %q, packed %v: %d receipts of calls", api.name, contentType, packed, len(s.calls()))
					}
				}
			}
		}
	}
}

// Whole answers that break the rules.
func TestOddWholeAnswersWithCalls(t *testing.T) {
	for _, api := range callingAPIs {
		contentType, body := api.answer(weather, wipe)
		if contentType != "application/json" {
			continue
		}
		for name, odd := range map[string]string{
			"a doubled member":     doubled(body),
			"doubled members":      strings.Replace(body, `"name":"bash"`, `"name":"get_time","name":"bash"`, 1),
			"a byte order mark":    "\xef\xbb\xbf" + body,
			"two documents":        body + body,
			"a tail":               body + "}",
			"a head":               ")]}'\n" + body,
			"cut":                  body[:len(body)-1],
			"a NUL":                body + "\x00",
			"escaped":              strings.ReplaceAll(body, "bash", `b\u0061sh`),
			"bad UTF-8":            strings.Replace(body, "look", "lo\xffok", 1),
			"members of two cases": strings.NewReplacer(`"tool_calls"`, `"Tool_Calls"`, `"functionCall"`, `"FunctionCall"`).Replace(body),
			"in a list":            "[" + body + "]",
			"behind a colon":       ": " + body,
			"as an event's name":   "event:" + body + "\n\ndata: {}\n\n",
			"in UTF-16":            widen(body, 2),
		} {
			s := newSite(t, `{}`, answering(contentType, odd))
			got := s.post(api.path, api.question).Body.String()
			if strings.Contains(got, "rm -rf") || strings.Contains(got, widen("rm -rf", 2)) {
				t.Errorf("%s, %s: %s", api.name, name, got)
			}
		}
	}
}

// An answer with more calls than one commit has room for is refused, and passes in the mode
// observe; very large ones are blocked one by one.
func TestManyAndLargeCalls(t *testing.T) {
	many := func(n int) (calls []askedFor) {
		for i := range n {
			calls = append(calls, askedFor{fmt.Sprint("call_", i), "get_weather", weatherArguments})
		}
		return calls
	}
	large := askedFor{"call_a", "get_weather", `{"city":` + quoted(strings.Repeat("Zurich ", 1<<18)) + `}`}
	for _, api := range callingAPIs {
		for name, test := range map[string]struct {
			calls   []askedFor
			refused bool
		}{
			"as many as fit": {append(many(store.MaxCalls-1), wipe), false},
			"one more":       {append(many(store.MaxCalls), wipe), true},
			"very large":     {[]askedFor{large, wipe}, true}, // and so are both blocked
		} {
			for _, mode := range []string{"enforce", "observe"} {
				contentType, body := api.answer(test.calls...)
				s := newSite(t, `{"mode":"`+mode+`"}`, answering(contentType, body))
				w := s.post(api.path, api.question)
				got := receiptNote.ReplaceAllString(w.Body.String(), "")
				switch {
				case w.Code != http.StatusOK:
					t.Errorf("%s, %s, %s: %d %.300s", api.name, name, mode, w.Code, got)
				case mode == "observe" && got != body:
					t.Errorf("%s, %s: the mode observe changed %.300s", api.name, name, got)
				case mode == "enforce" && strings.Contains(got, "rm -rf"):
					t.Errorf("%s, %s: a blocked call left", api.name, name)
				case mode == "enforce" && strings.Contains(got, weather.name) == test.refused:
					t.Errorf("%s, %s: %.3000s", api.name, name, got)
				}
			}
		}
	}
}

// Where JSON was asked for, the note does not stand in the text that clients parse, if the
// API has another place.
func TestNotesBesideStructuredOutput(t *testing.T) {
	member := map[string]string{
		"chat": jsonWanted, "responses": `"text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"}}},`,
		"anthropic": `"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}},`,
	}
	for _, api := range callingAPIs {
		kind, streamed := strings.CutSuffix(api.name, " streamed")
		if member[kind] == "" {
			continue
		}
		for name, calls := range map[string][]askedFor{"one of two": {wipe, weather}, "the only one": {wipe}} {
			contentType, body := api.answer(calls...)
			s := newSite(t, `{}`, answering(contentType, body))
			got := s.post(api.path, strings.Replace(api.question, `"model":"m",`, `"model":"m",`+member[kind], 1)).Body.String()
			values := []gjson.Result{gjson.Parse(got)}
			if streamed {
				values = nil
				eachData(got, func(v gjson.Result) { values = append(values, v) })
			}
			for _, v := range values {
				for _, path := range []string{
					"choices.0.message.content", "choices.0.delta.content", "output.#.content.#.text", "response.output.#.content.#.text", "content.#.text", "delta.text",
				} {
					if said := v.Get(path).Raw; strings.Contains(said, "blocked") {
						t.Errorf("%s, %s: %s has %s", api.name, name, path, said)
					}
				}
			}
			if strings.Contains(got, "rm -rf") || len(s.calls()) != len(calls) || kind != "anthropic" && !strings.Contains(got, "destructive_command") {
				t.Errorf("%s, %s: %s", api.name, name, got)
			}
		}
	}
}
