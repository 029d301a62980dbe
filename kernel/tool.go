package kernel

import "fmt"

// A ToolCall is what was decided of one tool call. The zero value says that the
// turn is governed text.
type ToolCall struct {
	// Tool is the tool's name as the caller gave it; never empty for a call.
	Tool string `json:"tool"`
	// Decision is Approved or Blocked; empty for governed text.
	Decision ToolDecision `json:"decision"`
	// Invariant that the call breaks, or empty. In the mode observe a call that
	// breaks one is approved all the same.
	Invariant string `json:"invariant"`
	// Rule is the operator's rule that blocks the call, or empty.
	Rule string `json:"rule,omitzero"`
	// Effect is what the tool does to the world, and HighRisk that what it does is grave
	// and cannot be undone.
	Effect   ToolEffect `json:"effect,omitzero"`
	HighRisk bool       `json:"high_risk,omitzero"`
	// Provenance is where the call's sensitive arguments come from; empty when it has
	// none or when the conversation is not known.
	Provenance Provenance `json:"provenance,omitzero"`
	// Flagged is an invariant that the call comes near to, which the operator's policy
	// lets pass; or empty.
	Flagged string `json:"flagged,omitzero"`
	// ArgumentsCommitment is made by [Commit] over the arguments as they were
	// sent; empty when there were none.
	ArgumentsCommitment string `json:"arguments_commitment"`
}

// ToolDecision is what became of a tool call.
type ToolDecision string

// The decisions on tool calls.
const (
	Approved ToolDecision = "approved"
	Blocked  ToolDecision = "blocked"
)

// ToolEffect is what a tool does to the world.
type ToolEffect string

// The effects of tools. What cannot be told is Other, which a session whose state is at
// the barrier denies too.
const (
	ToolReads  ToolEffect = "read"
	ToolWrites ToolEffect = "write"
	ToolSends  ToolEffect = "send"
	ToolOther  ToolEffect = "other"
)

// Provenance is where the sensitive arguments of a call (receivers, accounts, addresses,
// files, commands) come from. Of several the worst counts, which is the last of these.
type Provenance string

// The provenances.
const (
	FromUser        Provenance = "user"        // the user or the application wrote them
	FromModel       Provenance = "model"       // nobody in the conversation did
	FromUntrusted   Provenance = "untrusted"   // only a tool or a document did
	FromInstruction Provenance = "instruction" // only one that also gives instructions did
)

// SessionRisk is the Invariant of a call that the state of its session denies.
const SessionRisk = "session_risk"

// RecordToolCall returns the turn of a decided tool call. It takes no step: the
// session after the turn is the session before it, so an agent can neither calm
// a session by harmless calls nor age it. The caller gives c.Tool and
// c.Invariant; the decision follows from the invariant and the mode. A call that breaks an invariant
// counts as a threat; when it is blocked the turn counts as refused.
//
// Errors are those of [Kernel.Assess]; a call without a tool is one that wraps
// [ErrInput].
func (k *Kernel) RecordToolCall(s Session, c ToolCall, m Mode) (Turn, error) {
	migrated, err := k.admit(&s)
	switch {
	case err != nil:
		return Turn{}, fmt.Errorf("recording a tool call: %w", err)
	case c.Tool == "":
		return Turn{}, fmt.Errorf("recording a tool call: %w: no tool", ErrInput)
	case m != Enforce && m != Observe:
		return Turn{}, fmt.Errorf("recording a tool call: %w: mode", ErrInput)
	}
	t := Turn{Mode: m, Before: s, Migrated: migrated, AttackType: NoAttack}
	k.keepState(&t)
	t.Next.Carry = s.Carry // it waits for a turn that generates
	t.Call = c
	t.Call.Decision = Approved
	t.Refused = c.Invariant != "" && m == Enforce
	if t.Refused {
		t.Call.Decision = Blocked
	}
	t.Label = LabelClear
	if c.Invariant != "" {
		t.Label = LabelThreat
	}
	t.Band, t.GovernorMode = k.band(&t), governorMode(&t)
	return t, nil
}

// keepState takes no step: the state after the turn is the one before it, and so
// is the slow-drip statistic. The carried pressure is gone, because the turn that
// is repeated has used it.
func (k *Kernel) keepState(t *Turn) {
	x, z := t.Before.X, t.Before.Z
	t.Next = t.Before
	t.Next.Carry = Point{}
	t.SlowDrip = false
	if t.AttackType == SlowDrip {
		t.AttackType = k.attackType(t.Evidence.Scores.pooled())
	}
	t.Raw, t.State, t.MBefore, t.M = x, x, x.Min(), x.Min()
	t.StabilityRatio = 1 // at rest
	t.LyapunovV = divergence(z, logs(z), logs(x))
}
