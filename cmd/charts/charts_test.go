package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/kernel.md")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text)), " ")
}

// Where every fourth turn exceeds k by 0.5 and the others take off what they may, the
// alarms come as regularly.
func TestRunLength(t *testing.T) {
	c := charts{{K: 0.3, H: 1, Relief: 0.1}}
	r := rand.New(rand.NewPCG(1, 2))
	of := population{{0.8, 0, 0, 0}} // after 13 turns at 1.1, and 3 quiet ones follow
	if got := c.runLength(r, of, 1600); got != 16 {
		t.Errorf("%v turns between two alarms", got)
	}
	if got := c.runLength(r, population{{0.1}}, 1000); got != 1000 {
		t.Errorf("without an alarm the run length is %v", got)
	}
	e := c.measure(population{{0.8}, {0.1}}, 40, 1000)
	if e.Low > e.Mean || e.High < e.Mean || e.Low < 2 {
		t.Errorf("%+v", e)
	}
}

// The halves share no source except that of the dialogues, and no dialogue; what the
// detector has not seen is reported on.
func TestHalves(t *testing.T) {
	var all []dialogue
	for i := range 40 {
		for _, source := range []string{"a", "b", "c", "fresh_x"} {
			all = append(all, dialogue{id: fmt.Sprint(i), source: source, label: "benign", turns: make([]turn, 1)})
		}
		all = append(all, dialogue{id: fmt.Sprint(i), source: dialogueSource, label: "benign", turns: make([]turn, 2)})
	}
	choosing, reporting := halves(all)
	if a, b := sources(choosing.prompts), sources(reporting.prompts); a != "a, c" || b != "b, fresh_x" {
		t.Errorf("chosen on %s and reported on %s", a, b)
	}
	if a, b := len(choosing.dialogues), len(reporting.dialogues); a+b != 40 || a < 10 || b < 10 {
		t.Errorf("%d and %d dialogues", a, b)
	}
}

// docs/kernel.md says what is not seen.
func TestLeastSeverities(t *testing.T) {
	row := "| severity |"
	for _, n := range []int{1, 2, 3, 4, 5, 6, 8} {
		row += " " + defaultCharts().least(n) + " |"
	}
	if least := defaultCharts().least(10); least != "none" {
		t.Errorf("on every tenth turn %s is seen", least)
	}
	if row += " never |"; !strings.Contains(page(t), row) {
		t.Errorf("docs/kernel.md does not say: %s", row)
	}
}

// docs/kernel.md says the run length that was measured, of the charts of the policy.
func TestMeasuredRunLength(t *testing.T) {
	text, err := os.ReadFile("../plot/arl.json")
	if err != nil {
		t.Fatal(err)
	}
	var measured curves
	if err := json.Unmarshal(text, &measured); err != nil {
		t.Fatal(err)
	}
	if _, slow := kernel.DefaultPolicy().Charts(); measured.Both.H != slow.H {
		t.Errorf("measured at h = %v, and the policy has %v", measured.Both.H, slow.H)
	}
	e := measured.Both.RunLength
	said := fmt.Sprintf("alarm once in %s turns of ordinary dialogues (%s to over a million)", rounded(e.Mean), rounded(e.Low))
	if e.Mean > 1_000_000 {
		said = "alarm less than once in a million turns of ordinary dialogues"
	}
	if !strings.Contains(page(t), said) {
		t.Errorf("docs/kernel.md does not say: %s", said)
	}
	if e.Low < 50_000 {
		t.Errorf("the run length is promised to be 50,000 and may be %v", e.Low)
	}
}
