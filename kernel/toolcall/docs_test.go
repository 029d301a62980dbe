package toolcall_test

import (
	"os"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/toolcall"
)

// The table of docs/tools.md has every invariant, and says which bring evidence.
func TestInvariantsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range append(toolcall.Invariants[:len(toolcall.Invariants):len(toolcall.Invariants)], kernel.SessionRisk) {
		evidence := "none"
		switch s := v.Scores(); {
		case s.Injection > 0:
			evidence = "injection"
		case s.Identity > 0:
			evidence = "identity"
		case s.HarmRequest > 0:
			evidence = "harmful request"
		}
		_, row, found := strings.Cut(string(page), "\n| `"+string(v)+"` |")
		if row, _, _ = strings.Cut(row, "\n"); !found || !strings.HasSuffix(row, "| "+evidence+" |") {
			t.Errorf("%s, evidence %s: %q", v, evidence, row)
		}
	}
}
