package caddymodule_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-lex/lex/caddymodule"
	"github.com/caddy-lex/lex/model"
)

// guardServer is a guard of a kind that says what it is told to: fine, attack (from a text
// with the word trigger on), garbage, empty, labels that nobody knows, a refusal, nothing in
// time, or a status.
type guardServer struct {
	*httptest.Server
	kind  string
	says  atomic.Value
	asked atomic.Int32
	mu    sync.Mutex
	saw   []string
	stop  chan struct{}
}

// guardKinds are the kinds of guards with the roles that all of them know.
var guardKinds = map[string]map[string]any{
	"tei":        {"kind": "classifier", "model": "leolee99/PIGuard", "asks": []string{"prompt"}},
	"vllm":       {"kind": "classifier", "model": "meta-llama/Llama-Prompt-Guard-2-86M", "server": "vllm", "asks": []string{"prompt"}},
	"moderation": {"kind": "moderation", "asks": []string{"prompt"}},
	"llama":      {"kind": "chat", "model": "llama-guard3", "asks": []string{"prompt"}},
	"chat":       {"kind": "chat", "model": "gpt", "asks": []string{"prompt"}},
}

func newGuardServer(t *testing.T, kind, says string) *guardServer {
	t.Helper()
	g := &guardServer{kind: kind, stop: make(chan struct{})}
	g.says.Store(says)
	g.Server = httptest.NewServer(http.HandlerFunc(g.serve))
	g.URL += "/" + rand.Text() // a client of its own, though ports come again
	t.Cleanup(func() { close(g.stop); g.Close() })
	return g
}

func (g *guardServer) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	g.asked.Add(1)
	g.mu.Lock()
	g.saw = append(g.saw, string(body))
	g.mu.Unlock()
	says := g.says.Load().(string)
	if says == "trigger" {
		says = "fine"
		if strings.Contains(string(body), "trigger") {
			says = "attack"
		}
	}
	switch says {
	case "slow":
		<-g.stop
	case "down":
		http.Error(w, "canary-provider: "+string(body), http.StatusInternalServerError)
	case "rejects":
		http.Error(w, "canary-provider: "+string(body), http.StatusBadRequest)
	case "limited":
		w.Header().Set("Retry-After", "1")
		http.Error(w, "canary-provider", http.StatusTooManyRequests)
	case "garbage":
		_, _ = io.WriteString(w, "canary-provider")
	case "empty":
		_, _ = io.WriteString(w, "{}")
	default:
		_, _ = io.WriteString(w, g.answer(says))
	}
}

// answer is a whole answer in the form of the kind.
func (g *guardServer) answer(says string) string {
	p := map[string]float64{"fine": 0.02, "attack": 0.98, "labels": 0.98, "refusal": 0.98}[says]
	switch g.kind {
	case "tei":
		label := map[string]string{"labels": "canary-label"}[says]
		if label == "" {
			label = "INJECTION"
		}
		if says == "refusal" {
			return `{"error":"canary-provider","error_type":"overloaded"}`
		}
		return fmt.Sprintf(`[[{"label":%q,"score":%v},{"label":"SAFE","score":%v}]]`, label, p, 1-p)
	case "vllm":
		label := map[string]string{"fine": "LABEL_0", "attack": "LABEL_1", "labels": "canary-label", "refusal": ""}[says]
		return fmt.Sprintf(`{"data":[{"index":0,"label":%q,"probs":[%v,%v]}]}`, label, 1-p, p)
	case "moderation":
		category := map[string]string{"labels": "canary-label", "refusal": "canary-label"}[says]
		if category == "" {
			category = "illicit"
		}
		return fmt.Sprintf(`{"results":[{"category_scores":{%q:%v}}]}`, category, p)
	case "llama":
		return completion(map[string]string{"fine": "safe", "attack": "unsafe\nS1", "labels": "unsafe\nS77", "refusal": "I'm sorry, I can't help with that."}[says])
	}
	category := map[string]string{"fine": "none", "attack": "harm_request", "labels": "canary-label"}[says]
	if g.kind == "calls" && says == "attack" {
		category = "injection"
	}
	if says == "refusal" {
		return completion("I'm sorry, I can't help with that.")
	}
	return completion(fmt.Sprintf(`{"reason":"canary-reason","category":%q,"probability":%v}`, category, p))
}

