package commands_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// detectors is a server of an embedder and of a guard, which finds nothing but "trigger".
type detectors struct {
	url   string
	down  atomic.Bool
	asked atomic.Int64
	// failing is a part of the questions that are not answered; "" is none.
	failing string
}

func newDetectors(t *testing.T, failing string) *detectors {
	t.Helper()
	d := &detectors{failing: failing}
	server := httptest.NewServer(http.HandlerFunc(d.serve))
	t.Cleanup(server.Close)
	d.url = server.URL + "/" + rand.Text() // a breaker of its own, though ports come again
	return d
}

func (d *detectors) serve(w http.ResponseWriter, r *http.Request) {
	d.asked.Add(1)
	body, _ := io.ReadAll(r.Body)
	var question struct {
		Input  []string   // of the embedder
		Inputs [][]string // of the guard
	}
	_ = json.Unmarshal(body, &question)
	tooLong := func(piece []string) bool { return len(piece[0]) > 480 } // so that a long text needs several questions
	switch {
	case slices.ContainsFunc(question.Inputs, tooLong):
		http.Error(w, "too many tokens", http.StatusRequestEntityTooLarge)
	case d.down.Load() || d.failing != "" && strings.Contains(string(body), d.failing):
		http.Error(w, string(body), http.StatusInternalServerError)
	case len(question.Inputs) > 0:
		var verdicts []any
		for _, piece := range question.Inputs {
			p := 0.02
			if strings.Contains(piece[0], "trigger") {
				p = 0.98
			}
			verdicts = append(verdicts, []any{map[string]any{"label": "INJECTION", "score": p}, map[string]any{"label": "SAFE", "score": 1 - p}})
		}
		_ = json.NewEncoder(w).Encode(verdicts)
	default:
		var data []any
		for i := range question.Input {
			data = append(data, map[string]any{"index": i, "embedding": []float64{1, float64(i)}})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}
}

// config writes a Caddyfile. In the options of the app, ${url} is the server.
func (d *detectors) config(t *testing.T, options string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "Caddyfile")
	text := "{\n\tlex {\n" + strings.ReplaceAll(options, "${url}", d.url) + "\n\t}\n}\n:8080 {\n\tlex\n}\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

const (
	remoteEmbedder = "embedder openai {\nbase_url ${url}\n}"
	remoteGuard    = "guard classifier {\nbase_url ${url}\nmodel PIGuard\nask always\n}"
)

// degradedCases are configurations whose detectors answer or not.
var degradedCases = []struct {
	name, options string
	failing       string // a part of the questions that get no answer
	down          bool
	// failed is what receipts call the detectors that fail, and how they do, for each prompt
	// of suspects and for twoTurns; nil if none of them decides.
	failed []string
	talk   []string
}{
	{"embedder", remoteEmbedder, "", true, []string{"openai_embedder: server_error"}, []string{"openai_embedder: server_error"}},
	{"embedder that answers", remoteEmbedder, "", false, nil, nil},
	{"guard", remoteGuard, "", true, []string{"guard_classifier.prompt: server_error"}, []string{"guard_classifier.prompt: server_error"}},
	{
		"guard that must answer", strings.Replace(remoteGuard, "ask", "fail refuse\nask", 1), "", true,
		[]string{"guard_classifier.prompt: server_error"},
		[]string{"guard_classifier.prompt: server_error"},
	},
	{"guard that answers", remoteGuard, "", false, nil, nil},
	{"guard on a turn before the last", remoteGuard, "good day", false, nil, []string{"guard_classifier.prompt: server_error"}},
	// It is not asked about what the detector is sure of, and that is no failure.
	{"guard that is not asked", strings.Replace(remoteGuard, "always", "when 0.99999 1", 1), "", true, nil, nil},
	// What it says is only recorded, so nothing is decided without it.
	{"guard that is observed", strings.Replace(remoteGuard, "always", "observe", 1), "", true, nil, nil},
	// In the proxy, too, most turns are decided without it.
	{"guard with a budget", strings.Replace(remoteGuard, "ask", "budget 10%\nask", 1), "", false, nil, nil},
}

// twoTurns is a conversation of two turns.
const twoTurns = `{"id":"t","label":"benign","source":"two","lang":"en","turns":[{"role":"user","content":"good day to you"},{"role":"assistant","content":"Hello! What can I do for you?"},{"role":"user","content":"When does the next train to Lyon leave?"}]}`

// A verdict that a detector had no part in says so, and which one it was, as receipts do.
func TestAssessSaysWhichDetectorsFailed(t *testing.T) {
	for _, c := range degradedCases {
		t.Run(c.name, func(t *testing.T) {
			server := newDetectors(t, c.failing)
			server.down.Store(c.down)
			config := server.config(t, c.options)
			for line, want := range map[string][]string{suspects()[1]: c.failed, twoTurns: c.talk} {
				out, errs, err := lexCommand(line, "assess", "--config", config)
				if err != nil {
					t.Fatal(err, errs)
				}
				v := jsonLines(t, out)[0]
				var failed []string
				runs, _ := v["detectors"].([]any)
				for _, run := range runs {
					run := run.(map[string]any)
					if run["outcome"] != "failed" {
						t.Errorf("%v", run)
					}
					failed = append(failed, fmt.Sprintf("%v: %v", run["name"], run["why"]))
				}
				if v["detection_degraded"] != (want != nil) || !reflect.DeepEqual(failed, want) {
					t.Errorf("got %s\nwant %q", out, want)
				}
			}
		})
	}
}

// A guard that gave no verdict on an answer had no part in what the session became by it.
func TestAssessSaysThatAnAnswerWasNotRead(t *testing.T) {
	server := newDetectors(t, "")
	server.down.Store(true)
	config := server.config(t, "guard moderation {\nbase_url ${url}\nmodel m\nasks answer\nask always\n}")
	out, errs, err := lexCommand(twoTurns, "assess", "--config", config)
	if err != nil || !strings.Contains(out, `"detection_degraded":true,"detectors":[{"name":"guard_moderation.answer","outcome":"failed","why":"server_error"`) {
		t.Errorf("%v %s%s", err, errs, out)
	}
}

// A guard that failed on a piece of a text and found something in another is flagged, and has
// failed all the same.
func TestAssessSaysThatAPieceWasNotRead(t *testing.T) {
	config := newDetectors(t, "no answer").config(t, remoteGuard)
	text := "the trigger of the camera " + strings.Repeat("and what it is good for ", 1200) + "no answer"
	out, errs, err := lexCommand(`{"id":"a","text":"`+text+`"}`, "assess", "--config", config)
	if err != nil || !strings.Contains(out, `"detection_degraded":true,"detectors":[{"name":"guard_classifier.prompt","outcome":"flagged","why":"server_error","score":0.98`) {
		t.Errorf("%v %s%s", err, errs, out)
	}
}

// Figures are of the prompts that all detectors answered. The others are counted, the error
// names the detectors, and nothing is published.
func TestBenchLeavesDegradedPromptsOut(t *testing.T) {
	proxy := startProxy(t, "Paris.")
	t.Setenv("BENCH_SECRET", "battery staple")
	for _, c := range degradedCases {
		t.Run(c.name, func(t *testing.T) {
			server := newDetectors(t, c.failing)
			server.down.Store(c.down)
			source := strings.ReplaceAll(c.name, " ", "-")
			lines := append(suspects(), twoTurns)
			for i := range lines {
				lines[i] = strings.ReplaceAll(lines[i], `"source":"two"`, `"source":"`+source+`"`)
			}
			want := 0
			if c.failed != nil {
				want += len(lines) - 1
			}
			if c.talk != nil {
				want++
			}
			args := []string{"bench", "--data", labelled(t, lines...), "--config", server.config(t, c.options), "--publish", proxy.URL}
			out, errs, err := lexCommand("", append(args, "--json")...)
			var r report
			if err := json.Unmarshal([]byte(out), &r); err != nil {
				t.Fatal(err, errs)
			}
			if r.Records != len(lines)-want || r.LeftOut["degraded"] != want {
				t.Errorf("%d records, left out %v; want %d degraded", r.Records, r.LeftOut, want)
			}
			published := strings.Contains(fmt.Sprint(askProxy(t, http.MethodGet, proxy.URL+"/benchmarks", "")["results"]), source+"/benign")
			if want == 0 {
				if err != nil || !published {
					t.Errorf("published %v: %v", published, err)
				}
				return
			}
			if published {
				t.Error("it was published")
			}
			for _, part := range append(slices.Clone(c.talk), "--publish", fmt.Sprintf("degraded on %d prompts", want)) {
				if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "breaker_open", "server_error"), part) {
					t.Errorf("%q is not in %v", part, err)
				}
			}
			out, errs, err = lexCommand("", args[:5]...)
			if err == nil {
				t.Fatal("without --publish it succeeds")
			}
			if !strings.Contains(out, fmt.Sprintf("left out: %d degraded\n", want)) {
				t.Errorf("without --publish: %v\n%s", err, out)
			}
			for _, secret := range []string{"good day", "Lyon", "DAN", "pipe bomb"} {
				if strings.Contains(errs+err.Error(), secret) {
					t.Errorf("a prompt is shown: %v\n%s", err, errs)
				}
			}
		})
	}
}

