package kernel

import (
	"slices"

	"github.com/go-json-experiment/json"
)

// Coverage says exactly what of a turn was inspected. What could not be
// inspected is named, with its reason, and never counts as clean.
type Coverage struct {
	// Detectors, in the order in which they ran or would have run.
	Detectors []DetectorRun `json:"detectors"`
	// Inspected are the content-bearing parts that a detector read whole.
	Inspected []CoveredPart `json:"inspected"`
	// Redacted are parts of a resent history that were replaced before anything
	// was forwarded, because they were refused when they were new or would be now.
	Redacted []SkippedPart `json:"redacted,omitempty"`
	// Skipped are parts that are known and that no detector read.
	Skipped []SkippedPart `json:"skipped"`
	// Unknown are parts whose meaning the dialect does not know.
	Unknown []SkippedPart `json:"unknown"`
	// BytesInspected of request and response together; >= 0.
	BytesInspected int `json:"bytes_inspected"`
	// BytesForwarded to the model or the server: of the body of a request as it was sent
	// on, framing included, and of a tool call its name and arguments; 0 if nothing was.
	BytesForwarded int `json:"bytes_forwarded"`
}

// DetectorRun is what became of one detector.
type DetectorRun struct {
	Name    string          `json:"name"`
	Outcome DetectorOutcome `json:"outcome"`
	// Why it did not run, or how it failed; empty otherwise. Never content.
	Why string `json:"why"`
	// Score of a guard: the highest probability that it gave, in [0, 1]; absent when it
	// gave none.
	Score float64 `json:"score,omitzero"`
	// Millis is how long a guard was waited for, in milliseconds; absent under one.
	Millis int `json:"millis,omitzero"`
}

// DetectorOutcome is how a detector's run ended.
type DetectorOutcome string

// The outcomes of a detector.
const (
	Clean          DetectorOutcome = "clean"   // it ran and found nothing
	Flagged        DetectorOutcome = "flagged" // it ran and found something
	NotRun         DetectorOutcome = "not_run" // it did not run
	DetectorFailed DetectorOutcome = "failed"  // it broke
)

// CoveredPart is a part that a detector read.
type CoveredPart struct {
	Part     string `json:"part"` // where it stands, e.g. request.messages[0].content
	Detector string `json:"detector"`
	Bytes    int    `json:"bytes"`
}

// SkippedPart is a part that no detector read.
type SkippedPart struct {
	Part  string `json:"part"`
	Why   string `json:"why"`
	Bytes int    `json:"bytes"`
}

// Complete reports whether at least one detector ran, all of them ran to their
// end, and no part was skipped or unknown. The zero value is not complete:
// nothing was looked at.
func (c Coverage) Complete() bool {
	broken := slices.ContainsFunc(c.Detectors, func(d DetectorRun) bool {
		return d.Outcome != Clean && d.Outcome != Flagged
	})
	return len(c.Detectors) > 0 && !broken && len(c.Skipped) == 0 && len(c.Unknown) == 0
}

// MarshalJSON writes absent lists as [], so that a record has one shape.
func (c Coverage) MarshalJSON() ([]byte, error) {
	type shape Coverage
	return json.Marshal(shape(c))
}
