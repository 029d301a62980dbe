package e2e

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// javaScript finds the rows of docs/dialects.md that say how a JavaScript SDK is told the
// address.
var javaScript = regexp.MustCompile("(?m)^\\|[^|]*\\| `((?:new \\w+|create\\w+)\\([^`]*)` \\| `(\\w+)` \\|$")

// Each documented expression makes a client whose calls are governed in the documented
// dialect.
func TestDocumentedAddresses(t *testing.T) {
	t.Parallel()
	s := shipped(t)
	args := []string{s.URL}
	var want []string
	for _, row := range javaScript.FindAllStringSubmatch(read(t, "../docs/dialects.md"), -1) {
		args, want = append(args, row[1], row[2]), append(want, row[2])
	}
	if len(want) < 3 {
		t.Fatalf("only %d expressions", len(want))
	}
	for _, call := range node(t, "addresses.mjs", args...) {
		if call.Exception != "" {
			t.Errorf("%s: %s", call.Name, call.Exception)
		}
	}
	var got []string
	for _, id := range s.receipts(t) {
		receipt := s.do(t, "GET", "/audits/"+id, "").object(t)
		got = append(got, receipt["endpoint"].(string))
	}
	slices.Sort(got)
	slices.Sort(want)
	if strings.Join(slices.Compact(got), " ") != strings.Join(slices.Compact(slices.Clone(want)), " ") || len(got) < len(want) {
		t.Errorf("documented are %v, governed were %v", want, got)
	}
}
