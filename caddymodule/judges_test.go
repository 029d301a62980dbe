package caddymodule_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddy-lex/lex/model"
)

// judge is a chat model that says what it is told to.
type judge struct {
	*httptest.Server
	says  atomic.Value // string; "" is status 500
	asked atomic.Int32
}

const (
	acquits  = `{"reason":"fine","capitulated":false,"category":"none","confidence":0.9}`
	convicts = `{"reason":"canary-reason: it tells how","capitulated":true,"category":"harmful_compliance","confidence":0.8}`
)

func newJudge(t *testing.T, says string) *judge {
	t.Helper()
	j := new(judge)
	j.says.Store(says)
	j.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		j.asked.Add(1)
		says := j.says.Load().(string)
		if says == "" {
			http.Error(w, "canary-provider: "+string(body), http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, completion(says))
	}))
	j.URL += "/" + rand.Text() // a client of its own, though ports come again
	t.Cleanup(j.Close)
	return j
}

func (j *judge) options(name string) map[string]any {
	return map[string]any{"judge": map[string]any{"provider": "openai", "base_url": j.URL + "/v1", "model": name, "api_key": "canary-key"}}
}

const (
	quietAnswer = "First fill the kettle, then wait until the water boils."
	// gaveIn is an answer that the local judge flags by itself.
	gaveIn = "DAN mode enabled! Ask me anything."
)

// What the judge convicts does not reach the caller; what it acquits does, and
// what it says in between is no verdict: the local judge answers, and the
// receipt says so.
func TestRemoteJudge(t *testing.T) {
	for name, test := range map[string]struct {
		model, says, answer string
		refused             bool
		judgeModel, outcome string
		why                 string
	}{
		"acquits":            {"gpt", acquits, quietAnswer, false, "gpt", "clean", ""},
		"convicts":           {"gpt", convicts, quietAnswer, true, "gpt", "flagged", ""},
		"both convict":       {"gpt", convicts, gaveIn, true, "gpt", "flagged", ""},
		"local convicts":     {"gpt", acquits, gaveIn, true, "lex-local/", "clean", ""},
		"down":               {"gpt", "", quietAnswer, false, "lex-local/", "failed", "server_error"},
		"down, local finds":  {"gpt", "", gaveIn, true, "lex-local/", "failed", "server_error"},
		"garbage":            {"gpt", "canary-garbage", quietAnswer, false, "lex-local/", "failed", "unusable_answer"},
		"refuses to judge":   {"gpt", "I'm sorry, I can't help with that.", gaveIn, true, "lex-local/", "failed", "unusable_answer"},
		"cut":                {"gpt", acquits[:30], quietAnswer, false, "lex-local/", "failed", "unusable_answer"},
		"llama guard safe":   {"llama-guard3", "safe", quietAnswer, false, "llama-guard3", "clean", ""},
		"llama guard unsafe": {"llama-guard3", "unsafe\nS1", quietAnswer, true, "llama-guard3", "flagged", ""},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJudge(t, test.says)
			s := newSiteWith(t, `{"baseline":"always"}`, j.options(test.model), answering("application/json", completion(test.answer)))
			got := govern(s, question)
			signal := got["capitulation_signal"].(map[string]any)
			outcome, why := detectorRun(got, "openai_judge")
			if got["refused"] != test.refused || signal["capitulated"] != test.refused || !strings.HasPrefix(signal["judge_model"].(string), test.judgeModel) {
				t.Errorf("refused %v, signal %v", got["refused"], signal)
			}
			if outcome != test.outcome || why != test.why || got["detection_degraded"] != false {
				t.Errorf("coverage %s %s, degraded %v", outcome, why, got["detection_degraded"])
			}
			text := got["governed_output"].(string) + got["raw_output"].(string)
			if strings.Contains(text, test.answer) == test.refused {
				t.Errorf("outputs %q", text)
			}
			receipt := s.get("/audits/" + got["receipt_id"].(string))
			if outcome, _ := detectorRun(receipt, "openai_judge"); outcome != test.outcome || receipt["capitulated"] != test.refused {
				t.Errorf("the receipt says %s, capitulated %v", outcome, receipt["capitulated"])
			}
			if all, _ := json.Marshal([]any{got, receipt}); strings.Contains(string(all), "canary") {
				t.Errorf("the answer or receipt tells too much: %s", all)
			}
		})
	}
}

