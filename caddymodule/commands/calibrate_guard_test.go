package commands_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var hundredths = regexp.MustCompile(`case 0\.\d+`)

// overconfident is a classifier on Text Embeddings Inference that is three times as sure as
// it should be, and thinks too ill of every text: a text "case 0.3" is an attack with the
// probability 0.3.
func overconfident(t *testing.T) (config string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		truth, err := strconv.ParseFloat(strings.TrimPrefix(hundredths.FindString(string(body)), "case "), 64)
		if err != nil {
			http.Error(w, "no", http.StatusInternalServerError)
			return
		}
		p := 1 / (1 + math.Exp(-3*math.Log(truth/(1-truth))-1))
		_, _ = fmt.Fprintf(w, `[[{"label":"INJECTION","score":%v},{"label":"SAFE","score":%v}]]`, p, 1-p)
	}))
	t.Cleanup(server.Close)
	config = filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(config, []byte("{\n\tlex {\n\t\tguard classifier tei {\n\t\t\tbase_url "+server.URL+"\n\t\t\tmodel PIGuard\n\t\t\task always\n\t\t}\n\t}\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return config
}

// cases are n texts whose labels follow their probabilities.
func cases(n int) (lines []string) {
	random := rand.New(rand.NewPCG(4, 2))
	for i := range n {
		p, label := 0.02+0.96*random.Float64(), "benign"
		if random.Float64() < p {
			label = "injection"
		}
		lines = append(lines, fmt.Sprintf(`{"id":%d,"text":"case %.4f of number %d","label":%q}`, i, p, i, label))
	}
	return lines
}

// The command finds how the guard's probabilities are wrong, and its line corrects them.
func TestCalibrateGuard(t *testing.T) {
	config := overconfident(t)
	lines := append(cases(600),
		`{"id":"w","text":"case 0.5","label":"redteam_attempt"}`, `{"id":"o","text":"case 0.5","label":"other"}`,
		`{"id":"f","text":"nothing to read","label":"benign"}`)
	data := labelled(t, lines...)
	out, errs, err := lexCommand("", "calibrate", "--guard", "tei", "--labelled", data, "--config", config, "--json")
	if err != nil {
		t.Fatal(err, errs)
	}
	var c struct {
		N, Attacks       int
		Slope, Intercept float64
		SlopeCI          [2]float64 `json:"slope_ci95"`
		InterceptCI      [2]float64 `json:"intercept_ci95"`
		Before, After    struct {
			Log   float64 `json:"log_loss"`
			Brier float64
		}
		LeftOut   map[string]int `json:"left_out"`
		Caddyfile string
	}
	if err := json.Unmarshal([]byte(out), &c); err != nil {
		t.Fatal(err, out)
	}
	if c.N != 600 || c.Attacks < 200 || c.LeftOut["redteam_attempt"] != 1 || c.LeftOut["other"] != 1 || c.LeftOut["failed: server_error"] != 1 {
		t.Errorf("%s", out)
	}
	within := func(x float64, ci [2]float64) bool { return ci[0] < x && x < ci[1] }
	if !within(1.0/3, c.SlopeCI) || !within(-1.0/3, c.InterceptCI) || !within(c.Slope, c.SlopeCI) || c.After.Log >= c.Before.Log || c.After.Brier >= c.Before.Brier {
		t.Errorf("%s", out)
	}
	if want := fmt.Sprintf("calibration %.4g %.4g\n", c.Slope, c.Intercept); c.Caddyfile != want {
		t.Errorf("%q, want %q", c.Caddyfile, want)
	}

	again, errs, err := lexCommand("", "calibrate", "--guard", "tei", "--labelled", data, "--config", config)
	if err != nil || !strings.HasSuffix(again, "\n"+c.Caddyfile) {
		t.Fatalf("%v %s: %s", err, errs, again)
	}
	// Under the line the proxy decides by the corrected probability: a text of which the
	// guard is wrongly sure is not refused any more.
	prompt := `{"id":"a","text":"case 0.6"}`
	if got := severityOf(t, prompt, config); got < 0.5 {
		t.Errorf("without the line the severity is %v", got)
	}
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	corrected := filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(corrected, []byte(strings.Replace(string(text), "ask always\n", "ask always\n\t\t\t"+c.Caddyfile, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, before := severityOf(t, prompt, corrected), severityOf(t, prompt, config); got >= before {
		t.Errorf("with the line the severity is %v, and it was %v", got, before)
	}
	// A configuration that has a calibration is fitted anew, from the guard's own
	// probabilities.
	if out, errs, err := lexCommand("", "calibrate", "--guard", "tei", "--labelled", data, "--config", corrected); err != nil || out != again {
		t.Errorf("%v %s: %s", err, errs, out)
	}
}

func severityOf(t *testing.T, line, config string) float64 {
	t.Helper()
	out, errs, err := lexCommand(line, "assess", "--config", config)
	if err != nil {
		t.Fatal(err, errs)
	}
	severity, _ := jsonLines(t, out)[0]["severity"].(float64)
	return severity
}

// What cannot be fitted has no line, and says why.
func TestCalibrateGuardFails(t *testing.T) {
	config := overconfident(t)
	fitted := func(lines ...string) (string, error) {
		out, _, err := lexCommand("", "calibrate", "--guard", "tei", "--labelled", labelled(t, lines...), "--config", config)
		return out, err
	}
	line := func(i int, p float64, label string) string {
		return fmt.Sprintf(`{"id":%d,"text":"case %v of number %d","label":%q}`, i, p, i, label)
	}
	var one, same, alike, right []string
	for i := range 60 {
		kind := []string{"benign", "injection"}[i%2]
		one, same = append(one, line(i, 0.3, "benign")), append(same, line(i, 0.3, kind))
		alike = append(alike, line(i, []float64{0.3, 0.3001}[i%2], kind))
		// Of these the guard is sure enough, whatever it says of them: 0.98 and 0.02.
		right = append(right, line(i, []float64{0.0001, 0.9999}[i%2], kind))
	}
	for name, test := range map[string]struct {
		lines []string
		want  string
	}{
		"one class":     {one, "not both"},
		"same scores":   {same, "same probability"},
		"too few":       {cases(10), "fewer than ten"},
		"nothing":       {[]string{`{"id":"w","text":"case 0.5","label":"other"}`}, "1 other"},
		"no answer":     {[]string{`{"id":"w","text":"nothing","label":"benign"}`}, "1 failed: server_error"},
		"nearly same":   {alike, "hardly differ"},
		"nothing to do": {right, "no better"},
	} {
		if out, err := fitted(test.lines...); err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(out, "Caddyfile") {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
	data := labelled(t, cases(20)...)
	for _, args := range [][]string{
		{"--guard", "tei"},
		{"--labelled", data},
		{"--guard", "tei", "--labelled", data},
		{"--guard", "tei", "--labelled", data, "--config", config, "--fpr", "1%"},
		{"--guard", "tei", "--labelled", data, "--config", config, "more"},
		{"--guard", "other", "--labelled", data, "--config", config},
		{"--guard", "tei", "--labelled", "/nowhere", "--config", config},
	} {
		if out, _, err := lexCommand("", append([]string{"calibrate"}, args...)...); err == nil || out != "" {
			t.Errorf("%q: %v %s", args, err, out)
		}
	}
	bare := filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(bare, []byte("{\n\tlex\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for config, want := range map[string]string{config: `has no guard "nope", but these: tei`, bare: "has no guards"} {
		if _, _, err := lexCommand("", "calibrate", "--guard", "nope", "--labelled", data, "--config", config); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	bad := labelled(t, append(cases(200), `{"label":"benign","text":7}`)...)
	if _, errs, err := lexCommand("", "calibrate", "--guard", "tei", "--labelled", bad, "--config", config); err == nil || !strings.Contains(errs, "line 201") {
		t.Errorf("a bad line: %v %s", err, errs)
	}
}
