package govern

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/model"
)

var (
	// ErrScores means that a detector gives other scores than the receipt has.
	ErrScores = errors.New("the detector gives other scores")
	// ErrNotCompared means that scores cannot be compared, which says nothing of the
	// receipt. The error gives the reason.
	ErrNotCompared = errors.New("not compared")
)

// CompareScores scores the prompt of a receipt again and compares what the detector says with
// the receipt. The caller knows that the prompt is the one that the receipt commits to. s is
// the receipt's setup, and here is the code that runs now.
//
// It returns nil if the scores, the sign of self-reference and, without another embedder,
// the threat signal are equal to the bit. An error wraps [ErrScores] and names what differs,
// or [ErrNotCompared], or is the context's. Scores are compared only where they follow from
// the prompt alone, by the same model, and no guard may have moved them. If other scores can be due to other code around the
// model, the receipt is not blamed for them.
func CompareScores(ctx context.Context, m *detect.Model, here CodeSetup, r kernel.Receipt, s Setup, prompt string) error {
	if s.Detector.Name != DetectorLocal || s.Detector.SHA256 != m.SHA256() {
		return fmt.Errorf("%w: another detector model scored it", ErrNotCompared)
	}
	if reason := moreThanPrompt(r, prompt); reason != "" {
		return fmt.Errorf("%w: %s", ErrNotCompared, reason)
	}
	signal, err := m.Assess(ctx, []detect.Text{{Source: detect.User, Body: prompt}})
	if err != nil {
		return fmt.Errorf("scoring a prompt: %w", err)
	}
	var differs string
	switch {
	case signal.Scores != r.Scores:
		differs = "scores"
	case signal.SelfReference != r.SovereigntyDrift:
		differs = "sovereignty_drift"
	case s.Embedder.Provider == DetectorLocal && signal.Threat != r.ThreatSignal:
		differs = "prompt_threat_signal"
	default:
		return nil
	}
	if differs == "scores" && guardMoved(r, s) {
		return fmt.Errorf("%w: a guard moved the scores", ErrNotCompared)
	}
	if !here.same(s.Code) {
		return fmt.Errorf("%w: %s differs, but so may the code", ErrNotCompared, differs)
	}
	return fmt.Errorf("%w: %s differs", ErrScores, differs)
}

// guardMoved reports whether a guard that does not only observe gave a verdict on what came
// in. Its probability is recorded without the class that it is of, so the scores cannot be
// computed from it.
func guardMoved(r kernel.Receipt, s Setup) bool {
	return slices.ContainsFunc(s.Guards, func(g GuardSetup) bool {
		return g.Ask != AskObserve && slices.ContainsFunc(r.Coverage.Detectors, func(d kernel.DetectorRun) bool {
			in := d.Name == detectorOfGuard(g.Name, model.RolePrompt) || d.Name == detectorOfGuard(g.Name, model.RoleToolResult)
			return in && d.Outcome != kernel.NotRun && d.Score > 0
		})
	})
}

// moreThanPrompt returns why the scores of a receipt do not follow from its prompt alone, or
// "". They do if the detector read one part of the request, which was the prompt, all of it,
// and nothing of the answer.
func moreThanPrompt(r kernel.Receipt, prompt string) string {
	const more = "more than the prompt was scored"
	ofRequest := func(part string) bool { return part == "request" || strings.HasPrefix(part, "request.") }
	whole := func(parts []kernel.SkippedPart) bool {
		return !slices.ContainsFunc(parts, func(p kernel.SkippedPart) bool { return ofRequest(p.Part) })
	}
	read := 0
	for _, p := range r.Coverage.Inspected {
		switch {
		case !ofRequest(p.Part) && p.Detector != DetectorLocal: // the judge's
		case p.Detector == DetectorTemplate:
			return "a template has some of its words"
		case p.Detector == DetectorLocal && ofRequest(p.Part) && p.Bytes == len(prompt):
			read++
		default:
			return more
		}
	}
	switch {
	case r.Tool != "":
		return "a tool call has no prompt"
	case read == 0:
		return "the prompt was not scored"
	case read > 1:
		return more
	case !whole(r.Coverage.Skipped) || !whole(r.Coverage.Unknown) || !whole(r.Coverage.Redacted):
		return "parts of the request were not scored"
	}
	return ""
}

// same reports whether two builds are known to be of the same source.
func (c CodeSetup) same(other CodeSetup) bool {
	if c.Version != other.Version || c.Revision != other.Revision || c.Modified || other.Modified {
		return false
	}
	return c.Revision != "" || strings.HasPrefix(c.Version, "v") // a release, and no local build
}
