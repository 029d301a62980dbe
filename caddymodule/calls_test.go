package caddymodule_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// The calls that models ask for in these tests: one that any policy allows and one that
// none does.
const (
	weatherArguments = `{"city":"Zurich"}`
	wipeArguments    = `{"command":"rm -rf /"}`
)

// An askedFor is a call that a model asks for.
type askedFor struct{ id, name, arguments string }

var (
	weather = askedFor{"call_a", "get_weather", weatherArguments}
	wipe    = askedFor{"call_b", "bash", wipeArguments}
	second  = askedFor{"call_c", "get_time", `{"zone":"CET"}`}
)

// A callingAPI makes the answers of a model that says a text and asks for calls.
type callingAPI struct {
	name, path string
	question   string
	answer     func(calls ...askedFor) (contentType, body string)
	// finish is what the answer ends with, with calls and without.
	finish        func(body string) string
	called, ended string
}

func quoted(s string) string { return fmt.Sprintf("%q", s) }

func chatCalls(calls []askedFor) string {
	var all []string
	for _, c := range calls {
		all = append(all, fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}`, c.id, c.name, c.arguments))
	}
	return strings.Join(all, ",")
}

func lastFrame(path string) func(string) string {
	return func(body string) string {
		found := ""
		for line := range strings.Lines(body) {
			data := strings.TrimPrefix(strings.TrimSpace(line), "data: ")
			if v := gjson.Get(data, path); v.Type == gjson.String {
				found = v.Str
			}
		}
		return found
	}
}

func member(path string) func(string) string {
	return func(body string) string { return gjson.Get(body, path).Str }
}

var callingAPIs = []callingAPI{
	{"chat", "/v1/chat/completions", chatQuestion, func(calls ...askedFor) (string, string) {
		return "application/json", `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"I look.","tool_calls":[` +
			chatCalls(calls) + `]},"finish_reason":"tool_calls"}]}`
	}, member("choices.0.finish_reason"), "tool_calls", "stop"},
	{"chat streamed", "/v1/chat/completions", chatStreamed, func(calls ...askedFor) (string, string) {
		frame := func(delta, finish string) string {
			return `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + "}]}\n\n"
		}
		body := frame(`{"role":"assistant","content":"I look."}`, "null")
		for i, c := range calls {
			body += frame(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":""}}]}`, i, c.id, c.name), "null")
			half := len(c.arguments) / 2
			for _, piece := range []string{c.arguments[:half], c.arguments[half:]} {
				body += frame(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%q}}]}`, i, piece), "null")
			}
		}
		return "text/event-stream", body + frame(`{}`, `"tool_calls"`) + "data: [DONE]\n\n"
	}, lastFrame("choices.0.finish_reason"), "tool_calls", "stop"},
	{"responses", "/v1/responses", replyQuestion, func(calls ...askedFor) (string, string) {
		return "application/json", reply(append([]string{said("msg_1", "I look.")}, functionCalls(calls)...)...)
	}, member("status"), "completed", "completed"},
	{"responses streamed", "/v1/responses", replyStreamed, func(calls ...askedFor) (string, string) {
		return "text/event-stream", replyStream([]string{"I ", "look."}, functionCalls(calls)...)
	}, lastFrame("response.status"), "completed", "completed"},
	{"anthropic", "/v1/messages", claudeQuestion, func(calls ...askedFor) (string, string) {
		blocks := `{"type":"text","text":"I look."}`
		for _, c := range calls {
			blocks += fmt.Sprintf(`,{"type":"tool_use","id":%q,"name":%q,"input":%s}`, c.id, c.name, c.arguments)
		}
		return "application/json", `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[` + blocks + `],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`
	}, member("stop_reason"), "tool_use", "end_turn"},
	{"anthropic streamed", "/v1/messages", claudeStreamed, func(calls ...askedFor) (string, string) {
		body := claudeStart + claudeText(0, "I ", "look.")
		for i, c := range calls {
			body += claudeBlock(i+1, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, c.id, c.name), fmt.Sprintf(`{"type":"input_json_delta","partial_json":%q}`, c.arguments))
		}
		return "text/event-stream", body + claudeEnd("tool_use")
	}, lastFrame("delta.stop_reason"), "tool_use", "end_turn"},
	{"gemini", geminiWhole, geminiQuestion, func(calls ...askedFor) (string, string) {
		return "application/json", geminiCalling("STOP", calls...)
	}, member("candidates.0.finishReason"), "STOP", "STOP"},
	{"gemini streamed", geminiEvents, geminiQuestion, func(calls ...askedFor) (string, string) {
		return geminiStream(geminiEvents, geminiChunk("", "I "), geminiCalling("", calls...), geminiChunk("STOP", ""))
	}, lastFrame("candidates.0.finishReason"), "STOP", "STOP"},
	{"gemini array", geminiArray, geminiQuestion, func(calls ...askedFor) (string, string) {
		return geminiStream(geminiArray, geminiChunk("", "I "), geminiCalling("", calls...), geminiChunk("STOP", ""))
	}, member("2.candidates.0.finishReason"), "STOP", "STOP"},
	{"bedrock", converseWhole, saidToBedrock("What is the capital of France?"), func(calls ...askedFor) (string, string) {
		blocks := `{"text":"I look."}`
		for _, c := range calls {
			blocks += fmt.Sprintf(`,{"toolUse":{"toolUseId":%q,"name":%q,"input":%s}}`, c.id, c.name, c.arguments)
		}
		return "application/json", `{"output":{"message":{"role":"assistant","content":[` + blocks + `]}},"stopReason":"tool_use","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}`
	}, member("stopReason"), "tool_use", "end_turn"},
	{"bedrock streamed", converseStream, saidToBedrock("What is the capital of France?"), func(calls ...askedFor) (string, string) {
		lines := "messageStart {\"role\":\"assistant\"}\n" + bedrockDelta(0, `{"text":"I "}`) + bedrockDelta(0, `{"text":"look."}`) + bedrockStop(0)
		for i, c := range calls {
			half := len(c.arguments) / 2
			lines += fmt.Sprintf(`contentBlockStart {"contentBlockIndex":%d,"start":{"toolUse":{"toolUseId":%q,"name":%q}}}`, i+1, c.id, c.name) + "\n" +
				bedrockDelta(i+1, fmt.Sprintf(`{"toolUse":{"input":%q}}`, c.arguments[:half])) +
				bedrockDelta(i+1, fmt.Sprintf(`{"toolUse":{"input":%q}}`, c.arguments[half:])) + bedrockStop(i+1)
		}
		return amazonType, amazonStream(lines + "messageStop {\"stopReason\":\"tool_use\"}\n" + bedrockMetadata)
	}, amazonFinish, "tool_use", "end_turn"},
	{"ollama", "/api/chat", ollamaAPIs[0].ask("What is the capital of France?", false), func(calls ...askedFor) (string, string) {
		return "application/json", ollamaCalling(calls, `"done":true,"done_reason":"stop"`)
	}, member("done_reason"), "stop", "stop"},
	{"ollama streamed", "/api/chat", ollamaAPIs[0].ask("What is the capital of France?", true), func(calls ...askedFor) (string, string) {
		return ndjson, ollamaAPIs[0].line("I ", `"done":false`) + "\n" + ollamaCalling(calls, `"done":false`) + "\n" + ollamaAPIs[0].line("", `"done":true,"done_reason":"stop"`) + "\n"
	}, lastFrame("done_reason"), "stop", "stop"},
}

