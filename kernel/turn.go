package kernel

// A Turn is one step of the kernel: what it was given, what it computed, what
// it decided and the session it leaves. [Kernel.Assess] makes it from the
// prompt's evidence, [Kernel.Conclude] completes it with the output's. It is a
// plain value; copies share only the backing arrays of its slices, which the
// kernel never writes to again.
type Turn struct {
	// Mode, as given.
	Mode Mode
	// Before is the session before the turn: as given, or after the projection
	// on the present policy's range when Migrated.
	Before Session
	// Migrated: Before came from another policy.
	Migrated bool
	// Evidence of the prompt or the tool call, as given (-0 written 0).
	Evidence Evidence
	// Output is the evidence of the answer; the zero value until Conclude.
	Output Output
	// Call is the decided tool call of [Kernel.RecordToolCall]; the zero value
	// for text.
	Call ToolCall

	// Severity of the prompt, in [0, 1].
	Severity float64
	// AttackType of the prompt.
	AttackType AttackType
	// SlowDrip: a chart alarmed on this turn.
	SlowDrip bool

	// Pressure is the sum of the types' pressure and Before.Carry, its least
	// component removed, clipped. The weights used are Before.Z.
	Pressure Point
	// Raw is the state after the drift, before the governor.
	Raw Point
	// State is the governed state: the information projection of Raw on
	// {y >= tau}.
	State Point
	// MBefore is min Raw.
	MBefore float64
	// MFloor is the margin that the floor judges: what the turn's pressure alone leaves
	// of the pillar that it presses most, from the state before the turn, where the
	// other two count alike. It is positive for a severe turn under revision 1 and 0
	// for any other, which the floor does not judge.
	MFloor float64
	// M is min State; >= tau.
	M float64
	// DeltaV is V(State) - V(Before.X) with this turn's weights; 0 when it is
	// smaller than 1e-12 in size.
	DeltaV float64
	// StabilityRatio is (descent + 0.001)/(drift + 0.001): 1 at rest, above 1
	// exactly when DeltaV < 0.
	StabilityRatio float64
	// LyapunovV is V(State) with this turn's weights; >= 0, in nats.
	LyapunovV float64
	// ZShift is what the change of the weights does to V at State, because V's
	// yardstick moves with them.
	ZShift float64
	// SigmaViol is the sum of max(0, tau - raw_i).
	SigmaViol float64
	// Effort is the Euclidean length of the governor's correction.
	Effort float64
	// Intervened: the governor fired, which is MBefore < tau.
	Intervened bool

	// Reasons holds every reason that holds, by priority, in both modes; nil
	// when there is none, and for a tool call.
	Reasons []Reason
	// Refused: Reasons hold, or the tool call breaks an invariant or a rule, and the
	// mode is Enforce.
	Refused bool
	// Band is the health band: of M, or Critical when refused.
	Band Band
	// Label is the pre_eval_label: [LabelClear], [LabelWatch], [LabelThreat] or
	// [LabelUnassessed].
	Label string
	// GovernorMode is what the governor did: [GovernorObserve],
	// [GovernorRefuse], [GovernorCorrect] or [GovernorPass].
	GovernorMode string
	// Sensing reports what the previous output's pressure did.
	Sensing Sensing

	// Next is the session after this turn.
	Next Session
}

// PrimaryReason returns the reason of highest priority, or "" when there is
// none.
func (t Turn) PrimaryReason() Reason {
	if len(t.Reasons) == 0 {
		return ""
	}
	return t.Reasons[0]
}

// The values of Turn.Label: how the prompt looks before anything is generated.
const (
	LabelClear      = "CLEAR"      // severity below watch_at
	LabelWatch      = "WATCH"      // between
	LabelThreat     = "THREAT"     // severity at the refusal threshold in force
	LabelUnassessed = "UNASSESSED" // no detector read it
)

// The values of Turn.GovernorMode; the first that holds.
const (
	GovernorObserve = "observe" // the mode is Observe: nothing acts
	GovernorRefuse  = "refuse"  // the turn was refused
	GovernorCorrect = "correct" // the governor moved the state
	GovernorPass    = "pass"    // nothing had to be done
)

// Sensing reports what the previous output's pressure did in this turn.
type Sensing struct {
	Fired             bool    // Before.Carry was not zero
	ActivePillar      *Pillar // its largest component; nil when not fired
	CorrectionApplied bool    // it moved the state
}