// options are those of an app that has this guard, with further options of it.
func (g *guardServer) options(more map[string]any) map[string]any {
	guard := map[string]any{"name": "g", "base_url": g.URL, "api_key": "canary-key", "ask": "always"}
	for _, options := range []map[string]any{guardKinds[g.kind], more} {
		for name, value := range options {
			guard[name] = value
		}
	}
	return map[string]any{"guards": []any{guard}}
}

func guardRun(receipt map[string]any, role string) (outcome, why string, score float64) {
	for _, d := range receipt["coverage"].(map[string]any)["detectors"].([]any) {
		if run := d.(map[string]any); run["name"] == "guard_g."+role {
			score, _ = run["score"].(float64)
			return run["outcome"].(string), run["why"].(string), score
		}
	}
	return "", "", 0
}

// Whatever the server of a guard does, the receipt says what became of it: what it finds is
// refused, and what is no verdict is none. Nothing of what it says and nothing that it is
// asked with stands anywhere.
func TestGuards(t *testing.T) {
	for kind := range guardKinds {
		for says, want := range map[string]struct {
			outcome, why      string
			refused, degraded bool
		}{
			"fine":    {"clean", "", false, false},
			"attack":  {"flagged", "", true, false},
			"garbage": {"failed", "unusable_answer", false, true},
			"empty":   {"failed", "unusable_answer", false, true},
			"labels":  {"failed", "unusable_answer", false, true},
			"refusal": {"failed", "unusable_answer", false, true},
			"down":    {"failed", "server_error", false, true},
			"limited": {"failed", "rate_limited", false, true},
			"slow":    {"failed", "timeout", false, true},
		} {
			for _, fail := range []string{"local", "refuse"} {
				t.Run(kind+"/"+says+"/"+fail, func(t *testing.T) {
					g := newGuardServer(t, kind, says)
					options := map[string]any{"fail": fail}
					if says == "slow" {
						options["timeout"] = int64(20 * time.Millisecond)
					}
					s := newSiteWith(t, `{"baseline":"never"}`, g.options(options), answering("application/json", completion(quietAnswer)))
					got := govern(s, question)
					receipt := s.get("/audits/" + got["receipt_id"].(string))
					outcome, why, score := guardRun(receipt, "prompt")
					refused := want.refused || want.degraded && fail == "refuse"
					if outcome != want.outcome || why != want.why || (score > 0) != (outcome != "failed") || got["refused"] != refused || got["detection_degraded"] != want.degraded {
						t.Errorf("%s %s %v, refused %v, degraded %v", outcome, why, score, got["refused"], got["detection_degraded"])
					}
					if rule := receipt["denied_by"]; (rule == "guard_gave_no_verdict") != (refused && !want.refused) {
						t.Errorf("denied by %q", rule)
					}
					if all, _ := json.Marshal([]any{got, receipt}); strings.Contains(string(all), "canary") {
						t.Errorf("the answer or receipt tells too much: %s", all)
					}
					if v := s.verify(byID(receipt["id"].(string))); !v.Valid {
						t.Errorf("%+v", v)
					}
				})
			}
		}
	}
}

