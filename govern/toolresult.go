package govern

import (
	"context"
	"fmt"

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
	if err := a.assessFromTool(ctx, results, nil); err != nil {
		return false, err
	}
	if err := a.assessFromTool(ctx, instructions, onlyRules); err != nil {
		return false, err
	}
	a.Turn, err = decide(a.Opened.governor.Kernel, a.Opened.session.State, a.evidence, kernel.Output{}, a.Opened.Mode)
	return a.Turn.Refused, err
}

// onlyRules keeps the scores of attacks on the model's own rules. The description of a
// tool or a prompt says what to do, so every one of them would count as an injection,
// and those of a file manager or of a database as a harmful request.
func onlyRules(s kernel.Scores) kernel.Scores {
	return kernel.Scores{Identity: s.Identity, Coercion: s.Coercion, Exploitative: s.Exploitative}
}

// assessFromTool scores texts and makes them evidence if they would be refused alone.
func (a *Assessed) assessFromTool(ctx context.Context, texts []detect.Text, keep func(kernel.Scores) kernel.Scores) error {
	g, coverage := a.Opened.governor, a.Opened.Coverage
	if len(texts) == 0 {
		return nil
	}
	signal, err := g.score(ctx, texts)
	if err != nil {
		return fmt.Errorf("reading the results of tools: %w", err)
	}
	if signal.Unopened {
		coverage.SkipOnce("response", "encoded more deeply than is opened", 0)
	}
	if signal.Unread > 0 {
		coverage.SkipOnce("response", "reads as no language", signal.Unread)
	}
	if keep != nil {
		signal.Scores = keep(signal.Scores)
	}
	signal.Threat = 0 // of a user's own words
	attack, err := g.refusesAlone(signal)
	if attack {
		coverage.flag(DetectorLocal)
		a.evidence.Scores = maxScores(a.evidence.Scores, signal.Scores)
		a.evidence.SovereigntyDrift = a.evidence.SovereigntyDrift || signal.SelfReference
	}
	return err
}

// takeFromTool takes the texts out, up to the limit for one message, and records what
// is read of them. More text than that refuses the turn if the operator wants that for
// requests.
func (a *Assessed) takeFromTool() (results, instructions []detect.Text) {
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
			instructions = append(instructions, detect.Text{Source: detect.User, Body: read})
		} else {
			results = append(results, detect.Text{Source: detect.Tool, Body: read})
		}
	}
	a.fromTool = nil
	return results, instructions
}
