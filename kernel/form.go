package kernel

import (
	"fmt"
	"slices"
)

// CheckForm returns nil unless the receipt's members say what cannot be: a number that no
// step can have started from, a word that is none, or members that contradict one another.
// The error wraps [ErrReceipt] and names a member. What the members should be is not asked
// here: that shows in [Kernel.Replay] and [Chain].
func (r Receipt) CheckForm() error {
	before := r.start()
	err := checkSession(&before)
	if err == nil {
		err = r.checkFacts()
	}
	if err == nil && r.Tool == "" {
		err = r.checkText()
	} else if err == nil {
		err = r.checkToolCall()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrReceipt, err)
	}
	return nil
}

// outcomes are all that there are.
var outcomes = [...]Outcome{Answered, Refused, ProviderFailed, ClientGone, Aborted, Failed}

// noTrace is the trace id that stands for none.
const noTrace = "00000000000000000000000000000000"

// checkFacts checks what every receipt says of when and how.
func (r *Receipt) checkFacts() error {
	switch {
	case r.Turn < 1:
		return fmt.Errorf("%w: turn is under 1", ErrInput)
	case r.Timestamp < 1:
		return fmt.Errorf("%w: timestamp is under 1", ErrInput)
	case !slices.Contains(outcomes[:], r.Outcome):
		return fmt.Errorf("%w: outcome is unknown", ErrInput)
	case r.Mode != Enforce && r.Mode != Observe:
		return fmt.Errorf("%w: mode is unknown", ErrInput)
	case r.Refused && r.Outcome == Answered:
		return fmt.Errorf("%w: outcome is answered, but the turn was refused", ErrInput)
	case r.Refused && r.Mode == Observe:
		return fmt.Errorf("%w: mode is observe, but the turn was refused", ErrInput)
	case r.Migrated && r.Prev == "":
		return fmt.Errorf("%w: migrated is true in the first receipt of a session", ErrInput)
	case r.TraceID != "" && (!traceID.MatchString(r.TraceID) || r.TraceID == noTrace):
		return fmt.Errorf("%w: trace_id is not 32 lower-case hex digits, or all of them are 0", ErrInput)
	case slices.ContainsFunc(r.Coverage.Detectors, func(d DetectorRun) bool { return !inUnit(d.Score) || d.Millis < 0 }):
		return fmt.Errorf("%w: a detector's score is not in [0, 1], or its time under 0", ErrInput)
	}
	return nil
}

// checkText checks the receipt of governed text.
func (r *Receipt) checkText() error {
	if r.ToolCall != (ToolCall{}) {
		return fmt.Errorf("%w: tool is empty, but there are other members of a tool call", ErrInput)
	}
	if err := checkEvidence(&r.Evidence); err != nil {
		return err
	}
	return checkOutput(&r.Output)
}

// checkToolCall checks the receipt of a tool call.
func (r *Receipt) checkToolCall() error {
	switch {
	case r.Decision != Approved && r.Decision != Blocked:
		return fmt.Errorf("%w: decision is unknown", ErrInput)
	case r.Refused != (r.Decision == Blocked):
		return fmt.Errorf("%w: decision and refused differ", ErrInput)
	case r.PromptCommitment != "" || r.OutputCommitment != "":
		return fmt.Errorf("%w: a tool call has no prompt and no output", ErrInput)
	case r.Output != (Output{}):
		return fmt.Errorf("%w: a tool call has no answer that was judged", ErrInput)
	}
	call := r.ToolCall
	return checkCall(&call, &r.Evidence, r.Mode)
}