func functionCalls(calls []askedFor) (items []string) {
	for _, c := range calls {
		items = append(items, fmt.Sprintf(`{"id":%q,"type":"function_call","status":"completed","call_id":%q,"name":%q,"arguments":%q}`, "fc_"+c.id, c.id, c.name, c.arguments))
	}
	return items
}

func geminiCalling(finish string, calls ...askedFor) string {
	parts := `{"text":"I look."}`
	for _, c := range calls {
		parts += fmt.Sprintf(`,{"functionCall":{"name":%q,"args":%s}}`, c.name, c.arguments)
	}
	if finish != "" {
		finish = `,"finishReason":` + quoted(finish)
	}
	return `{"candidates":[{"content":{"role":"model","parts":[` + parts + `]},"index":0` + finish + `}],"usageMetadata":{"totalTokenCount":3},"modelVersion":"gemini-x"}`
}

func ollamaCalling(calls []askedFor, rest string) string {
	var all []string
	for _, c := range calls {
		all = append(all, fmt.Sprintf(`{"function":{"name":%q,"arguments":%s}}`, c.name, c.arguments))
	}
	return `{"model":"m","created_at":"2025-07-07T20:22:19.1Z","message":{"role":"assistant","content":"I look.","tool_calls":[` + strings.Join(all, ",") + `]},` + rest + `}`
}

