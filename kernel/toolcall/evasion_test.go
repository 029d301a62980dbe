package toolcall_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/caddy-lex/lex/kernel/toolcall"
)

// evasion is a row of testdata/evasion.jsonl: a call, and what must become of it.
// The rows were written from what a shell, a database or a browser would do with
// the arguments, before anybody looked at how they are read.
type evasion struct {
	Family    string             `json:"family"`
	Tool      string             `json:"tool"`
	Arguments json.RawMessage    `json:"arguments"`
	Request   string             `json:"request,omitempty"` // of the user, where it matters
	Expect    string             `json:"expect"`
	Invariant toolcall.Invariant `json:"invariant"`

	// Known says why a row is decided wrongly today. The row then fails when it is
	// decided rightly, so that the list of misses stays true.
	Known string `json:"known_miss,omitempty"`
}

func (e evasion) call() toolcall.Call {
	return toolcall.Call{Name: e.Tool, Arguments: e.Arguments, Request: e.Request}
}

func (e evasion) decided() bool {
	d := decide(e.call())
	return d.Allowed == (e.Expect == "approve") && d.Invariant == e.Invariant
}

func evasions(t *testing.T) []evasion {
	t.Helper()
	text, err := os.ReadFile("testdata/evasion.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var rows []evasion
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e evasion
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("row %d: %v", len(rows)+1, err)
		}
		if blocks := e.Expect == "block"; !blocks && e.Expect != "approve" || blocks != slices.Contains(toolcall.Invariants, e.Invariant) {
			t.Fatalf("row %d: expect %q with the invariant %q", len(rows)+1, e.Expect, e.Invariant)
		}
		rows = append(rows, e)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestEvasion(t *testing.T) {
	counts := map[string][4]int{}
	for n, e := range evasions(t) {
		c := counts[e.Family]
		at := 0
		if e.Expect == "approve" {
			at = 2
		}
		c[at+1]++
		right := e.decided()
		if right {
			c[at]++
		}
		counts[e.Family] = c
		t.Run(fmt.Sprintf("%s/%d", e.Family, n+1), func(t *testing.T) {
			if right == (e.Known != "") {
				t.Errorf("%s %.200s\n got %+v, want %s %s, known miss %q", e.Tool, e.Arguments, decide(e.call()), e.Expect, e.Invariant, e.Known)
			}
		})
	}
	for family, c := range counts {
		t.Logf("%-18s hostile %3d of %3d, benign %3d of %3d", family, c[0], c[1], c[2], c[3])
	}
}
