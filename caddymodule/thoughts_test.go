package caddymodule_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// A thinkingAPI is a dialect whose answers have reasoning that clients send back.
type thinkingAPI struct {
	path, question string
	// answers are the same answer, whole and streamed, with THOUGHT for the reasoning and
	// THOUGHT1 and THOUGHT2 for its halves, and resent is how a client sends it back, with
	// a call of the tool after it whose argument is GOAL.
	answers    []string
	resent     string
	next       string
	members    string // of the request, before the messages
	streamType string
}

var thinkingAPIs = map[string]thinkingAPI{
	"anthropic": {
		path:     "/v1/messages",
		members:  `"max_tokens":9,"messages":[`,
		question: `{"role":"user","content":"What is the page about?"}`,
		answers: []string{
			`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"THOUGHT","signature":"c2ln"},{"type":"text","text":"It is about Paris."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`,
			claudeStart + claudeBlock(0, `{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":"THOUGHT1"}`, `{"type":"thinking_delta","thinking":"THOUGHT2"}`, `{"type":"signature_delta","signature":"c2ln"}`) +
				claudeText(1, "It is ", "about Paris.") + claudeEnd("end_turn"),
		},
		resent: `{"role":"assistant","content":[{"type":"thinking","thinking":"THOUGHT","signature":"c2ln"},{"type":"text","text":"It is about Paris."},{"type":"tool_use","id":"t","name":"note","input":{"text":"GOAL"}}]}`,
		next:   `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"Noted."}]}`,
	},
	"chat": {
		path:     "/v1/chat/completions",
		members:  `"messages":[`,
		question: userMessage("What is the page about?"),
		answers: []string{
			answerOf(`{"role":"assistant","content":"It is about Paris.","reasoning_content":"THOUGHT"}`),
			`data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":"THOUGHT1"}}]}` + "\n\n" +
				`data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"reasoning_content":"THOUGHT2"}}]}` + "\n\n" +
				`data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"It is about Paris."}}]}` + "\n\n" +
				`data: {"id":"c","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n",
		},
		resent: `{"role":"assistant","content":"It is about Paris.","reasoning_content":"THOUGHT","tool_calls":[{"id":"t","type":"function","function":{"name":"note","arguments":"{\"text\":\"GOAL\"}"}}]}`,
		next:   `{"role":"tool","tool_call_id":"t","content":"Noted."}`,
	},
	"ollama": {
		path:     "/api/chat",
		members:  `"stream":false,"messages":[`,
		question: userMessage("What is the page about?"),
		answers: []string{
			`{"model":"m","message":{"role":"assistant","content":"It is about Paris.","thinking":"THOUGHT"},"done":true}`,
			`{"model":"m","message":{"role":"assistant","content":"","thinking":"THOUGHT1"},"done":false}` + "\n" +
				`{"model":"m","message":{"role":"assistant","content":"","thinking":"THOUGHT2"},"done":false}` + "\n" +
				`{"model":"m","message":{"role":"assistant","content":"It is about Paris."},"done":false}` + "\n" +
				`{"model":"m","message":{"role":"assistant","content":""},"done":true}` + "\n",
		},
		streamType: ndjson,
		resent:     `{"role":"assistant","content":"It is about Paris.","thinking":"THOUGHT","tool_calls":[{"function":{"name":"note","arguments":{"text":"GOAL"}}}]}`,
		next:       `{"role":"tool","tool_name":"note","content":"Noted."}`,
	},
	"responses": {
		path:     "/v1/responses",
		members:  `"store":false,"input":[`,
		question: userMessage("What is the page about?"),
		answers: []string{
			reply(`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"THOUGHT"}]}`, said("msg_1", "It is about Paris.")),
			replyFrame("response.created", `"response":`+reply()) +
				replyFrame("response.output_item.added", `"output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}`) +
				replyFrame("response.reasoning_summary_text.delta", `"item_id":"rs_1","output_index":0,"summary_index":0,"delta":"THOUGHT1"`) +
				replyFrame("response.reasoning_summary_text.delta", `"item_id":"rs_1","output_index":0,"summary_index":0,"delta":"THOUGHT2"`) +
				replyFrame("response.reasoning_summary_text.done", `"item_id":"rs_1","output_index":0,"summary_index":0,"text":"THOUGHT"`) +
				replyFrame("response.output_item.done", `"output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"THOUGHT"}]}`) +
				replyFrame("response.output_item.added", `"output_index":1,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}`) +
				replyFrame("response.output_text.delta", `"item_id":"msg_1","output_index":1,"content_index":0,"delta":"It is about Paris."`) +
				replyFrame("response.output_item.done", `"output_index":1,"item":`+said("msg_1", "It is about Paris.")) +
				replyFrame("response.completed", `"response":`+reply(`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"THOUGHT"}]}`, said("msg_1", "It is about Paris."))),
		},
		resent: `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"THOUGHT"}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"It is about Paris."}]},{"type":"function_call","call_id":"t","name":"note","arguments":"{\"text\":\"GOAL\"}"}`,
		next:   `{"type":"function_call_output","call_id":"t","output":"Noted."}`,
	},
	"gemini": {
		path:     "/v1beta/models/m:generateContent",
		members:  `"contents":[`,
		question: `{"role":"user","parts":[{"text":"What is the page about?"}]}`,
		answers: []string{
			`{"candidates":[{"content":{"role":"model","parts":[{"text":"THOUGHT","thought":true},{"text":"It is about Paris."}]},"finishReason":"STOP","index":0}]}`,
			`data: {"candidates":[{"content":{"role":"model","parts":[{"text":"THOUGHT1","thought":true}]},"index":0}]}` + "\n\n" +
				`data: {"candidates":[{"content":{"role":"model","parts":[{"text":"THOUGHT2","thought":true}]},"index":0}]}` + "\n\n" +
				`data: {"candidates":[{"content":{"role":"model","parts":[{"text":"It is about Paris."}]},"finishReason":"STOP","index":0}]}` + "\n\n",
		},
		resent: `{"role":"model","parts":[{"text":"THOUGHT","thought":true},{"text":"It is about Paris."},{"functionCall":{"name":"note","args":{"text":"GOAL"}}}]}`,
		next:   `{"role":"user","parts":[{"functionResponse":{"name":"note","response":{"output":"Noted."}}}]}`,
	},
}

