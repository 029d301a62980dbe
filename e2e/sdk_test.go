package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

// seen is what an application that uses the SDK saw of one call.
type seen struct {
	Name         string `json:"name"`
	Requests     int    `json:"requests"`
	Exception    string `json:"exception"`
	Content      string `json:"content"`
	Refusal      string `json:"refusal"`
	FinishReason string `json:"finish_reason"`
	Receipt      string `json:"receipt"`
	Chunks       int    `json:"chunks"`
}

// node runs a script with the pinned Node and returns what it printed.
func node(t *testing.T, script string, args ...string) []seen {
	t.Helper()
	cmd := exec.Command("node_modules/.bin/node", append([]string{script}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("running %s (`make deps` installs what it needs): %v\n%s", script, err, stderr.String())
	}
	var all []seen
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		var s seen
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		all = append(all, s)
	}
	return all
}

// With only the base URL changed the SDK, today's and the one of years ago, gets
// answers and refusals, no exception and no retry, and each leaves a receipt.
func TestOpenAISDK(t *testing.T) {
	t.Parallel()
	for _, sdk := range []string{"openai", "openai-4"} {
		t.Run(sdk, func(t *testing.T) {
			s := shipped(t)
			calls := node(t, "openai.mjs", s.URL+"/v1", attack, sdk)
			if len(calls) != 10 {
				t.Fatalf("%d calls", len(calls))
			}
			for _, c := range calls {
				t.Run(c.Name, func(t *testing.T) { checkCall(t, c) })
			}
			if got := len(s.receipts(t)); got != len(calls)+1 {
				t.Errorf("%d calls left %d receipts", len(calls)+1, got)
			}
		})
	}
}

// The AI SDK's chat model prints content and refusal one after the other; either
// way nothing throws, and with one of them alone the refusal is said once.
func TestAISDK(t *testing.T) {
	t.Parallel()
	for place, times := range map[string]int{"message": 2, "refusal": 1, "content": 1} {
		t.Run(place, func(t *testing.T) {
			p := freePorts(t)
			s := start(t, writeCaddyfile(t, p, "{\n\tadmin off\n}\n:${site} {\n\tlex {\n\t\trefuse_with "+place+"\n\t}\n\tlex_demo_model\n}\n"), t.TempDir(), p)
			for _, c := range node(t, "aisdk.mjs", s.URL+"/v1", attack) {
				want, count := "Paris", 1
				if strings.HasPrefix(c.Name, "attack") {
					want, count = "declined by the governance policy", times
				}
				if c.Exception != "" || c.Requests != 1 || c.FinishReason == "" || strings.Count(c.Content, want) != count {
					t.Errorf("%+v", c)
				}
			}
		})
	}
}

func checkCall(t *testing.T, c seen) {
	t.Helper()
	if c.Exception != "" {
		t.Fatal(c.Exception)
	}
	if c.Requests != 1 {
		t.Errorf("%d requests for one call", c.Requests)
	}
	if c.FinishReason != "stop" {
		t.Errorf("finish_reason %q", c.FinishReason)
	}
	text := c.Content
	if strings.HasPrefix(c.Name, "attack") && !strings.Contains(c.Name, "legacy") {
		if structured := strings.Contains(c.Name, "structured"); (c.Content == "") != structured || !structured && c.Content != c.Refusal {
			t.Errorf("content %q beside the refusal %q", c.Content, c.Refusal)
		}
		text = c.Refusal
	}
	want := "Paris"
	if strings.HasPrefix(c.Name, "attack") {
		want = "declined"
	}
	if !strings.Contains(text, want) {
		t.Errorf("no %q in %q", want, text)
	}
	if c.Name == "question streamed" && c.Chunks < 5 {
		t.Errorf("streamed in %d chunks", c.Chunks)
	}
	if (c.Name == "question" || c.Name == "attack") && !strings.HasPrefix(c.Receipt, "KRN-") {
		t.Errorf("receipt header %q", c.Receipt)
	}
}
