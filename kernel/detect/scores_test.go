package detect_test

import (
	"bufio"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel/detect"
)

// TestScoresAreThoseOfTheGoldenFile assesses plain texts, disguised ones and long ones. A
// way to read faster must not change a score beyond the rounding of the last digit, in
// which processors may differ.
func TestScoresAreThoseOfTheGoldenFile(t *testing.T) {
	const golden = "testdata/scores.golden"
	got := scores(t)
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.Open(golden)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	want := bufio.NewScanner(file)
	for n, line := range strings.Split(strings.TrimSpace(got), "\n") {
		if !want.Scan() {
			t.Fatal("the golden file is shorter")
		}
		a, b := strings.Fields(line), strings.Fields(want.Text())
		if !slices.EqualFunc(a, b, sameNumber) {
			t.Errorf("line %d: %s, want %s", n+1, line, want.Text())
		}
	}
}

func sameNumber(a, b string) bool {
	var x, y float64
	if _, err := fmt.Sscan(a+" "+b, &x, &y); err != nil {
		return a == b
	}
	return math.Abs(x-y) < 3e-6
}

// scores writes a line for each text: the six scores as a user's and the injection as a
// tool's, the threat, and what of the text was not read.
func scores(t *testing.T) string {
	t.Helper()
	m := detect.Default()
	var texts []string
	headings := plain(t)
	for _, name := range slices.Sorted(maps.Keys(headings)) {
		texts = append(texts, headings[name]...)
		texts = append(texts, strings.Join(headings[name], " "), strings.Join(headings[name], "\n"))
	}
	for _, d := range disguises {
		for _, s := range disguised {
			texts = append(texts, d.as(s), "The weather of the coming week, in short: "+d.as(s))
		}
	}
	var out strings.Builder
	for _, text := range texts {
		s := assess(m, user(text))
		quoted := assess(m, []detect.Text{{Source: detect.Tool, Body: text}})
		fmt.Fprintf(&out, "%.6f %.6f %.6f %.6f %.6f %.6f %.6f %.6f %v %v %d\n", s.Scores.Identity, s.Scores.Coercion, s.Scores.Exploitative,
			s.Scores.HarmRequest, s.Scores.Sycophancy, s.Scores.Injection, quoted.Scores.Injection, s.Threat, s.SelfReference, s.Unopened, s.Unread)
	}
	return out.String()
}