// The guard with a budget is really asked, and not about all prompts.
func TestBenchOfAGuardWithABudget(t *testing.T) {
	server := newDetectors(t, "")
	config := server.config(t, strings.Replace(remoteGuard, "ask", "budget 10%\nask", 1))
	if r := bench(t, labelled(t, append(suspects(), twoTurns)...), "--config", config); r.Records != 8 || len(r.LeftOut) != 0 {
		t.Errorf("%+v", r)
	}
	if n := server.asked.Load(); n == 0 || n > 3 {
		t.Errorf("the guard was asked %d times", n)
	}
}

// Prompts on which either side was degraded are not compared, also where the other side are
// verdicts that assess has written.
func TestBenchComparesNoDegradedPrompts(t *testing.T) {
	server := newDetectors(t, "Hello.")
	remote, local := server.config(t, remoteGuard), configured(t, "refuse_at 0.71")
	data := labelled(t, suspects()...)
	out, errs, err := lexCommand(strings.Join(suspects(), "\n"), "assess", "--config", remote)
	if err != nil {
		t.Fatal(err, errs)
	}
	verdicts := labelled(t, strings.Split(strings.TrimSpace(out), "\n")...)
	const failed = "guard_classifier.prompt: server_error"
	for name, c := range map[string]struct{ config, other, want string }{
		"A":        {remote, local, failed},
		"B":        {local, remote, failed},
		"verdicts": {local, verdicts, verdicts + ": detection_degraded"},
	} {
		out, errs, err := lexCommand("", "bench", "--json", "--data", data, "--config", c.config, "--compare", c.other)
		var got comparison
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err, errs)
		}
		if got.Records != 6 || got.LeftOut["degraded"] != 1 || err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "degraded on 1 prompts") {
			t.Errorf("%s: %d records, left out %v: %v", name, got.Records, got.LeftOut, err)
		}
	}
}

// A threshold is that of the prompts that all detectors answered, and the error says why
// there are fewer.
func TestCalibrateLeavesDegradedPromptsOut(t *testing.T) {
	server := newDetectors(t, "number 7?")
	config := server.config(t, remoteGuard)
	args := []string{"--benign", labelled(t, calm(370)...), "--fpr", "1%", "--config", config}
	c, err := calibrated(t, args...)
	if err == nil || !strings.Contains(err.Error(), "guard_classifier.prompt: server_error") || c.LeftOut["degraded"] != 1 || c.Benign[0].N != 369 || c.RefuseAt == nil {
		t.Errorf("%v: %+v", err, c)
	}
	server.down.Store(true)
	args[1] = labelled(t, calm(470)[370:]...)
	c, err = calibrated(t, args...)
	if err == nil || !strings.Contains(err.Error(), "degraded on 100 prompts") || c.LeftOut["degraded"] != 100 || c.Benign[0].N != 0 || c.RefuseAt != nil {
		t.Errorf("%v: %+v", err, c)
	}
}