// What a guard finds in an answer does not complete, in every mode and on every path, whole
// and streamed, in one choice or in the second one.
func TestGuardsOfAnswersOnEveryPath(t *testing.T) {
	two := func(second string) (whole, streamed string) {
		whole = `{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"` + quietAnswer + `"},"finish_reason":"stop"},{"index":1,"message":{"role":"assistant","content":"` + second + `"},"finish_reason":"stop"}]}`
		for i, text := range []string{quietAnswer, second} {
			streamed += fmt.Sprintf("data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":%d,\"delta\":{\"content\":%q},\"finish_reason\":null}]}\n\n", i, text)
			streamed += fmt.Sprintf("data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":%d,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n", i)
		}
		return whole, streamed + "data: [DONE]\n\n"
	}
	const found = "First the trigger, then the rest of it."
	whole, streamed := two(found)
	for _, kind := range []string{"moderation", "llama", "chat"} {
		for _, mode := range []string{"enforce", "observe"} {
			for path, upstream := range map[string]http.HandlerFunc{
				"/lex/govern":        answeringHTTP("application/json", completion(found)).ServeHTTP,
				"/lex/govern/stream": answeringHTTP("text/event-stream", stream(strings.SplitAfter(found, " ")...)).ServeHTTP,
				"plain":              answeringHTTP("application/json", completion(found)).ServeHTTP,
				"stream":             answeringHTTP("text/event-stream", stream(strings.SplitAfter(found, " ")...)).ServeHTTP,
				"plain, two":         answeringHTTP("application/json", whole).ServeHTTP,
				"stream, two":        answeringHTTP("text/event-stream", streamed).ServeHTTP,
			} {
				for _, says := range []string{"fine", "trigger", "down"} {
					t.Run(strings.Join([]string{kind, mode, path, says}, "/"), func(t *testing.T) {
						g := newGuardServer(t, kind, says)
						s := newSiteWith(t, `{"mode":"`+mode+`","baseline":"never"}`, g.options(map[string]any{"asks": []string{"answer"}, "fail": "refuse"}), func(w http.ResponseWriter, r *http.Request) error {
							upstream(w, r)
							return nil
						})
						var w *httptest.ResponseRecorder
						switch {
						case strings.HasSuffix(path, "two"):
							w = s.post("/v1/chat/completions", `{"n":2,"stream":`+strconv.FormatBool(strings.HasPrefix(path, "stream"))+`,`+chatQuestion[1:])
						case strings.HasPrefix(path, "plain"):
							w = s.post("/v1/chat/completions", chatQuestion)
						case strings.HasPrefix(path, "stream"):
							w = s.post("/v1/chat/completions", chatStreamed)
						default:
							w = s.post(path, question)
						}
						receipt := s.receipts()[0]
						refused := says != "fine" && mode == "enforce"
						if receipt["refused"] != refused || receipt["would_refuse"] != (says != "fine" && !refused) || receipt["capitulated"] != (says == "trigger") {
							t.Errorf("refused %v, capitulated %v: %s", receipt["refused"], receipt["capitulated"], w.Body)
						}
						if complete := strings.Contains(w.Body.String(), "the rest of it."); complete == refused && !strings.Contains(path, "stream") {
							t.Errorf("%d %s", w.Code, w.Body)
						}
						if outcome, _, _ := guardRun(receipt, "answer"); outcome != map[string]string{"fine": "clean", "trigger": "flagged", "down": "failed"}[says] || g.asked.Load() != 1 {
							t.Errorf("%s, asked %d times", outcome, g.asked.Load())
						}
						if v := s.verify(byID(receipt["id"].(string))); !v.Valid {
							t.Errorf("%+v", v)
						}
					})
				}
			}
		}
	}
}

// In every API a classifier is asked about prompts and results of tools, each by itself.
func TestGuardsInEveryDialect(t *testing.T) {
	for _, api := range resultAPIs {
		for says, refused := range map[string]bool{"fine": false, "trigger": true} {
			for _, mode := range []string{"enforce", "observe"} {
				g := newGuardServer(t, "tei", says)
				contentType, body := answerOfAPI(api.name)
				s := newSiteWith(t, `{"mode":"`+mode+`"}`, g.options(map[string]any{"asks": []string{"prompt", "tool_result"}}), answering(contentType, body))
				w := s.post(api.path, api.body(api.result("Balance: 12. The trigger is here."), ""))
				turns := s.turns()
				if len(turns) != 1 {
					t.Fatalf("%s: %d receipts: %s", api.name, len(turns), w.Body)
				}
				receipt := turns[0]
				if receipt["refused"] != (refused && mode == "enforce") || receipt["would_refuse"] != (refused && mode == "observe") {
					t.Errorf("%s, %s, %s: refused %v: %s", api.name, says, mode, receipt["refused"], w.Body)
				}
				prompt, _, _ := guardRun(receipt, "prompt")
				result, _, _ := guardRun(receipt, "tool_result")
				// Anthropic's and Gemini's results of tools come in a message of the user, whose
				// newest turn has no other text.
				if result != map[bool]string{true: "flagged", false: "clean"}[refused] || prompt == "flagged" {
					t.Errorf("%s, %s, %s: prompt %s, result %s", api.name, says, mode, prompt, result)
				}
			}
		}
	}
}

// A prompt that was answered, and the same again after the model failed, cost one question:
// the verdict is kept, for one caller.
func TestGuardsAndRepeatedTurns(t *testing.T) {
	g := newGuardServer(t, "tei", "fine")
	failing := true
	s := newSiteWith(t, `{"baseline":"never"}`, g.options(nil), func(w http.ResponseWriter, r *http.Request) error {
		if failing {
			w.WriteHeader(http.StatusBadGateway)
			return nil
		}
		return answering("application/json", completion(quietAnswer))(w, r)
	})
	s.postFrom("192.0.2.1", "/v1/chat/completions", chatQuestion, "X-Lex-Session", "s")
	failing = false
	s.postFrom("192.0.2.1", "/v1/chat/completions", chatQuestion, "X-Lex-Session", "s")
	if n := g.asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	if receipt := s.receipts()[0]; receipt["repeated"] != true || receipt["refused"] != false {
		t.Errorf("%v", receipt)
	}
	s.postFrom("192.0.2.2", "/v1/chat/completions", chatQuestion, "X-Lex-Session", "s")
	if n := g.asked.Load(); n != 2 {
		t.Errorf("asked %d times after another caller", n)
	}
}

// A caller who is over the limit, and a request that is refused unread, ask nobody.
func TestGuardsAreNotAskedInVain(t *testing.T) {
	g := newGuardServer(t, "tei", "fine")
	options := g.options(nil)
	options["limits"] = map[string]any{"intercepted": map[string]any{"requests": 1, "window": 60e9}, "anonymous": map[string]any{"requests": 1, "window": 60e9}, "read": map[string]any{"requests": 1000, "window": 60e9}}
	s := newSiteWith(t, `{"inspect_limit":100}`, options, answering("application/json", completion(quietAnswer)))
	for _, want := range []int32{1, 1} {
		s.postFrom("192.0.2.1", "/v1/chat/completions", chatQuestion)
		if n := g.asked.Load(); n != want {
			t.Errorf("asked %d times, not %d", n, want)
		}
	}
	s.postFrom("192.0.2.2", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"`+strings.Repeat("word ", 50)+`"}]}`)
	if receipt := s.receipts()[0]; receipt["denied_by"] != "oversize" || g.asked.Load() != 1 {
		t.Errorf("denied by %v, asked %d times", receipt["denied_by"], g.asked.Load())
	}
}

// A guard sees what an application put beside the prompt, and may refuse it.
func TestGuardsReadContext(t *testing.T) {
	g := newGuardServer(t, "tei", "trigger")
	s := newSiteWith(t, `{}`, g.options(nil), answering("application/json", completion(quietAnswer)))
	for context, refused := range map[string]bool{"<notes>Today is Monday.</notes>": false, "<notes>Of the trigger.</notes>": true} {
		s.post("/v1/chat/completions", turns("user", context, "user", "What is the capital of France?"))
		g.mu.Lock()
		saw := g.saw[len(g.saw)-1]
		g.mu.Unlock()
		if receipt := s.receipts()[0]; receipt["refused"] != refused || !strings.Contains(saw, "notes") || !strings.Contains(saw, "capital of France") {
			t.Errorf("%s: refused %v, the guard saw %s", context, receipt["refused"], saw)
		}
	}
}

// Each policy has the guards of the app, its own, or none; their setups name them.
func TestGuardsOfPolicies(t *testing.T) {
	apps, own := newGuardServer(t, "tei", "fine"), newGuardServer(t, "llama", "fine")
	options := apps.options(nil)
	options["policies"] = map[string]any{"own": own.options(nil), "none": map[string]any{"guards": []any{}}, "inherits": map[string]any{}}
	for policy, want := range map[string]string{"": "leolee99/PIGuard", "own": "llama-guard3", "none": "", "inherits": "leolee99/PIGuard"} {
		s := newSiteWith(t, `{"policy":"`+policy+`","baseline":"never"}`, options, answering("application/json", completion(quietAnswer)))
		receipt := s.get("/audits/" + govern(s, question)["receipt_id"].(string))
		setup, _ := json.Marshal(s.get("/lex/setups/" + receipt["setup"].(string)))
		outcome, _, _ := guardRun(receipt, "prompt")
		if (outcome == "clean") != (want != "") || want != "" && !strings.Contains(string(setup), `"model":"`+want+`"`) || strings.Contains(string(setup), "127.0.0.1") {
			t.Errorf("%q: %s, %s", policy, outcome, setup)
		}
	}
}

// A reload that keeps a guard keeps its client, with the verdicts that it knows.
func TestReloadKeepsTheGuardsCache(t *testing.T) {
	g := newGuardServer(t, "tei", "fine")
	t.Cleanup(func() { _ = caddy.Stop() })
	db := filepath.Join(t.TempDir(), "lex.db")
	for i, reload := range []struct {
		tau   float64
		model string
		asked int32
	}{{0.08, "PIGuard", 1}, {0.09, "PIGuard", 1}, {0.08, "PIGuard", 1}, {0.08, "deberta", 2}} {
		address := freeAddress(t)
		run(t, address, os.DevNull, map[string]any{
			"store":  map[string]any{"engine": "bolt", "path": db},
			"policy": map[string]any{"tau": reload.tau},
			"guards": g.options(map[string]any{"model": reload.model})["guards"],
		})
		resp, err := http.Post("http://"+address+"/lex/govern", "application/json", strings.NewReader(question))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !strings.Contains(string(body), `"name":"guard_g.prompt","outcome":"clean"`) || g.asked.Load() != reload.asked {
			t.Errorf("load %d: asked %d times, want %d: %s", i+1, g.asked.Load(), reload.asked, body)
		}
	}
}

// Guards are counted like all remote models, under their names.
func TestMetricsOfGuards(t *testing.T) {
	g := newGuardServer(t, "llama", "fine")
	name := "m" + rand.Text()[:8]
	s := newSiteWith(t, `{"baseline":"never"}`, g.options(map[string]any{"name": name}), answering("application/json", completion(quietAnswer)))
	govern(s, question)
	govern(s, question)
	g.says.Store("down")
	for i := range 6 {
		govern(s, fmt.Sprintf(`{"prompt":"question %d","session_id":"s"}`, i))
	}
	for metricName, want := range map[string]float64{
		"lex_model_requests_total": 7, "lex_model_cache_hits_total": 1, "lex_model_failures_total": 6, "lex_model_breaker_open": 1,
	} {
		if got := metric(t, metricName, "detector", "guard_"+name); got != want {
			t.Errorf("%s is %v, want %v", metricName, got, want)
		}
	}
}

// What is wrong with a guard is said when the configuration is loaded, and nobody is asked.
func TestGuardsAreValidated(t *testing.T) {
	t.Setenv("LEX_TEST_EMPTY", "")
	g := newGuardServer(t, "tei", "fine")
	for want, more := range map[string]map[string]any{
		"":                           {},
		"model is required":          {"model": ""},
		"base_url is required":       {"base_url": ""},
		"what it names is empty":     {"api_key": "{env.LEX_TEST_EMPTY}"},
		"server must be tei or vllm": {"server": "torch"},
		"knows nothing of such texts; give prompt, tool_result":                                                                         {"asks": []string{"answer"}},
		"knows nothing of tool calls with the model leolee99/PIGuard; ask a general chat model, or gpt-oss-safeguard, with: guard chat": {"asks": []string{"prompt", "tool_call"}},
		"each at most once":             {"asks": []string{"prompt", "prompt"}},
		"give when, always or observe":  {"ask": "sometimes"},
		"those go with when":            {"low": 0.1},
		"the lower one first":           {"ask": "when", "low": 0.9, "high": 0.1},
		"give local or refuse":          {"fail": "open"},
		"refuses nothing":               {"ask": "observe", "fail": "refuse"},
		"over 0% and up to 100%":        {"budget": 0},
		"is not a guard's name":         {"name": "a.b"},
		`unknown field "colour"`:        {"colour": "red"},
		"unknown module: lex.guards.no": {"kind": "no"},
	} {
		_, err := provision(t, g.options(more))
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary")) {
			t.Errorf("%q: %v", want, err)
		}
	}
	both := g.options(nil)
	both["guards"] = append(both["guards"].([]any), both["guards"].([]any)...)
	if _, err := provision(t, both); err == nil || !strings.Contains(err.Error(), "two guards are named g") {
		t.Errorf("two of the same name: %v", err)
	}
	for model, known := range map[string]bool{"llama-guard3": false, "qwen3guard": false, "granite3-guardian": false, "shieldgemma": false, "gpt-oss-safeguard": true, "qwen3:32b": true} {
		_, err := provision(t, newGuardServer(t, "chat", "fine").options(map[string]any{"model": model, "asks": []string{"tool_call"}}))
		if (err == nil) != known || err != nil && !strings.Contains(err.Error(), "knows nothing of tool calls with the model "+model) {
			t.Errorf("%s asks tool_call: %v", model, err)
		}
	}
	llama := newGuardServer(t, "llama", "fine")
	if _, err := provision(t, llama.options(map[string]any{"asks": []string{"tool_result"}})); err == nil || !strings.Contains(err.Error(), "knows nothing of such texts") {
		t.Errorf("results for Llama Guard: %v", err)
	}
	if g.asked.Load() != 0 {
		t.Error("a guard was asked")
	}
}

// A second verifier accepts what guards leave in receipts.
func TestGuardsSecondVerifier(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	g := newGuardServer(t, "tei", "trigger")
	s := newSiteWith(t, `{"baseline":"never"}`, g.options(map[string]any{"fail": "refuse"}), answering("application/json", completion(quietAnswer)))
	govern(s, question)
	govern(s, `{"prompt":"The trigger.","session_id":"s"}`)
	g.says.Store("down")
	govern(s, `{"prompt":"What is the capital of Spain?","session_id":"s"}`)
	var export strings.Builder
	receipts := s.receipts()
	for i := range receipts {
		receipt := receipts[len(receipts)-1-i]
		if i == 0 {
			policy := s.send(http.MethodGet, "/lex/policies/"+receipt["policy"].(string), "")
			setup := s.send(http.MethodGet, "/lex/setups/"+receipt["setup"].(string), "")
			fmt.Fprintf(&export, "{\"policy\":%s}\n{\"setup\":%s}\n", policy.Body, setup.Body)
		}
		record := s.send(http.MethodGet, "/audits/"+receipt["id"].(string), "")
		fmt.Fprintf(&export, "%s\n", record.Body)
	}
	file := filepath.Join(t.TempDir(), "receipts.jsonl")
	if err := os.WriteFile(file, []byte(export.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python, "../examples/verify/verify.py", file).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "3 receipts, 0 faults") {
		t.Errorf("%v: %s\n%s", err, out, export.String())
	}
}

// The table of docs/configuration.md is the one that decides; -update writes it.
func TestGuardTable(t *testing.T) {
	const file = "../docs/configuration.md"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := replaceGenerated(t, string(page), "guards", guardTable())
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(page) {
		t.Errorf("%s is not what the code does: run go test ./caddymodule -run TestGuardTable -update, and read the difference", file)
	}
}

// guardTable has a row for the categories of a family that count as the same.
func guardTable() string {
	name := func(classes []model.Class) string {
		if len(classes) == 0 {
			return "–"
		}
		var names []string
		for _, class := range classes {
			names = append(names, "`"+string(class)+"`")
		}
		return strings.Join(names, ", ")
	}
	var rows [][2]string // what stands behind the categories, and the categories
	for _, c := range model.GuardCategories {
		as := fmt.Sprintf("%s | %s | %s | %s | %s", c.Family, name(c.Prompts), name(c.Answers), name(c.ToolTexts), name(c.Calls))
		at := slices.IndexFunc(rows, func(row [2]string) bool { return row[0] == as })
		if at < 0 {
			at, rows = len(rows), append(rows, [2]string{as, ""})
		}
		rows[at][1] += ", `" + c.Label + "`"
	}
	var b strings.Builder
	b.WriteString("| guard | finds | in prompts | in answers | in what tools say | in tool calls |\n|---|---|---|---|---|---|\n")
	for _, row := range rows {
		family, rest, _ := strings.Cut(row[0], " | ")
		fmt.Fprintf(&b, "| %s | %s | %s |\n", family, strings.TrimPrefix(row[1], ", "), rest)
	}
	return b.String()
}

// A calibrated guard counts with its corrected probability: that decides, and stands in the
// receipt, whose setup names the correction.
func TestGuardsCalibrated(t *testing.T) {
	for name, test := range map[string]struct {
		says             string
		slope, intercept float64
		refused          bool
	}{
		"as it is":        {"attack", 1, 0, true},
		"too sure":        {"attack", 0.2, -1.5, false}, // 0.98 becomes 0.33
		"too sure, fine":  {"fine", 0.2, 0, false},
		"not sure enough": {"fine", 0.5, 6, true}, // 0.02 becomes 0.98
	} {
		g := newGuardServer(t, "tei", test.says)
		calibration := map[string]any{"slope": test.slope, "intercept": test.intercept}
		s := newSiteWith(t, `{"baseline":"never"}`, g.options(map[string]any{"calibration": calibration}), answering("application/json", completion(quietAnswer)))
		got := govern(s, question)
		receipt := s.get("/audits/" + got["receipt_id"].(string))
		p := map[string]float64{"fine": 0.02, "attack": 0.98}[test.says]
		want := 1 / (1 + math.Exp(-test.slope*math.Log(p/(1-p))-test.intercept))
		if _, _, score := guardRun(receipt, "prompt"); got["refused"] != test.refused || math.Abs(score-want) > 2e-6 {
			t.Errorf("%s: refused %v, score %v, want %v", name, got["refused"], score, want)
		}
		setup := s.get("/lex/setups/" + receipt["setup"].(string))
		if described := setup["guards"].([]any)[0].(map[string]any)["calibration"]; !reflect.DeepEqual(described, calibration) {
			t.Errorf("%s: the setup has %v", name, described)
		}
		if v := s.verify(byID(receipt["id"].(string))); !v.Valid {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// A calibration that turns the order of probabilities, or that is no number, is an error.
func TestGuardCalibrationsThatCannotBe(t *testing.T) {
	for _, calibration := range []string{`{"slope":0,"intercept":0}`, `{"slope":-1,"intercept":0}`, `{"intercept":1}`, `{"slope":101,"intercept":0}`, `{"slope":1,"intercept":-101}`} {
		g := new(caddymodule.ClassifierGuard)
		if err := json.Unmarshal([]byte(`{"base_url":"http://127.0.0.1:1","model":"m","calibration":`+calibration+`}`), g); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
		if err := g.Provision(ctx); err == nil || !strings.Contains(err.Error(), "guard classifier: calibration") {
			t.Errorf("%s: %v", calibration, err)
		}
		cancel()
	}
}
