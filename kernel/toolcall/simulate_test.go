package toolcall_test

import (
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel/toolcall"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestScenariosAreDecidedAsWritten(t *testing.T) {
	names := make(map[string]bool)
	met := make(map[toolcall.Invariant]bool)
	benign := 0
	for _, s := range toolcall.Scenarios() {
		d := decide(s.Call)
		if d.Allowed == s.Blocked {
			t.Errorf("%s: %+v, want blocked %v", s.Name, d, s.Blocked)
		}
		if names[s.Name] {
			t.Errorf("%s stands twice", s.Name)
		}
		names[s.Name] = true
		met[d.Invariant] = true
		if d.Allowed {
			benign++
		}
	}
	// What an operator or a definition says stops no call that has neither.
	said := []toolcall.Invariant{toolcall.OperatorRule, toolcall.UnknownTool, toolcall.InvalidArguments}
	for _, v := range toolcall.Invariants {
		if met[v] == slices.Contains(said, v) {
			t.Errorf("scenarios meet %s: %v", v, met[v])
		}
	}
	if len(names) < 24 || benign < len(toolcall.Invariants)-len(said) {
		t.Errorf("%d scenarios, %d benign", len(names), benign)
	}
}

func TestSimulationGolden(t *testing.T) {
	got, err := json.MarshalIndent(toolcall.Simulate(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	const file = "testdata/simulation.json"
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("simulation changed; run with -update and read the difference\n%s", got)
	}
}

func TestSimulationCountsItsOwnDecisions(t *testing.T) {
	r := toolcall.Simulate()
	blocked := 0
	for _, s := range r.Scenarios {
		if s.Blocked != (s.Reason != nil) {
			t.Errorf("%s: blocked %v with reason %v", s.Name, s.Blocked, s.Reason)
		}
		if s.Blocked {
			blocked++
		}
	}
	if r.Summary.Total != len(r.Scenarios) || r.Summary.Blocked != blocked || r.Summary.Approved != r.Summary.Total-blocked {
		t.Errorf("summary %+v of %d scenarios, %d blocked", r.Summary, len(r.Scenarios), blocked)
	}
}

func TestInvariantsExplainThemselves(t *testing.T) {
	seen := make(map[string]bool)
	for _, v := range toolcall.Invariants {
		reason := v.Reason()
		if !strings.HasPrefix(reason, string(v)+": ") || strings.Count(reason, ".") != 1 || seen[reason] {
			t.Errorf("%s: reason %q", v, reason)
		}
		seen[reason] = true
	}
	if toolcall.Invariant("other").Reason() != "" {
		t.Error("a value outside the set has a reason")
	}
}
