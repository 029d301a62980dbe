package kernel

// A Turn is one step of the kernel: what it was given, what it computed, what
// it decided and the session it leaves. [Policy.Assess] makes it from the
// prompt's evidence, [Policy.Conclude] completes it with the output's.
type Turn struct {
	// Inputs.
	Mode     Mode
	Before   Session // after projection, when the policy had changed
	Migrated bool    // Before came from another policy and was projected
	Evidence Evidence
	Output   Output

	// Signals.
	Severity   float64
	AttackType AttackType
	SlowDrip   bool // the CUSUM alarmed on this turn

	// The step (KERNEL.md section 3). The weights used are Before.Z.
	Pressure       Point // types' pressure and Before.Carry, least component removed, clipped
	Raw            Point
	State          Point
	MBefore        float64 // min Raw
	M              float64 // min State
	DeltaV         float64
	StabilityRatio float64
	LyapunovV      float64
	ZShift         float64
	SigmaViol      float64
	Effort         float64
	Intervened     bool

	// The decision.
	Reasons      []Reason // every reason that holds, by priority, in both modes
	Refused      bool     // Reasons hold and the mode is Enforce
	Band         Band
	Label        string // pre_eval_label: CLEAR, WATCH or THREAT
	GovernorMode string // observe, refuse, correct or pass
	Sensing      Sensing

	// Next is the session after this turn.
	Next Session
}

// Sensing reports what the previous output's pressure did in this turn.
type Sensing struct {
	Fired             bool    // Before.Carry was not zero
	ActivePillar      *Pillar // its largest component; nil when not fired
	CorrectionApplied bool    // it moved the state
}
