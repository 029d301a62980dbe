package caddymodule_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/store/storetest"
)

// resentAs is what the official client of an API resends of an answer: the body of the next
// call, with the results of the calls that it got.
var resentAs = map[string]func(question, answer string) string{
	"chat": func(question, answer string) string {
		return chatResent(question, gjson.Get(answer, "choices.0.message").Raw)
	},
	"chat streamed": func(question, answer string) string {
		text, calls := "", []string{}
		eachData(answer, func(v gjson.Result) {
			delta := v.Get("choices.0.delta")
			text += delta.Get("content").Str
			for _, c := range delta.Get("tool_calls").Array() {
				if name := c.Get("function.name").Str; name != "" {
					calls = append(calls, fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}`, c.Get("id").Str, name, weatherArguments))
				}
			}
		})
		tools := ""
		if len(calls) > 0 {
			tools = `,"tool_calls":[` + strings.Join(calls, ",") + `]`
		}
		return chatResent(question, `{"role":"assistant","content":`+quoted(text)+tools+`}`)
	},
	"responses": func(_, answer string) string { return responsesResent(gjson.Get(answer, "output")) },
	"responses streamed": func(_, answer string) string {
		var last gjson.Result
		eachData(answer, func(v gjson.Result) { last = v })
		return strings.Replace(responsesResent(last.Get("response.output")), `"store"`, `"stream":true,"store"`, 1)
	},
	"anthropic": func(question, answer string) string {
		return claudeResent(question, gjson.Get(answer, "content").Array())
	},
	"anthropic streamed": func(question, answer string) string {
		texts, blocks := map[int64]string{}, []gjson.Result{}
		eachData(answer, func(v gjson.Result) {
			texts[v.Get("index").Int()] += v.Get("delta.text").Str
			if b := v.Get("content_block"); b.Exists() {
				blocks = append(blocks, b)
			}
		})
		for i, b := range blocks {
			if b.Get("type").Str == "text" {
				blocks[i] = gjson.Parse(`{"type":"text","text":` + quoted(texts[int64(i)]) + `}`)
			} else {
				blocks[i] = gjson.Parse(strings.Replace(b.Raw, `"input":{}`, `"input":`+weatherArguments, 1))
			}
		}
		return claudeResent(question, blocks)
	},
	"bedrock": func(question, answer string) string {
		return bedrockResent(question, gjson.Get(answer, "output.message.content").Array())
	},
	"bedrock streamed": func(question, answer string) string {
		texts, blocks := map[int64]string{}, []gjson.Result{}
		events, _ := amazonPayloads(answer)
		for _, event := range events {
			index, call := event.Get("contentBlockIndex").Int(), event.Get("start.toolUse")
			texts[index] += event.Get("delta.text").Str
			switch {
			case call.Exists():
				blocks = append(blocks, gjson.Parse(`{"toolUse":`+strings.Replace(call.Raw, "{", `{"input":`+weatherArguments+",", 1)+"}"))
			case texts[index] != "" && !event.Get("delta").Exists() && event.Get("contentBlockIndex").Exists(): // the block ends
				blocks = append(blocks, gjson.Parse(`{"text":`+quoted(texts[index])+`}`))
			}
		}
		return bedrockResent(question, blocks)
	},
	"gemini": func(_, answer string) string {
		return geminiResent(gjson.Get(answer, "candidates.0.content.parts").Array())
	},
	"gemini streamed": func(_, answer string) string {
		var parts []gjson.Result
		eachData(answer, func(v gjson.Result) { parts = append(parts, v.Get("candidates.0.content.parts").Array()...) })
		return geminiResent(parts)
	},
	"gemini array": func(_, answer string) string {
		var parts []gjson.Result
		for _, v := range gjson.Parse(answer).Array() {
			parts = append(parts, v.Get("candidates.0.content.parts").Array()...)
		}
		return geminiResent(parts)
	},
	"ollama": func(question, answer string) string {
		return ollamaResent(question, []gjson.Result{gjson.Parse(answer)})
	},
	"ollama streamed": func(question, answer string) string {
		var lines []gjson.Result
		for line := range strings.Lines(answer) {
			lines = append(lines, gjson.Parse(line))
		}
		return ollamaResent(question, lines)
	},
}

func behindQuestion(question, messages string) string {
	at := strings.LastIndex(question, "]")
	return question[:at] + "," + messages + question[at:]
}

func chatResent(question, message string) string {
	messages := message
	for _, c := range gjson.Get(message, "tool_calls").Array() {
		messages += fmt.Sprintf(`,{"role":"tool","tool_call_id":%q,"content":"It is sunny."}`, c.Get("id").Str)
	}
	return behindQuestion(question, messages+`,{"role":"user","content":"And tomorrow?"}`)
}

func responsesResent(output gjson.Result) string {
	input := `{"role":"user","content":"What is the capital of France?"}`
	for _, item := range output.Array() {
		input += "," + item.Raw
		if item.Get("type").Str == "function_call" {
			input += fmt.Sprintf(`,{"type":"function_call_output","call_id":%q,"output":"It is sunny."}`, item.Get("call_id").Str)
		}
	}
	return `{"model":"m","store":false,"input":[` + input + `,{"role":"user","content":"And tomorrow?"}]}`
}

func claudeResent(question string, blocks []gjson.Result) string {
	var content, results []string
	for _, b := range blocks {
		content = append(content, b.Raw)
		if b.Get("type").Str == "tool_use" {
			results = append(results, fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":"It is sunny."}`, b.Get("id").Str))
		}
	}
	results = append(results, `{"type":"text","text":"And tomorrow?"}`)
	return behindQuestion(question, `{"role":"assistant","content":[`+strings.Join(content, ",")+`]},{"role":"user","content":[`+strings.Join(results, ",")+`]}`)
}

func bedrockResent(question string, blocks []gjson.Result) string {
	var content, results []string
	for _, b := range blocks {
		content = append(content, b.Raw)
		if id := b.Get("toolUse.toolUseId").Str; id != "" {
			results = append(results, fmt.Sprintf(`{"toolResult":{"toolUseId":%q,"content":[{"text":"It is sunny."}]}}`, id))
		}
	}
	results = append(results, `{"text":"And tomorrow?"}`)
	return behindQuestion(question, `{"role":"assistant","content":[`+strings.Join(content, ",")+`]},{"role":"user","content":[`+strings.Join(results, ",")+`]}`)
}

func geminiResent(parts []gjson.Result) string {
	var said, results []string
	for _, p := range parts {
		said = append(said, p.Raw)
		if name := p.Get("functionCall.name").Str; name != "" {
			results = append(results, fmt.Sprintf(`{"functionResponse":{"name":%q,"response":{"r":"It is sunny."}}}`, name))
		}
	}
	results = append(results, `{"text":"And tomorrow?"}`)
	return behindQuestion(geminiQuestion, `{"role":"model","parts":[`+strings.Join(said, ",")+`]},{"role":"user","parts":[`+strings.Join(results, ",")+`]}`)
}

func ollamaResent(question string, lines []gjson.Result) string {
	text, calls, results := "", []string{}, ""
	for _, l := range lines {
		text += l.Get("message.content").Str
		for _, c := range l.Get("message.tool_calls").Array() {
			calls = append(calls, c.Raw)
			results += fmt.Sprintf(`,{"role":"tool","tool_name":%q,"content":"It is sunny."}`, c.Get("function.name").Str)
		}
	}
	return behindQuestion(question, `{"role":"assistant","content":`+quoted(text)+`,"tool_calls":[`+strings.Join(calls, ",")+`]}`+results+`,{"role":"user","content":"And tomorrow?"}`)
}

// A client that resends an answer from which calls were taken goes on in its session, also
// from an earlier turn.
func TestConversationsGoOnBehindBlockedCalls(t *testing.T) {
	for _, api := range callingAPIs {
		for name, calls := range map[string][]askedFor{"some": {wipe, weather}, "none": {weather}, "all": {wipe}} {
			t.Run(api.name+" "+name, func(t *testing.T) {
				question := strings.Replace(api.question, `"input":"What is the capital of France?"`, `"store":false,"input":[{"role":"user","content":"What is the capital of France?"}]`, 1)
				question = strings.Replace(question, `"stream":true,"input"`, `"stream":true,"store":false,"input"`, 1)
				contentType, body := api.answer(calls...)
				s := newSite(t, `{}`, answering(contentType, body))
				answer := s.post(api.path, question).Body.String()
				resent := resentAs[api.name](question, answer)
				for range 2 { // the second time it goes on from the same turn again
					s.post(api.path, resent)
				}
				turns := s.turns()
				if len(turns) != 3 {
					t.Fatalf("%d turns", len(turns))
				}
				first := turns[2]
				for i, r := range turns[:2] {
					if r["session_id"] != first["session_id"] || r["turn"] != 2.0 {
						t.Errorf("call %d is turn %v in another session: %s", i, r["turn"], resent)
					}
				}
				for _, r := range s.receipts() {
					if v := s.post("/audits/verify", `{"receipt_id":"`+r["id"].(string)+`"}`); !strings.Contains(v.Body.String(), `"valid":true`) {
						t.Errorf("%s", v.Body)
					}
				}
			})
		}
	}
}

// Calls that break an invariant press on the session: in the end it denies calls that write,
// and still lets it read.
func TestBlockedCallsPressOnTheSession(t *testing.T) {
	write := askedFor{"call_w", "send_email", `{"to":"bob@example.com","body":"Hello"}`}
	read := askedFor{"call_r", "get_weather", weatherArguments}
	for _, api := range callingAPIs {
		t.Run(api.name, func(t *testing.T) {
			contentType, asked := "", ""
			s := newSiteWith(t, `{}`, map[string]any{"tools": map[string]any{"sends": []string{"send_*"}, "reads": []string{"get_*"}}}, func(w http.ResponseWriter, r *http.Request) error {
				return answering(contentType, asked)(w, r)
			})
			ask := func(calls ...askedFor) string {
				contentType, asked = api.answer(calls...)
				return s.post(api.path, api.question, "X-Lex-Session", "s").Body.String()
			}
			if got := ask(write); !strings.Contains(got, write.name) {
				t.Fatalf("a calm session denies: %s", got)
			}
			for range 3 {
				ask(wipe)
			}
			got := ask(read, write)
			if strings.Contains(got, write.name) || !strings.Contains(got, read.name) || !strings.Contains(got, "session_risk") {
				t.Errorf("after three blocked calls: %s", got)
			}
			if c := s.calls()[0]; c["invariant"] != "session_risk" || c["decision"] != "blocked" || c["effect"] != "send" {
				t.Errorf("%v %v %v", c["invariant"], c["decision"], c["effect"])
			}
			turns := 0
			for ; turns < 30 && !strings.Contains(ask(write), write.name); turns++ {
			}
			if turns == 30 {
				t.Error("it does not recover")
			}
			checkOneSession(t, s, s.receipts())
		})
	}
}

// Who confirms what the assistant proposed is no reason to deny it.
func TestConfirmedCallsPass(t *testing.T) {
	write := askedFor{"call_w", "send_email", `{"to":"bob@example.com","body":"Hello"}`}
	api := callingAPIs[0]
	for _, confirmation := range []string{"Yes, that is correct.", "That is right.", "I agree, go ahead", "Wrong, try again", "네, 맞습니다"} {
		contentType, body := api.answer(write)
		s := newSiteWith(t, `{}`, map[string]any{"tools": map[string]any{"sends": []string{"send_*"}}}, answering(contentType, body))
		got := s.post(api.path, `{"model":"m","messages":[{"role":"user","content":"Write to Bob that I say hello."},`+
			`{"role":"assistant","content":"To bob@example.com?"},{"role":"user","content":"`+confirmation+`"}]}`).Body.String()
		if !strings.Contains(got, write.name) || strings.Contains(got, "session_risk") {
			t.Errorf("%s: %s", confirmation, got)
		}
	}
}

// Of many turns of a session at once each client sees what was committed for it.
func TestCallsOfParallelTurns(t *testing.T) {
	for _, api := range callingAPIs {
		contentType, body := api.answer(weather, wipe)
		s := newSite(t, `{}`, answering(contentType, body))
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if got := s.post(api.path, api.question, "X-Lex-Session", "s").Body.String(); strings.Contains(got, "rm -rf") || !strings.Contains(got, weather.name) {
					t.Errorf("%s: %s", api.name, got)
				}
			})
		}
		all.Wait()
		receipts := s.receipts()
		if len(receipts) != 24 {
			t.Errorf("%s: %d receipts", api.name, len(receipts))
		}
		checkOneSession(t, s, receipts)
	}
}

