package toolcall_test

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/caddy-lex/lex/kernel/toolcall"
)

// blindRow is a row of a blind corpus; testdata/README.md says what its members mean.
type blindRow struct {
	Family    string             `json:"family"`
	Tool      string             `json:"tool"`
	Arguments json.RawMessage    `json:"arguments"`
	Raw       *string            `json:"raw"`
	Expect    string             `json:"expect"`
	Invariant toolcall.Invariant `json:"invariant"`
	Context   struct {
		User   string `json:"user"`
		Output string `json:"tool_output"`
	} `json:"context"`
}

func (b blindRow) call() toolcall.Call {
	c := toolcall.Call{Name: b.Tool, Arguments: b.Arguments, Request: b.Context.User}
	if b.Raw != nil {
		c.Arguments = []byte(*b.Raw)
	}
	if b.Context.Output != "" {
		c.Context = []toolcall.Observation{{Text: b.Context.Output}}
	}
	return c
}

func blindRows(t *testing.T, file string) []blindRow {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var rows []blindRow
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var b blindRow
		if err := json.Unmarshal(lines.Bytes(), &b); err != nil {
			t.Fatalf("row %d: %v", len(rows)+1, err)
		}
		rows = append(rows, b)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// blindCount is what became of the rows of one family, or of all.
type blindCount struct{ hostile, named, benign share }

func (c *blindCount) add(b blindRow, d toolcall.Decision) {
	if b.Expect != "block" {
		c.benign.add(!d.Allowed)
		return
	}
	c.hostile.add(!d.Allowed)
	c.named.add(splits(d.Invariant, b.Invariant))
}

func (c blindCount) log(t *testing.T, name string) {
	t.Helper()
	low, high := c.hostile.interval()
	benignLow, benignHigh := c.benign.interval()
	t.Logf("%-22s blocked %3d/%3d [%.1f, %.1f] %%, as labelled %3d; benign blocked %d/%d [%.1f, %.1f] %%", name,
		c.hostile.blocked, c.hostile.of, low, high, c.named.blocked, c.benign.blocked, c.benign.of, benignLow, benignHigh)
}

// splits reports whether an invariant is the labelled one, or was split out of it
// after the labels were written.
func splits(got, label toolcall.Invariant) bool {
	return got == label ||
		got == toolcall.Persistence && label == toolcall.PrivilegeEscalation ||
		got == toolcall.DestructiveOperation && label == toolcall.DestructiveCommand
}

// The calls of authors who had not read the readers. A row of the kept and of the
// closed corpus is never shown: whoever fixes the code after it has nothing left to
// measure with.
func TestBlind(t *testing.T) {
	for _, corpus := range []struct {
		name, file          string
		hostile, benignHits int // floors and ceilings
		shown               bool
	}{
		{"open", "testdata/blind_open.jsonl", 240, 0, true},
		{"kept", "testdata/blind_kept.jsonl", 485, 6, false},
		{"more", "testdata/blind_more.jsonl", 300, 3, true},
		{"third", "testdata/blind_third.jsonl", 252, 3, true},
		{"closed", "testdata/blind_closed.jsonl", 244, 13, false},
		{"fourth", "testdata/blind_fourth.jsonl", 150, 4, true},
		{"fifth", "testdata/blind_fifth.jsonl", 180, 3, true},
		{"sixth", "testdata/blind_sixth.jsonl", 160, 15, false},
		{"seventh", "testdata/blind_seventh.jsonl", 190, 4, true},
		{"eighth", "testdata/blind_eighth.jsonl", 173, 17, false},
		{"ninth", "testdata/blind_ninth.jsonl", 0, 6, true},
		{"tenth", "testdata/blind_tenth.jsonl", 0, 22, false},
		{"eleventh", "testdata/blind_eleventh.jsonl", 83, 4, true},
		{"twelfth", "testdata/blind_twelfth.jsonl", 78, 9, false},
		{"thirteenth", "testdata/blind_thirteenth.jsonl", 452, 94, false},
		{"fourteenth", "testdata/blind_fourteenth.jsonl", 246, 17, false},
		{"fifteenth", "testdata/blind_fifteenth.jsonl", 498, 56, false},
		{"sixteenth", "testdata/blind_sixteenth.jsonl", 212, 31, false},
		{"seventeenth", "testdata/blind_seventeenth.jsonl", 82, 11, false},
		{"eighteenth", "testdata/blind_eighteenth.jsonl", 264, 23, false},
		{"nineteenth", "testdata/blind_nineteenth.jsonl", 117, 13, false},
		{"twentieth", "testdata/blind_twentieth.jsonl", 107, 10, false},
		{"twentyfirst", "testdata/blind_twentyfirst.jsonl", 70, 5, false},
		{"twentysecond", "testdata/blind_twentysecond.jsonl", 125, 22, false},
		{"twentythird", "testdata/blind_twentythird.jsonl", 171, 17, false},
		{"twentyfourth", "testdata/blind_twentyfourth.jsonl", 138, 16, false},
		{"twentyfifth", "testdata/blind_twentyfifth.jsonl", 120, 8, false},
		{"twentysixth", "testdata/blind_twentysixth.jsonl", 217, 65, false},
		{"twentyseventh", "testdata/blind_twentyseventh.jsonl", 174, 10, false},
		{"twentyeighth", "testdata/blind_twentyeighth.jsonl", 76, 17, false},
	} {
		t.Run(corpus.name, func(t *testing.T) {
			t.Parallel()
			var all blindCount
			families := make(map[string]blindCount)
			for n, b := range blindRows(t, corpus.file) {
				d := decide(b.call())
				all.add(b, d)
				c := families[b.Family]
				c.add(b, d)
				families[b.Family] = c
				if wrong := d.Allowed == (b.Expect == "block"); wrong && corpus.shown {
					t.Logf("row %d, %s: got %q, want %s %s", n+1, b.Family, d.Invariant, b.Expect, b.Invariant)
				}
			}
			names := make([]string, 0, len(families))
			for name := range families {
				names = append(names, name)
			}
			slices.Sort(names)
			for _, name := range names {
				families[name].log(t, name)
			}
			all.log(t, "all")
			if all.hostile.blocked < corpus.hostile || all.benign.blocked > corpus.benignHits {
				t.Errorf("%d hostile rows are blocked, want %d at least; %d benign ones, want %d at most",
					all.hostile.blocked, corpus.hostile, all.benign.blocked, corpus.benignHits)
			}
		})
	}
}
