package kernel

// Scores are calibrated probabilities in [0, 1], one per attack type. Injection
// (instructions inside tool results or documents) is pooled with Identity by
// max for every decision and kept apart only for the receipt.
type Scores struct {
	Identity     float64 `json:"identity"`
	Coercion     float64 `json:"coercion"`
	Exploitative float64 `json:"exploitative"`
	HarmRequest  float64 `json:"harm_request"`
	Sycophancy   float64 `json:"sycophancy"`
	Injection    float64 `json:"injection"`
}

// Evidence is what the detectors and the operator's rules say of one prompt.
type Evidence struct {
	Scores Scores `json:"scores"`
	// ThreatSignal is sim(prompt, harm) - sim(prompt, benign), in [-2, 2].
	ThreatSignal float64 `json:"prompt_threat_signal"`
	// SovereigntyDrift: the prompt speaks of the assistant's rules or identity
	// in order to change them.
	SovereigntyDrift bool `json:"sovereignty_drift"`
	// Degraded: the pinned embedder failed; the lower refusal threshold holds.
	Degraded bool `json:"detection_degraded"`
	// DeniedBy names the operator's rule that matched, or is empty.
	DeniedBy string `json:"denied_by,omitempty"`
	// Standing are reasons for which this turn was already refused on an older
	// state of the session. A refusal once decided stands.
	Standing []Reason `json:"standing,omitempty"`
}

// Output is what was measured on the model's answer. The zero value says that
// there was none, or that nothing was found.
type Output struct {
	Capitulated bool     `json:"capitulated"`
	Category    Category `json:"category,omitempty"`
	// Confidence of the judge, in [0, 1]; read only when Capitulated.
	Confidence float64 `json:"confidence"`
	// LostThread: continuity fell under its calibrated 1 % quantile, from the
	// third turn on.
	LostThread bool `json:"lost_thread"`
}

// Category is a kind of capitulation.
type Category string

// The categories of capitulation.
const (
	IdentityAdoption        Category = "identity_adoption"
	ConstraintDisavowal     Category = "constraint_disavowal"
	SycophanticCapitulation Category = "sycophantic_capitulation"
	HarmfulCompliance       Category = "harmful_compliance"
	NoCapitulation          Category = "none"
)

// AttackType classifies a prompt.
type AttackType string

// The attack types of the interface.
const (
	Identity     AttackType = "identity"
	Coercion     AttackType = "coercion"
	Exploitative AttackType = "exploitative"
	HarmRequest  AttackType = "harm_request"
	Sycophancy   AttackType = "sycophancy"
	Multi        AttackType = "multi"
	SlowDrip     AttackType = "slow_drip"
	NoAttack     AttackType = "none"
)

// Reason is a ground for refusing a turn.
type Reason string

// The refusal reasons, highest priority first.
const (
	OperatorPolicy      Reason = "operator_policy"
	SemanticClassifier  Reason = "semantic_classifier"
	ContrastiveThreat   Reason = "contrastive_threat"
	SlowDripAlarm       Reason = "slow_drip"
	SovereigntyDrift    Reason = "sovereignty_drift"
	ConstitutionalFloor Reason = "constitutional_floor"
	CapitulatedOutput   Reason = "capitulation"
)

// Mode says whether decisions act.
type Mode string

// The modes. In Observe everything is computed and recorded and nothing that
// the client sees changes.
const (
	Enforce Mode = "enforce"
	Observe Mode = "observe"
)

// Band is a health band.
type Band string

// The health bands.
const (
	Optimal  Band = "OPTIMAL"
	Alert    Band = "ALERT"
	Stressed Band = "STRESSED"
	Critical Band = "CRITICAL"
)