// A client that puts a blocked call back into the history by itself, with a result, stays in
// its session, and what it adds is read.
func TestABlockedCallIsPutBack(t *testing.T) {
	for name, test := range map[string]struct {
		result  string
		refused bool
	}{"a result": {"Done.", false}, "a poisoned result": {attack, true}} {
		model, seen := scripted(`{"role":"assistant","content":"I look.","tool_calls":[`+chatCalls([]askedFor{weather, wipe})+`]}`, `{"role":"assistant","content":"Good."}`)
		s := newSite(t, `{}`, model)
		client := &talk{site: s}
		text := gjson.Get(client.say(userMessage("What is the weather?")), "choices.0.message.content").Str
		client.say(`{"role":"assistant","content":`+quoted(text)+`,"tool_calls":[`+chatCalls([]askedFor{weather, wipe})+`]}`,
			`{"role":"tool","tool_call_id":"call_a","content":"Sunny."}`, `{"role":"tool","tool_call_id":"call_b","content":`+quoted(test.result)+`}`)
		if asked := seen.count.Load(); (asked == 1) != test.refused {
			t.Errorf("%s: the model was asked %d times", name, asked)
		}
		checkOneSession(t, s, s.receipts())
	}
}

// Turns of one session at once on two replicas: each client sees what was committed for it,
// and the chain of receipts is whole.
func TestCallsOnTwoReplicas(t *testing.T) {
	redis := storetest.StartRedis(t)
	for _, api := range callingAPIs {
		contentType, body := api.answer(weather, wipe, second)
		var replicas []*site
		for range 2 {
			replicas = append(replicas, newSiteWith(t, `{}`, map[string]any{"store": map[string]any{"engine": "redis", "urls": []string{redis}}}, answering(contentType, body)))
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		var turns []string
		for i := range 6 {
			all.Go(func() {
				w := replicas[i%2].post(api.path, api.question, "X-Lex-Session", api.name)
				if got := w.Body.String(); strings.Contains(got, "rm -rf") || !strings.Contains(got, weather.name) || !strings.Contains(got, second.name) {
					t.Errorf("%s: %s", api.name, got)
				}
				mu.Lock()
				defer mu.Unlock()
				turns = append(turns, w.Header().Get("X-Lex-Turn"))
			})
		}
		all.Wait()
		heads := make(map[any]bool)
		for _, turn := range turns {
			r := replicas[0].get("/audits/turn/" + turn)
			if heads[r["prev"]] {
				t.Errorf("%s: two turns follow %v", api.name, r["prev"])
			}
			heads[r["prev"]] = true
			if v := replicas[1].post("/audits/verify", fmt.Sprintf(`{"receipt_id":%q}`, r["id"])); !strings.Contains(v.Body.String(), `"valid":true`) {
				t.Errorf("%s", v.Body)
			}
		}
	}
}