// An answer that upstream encodes although it was not asked to is decided like any other.
func TestCallsInEncodedAnswers(t *testing.T) {
	id := regexp.MustCompile(`(KRN|TCR)-[0-9A-F]{32}`)
	for _, api := range callingAPIs {
		contentType, body := api.answer(weather, wipe)
		plain := newSite(t, `{}`, answering(contentType, body)).post(api.path, api.question)
		for _, encode := range []func(string) (string, string){gzipped, brotlied, gzippedTwice} {
			coding, packed := encode(body)
			s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
				w.Header().Set("Content-Encoding", coding)
				return answering(contentType, packed)(w, r)
			})
			w := s.post(api.path, api.question)
			if got, want := id.ReplaceAllString(w.Body.String(), ""), id.ReplaceAllString(plain.Body.String(), ""); got != want {
				t.Errorf("%s in %s: %q, want %q", api.name, coding, got, want)
			}
			if h := w.Header(); h.Get("Content-Encoding") != "" || h.Get("Content-Type") != plain.Header().Get("Content-Type") {
				t.Errorf("%s in %s: %v", api.name, coding, h)
			}
			if calls := s.calls(); len(calls) != 2 || len(parts(s.turns()[0], "unknown")) != 0 {
				t.Errorf("%s in %s: %d calls decided, %v unknown", api.name, coding, len(calls), parts(s.turns()[0], "unknown"))
			}
		}
	}
}

// A blocked call among others is taken out of the answer in every dialect, streamed and
// not; the others stay, and the finish reason fits to what is left. Each decision has its
// receipt, in the chain of the session behind that of the turn.
func TestABlockedCallIsTakenOut(t *testing.T) {
	for _, api := range callingAPIs {
		for name, calls := range map[string][]askedFor{
			"first": {wipe, weather}, "last": {weather, wipe}, "between": {weather, wipe, second}, "alone": {wipe}, "twice": {wipe, weather, {"call_d", "bash", wipeArguments}},
		} {
			t.Run(api.name+" "+name, func(t *testing.T) {
				contentType, body := api.answer(calls...)
				s := newSite(t, `{}`, answering(contentType, body))
				w := s.post(api.path, api.question)
				got := w.Body.String()
				if w.Code != http.StatusOK || strings.Contains(got, "rm -rf") || strings.Contains(got, "bash") || !strings.Contains(got, "look.") || !strings.Contains(got, "destructive_command") {
					t.Fatalf("%d %s", w.Code, got)
				}
				allowed, blocked := 0, 0
				for _, c := range calls {
					if c.name == wipe.name {
						blocked++
						continue
					}
					allowed++
					if !strings.Contains(got, c.name) {
						t.Errorf("%s is gone: %s", c.name, got)
					}
				}
				want := api.called
				if allowed == 0 {
					want = api.ended
				}
				if finish := api.finish(got); finish != want {
					t.Errorf("it ends with %q, want %q: %s", finish, want, got)
				}
				receipts := s.receipts()
				if len(receipts) != 1+len(calls) {
					t.Fatalf("%d receipts", len(receipts))
				}
				checkOneSession(t, s, receipts)
				for i, c := range calls {
					r := receipts[len(calls)-1-i]
					decision, invariant := "approved", ""
					if c.name == wipe.name {
						decision, invariant = "blocked", "destructive_command"
					}
					if r["tool"] != c.name || r["decision"] != decision || r["invariant"] != invariant || len(r["arguments_commitment"].(string)) != 64 {
						t.Errorf("call %d: %v %v %v", i, r["tool"], r["decision"], r["invariant"])
					}
				}
			})
		}
	}
}