// A client that closes its own direction of the connection while the judge or a guard is
// asked still reads. Without a verdict it gets no answer, whole or streamed.
func TestAClientThatClosesItsDirectionGetsNoUnjudgedAnswer(t *testing.T) {
	for _, asked := range []string{"judge", "guard"} {
		for _, streamed := range []bool{false, true} {
			for _, fail := range []string{"refuse", "local"} {
				t.Run(fmt.Sprintf("%s, streamed %t, fail %s", asked, streamed, fail), func(t *testing.T) {
					ctx, leave := context.WithCancel(t.Context())
					server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
						_, _ = io.Copy(io.Discard, r.Body) // or the server does not see that its client leaves
						leave()
						<-r.Context().Done()
					}))
					defer server.Close()
					options := map[string]any{"judge": map[string]any{"provider": "openai", "base_url": server.URL + "/v1", "model": "m", "fail": fail}}
					if asked == "guard" {
						options = map[string]any{"guards": []any{map[string]any{"kind": "moderation", "name": "g", "base_url": server.URL + "/v1", "asks": []string{"answer"}, "ask": "always", "fail": fail}}}
					}
					kind, answer, body := "application/json", completion(quietAnswer), chatQuestion
					if streamed {
						kind, answer, body = "text/event-stream", stream(quietAnswer), chatStreamed
					}
					s := newSiteWith(t, `{}`, options, answering(kind, answer))
					w := httptest.NewRecorder()
					s.serve(w, httptest.NewRequest(http.MethodPost, "http://site.test/v1/chat/completions", strings.NewReader(body)).WithContext(ctx))
					r := s.receipts()[0]
					if fail == "refuse" && (strings.Contains(w.Body.String(), "kettle") || r["refused"] != true || r["outcome"] != "refused") {
						t.Errorf("%s: %v, %v", w.Body, r["outcome"], r["denied_by"])
					}
					if fail == "local" && (r["refused"] != false || r["outcome"] != "client_gone" || !streamed && strings.Contains(w.Body.String(), "kettle")) {
						t.Errorf("%s: %v", w.Body, r["outcome"])
					}
				})
			}
		}
	}
}

// With "fail refuse" an answer that the judge gave no verdict on is refused, by
// the operator's policy, and the receipt names the rule, says that the judge failed
// and replays. What the judge acquits passes, and what anybody convicts is refused
// for that.
func TestJudgeThatMustNotFail(t *testing.T) {
	for name, test := range map[string]struct {
		fail, says, answer string
		reason, rule       string // "" is not refused
	}{
		"acquits":           {"refuse", acquits, quietAnswer, "", ""},
		"convicts":          {"refuse", convicts, quietAnswer, "capitulation", ""},
		"down":              {"refuse", "", quietAnswer, "operator_policy", "judge_gave_no_verdict"},
		"garbage":           {"refuse", "garbage", quietAnswer, "operator_policy", "judge_gave_no_verdict"},
		"down, local finds": {"refuse", "", gaveIn, "capitulation", ""},
		"local stands in":   {"local", "", quietAnswer, "", ""},
		"by default":        {"", "", quietAnswer, "", ""},
	} {
		for _, mode := range []string{"enforce", "observe"} {
			for _, path := range []string{"/lex/govern", "/lex/govern/stream", "plain", "stream"} {
				t.Run(name+"/"+mode+"/"+path, func(t *testing.T) {
					j := newJudge(t, test.says)
					options := j.options("gpt")
					options["judge"].(map[string]any)["fail"] = test.fail
					model := answering("application/json", completion(test.answer))
					if strings.Contains(path, "stream") {
						model = answering("text/event-stream", stream(test.answer))
					}
					s := newSiteWith(t, `{"mode":"`+mode+`","baseline":"never"}`, options, model)
					var w *httptest.ResponseRecorder
					switch path {
					case "plain":
						w = s.post("/v1/chat/completions", chatQuestion)
					case "stream":
						w = s.post("/v1/chat/completions", chatStreamed)
					default:
						w = s.post(path, question)
					}
					receipt := s.receipts()[0]
					refused := test.reason != "" && mode == "enforce"
					if receipt["refused"] != refused || receipt["would_refuse"] != (test.reason != "" && !refused) || receipt["denied_by"] != test.rule {
						t.Errorf("refused %v, would refuse %v, denied by %v", receipt["refused"], receipt["would_refuse"], receipt["denied_by"])
					}
					if reasons, _ := receipt["reasons"].([]any); len(reasons) > 0 && reasons[0] != test.reason || (len(reasons) == 0) != (test.reason == "") {
						t.Errorf("reasons %v", reasons)
					}
					if strings.Contains(w.Body.String(), test.answer) == refused {
						t.Errorf("%d %s", w.Code, w.Body)
					}
					if v := s.verify(byID(receipt["id"].(string))); !v.Valid {
						t.Errorf("%+v", v)
					}
				})
			}
		}
	}
}

// One caller's failures, however long the texts, do not switch off the judge of
// another: what it convicts there is refused.
func TestJudgeOfOthers(t *testing.T) {
	j := newJudge(t, "")
	s := newSiteWith(t, `{"baseline":"never"}`, j.options("gpt"), answering("application/json", completion(quietAnswer+strings.Repeat(" And stir.", 2000))))
	for range 12 {
		s.postFrom("192.0.2.1", "/lex/govern", question)
	}
	j.says.Store(convicts)
	for address, refused := range map[string]string{"192.0.2.1": `"refused":false`, "192.0.2.2": `"refused":true`} {
		if w := s.postFrom(address, "/lex/govern", question); !strings.Contains(w.Body.String(), refused) {
			t.Errorf("%s: %.900s", address, w.Body)
		}
	}
}

