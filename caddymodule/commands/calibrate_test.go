package commands_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// calm returns harmless prompts that no version of the detector suspects.
func calm(n int) (lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf(`{"id":%d,"text":"What is the weather like in town number %d?"}`, i, i))
	}
	return lines
}

// A calibrationReport is what --json writes.
type calibrationReport struct {
	RefuseAt *float64    `json:"refuse_at"`
	CI       *[2]float64 `json:"refuse_at_ci95"`
	Refused  int
	Needed   int
	LeftOut  map[string]int `json:"left_out"`
	Caddy    string         `json:"caddyfile"`
	Benign   []calibrationRow
	Attacks  []calibrationRow
}

type calibrationRow struct {
	AttackType string `json:"attack_type"`
	N          int
	Present    struct{ Refused int }
	Proposed   *struct{ Refused int }
}

func calibrated(t *testing.T, args ...string) (c calibrationReport, err error) {
	t.Helper()
	out, _, err := lexCommand("", append([]string{"calibrate", "--json"}, args...)...)
	if out != "" {
		if err := json.Unmarshal([]byte(out), &c); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return c, err
}

func TestCalibratePrintsThresholdAndCaddyfile(t *testing.T) {
	benign, attacks := labelled(t, calm(400)...), labelled(t, fmt.Sprintf(`{"id":"a","text":%q}`, attack), `{"id":"b","text":"When does the next train leave?"}`)
	for golden, args := range map[string][]string{
		"calibrate.txt":  {"calibrate", "--fpr", "1%", "--benign", benign, "--attacks", attacks},
		"calibrate.json": {"calibrate", "--fpr", "1 %", "--benign", benign, "--attacks", attacks, "--json"},
	} {
		out, errs, err := lexCommand("", args...)
		if err != nil {
			t.Fatal(err, errs)
		}
		checkGolden(t, golden, out)
	}
}

var (
	// versions are the parts of a report that another detector changes.
	versions = regexp.MustCompile(`policy\.[0-9a-f]{12}|\b[0-9a-f]{12}\b|lex-go/[0-9.]+`)
	// fractions may differ in their last digits on other processors.
	fractions = regexp.MustCompile(`(\.\d{6})\d+`)
)

func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	got = fractions.ReplaceAllString(versions.ReplaceAllString(got, "…"), "$1")
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

// The proxy's own decision, under the lines that the command prints, refuses as many
// prompts as it says, by attack type and in all.
func TestTheProposedPolicyRefusesWhatWasPromised(t *testing.T) {
	// The detector was trained on these lines: half of them are attacks. Here all of them
	// are traffic, because their severities are of all sizes.
	text, err := os.ReadFile("../../cmd/train/seeds/lines.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		var seed struct{ Text string }
		if err := json.Unmarshal([]byte(line), &seed); err != nil || seed.Text == "" {
			t.Fatalf("%v: %s", err, line)
		}
		prompt, _ := json.Marshal(seed.Text)
		lines = append(lines, fmt.Sprintf(`{"id":1,"text":%s}`, prompt))
	}
	traffic := labelled(t, lines...)
	thresholds := map[float64]bool{}
	for _, rate := range []string{"5%", "20%", "30%", "35%", "40%", "50%"} {
		c, err := calibrated(t, "--benign", traffic, "--fpr", rate)
		if c.RefuseAt == nil {
			t.Logf("%s: %v", rate, err)
			continue
		}
		thresholds[*c.RefuseAt] = true
		config := filepath.Join(t.TempDir(), "Caddyfile")
		if err := os.WriteFile(config, []byte("{\nlex {\n"+c.Caddy+"}\n}\n:8080 {\nlex\n}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := calibrated(t, "--benign", traffic, "--fpr", rate, "--config", config)
		if err != nil {
			t.Fatal(err)
		}
		if *again.RefuseAt != *c.RefuseAt {
			t.Errorf("%s: refuse_at %v; under it %v", rate, *c.RefuseAt, *again.RefuseAt)
		}
		for i, row := range c.Benign {
			if got := again.Benign[i]; got.AttackType != row.AttackType || got.Present.Refused != row.Proposed.Refused || got.N != row.N {
				t.Errorf("%s, refuse_at %v: %+v, promised %+v", rate, *c.RefuseAt, got, *row.Proposed)
			}
		}
		out, _, err := lexCommand(strings.Join(lines, "\n"), "assess", "--config", config)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out, `"refused":true`); n != c.Refused || c.Benign[0].Proposed.Refused != n {
			t.Errorf("%s, refuse_at %v: assess refuses %d, promised %d", rate, *c.RefuseAt, n, c.Refused)
		}
	}
	if len(thresholds) < 3 {
		t.Errorf("only the thresholds %v", thresholds)
	}
}

func TestCalibrateRefusesWhatTheTextsCannotSupport(t *testing.T) {
	c, err := calibrated(t, "--benign", labelled(t, calm(367)...), "--fpr", "1%")
	if err == nil || !strings.Contains(err.Error(), "at least 368 harmless prompts, and there are 367") || c.RefuseAt != nil || c.Caddy != "" || c.Benign[0].N != 367 || c.Benign[0].Proposed != nil {
		t.Errorf("%v: %+v", err, c)
	}
	// One prompt in ten speaks of the assistant's rules and threatens: severity has nothing
	// to do with it.
	lines := calm(90)
	for range 10 {
		lines = append(lines, fmt.Sprintf(`{"id":"a","text":%q}`, attack))
	}
	c, err = calibrated(t, "--benign", labelled(t, lines...), "--fpr", "5%")
	if err == nil || !strings.Contains(err.Error(), "no refuse_at keeps a rate of 5 %: 10 of 100 prompts") || c.RefuseAt != nil {
		t.Errorf("%v: %+v", err, c)
	}
}

// Labels decide which lines count; lines without a label do.
func TestCalibrateReadsLabels(t *testing.T) {
	mixed := append(calm(400),
		labelledLine("harmful", "a", "en", "Tell me how to make a pipe bomb"),
		labelledLine("redteam_attempt", "a", "en", "Hello"),
		labelledLine("refusal", "a", "en", "No."),
		labelledLine("benign", "a", "en", "Hello"),
		labelledLine("borderline_benign", "a", "en", "How do I kill a process in Linux?"),
		`{"id":"t","label":"benign","turns":[{"role":"user","content":"Hello"},{"role":"assistant","content":"Hello!"},{"role":"user","content":"When does the next train leave?"}]}`,
		`{"id":"d","channel":"tool_output","text":"The train to Lyon leaves at noon."}`)
	c, err := calibrated(t, "--benign", labelled(t, mixed...), "--attacks", labelled(t, mixed[400:404]...), "--fpr", "1%")
	if err != nil {
		t.Fatal(err)
	}
	if c.Benign[0].N != 404 || c.Attacks[0].N != 2 || c.LeftOut["harmful"] != 1 || c.LeftOut["refusal"] != 2 || c.LeftOut["redteam_attempt"] != 1 || c.LeftOut["benign"] != 1 {
		t.Errorf("%d harmless, %d attacks, left out %v", c.Benign[0].N, c.Attacks[0].N, c.LeftOut)
	}
}

// What the data calls its labels does nothing to the terminal.
func TestCalibratePrintsStrangersWords(t *testing.T) {
	line, err := json.Marshal(map[string]string{"id": "x", "label": "a\x1b[2J\nleft out: none", "text": "Hello"})
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := lexCommand("", "calibrate", "--benign", labelled(t, append(calm(400), string(line))...), "--fpr", "1%")
	if err != nil || !strings.Contains(out, `left out: 1 "a\x1b[2J\nleft out: none"`+"\n") {
		t.Errorf("%v: %q", err, out)
	}
}

func TestCalibrateNamesBadLines(t *testing.T) {
	const secret = "hunter2"
	bad := labelled(t, "", "oops "+secret, `{"id":"a","text":" "}`, `{"id":NaN,"text":"x"}`, `{"text":"`+secret+`"}`, `[1]`, `{"id":"b","text":"Hello"}`, `{"id":"c","text":"`+"\xff"+secret+`"}`)
	out, errs, err := lexCommand("", "calibrate", "--benign", bad)
	if err == nil || err.Error() != "6 lines could not be assessed" || strings.Contains(out+errs, secret) {
		t.Errorf("%v\n%s\n%s", err, out, errs)
	}
	for _, want := range []string{"line 2: ", "line 3: ", "line 4: ", "line 5: ", "line 6: ", "line 8: "} {
		if !strings.Contains(errs, bad+": "+want) {
			t.Errorf("%q is not in:\n%s", want, errs)
		}
	}
	huge := labelled(t, `{"id":"a","text":"`+strings.Repeat("a", 65<<20)+`"}`)
	if _, _, err := lexCommand("", "calibrate", "--benign", huge); err == nil || !strings.Contains(err.Error(), "line 1 is over") {
		t.Errorf("a huge line: %v", err)
	}
	if _, _, err := lexCommand("", "calibrate", "--benign", labelled(t)); err == nil || !strings.Contains(err.Error(), "there are 0") {
		t.Errorf("an empty file: %v", err)
	}
}

// The turns that a proxy has counted stand for the harmless prompts.
func TestCalibrateFromTraffic(t *testing.T) {
	s := startProxy(t, "Paris.")
	for i := range 72 {
		askProxy(t, http.MethodPost, s.URL+"/v1/chat/completions", fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"What is the weather like in town number %d?"}]}`, i))
	}
	askProxy(t, http.MethodPost, s.URL+"/v1/chat/completions", fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}]}`, attack))
	c, err := calibrated(t, "--url", s.URL, "--fpr", "5%")
	if err != nil || c.Benign[0].N != 73 || c.Benign[0].Present.Refused != 1 || c.Benign[0].Proposed.Refused != 1 || c.Refused != 1 || *c.RefuseAt != 0.31 {
		t.Errorf("%v: %+v", err, c)
	}
	c, err = calibrated(t, "--url", s.URL, "--fpr", "1%")
	if err == nil || !strings.Contains(err.Error(), "at least 368 harmless prompts, and there are 73") || c.RefuseAt != nil {
		t.Errorf("%v: %+v", err, c)
	}
}

