package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A cell of a table that was measured: a figure with its unit, its spread, what a server
// beside the proxy takes.
var measured = regexp.MustCompile(`^([+-]?[\d,]+(\.\d+)?( (%|ms|µs|KB|MB))?( \([\d,.-]+(–[\d,.-]+| %)?\))?( \+ \d+ µs)?|–|cannot do it)$`)

// `make bench` in its short form measures all targets and writes a page of the form that
// docs/performance.md has. What the figures say is not looked at.
func TestBench(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "performance.md")
	documented := read(t, "../docs/performance.md")
	if err := os.WriteFile(page, []byte(documented), 0o600); err != nil {
		t.Fatal(err)
	}
	bench := exec.Command("go", "run", "./cmd/bench", "-short", "-caddy", binary, "-page", page)
	bench.Dir = ".."
	var progress logBuffer
	bench.Stderr = &progress
	printed, err := bench.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	written := read(t, page)
	if !strings.Contains(written, string(printed)) {
		t.Errorf("the page does not have what was printed:\n%s", printed)
	}
	if svg := read(t, strings.Replace(page, ".md", ".svg", 1)); !strings.Contains(svg, "<svg") {
		t.Errorf("no picture: %.100s", svg)
	}
	got, want := outline(t, written), outline(t, documented)
	if got != want {
		t.Errorf("docs/performance.md has another form: run make bench. The page has\n%s\nand make bench writes\n%s", want, got)
	}
	if rows := strings.Count(got, "\n"); rows < 60 {
		t.Errorf("only %d lines:\n%s", rows, got)
	}
}

// outline is the form of a page of figures: its headings, the heads of its tables and the
// names of their rows. It leaves out what depends on the machine and the length of the
// run: numbers, the peer, and how many works were profiled. It fails on a cell that is
// no figure.
func outline(t *testing.T, page string) string {
	t.Helper()
	var out strings.Builder
	head := true // the next row of a table is its first
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "#"):
			out.WriteString(line + "\n")
			if strings.HasPrefix(line, "### Processor time") {
				return out.String()
			}
		case !strings.HasPrefix(line, "|"):
			head = true
		case strings.HasPrefix(line, "|---"), strings.HasPrefix(line, "| Portkey"):
		case head:
			out.WriteString(regexp.MustCompile(`\d+`).ReplaceAllString(line, "n") + "\n")
			head = false
		default:
			cells := strings.Split(strings.Trim(line, "| "), " | ")
			out.WriteString(cells[0] + "\n")
			for _, c := range cells[1:] {
				if !measured.MatchString(c) {
					t.Errorf("%q is no figure: %s", c, line)
				}
			}
		}
	}
	return out.String()
}
