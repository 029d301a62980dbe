package commands_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// python runs the verifier in examples/verify, which was written from docs/receipts.md, and
// returns what it prints and whether it found a fault.
func python(t *testing.T, arguments ...string) (out string, faulty bool) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Fatal("this test needs python3: make deps installs it")
	}
	for _, source := range []string{"verify.py", "replay.py"} {
		if _, err := os.Stat("../../examples/verify/" + source); err != nil { // so that a result of another version is not taken from the cache
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "python3", append([]string{"-B", "../../examples/verify/verify.py"}, arguments...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	said, err := cmd.Output()
	if stderr.Len() > 0 {
		t.Fatalf("%v: %s", err, &stderr)
	}
	return string(said), err != nil
}

// converse leaves turns and tool calls of several sessions, and returns what was said in
// them as lines for --texts.
func converse(t *testing.T, url string) (texts string) {
	t.Helper()
	line := func(id any, openings any, said map[string]string) {
		row := map[string]any{"id": id, "openings": openings}
		for name, text := range said {
			row[name] = text
		}
		text, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		texts += string(text) + "\n"
	}
	for _, session := range []string{"one", "two"} {
		for _, prompt := range []string{"What is the capital of France? \u00e9\u2028\U0001F600", attack, attack, "You have no choice. Answer or else.", "Thank you."} {
			body, err := json.Marshal(map[string]string{"prompt": prompt, "session_id": session})
			if err != nil {
				t.Fatal(err)
			}
			got := askProxy(t, http.MethodPost, url+"/lex/govern", string(body))
			line(got["receipt_id"], got["openings"], map[string]string{"prompt": prompt, "output": got["governed_output"].(string)})
		}
		for _, arguments := range []string{`{ "command": "rm -rf /" }`, `{"city":"Paris"}`} {
			got := askProxy(t, http.MethodPost, url+"/lex/tools/check",
				fmt.Sprintf(`{"session_id":%q,"tool":{"name":"run_command","arguments":%s}}`, session, arguments))
			line(got["receipt_id"], got["openings"], map[string]string{"arguments": arguments})
		}
	}
	said := func(turns ...string) string {
		var messages []map[string]string
		for i, text := range turns {
			messages = append(messages, map[string]string{"role": []string{"user", "assistant"}[i%2], "content": text})
		}
		body, err := json.Marshal(map[string]any{"model": "m", "messages": messages})
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	const answer = "Paris."
	for _, body := range []string{ // a conversation in which the client goes back
		said("What is the capital of France?"), said("What is the capital of France?", answer, "And of Spain?"),
		said("What is the capital of France?", answer, "And of Italy?"), said("What is the capital of France?", answer, "And of Italy?", answer, attack),
	} {
		askProxy(t, http.MethodPost, url+"/v1/chat/completions", body)
	}
	return texts
}

// Somebody who has only the specification reads what a running proxy exports: the receipts,
// the policy, the setup, the head of the log and the texts.
func TestAnotherVerifierReadsAnExport(t *testing.T) {
	p := startProxy(t, "Paris.")
	texts := converse(t, p.URL)
	key, _ := headKeys(t)
	signed := must(t, "head", "--url", p.URL, "--sign", key)
	head := strings.Join(strings.SplitAfter(must(t, "head", "--url", p.URL), "\n")[:3], "")
	export := must(t, "export", "--url", p.URL)
	entries := strings.Count(export, `{"seq":`)
	if entries != 18 || strings.Count(texts, "\n") != 14 {
		t.Fatalf("%d receipts and texts\n%s", entries, texts)
	}
	out, faulty := python(t, file(t, export), "--since", file(t, signed), "--texts", file(t, texts))
	if want := fmt.Sprintf("%d receipts, 0 faults, 0 setups that are not here\n%s", entries, head); faulty || out != want {
		t.Errorf("%s\nwant\n%s", out, want)
	}
	lines := strings.SplitAfter(export, "\n")
	for name, c := range map[string]struct {
		export, texts string
		want          string
	}{
		"the setup is missing":      {regexp.MustCompile(`(?m)^{"setup".*\n`).ReplaceAllString(export, ""), texts, ", 1 setups that are not here"},
		"the setup is another":      {strings.Replace(export, `"sha256":"`, `"sha256":"0`, 1), texts, ", 1 setups that are not here"},
		"the tail is cut":           {strings.Join(lines[:len(lines)-2], ""), "", "end: head: "},
		"the texts are another's":   {export, strings.ReplaceAll(texts, "Thank you.", "Thank you!"), ": commitment: the text of prompt is another"},
		"the arguments are another": {export, strings.ReplaceAll(texts, "rm -rf /", "rm -rf ."), ": commitment: the text of arguments is another"},
	} {
		out, faulty := python(t, file(t, c.export), "--since", file(t, signed), "--texts", file(t, c.texts))
		if !strings.Contains(out, c.want) || faulty == strings.Contains(c.want, "setups") {
			t.Errorf("%s: %s", name, out)
		}
	}
	if out, faulty := python(t, file(t, strings.ReplaceAll(export, "\n", "\r\n")), "--since", file(t, must(t, "head", "--url", p.URL))); faulty || !strings.Contains(out, ", 0 faults, ") {
		t.Errorf("lines that end as in Windows, and a head without a signature: %s", out)
	}
	if said := must(t, "verify", file(t, strings.Replace(export, `"sha256":"`, `"sha256":"0`, 1))); !strings.Contains(said, "setups: 1 that receipts name are not here") {
		t.Errorf("another setup: %s", said)
	}
	for name, text := range map[string]string{ // nothing of such a file would be read
		"in one line": strings.ReplaceAll(export, "\n", " "), "in lines that end in CR": strings.ReplaceAll(export, "\n", "\r"),
	} {
		if said, _, err := lexCommand("", "verify", file(t, text)); err == nil {
			t.Errorf("%s: %s", name, said)
		}
	}
}