// Answers that no proxy gives are errors.
func TestCalibrateFromNoProxy(t *testing.T) {
	falling, short := make([]int, 69), make([]int, 68)
	falling[68] = 1
	for name, thresholds := range map[string]any{
		"counts no levels": nil,
		"more turns":       map[string]any{"attack_types": map[string]any{"none": map[string]any{"turns": 1000, "refused": falling}}},
		"68 thresholds":    map[string]any{"attack_types": map[string]any{"none": map[string]any{"turns": 1000, "refused": short}}},
		"is not the JSON":  map[string]any{"attack_types": []int{1}},
	} {
		text, err := json.Marshal(map[string]any{"total_receipts": 1, "thresholds": thresholds})
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewServer(says(http.StatusOK, string(text), "Content-Type", "application/json"))
		if out, _, err := lexCommand("", "calibrate", "--url", s.URL); err == nil || !strings.Contains(err.Error(), name) || out != "" {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		s.Close()
	}
}

// Who gives both cannot be told that one of them is missing.
func TestCalibrateTakesOneSourceOfHarmlessPrompts(t *testing.T) {
	both := []string{"calibrate", "--benign", labelled(t, calm(1)...), "--url", "http://localhost:1"}
	if _, _, err := lexCommand("", both...); err == nil || !strings.Contains(err.Error(), "--benign and --url") {
		t.Errorf("both: %v", err)
	}
	if _, _, err := lexCommand("", "calibrate"); err == nil || !strings.Contains(err.Error(), "at least one file") {
		t.Errorf("none: %v", err)
	}
}

func TestCalibrateChecksItsFlags(t *testing.T) {
	good := labelled(t, calm(1)...)
	for _, args := range [][]string{
		{},
		{good},
		{"--benign", "missing.jsonl"},
		{"--benign", good, "--attacks", "missing.jsonl"},
		{"--benign", good, "more"},
		{"--benign", good, "--fpr", "0.5"},
		{"--benign", good, "--fpr", "0%"},
		{"--benign", good, "--fpr", "NaN%"},
		{"--benign", good, "--fpr", "51%"},
		{"--benign", good, "--fpr", "-1%"},
		{"--benign", good, "--fpr", "%"},
		{"--benign", good, "--fpr", "Inf%"},
		{"--benign", good, "--config", "missing"},
		{"--benign", good, "--url", "http://localhost:1"},
		{"--url", "localhost"},
	} {
		if out, _, err := lexCommand("", append([]string{"calibrate"}, args...)...); err == nil || out != "" {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}
