package commands_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// textsFile writes lines for the flag --texts.
func textsFile(t *testing.T, lines ...map[string]any) string {
	t.Helper()
	var text []byte
	for _, line := range lines {
		b, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, b...), '\n')
	}
	path := filepath.Join(t.TempDir(), "texts.jsonl")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Whoever was given the openings of a turn checks its texts without any right, against the
// proxy and against an export, and scores the prompt again.
func TestVerifyTextsByTheirOpenings(t *testing.T) {
	s := startProxy(t, "Paris.")
	const prompt = "What is the capital of France?"
	govern := func(prompt string) map[string]any {
		return askProxy(t, http.MethodPost, s.URL+"/lex/govern", fmt.Sprintf(`{"prompt":%q,"session_id":"s"}`, prompt))
	}
	first, refused := govern(prompt), govern(attack)
	line := func(answer map[string]any, texts map[string]any) map[string]any {
		texts["id"], texts["openings"] = answer["receipt_id"], answer["openings"]
		return texts
	}
	right := textsFile(t, line(first, map[string]any{"prompt": prompt, "output": "Paris."}), line(refused, map[string]any{"prompt": attack, "output": refused["governed_output"]}))
	lines, _, err := lexCommand("", "export", "--url", s.URL)
	if err != nil {
		t.Fatal(err)
	}
	export := filepath.Join(t.TempDir(), "receipts.jsonl")
	if err := os.WriteFile(export, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, err := lexCommand("", "verify", "--url", s.URL, "--texts", right)
	if err != nil || !strings.Contains(out, "\nscores: 2 prompts scored again\n") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, _, err := lexCommand("", "verify", export, "--texts", right); err != nil || !strings.Contains(out, "\nscores: ") {
		t.Errorf("an export: %v\n%s", err, out)
	}
	for name, c := range map[string]struct {
		texts map[string]any
		want  string
	}{
		"another prompt":      {line(first, map[string]any{"prompt": "What is the capital of Spain?"}), "prompt_commitment: the text is another"},
		"another output":      {line(first, map[string]any{"output": "Rome."}), "output_commitment: the text is another"},
		"another's opening":   {map[string]any{"id": first["receipt_id"], "prompt": prompt, "openings": refused["openings"]}, "prompt_commitment: the text is another"},
		"the output's as its": {map[string]any{"id": first["receipt_id"], "prompt": prompt, "openings": map[string]any{"prompt": first["openings"].(map[string]any)["output"]}}, "prompt_commitment: the text is another"},
		"no opening":          {map[string]any{"id": first["receipt_id"], "prompt": prompt, "openings": map[string]any{"prompt": "x"}}, "64 lower-case"},
		"arguments":           {map[string]any{"id": first["receipt_id"], "arguments": "{}", "openings": map[string]any{"arguments": strings.Repeat("0", 64)}}, "no such text"},
		"no receipt":          {map[string]any{"id": "KRN-" + strings.Repeat("0", 32), "prompt": prompt, "openings": first["openings"]}, "no such receipt"},
	} {
		for _, source := range [][]string{{"--url", s.URL}, {export}} {
			out, _, err := lexCommand("", append([]string{"verify", "--texts", textsFile(t, c.texts)}, source...)...)
			if err == nil || !strings.Contains(out, c.want) || strings.Contains(out, "prompts scored again") && !strings.Contains(out, "scores: 0 prompts") {
				t.Errorf("%s in %s: %v\n%s", name, source, err, out)
			}
		}
	}
	if _, _, err := lexCommand("", "verify", export, "--texts", textsFile(t, map[string]any{"id": first["receipt_id"], "prompt": prompt})); err == nil || !strings.Contains(err.Error(), "give the openings") {
		t.Errorf("a file without openings: %v", err)
	}
}

// A prompt that was not all that was scored is not compared, and the reason is given.
func TestVerifySaysWhatItDoesNotScoreAgain(t *testing.T) {
	s := startProxy(t, "Paris.")
	answer := askProxy(t, http.MethodPost, s.URL+"/lex/govern", `{"session_id":"s","messages":[{"role":"user","content":"Hello."},{"role":"assistant","content":"Hello!"},{"role":"user","content":"And of Italy?"}]}`)
	out, _, err := lexCommand("", "verify", "--url", s.URL, "--texts", textsFile(t, map[string]any{"id": answer["receipt_id"], "prompt": "And of Italy?", "openings": answer["openings"]}))
	if err != nil || !strings.Contains(out, "scores: 0 prompts scored again, 1 not compared (more than the prompt was scored)") {
		t.Errorf("%v\n%s", err, out)
	}
}