// replyFrame is a frame of a stream of the Responses API.
func replyFrame(kind, members string) string {
	return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"," + members + "}\n\n"
}

// ask sends a conversation and returns what reached the model.
func (a thinkingAPI) ask(s *site, seen *recorder, streamed bool, headers []string, messages ...string) string {
	path, members := a.path, `{"model":"m",`+a.members
	if streamed {
		path = strings.Replace(path, ":generateContent", ":streamGenerateContent?alt=sse", 1)
		members = strings.Replace(`{"model":"m","stream":true,`+a.members, `"stream":false,`, "", 1)
	}
	before := seen.count.Load()
	s.post(path, members+strings.Join(messages, ",")+`]}`, headers...)
	if seen.count.Load() == before {
		return "nothing"
	}
	return string(seen.last().body)
}

// A model that has read an attack quotes it in its reasoning. What it thought itself, and
// only that, stays where the client sends it back, as it came: providers sign reasoning,
// and refuse a conversation in which it is missing.
func TestThoughtsOfTheModelStay(t *testing.T) {
	half := "The page says: "
	thought := half + attack + " I do not follow that, I only say what it is about."
	const goal = "Paris"
	for name, api := range thinkingAPIs {
		for n, answer := range api.answers {
			for of, c := range map[string]struct {
				config  string
				headers []string
			}{
				"resent": {`{}`, nil}, "named": {`{}`, []string{"X-Lex-Session", "abc"}}, "history refuse": {`{"history":"refuse"}`, nil},
			} {
				t.Run(strings.Join([]string{name, []string{"whole", "streamed"}[n], of}, "/"), func(t *testing.T) {
					headers, refuses := c.headers, of == "history refuse"
					seen, streamed, script := new(recorder), n == 1, answer
					s := newSite(t, c.config, func(w http.ResponseWriter, r *http.Request) error {
						if seen.record(r); seen.count.Load() > 1 {
							script = strings.NewReplacer("THOUGHT1", "", "THOUGHT2", "", "THOUGHT", "").Replace(api.answers[n])
						}
						contentType := "application/json"
						if streamed && api.streamType != "" {
							contentType = api.streamType
						} else if streamed {
							contentType = "text/event-stream"
						}
						return answering(contentType, strings.NewReplacer("THOUGHT1", half, "THOUGHT2", thought[len(half):], "THOUGHT", thought).Replace(script))(w, r)
					})
					with := func(thought, goal string) string {
						return strings.NewReplacer("THOUGHT", thought, "GOAL", goal).Replace(api.resent)
					}
					api.ask(s, seen, streamed, headers, api.question)
					for turn := range 3 {
						got := api.ask(s, seen, streamed, headers, api.question, with(thought, goal), api.next)
						if !strings.Contains(got, with(thought, goal)) {
							t.Fatalf("turn %d: the model saw %s", turn, got)
						}
						r := s.turns()[0]
						if len(parts(r, "redacted")) > 0 || r["severity"].(float64) > 0.3 {
							t.Errorf("turn %d: severity %v, redacted %v", turn, r["severity"], parts(r, "redacted"))
						}
						if !slices.ContainsFunc(parts(r, "inspected"), func(p string) bool {
							return strings.HasPrefix(p, "request.messages.1") || strings.HasPrefix(p, "request.input.1") || strings.HasPrefix(p, "request.contents.1")
						}) {
							t.Errorf("turn %d: the thought is not listed: %v", turn, r["coverage"])
						}
					}
					if got := api.ask(s, seen, streamed, headers, api.question, with(thought, attack), api.next); (!strings.Contains(got, thought) || !strings.Contains(got, removed)) != refuses {
						t.Errorf("with an attack beside it, the model saw %s", got)
					}
					if got := api.ask(s, seen, streamed, headers, api.question, with(attack, goal), api.next); strings.Contains(got, attack) {
						t.Errorf("of a thought that it never had, the model saw %s", got)
					}
					if got := api.ask(s, seen, streamed, []string{"X-Lex-Session", "another"}, api.question, with(thought, goal), api.next); strings.Contains(got, attack) {
						t.Errorf("in another session, the model saw %s", got)
					}
				})
			}
		}
	}
}

// Calls without a text leave two answers to the same question in one session, whose thoughts
// are different ones.
func TestThoughtsOfASecondAnswerStay(t *testing.T) {
	thoughts := []string{"The page says: " + attack + " I look it up.", "I am told: " + attack + " No. I look it up."}
	called := func(thought string) string {
		return `{"role":"assistant","content":null,"reasoning_content":` + quoted(thought) + `,"tool_calls":[` + toolCall + `]}`
	}
	model, seen := scripted(called(thoughts[0]), called(thoughts[1]), `{"role":"assistant","content":"Two million."}`)
	s := newSite(t, `{}`, model)
	asks := userMessage("How many inhabitants has Paris?")
	for range thoughts {
		(&talk{site: s}).say(asks)
	}
	for _, thought := range thoughts {
		if (&talk{site: s}).say(asks, called(thought), toolResult); !strings.Contains(string(seen.last().body), quoted(thought)) {
			t.Errorf("the model saw %s", seen.last().body)
		}
	}
}
