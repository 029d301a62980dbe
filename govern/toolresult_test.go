package govern_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/wire"
)

// toolSays reads every frame as the next piece of a tool's result.
type toolSays struct{}

func (s toolSays) Rest() wire.EventReader { return s }

func (toolSays) Event(f wire.Frame) (wire.Event, error) {
	return wire.Event{Deltas: []wire.Delta{{Kind: wire.ToolResult, Text: string(f.Data)}}, Piece: true}, nil
}

// What a tool of the provider says may come in pieces of any size. They are read
// together: an attack over many pieces is found, and harmless pieces stay harmless.
func TestToolResultsInPieces(t *testing.T) {
	harmless := strings.Repeat(prose, 5)
	for name, test := range map[string]struct {
		text    string
		refused bool
	}{
		"harmless":              {harmless, false},
		"short and harmless":    {"total 3\n-rw-r--r-- 1 me me 12 notes.txt\n", false},
		"an attack":             {attack, true},
		"an attack in a report": {harmless + "\n" + attack + "\n" + harmless, true},
	} {
		for _, size := range []int{1, 12, 100, len(test.text)} {
			t.Run(name, func(t *testing.T) {
				g, _ := newGovernor(t)
				opened, err := g.Open(t.Context(), request("s"))
				if err != nil {
					t.Fatal(err)
				}
				a := assess(t, opened, opened.ReadPrompt(question))
				a.InPieces = true
				refused := false
				for rest := test.text; rest != "" && !refused; {
					n := min(size, len(rest))
					a.ReadEvent(toolSays{}, wire.Frame{Data: []byte(rest[:n])})
					rest = rest[n:]
					if refused, err = a.AssessToolResults(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				judged, err := a.Judge(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if judged.Turn.Refused != test.refused {
					t.Errorf("in pieces of %d bytes: refused %t", size, judged.Turn.Refused)
				}
				inspected := opened.Coverage.Inspected
				if last := inspected[len(inspected)-1]; last.Part != "response.tool_result" || !test.refused && last.Bytes != len(test.text) {
					t.Errorf("in pieces of %d bytes: inspected %+v of %d bytes", size, last, len(test.text))
				}
				if flagged := opened.Coverage.Detectors[0].Outcome == kernel.Flagged; flagged != test.refused {
					t.Errorf("in pieces of %d bytes: %+v", size, opened.Coverage.Detectors)
				}
			})
		}
	}
}

// Pieces are read some hundred bytes at a time. An attack is found wherever it stands, also where
// one reading ends within it.
func TestAttacksBetweenTwoReadingsOfPieces(t *testing.T) {
	g, _ := newGovernor(t)
	report := strings.Repeat(prose, 20)
	for begin := 0; begin < 2<<10; begin += len(attack) / 3 {
		at := strings.LastIndexByte(report[:begin+1], ' ') + 1
		text := report[:at] + "\n" + attack + "\n" + report[at:]
		opened, err := g.Open(t.Context(), request(fmt.Sprint(begin)))
		if err != nil {
			t.Fatal(err)
		}
		a := assess(t, opened, opened.ReadPrompt(question))
		a.InPieces = true
		for piece := range slices.Chunk([]byte(text), 64) {
			a.ReadEvent(toolSays{}, wire.Frame{Data: piece})
			if _, err = a.AssessToolResults(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		judged, err := a.Judge(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if !judged.Turn.Refused {
			t.Errorf("an attack from byte %d on is not found", at)
		}
	}
}