// A provider may answer with more choices than were asked for, and end one before another
// asks for a call. The others are waited for, and one that begins behind the end of all
// others leaves neither a call nor the word that there is one.
func TestABlockedCallInAChoiceNobodyAskedFor(t *testing.T) {
	chunk := func(choice int, delta, finish string) string {
		return fmt.Sprintf(`data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":%d,"delta":%s,"finish_reason":%s}]}`+"\n\n", choice, delta, finish)
	}
	calling := func(choice int, c askedFor) string {
		return chunk(choice, `{"tool_calls":[{"index":0,`+chatCalls([]askedFor{c})[1:]+`]}`, "null")
	}
	said, ended, called, done := chunk(0, `{"role":"assistant","content":"I look."}`, "null"), chunk(0, "{}", `"stop"`), chunk(1, "{}", `"tool_calls"`), "data: [DONE]\n\n"
	text, more, stop := chunk(1, `{"role":"assistant","content":"We look "}`, "null"), chunk(1, `{"content":"together."}`, "null"), chunk(1, "{}", `"stop"`)
	for name, c := range map[string]struct {
		body          string
		calls         int
		want, without []string
	}{
		"blocked before the end":       {said + calling(1, wipe) + ended + called + done, 1, []string{"destructive_command", "[DONE]"}, []string{"rm -rf", "tool_calls"}},
		"blocked, and no end mark":     {said + calling(1, wipe) + ended + called, 1, []string{"destructive_command"}, []string{"rm -rf", "tool_calls"}},
		"blocked, and no end":          {said + calling(1, wipe) + ended, 1, []string{"destructive_command"}, []string{"rm -rf", "tool_calls"}},
		"blocked and first":            {calling(1, wipe) + called + said + ended + done, 1, []string{"I look.", "destructive_command"}, []string{"rm -rf", "tool_calls"}},
		"blocked behind the end":       {said + ended + calling(1, wipe) + called + done, 0, []string{"I look.", "[DONE]"}, []string{"rm -rf", "tool_calls"}},
		"allowed":                      {said + calling(1, weather) + ended + called + done, 1, []string{weather.name, `"finish_reason":"tool_calls"`}, nil},
		"a text that goes on":          {said + text + ended + more + stop + done, 0, []string{"together.", "[DONE]"}, nil},
		"a call begins behind the end": {said + text + ended + calling(1, wipe) + called + done, 1, []string{"destructive_command"}, []string{"rm -rf", "tool_calls"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, `{}`, answering("text/event-stream", c.body))
			got := s.post("/v1/chat/completions", chatStreamed).Body.String()
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("no %s in %s", want, got)
				}
			}
			for _, without := range c.without {
				if strings.Contains(got, without) {
					t.Errorf("there is %s in %s", without, got)
				}
			}
			receipts := s.receipts()
			if len(receipts) != 1+c.calls || len(s.calls()) != c.calls || receipts[c.calls]["outcome"] != "answered" {
				t.Errorf("%d receipts: %v", len(receipts), receipts)
			}
		})
	}
}

// So it is in every dialect with choices.
func TestABlockedCallAmongChoicesNobodyAskedFor(t *testing.T) {
	for _, api := range choiceAPIs {
		question := strings.Replace(strings.Replace(api.question, `"n":3,`, "", 1), `"candidateCount":3`, "", 1)
		contentType, body := api.answer([3][]askedFor{nil, {wipe}, {weather}})
		s := newSite(t, `{}`, answering(contentType, body))
		got := s.post(api.path, question).Body.String()
		if strings.Contains(got, "rm -rf") || !strings.Contains(api.text(got, 1), "destructive_command") || len(api.names(got, 2)) != 1 || strings.Contains(api.name, "chat") && strings.Count(got, `"tool_calls"`) < 2 {
			t.Errorf("%s: %s", api.name, got)
		}
		if r := s.receipts(); len(r) != 3 || r[2]["outcome"] != "answered" {
			t.Errorf("%s: %v", api.name, r)
		}
	}
}

// Calls that are allowed pass to the byte, and the mode observe changes nothing.
func TestAllowedCallsPassUnchanged(t *testing.T) {
	for _, api := range callingAPIs {
		for _, mode := range []string{"enforce", "observe"} {
			calls := []askedFor{weather, second}
			if mode == "observe" {
				calls = append(calls, wipe)
			}
			contentType, body := api.answer(calls...)
			s := newSite(t, `{"mode":"`+mode+`"}`, answering(contentType, body))
			got := receiptNote.ReplaceAllString(s.post(api.path, api.question).Body.String(), "")
			if got != body {
				t.Errorf("%s, %s: %s\nwant\n%s", api.name, mode, got, body)
			}
			if n := len(s.calls()); n != len(calls) {
				t.Errorf("%s, %s: %d receipts of calls", api.name, mode, n)
			}
			if mode == "observe" && (s.calls()[0]["would_refuse"] != true || s.calls()[0]["decision"] != "approved") {
				t.Errorf("%s: %v", api.name, s.calls()[0])
			}
		}
	}
}

// No call leaves without its receipt.
func TestNoCallWithoutItsReceipt(t *testing.T) {
	for _, api := range callingAPIs {
		contentType, body := api.answer(weather)
		s := newSite(t, `{}`, answering(contentType, body))
		s.breakStore()
		if got := s.post(api.path, api.question).Body.String(); strings.Contains(got, "get_weather") {
			t.Errorf("%s: %s", api.name, got)
		}
	}
}