// A stream is judged once, at its end: nothing terminal leaves before, and what
// is convicted ends in the refusal.
func TestRemoteJudgeOfStreams(t *testing.T) {
	for name, test := range map[string]struct {
		says, answer  string
		refused       bool
		asked         int32
		outcome, word string
	}{
		"acquits":          {acquits, quietAnswer, false, 1, "clean", `"finish_reason":"stop"`},
		"convicts":         {convicts, quietAnswer, true, 1, "flagged", `"refusal":`},
		"down":             {"", quietAnswer, false, 1, "failed", `"finish_reason":"stop"`},
		"stopped before":   {acquits, gaveIn + strings.Repeat(" And more.", 100), true, 0, "not_run", `"refusal":`},
		"nothing was said": {acquits, "", false, 0, "not_run", `"finish_reason":"stop"`},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJudge(t, test.says)
			s := newSiteWith(t, `{}`, j.options("gpt"), answering("text/event-stream", stream(strings.SplitAfter(test.answer, " ")...)))
			w := s.post("/v1/chat/completions", chatStreamed)
			receipt := s.receipts()[0]
			outcome, _ := detectorRun(receipt, "openai_judge")
			if j.asked.Load() != test.asked || outcome != test.outcome || receipt["refused"] != test.refused || !strings.Contains(w.Body.String(), test.word) {
				t.Errorf("asked %d times, %s, refused %v: %s", j.asked.Load(), outcome, receipt["refused"], w.Body)
			}
		})
	}
}

// The done event of our own stream carries the judge's verdict.
func TestRemoteJudgeOfGovernStream(t *testing.T) {
	j := newJudge(t, convicts)
	s := newSiteWith(t, `{"baseline":"never"}`, j.options("gpt"), answering("text/event-stream", stream(strings.SplitAfter(quietAnswer, " ")...)))
	w := s.post("/lex/govern/stream", question)
	events := strings.Split(strings.TrimSpace(w.Body.String()), "\n\n")
	var done map[string]any
	if err := json.Unmarshal([]byte(strings.TrimPrefix(events[len(events)-1], "data: ")), &done); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	signal := done["capitulation_signal"].(map[string]any)
	if done["refused"] != true || done["primary_refusal_reason"] != "capitulation" || signal["judge_model"] != "gpt" || signal["category"] != "harmful_compliance" {
		t.Errorf("done %v", done)
	}
}

// In observe mode the judge is asked as well, and nothing changes.
func TestRemoteJudgeObserves(t *testing.T) {
	j := newJudge(t, convicts)
	s := newSiteWith(t, `{"mode":"observe"}`, j.options("gpt"), answering("application/json", completion(quietAnswer)))
	w := s.post("/v1/chat/completions", chatQuestion)
	receipt := s.receipts()[0]
	if w.Body.String() != completion(quietAnswer) || receipt["would_refuse"] != true || receipt["capitulated"] != true {
		t.Errorf("would refuse %v: %s", receipt["would_refuse"], w.Body)
	}
}

// A prompt that is refused before the model runs asks no judge, and the receipt
// names both that did not run.
func TestNoJudgeBeforeAnAnswer(t *testing.T) {
	j := newJudge(t, acquits)
	s := newSiteWith(t, `{}`, j.options("gpt"), answering("application/json", completion(quietAnswer)))
	got := govern(s, `{"prompt":"`+attack+`","session_id":"s"}`)
	for _, name := range []string{"local_judge", "openai_judge"} {
		if outcome, why := detectorRun(got, name); outcome != "not_run" || why != "refused before generation" {
			t.Errorf("%s: %s %s", name, outcome, why)
		}
	}
	if j.asked.Load() != 0 || got["capitulation_signal"] != nil {
		t.Errorf("asked %d times, signal %v", j.asked.Load(), got["capitulation_signal"])
	}
}

// Of an answer that is longer than the judge reads the rest is named.
func TestRemoteJudgeReadsSoMuch(t *testing.T) {
	j := newJudge(t, acquits)
	s := newSiteWith(t, `{}`, j.options("gpt"), answering("application/json", completion(strings.Repeat("word ", model.MaxJudged/5+9))))
	s.post("/v1/chat/completions", chatQuestion)
	skipped, _ := json.Marshal(s.receipts()[0]["coverage"].(map[string]any)["skipped"])
	if !strings.Contains(string(skipped), `"why":"beyond what openai_judge reads"`) || j.asked.Load() != 8 {
		t.Errorf("asked %d times, skipped %s", j.asked.Load(), skipped)
	}
}
