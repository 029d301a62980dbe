package kernel

import (
	"fmt"
	"slices"
)

// A ToolCall is what was decided of one tool call. The zero value says that the
// turn is governed text.
type ToolCall struct {
	// Tool is the tool's name as the caller gave it; never empty for a call.
	Tool string `json:"tool"`
	// Decision is Approved or Blocked; empty for governed text.
	Decision ToolDecision `json:"decision"`
	// Invariant that the call breaks, or empty. In the mode observe a call that
	// breaks one is approved all the same. [SessionRisk] is the kernel's own.
	Invariant string `json:"invariant"`
	// Rule is the operator's rule that blocks the call, or empty.
	Rule string `json:"rule,omitzero"`
	// Effect is what the tool does to the world, and HighRisk that what it does is grave
	// and cannot be undone.
	Effect   ToolEffect `json:"effect,omitzero"`
	HighRisk bool       `json:"high_risk,omitzero"`
	// Standalone: the call is asked about by itself and is not part of an answer.
	Standalone bool `json:"standalone,omitzero"`
	// Provenance is where the call's sensitive arguments come from; empty when it has
	// none or when the conversation is not known.
	Provenance Provenance `json:"provenance,omitzero"`
	// Flagged is an invariant that the call comes near to, which the operator's policy
	// lets pass; or empty.
	Flagged string `json:"flagged,omitzero"`
	// ArgumentsCommitment is made by [Commit] over the arguments as they were sent, under
	// its [CommitmentKey]; empty when there were none.
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

// RecordToolCall returns the turn of a decided tool call. The caller says what the call
// is; the kernel decides what becomes of it: a call with an Invariant or a Rule is
// blocked in the mode enforce. A call with neither is still denied, with the Invariant
// [SessionRisk], where the state of the session before it does not allow its Effect:
//
//   - at the barrier (M <= tau) only ToolReads are allowed;
//   - under recovery neither ToolWrites nor ToolSends are;
//   - a HighRisk call needs M >= optimal.
//
// A call without an Effect is never denied so. c.Decision is ignored, and so is an
// Invariant that says SessionRisk: both are decided here.
//
// e holds what a broken invariant tells of the session: scores and nothing else, zero if
// it tells nothing. With scores the session takes a step, as it does with the scores of a
// prompt, except that it does not relax (rho is 0): a blocked call only presses, or an
// attacker could calm a session by trying. Without scores no step is taken and the session
// stays as it is, so the calls of one answer, of which there may be many, neither calm a
// session nor age it. Only an approved call that is Standalone takes a quiet step, because
// nothing else would ever calm the session of an agent that asks for nothing but its
// calls; the slow-drip statistics stay. In each case the carried pressure does not act and
// stays for the turn that generates. A call that breaks an invariant counts as a threat;
// Reasons are those of text and stay empty.
//
// Errors are those of [Kernel.Assess]. A call without a tool, of an unknown effect or
// provenance, or with evidence but no broken invariant is one that wraps [ErrInput].
func (k *Kernel) RecordToolCall(s Session, c ToolCall, e Evidence, m Mode) (Turn, error) {
	migrated, err := k.admit(&s)
	if err == nil {
		err = checkCall(&c, &e, m)
	}
	if err != nil {
		return Turn{}, fmt.Errorf("recording a tool call: %w", err)
	}
	t := Turn{Mode: m, Before: s, Migrated: migrated, Evidence: e, Call: c, AttackType: NoAttack}
	k.decideCall(&t)
	switch {
	case e.Scores != (Scores{}):
		t.Next.Policy = k.hash
		k.classify(&t)
		t.Pressure = k.relative(k.attackPressure(e.Scores))
		k.step(&t, 0)
	case c.Standalone && !t.Call.denied():
		t.Next.Policy, t.Next.CUSUM, t.Next.CUSUMSlow = k.hash, s.CUSUM, s.CUSUMSlow
		k.step(&t, k.policy.Rho)
	default:
		k.keepState(&t)
	}
	t.Next.Carry = s.Carry
	t.Band, t.GovernorMode = k.band(&t), governorMode(&t)
	return t, nil
}

// checkCall checks what the caller says of a call, and takes back an invariant that only
// the kernel may name.
func checkCall(c *ToolCall, e *Evidence, m Mode) error {
	if c.Invariant == SessionRisk {
		c.Invariant = ""
	}
	if err := checkEvidence(e); err != nil {
		return err
	}
	switch {
	case c.Tool == "":
		return fmt.Errorf("%w: no tool", ErrInput)
	case m != Enforce && m != Observe:
		return fmt.Errorf("%w: mode", ErrInput)
	case !slices.Contains(effects[:], c.Effect):
		return fmt.Errorf("%w: effect is unknown", ErrInput)
	case !slices.Contains(provenances[:], c.Provenance):
		return fmt.Errorf("%w: provenance is unknown", ErrInput)
	case e.more():
		return fmt.Errorf("%w: a tool call has evidence beside scores", ErrInput)
	case e.Scores != (Scores{}) && c.Invariant == "":
		return fmt.Errorf("%w: a tool call has scores but breaks no invariant", ErrInput)
	}
	return nil
}

// effects and provenances are all that there are; the first says that it is not known.
var (
	effects     = [...]ToolEffect{"", ToolReads, ToolWrites, ToolSends, ToolOther}
	provenances = [...]Provenance{"", FromUser, FromModel, FromUntrusted, FromInstruction}
)

// more reports whether there is any evidence beside the scores.
func (e *Evidence) more() bool {
	return e.ThreatSignal != 0 || e.SovereigntyDrift || e.Degraded || e.DeniedBy != "" || len(e.Standing) > 0 || e.Repeated || e.Unassessed
}

// decideCall decides from the call and from the state before it.
func (k *Kernel) decideCall(t *Turn) {
	c := &t.Call
	if c.Invariant == "" && c.Rule == "" && k.deniesCall(t.Before.X, c) {
		c.Invariant = SessionRisk
	}
	t.Refused = c.denied() && t.Mode == Enforce
	c.Decision = Approved
	if t.Refused {
		c.Decision = Blocked
	}
	t.Label = LabelClear
	if c.Invariant != "" {
		t.Label = LabelThreat
	}
}

// denied reports whether the call is blocked where the mode lets it be.
func (c *ToolCall) denied() bool { return c.Invariant != "" || c.Rule != "" }

// deniesCall reports whether the state x denies a call. The governor leaves a component
// at tau to the last bit, so the barrier needs no tolerance.
func (k *Kernel) deniesCall(x Point, c *ToolCall) bool {
	margin := x.Min()
	switch {
	case c.Effect == "":
		return false
	case c.HighRisk && margin < k.policy.Optimal:
		return true
	case margin <= k.policy.Tau:
		return c.Effect != ToolReads
	case margin < k.policy.Recovery:
		return c.Effect == ToolWrites || c.Effect == ToolSends
	}
	return false
}

// keepState takes no step: the state after the turn is the one before it, and so
// are the slow-drip statistics. What becomes of the carried pressure is the caller's to say.
func (k *Kernel) keepState(t *Turn) {
	x, z := t.Before.X, t.Before.Z
	t.Next = t.Before
	t.SlowDrip = false
	if t.AttackType == SlowDrip {
		t.AttackType = k.attackType(t.Evidence.Scores.pooled())
	}
	t.Raw, t.State, t.MBefore, t.M = x, x, x.Min(), x.Min()
	t.StabilityRatio = 1 // at rest
	t.LyapunovV = divergence(z, logs(z), logs(x))
}
