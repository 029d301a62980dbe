package caddymodule_test

import (
	"cmp"
	"net/http"
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
	place      string // of the reasoning, then
	next       string
	members    string // of the request, before the messages
	streamType string
}

var thinkingAPIs = map[string]thinkingAPI{
	"anthropic": {
		path:     "/v1/messages",
		place:    "messages.1.content.0",
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
		place:    "messages.1.reasoning_content",
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
		place:    "messages.1.thinking",
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
		place:    "input.1",
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
		place:    "contents.1.parts.0.text",
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

// A thinkingTalk is a conversation with a model that thinks thoughtful in its first answer, and
// nothing in later ones.
type thinkingTalk struct {
	thinkingAPI
	site     *site
	seen     *recorder
	streamed bool
	headers  []string
}

const (
	half       = "The page says: "
	thoughtful = half + attack + " I do not follow that, I only say what it is about."
)

// eachThinking runs a test with each API, whole and streamed, after the first answer.
func eachThinking(t *testing.T, config string, headers []string, test func(t *testing.T, c *thinkingTalk)) {
	for name, api := range thinkingAPIs {
		for n, answer := range api.answers {
			t.Run(name+[]string{"", " streamed"}[n], func(t *testing.T) {
				c := &thinkingTalk{thinkingAPI: api, seen: new(recorder), streamed: n == 1, headers: headers}
				contentType := "application/json"
				if c.streamed {
					contentType = cmp.Or(api.streamType, "text/event-stream")
				}
				first := strings.NewReplacer("THOUGHT1", half, "THOUGHT2", thoughtful[len(half):], "THOUGHT", thoughtful).Replace(answer)
				later := strings.NewReplacer("THOUGHT1", "", "THOUGHT2", "", "THOUGHT", "").Replace(answer)
				c.site = newSite(t, config, func(w http.ResponseWriter, r *http.Request) error {
					if c.seen.record(r); c.seen.count.Load() == 1 {
						return answering(contentType, first)(w, r)
					}
					return answering(contentType, later)(w, r)
				})
				c.say(c.question)
				test(t, c)
			})
		}
	}
}

// say sends a conversation and returns what reached the model of it, and the receipt.
func (c *thinkingTalk) say(messages ...string) (reached string, receipt map[string]any) {
	path, members := c.path, `{"model":"m",`+c.members
	if c.streamed {
		path = strings.Replace(path, ":generateContent", ":streamGenerateContent?alt=sse", 1)
		members = strings.Replace(`{"model":"m","stream":true,`+c.members, `"stream":false,`, "", 1)
	}
	before := c.seen.count.Load()
	c.site.post(path, members+strings.Join(messages, ",")+`]}`, c.headers...)
	if c.seen.count.Load() > before {
		reached = string(c.seen.last().body)
	}
	return reached, c.site.turns()[0]
}

// resend sends the answer back, with a thought and what a call after it is for.
func (c *thinkingTalk) resend(thought, goal string) (reached, answer string, receipt map[string]any) {
	answer = strings.NewReplacer("THOUGHT", thought, "GOAL", goal).Replace(c.resent)
	reached, receipt = c.say(c.question, answer, c.next)
	return reached, answer, receipt
}

// treated is what the receipt says of the thought: who read it, or why nobody did.
func (c *thinkingTalk) treated(receipt map[string]any) (said []any) {
	for list, member := range map[string]string{"inspected": "detector", "skipped": "why", "redacted": "why"} {
		parts, _ := receipt["coverage"].(map[string]any)[list].([]any)
		for _, p := range parts {
			if p := p.(map[string]any); p["part"] == "request."+c.place {
				said = append(said, p[member])
			}
		}
	}
	return said
}

// A model that has read an attack quotes it in its reasoning. What it thought itself stays
// where the client sends it back, as it came: providers sign reasoning, and refuse a
// conversation in which it is missing.
func TestThoughtsOfTheModelStay(t *testing.T) {
	for session, headers := range map[string][]string{"resent": nil, "named": {"X-Lex-Session", "abc"}} {
		t.Run(session, func(t *testing.T) {
			eachThinking(t, `{}`, headers, func(t *testing.T, c *thinkingTalk) {
				for turn := range 3 {
					got, answer, r := c.resend(thoughtful, "Paris")
					if !strings.Contains(got, answer) {
						t.Fatalf("turn %d: the model saw %s", turn, got)
					}
					if said := c.treated(r); len(parts(r, "redacted")) > 0 || r["severity"].(float64) > 0.3 || len(said) != 1 || said[0] != "local" && said[0] != "earlier_turn" {
						t.Errorf("turn %d: severity %v, coverage %v", turn, r["severity"], r["coverage"])
					}
				}
			})
		})
	}
}

// An attack beside the thought is removed, and the thought stays. Nobody reads what is removed
// a second time, so the receipt says that the thought was not. In the Responses API it is a
// message of its own.
func TestThoughtsStayBesideAnAttack(t *testing.T) {
	eachThinking(t, `{}`, nil, func(t *testing.T, c *thinkingTalk) {
		want := "the model's own reasoning, in a message that is removed"
		if c.place == "input.1" {
			want = "local"
		}
		for range 2 {
			got, _, r := c.resend(thoughtful, attack)
			if said := c.treated(r); !strings.Contains(got, thoughtful) || !strings.Contains(got, removed) || len(said) != 1 || said[0] != want {
				t.Errorf("the receipt says %v, want %s; the model saw %s", said, want, got)
			}
		}
	})
}

// What the model only thought is no thought where it is said: as the text of its answer it is
// judged, and goes.
func TestThoughtsThatAreSaidGo(t *testing.T) {
	eachThinking(t, `{}`, []string{"X-Lex-Session", "abc"}, func(t *testing.T, c *thinkingTalk) {
		said := strings.NewReplacer("THOUGHT", thoughtful, "It is about Paris.", thoughtful, "GOAL", "Paris").Replace(c.resent)
		if got, _ := c.say(c.question, said, c.next); strings.Count(got, thoughtful) != 1 || !strings.Contains(got, removed) {
			t.Errorf("the model saw %s", got)
		}
	})
}

// What the model never thought, or not in this session, is no thought of its.
func TestOtherThoughtsGo(t *testing.T) {
	eachThinking(t, `{}`, nil, func(t *testing.T, c *thinkingTalk) {
		if got, _, _ := c.resend(attack, "Paris"); got == "" || strings.Contains(got, attack) {
			t.Errorf("of a thought that it never had, the model saw %s", got)
		}
		c.headers = []string{"X-Lex-Session", "another"}
		if got, _, _ := c.resend(thoughtful, "Paris"); got == "" || strings.Contains(got, attack) {
			t.Errorf("in another session, the model saw %s", got)
		}
	})
}

// Where attacks in the history refuse the turn, a thought does not.
func TestThoughtsRefuseNothing(t *testing.T) {
	eachThinking(t, `{"history":"refuse"}`, nil, func(t *testing.T, c *thinkingTalk) {
		if got, answer, r := c.resend(thoughtful, "Paris"); !strings.Contains(got, answer) || r["refused"] != false {
			t.Errorf("refused %v; the model saw %s", r["refused"], got)
		}
		if got, _, r := c.resend(thoughtful, attack); got != "" || r["refused"] != true {
			t.Errorf("an attack beside it: refused %v; the model saw %s", r["refused"], got)
		}
	})
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
