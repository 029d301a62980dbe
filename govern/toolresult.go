package govern

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"unicode"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
)

// A toolText is a text of an answer that a tool said and not the model: the result of a
// tool that the provider runs, or all that a server of tools says.
type toolText struct {
	name, text string
	bytes      int  // its size in the answer
	instructs  bool // see wire.Instruction
	streamed   bool // the name stands for all such texts of a stream
}

// AssessToolResults looks for attacks in what tools have said in the answer since it
// was called last. It reports whether the turn is refused.
//
// The judges of answers would not find these attacks: they ask whether a model gave in,
// and a poisoned result asks one to. So the detector reads them as it reads the results
// of tools in a request. Only what would be refused alone becomes evidence of the turn:
// the session's user did not write it, so nothing weaker adds to the pressure.
func (a *Assessed) AssessToolResults(ctx context.Context) (refused bool, err error) {
	if len(a.fromTool) == 0 {
		return a.Turn.Refused, nil
	}
	results, instructions := a.takeFromTool()
	if err := a.assessFromTool(ctx, detect.Tool, results, allScores); err != nil {
		return false, err
	}
	if err := a.assessFromTool(ctx, detect.User, instructions, onlyRules); err != nil {
		return false, err
	}
	a.Turn, err = decide(a.Opened.governor.Kernel, a.Opened.session.State, a.evidence, kernel.Output{}, a.Opened.Mode)
	return a.Turn.Refused, err
}

func allScores(s kernel.Scores) kernel.Scores { return s }

// onlyRules keeps the scores of attacks on the model's own rules. The description of a
// tool or a prompt says what to do, so every one of them would count as an injection,
// and those of a file manager or of a database as a harmful request.
func onlyRules(s kernel.Scores) kernel.Scores {
	return kernel.Scores{Identity: s.Identity, Coercion: s.Coercion, Exploitative: s.Exploitative}
}

// assessFromTool scores texts piece by piece and makes them evidence if one would be
// refused alone.
func (a *Assessed) assessFromTool(ctx context.Context, source detect.Source, texts []string, keep func(kernel.Scores) kernel.Scores) error {
	g, coverage := a.Opened.governor, a.Opened.Coverage
	whole, worst := strings.Join(texts, "\n"), detect.Signal{}
	for piece := range pieces(whole) {
		signal, err := g.score(ctx, []detect.Text{{Source: source, Body: piece}})
		if err != nil {
			return fmt.Errorf("reading the results of tools: %w", err)
		}
		worst.Scores = maxScores(worst.Scores, signal.Scores)
		worst.SelfReference = worst.SelfReference || signal.SelfReference
		worst.Unopened = worst.Unopened || signal.Unopened
		worst.Unread += signal.Unread
	}
	if worst.Unopened {
		coverage.SkipOnce("response", "encoded more deeply than is opened", 0)
	}
	if worst.Unread > 0 {
		coverage.SkipOnce("response", "reads as no language", min(worst.Unread, len(whole))) // pieces overlap
	}
	worst.Scores = keep(worst.Scores)
	attack, err := g.refusesAlone(worst)
	if attack {
		coverage.flag(DetectorLocal)
		a.evidence.Scores = maxScores(a.evidence.Scores, worst.Scores)
		a.evidence.SovereigntyDrift = a.evidence.SovereigntyDrift || worst.SelfReference
	}
	return err
}

// Tools return whole files, and the detector learnt from messages: the longer a text
// is, the more likely it takes it for an attack. Of 154 licences, manuals and source
// files it took 101 for one as a whole, and 34 in pieces of this size, in which it still
// found nine of ten attacks that it found in the whole.
const (
	pieceSize    = 512
	pieceOverlap = 128
)

// pieces cuts a text into overlapping pieces between its words. A word is never cut,
// however long it is, since it may be an attack in base64.
func pieces(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for text != "" {
			end := spaceFrom(text, pieceSize)
			if !yield(text[:end]) || end == len(text) {
				return
			}
			text = text[spaceFrom(text[:end], end-pieceOverlap):]
		}
	}
}

// spaceFrom is the place of the first space from n on, or the end.
func spaceFrom(text string, n int) int {
	if n < len(text) {
		if i := strings.IndexFunc(text[n:], unicode.IsSpace); i >= 0 {
			return n + i
		}
	}
	return len(text)
}

// takeFromTool takes the texts out, up to the limit for one message, and records what
// is read of them. More text than that refuses the turn if the operator wants that for
// requests.
func (a *Assessed) takeFromTool() (results, instructions []string) {
	o, left := a.Opened, a.Opened.Reading.Limit
	for _, t := range a.fromTool {
		read, bytes := t.text, t.bytes
		if o.Reading.Limit > 0 && int64(len(read)) > left {
			read = prefix(read, left)
			bytes = min(len(read), bytes)
			o.Coverage.SkipOnce("response", "beyond inspect_limit", t.bytes-bytes)
			if o.Reading.RefuseOversize {
				a.evidence.DeniedBy = deniedOversize
			}
		}
		left -= int64(len(read))
		switch {
		case read == "":
			continue
		case t.streamed:
			o.Coverage.InspectOnce(t.name, DetectorLocal, bytes)
		default:
			o.Coverage.Inspect(t.name, DetectorLocal, bytes)
		}
		if t.instructs {
			instructions = append(instructions, read)
		} else {
			results = append(results, read)
		}
	}
	a.fromTool = nil
	return results, instructions
}
