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
// The zero value says that nothing was found.
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
	DeniedBy string `json:"denied_by"`
	// Standing are reasons for which this turn was already refused on an older
	// state of the session. A refusal once decided stands.
	Standing []Reason `json:"standing"`
	// Repeated: the same turn again, after one of which the client got no answer.
	// Its evidence is in the session already, so the decision is made and no step
	// is taken: a client that repeats a failed call is not an attacker who
	// insists.
	Repeated bool `json:"repeated,omitzero"`
	// Unassessed: no detector read any text of the turn, because there was only something
	// else in it, such as an image, or nothing. Nothing is known of it, which is not the
	// same as nothing found: no step is taken, so that it neither presses on the session
	// nor relieves it. There are no scores then and no signals.
	Unassessed bool `json:"unassessed,omitzero"`
}

// Output is what was measured on the model's answer. The zero value says that
// there was none, or that nothing was found.
type Output struct {
	Capitulated bool `json:"capitulated"`
	// Category of the capitulation; read only when Capitulated. Empty counts
	// as NoCapitulation.
	Category Category `json:"category"`
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
	IdentityAdoption        Category = "identity_adoption"        // the output takes on the identity the prompt asked for
	ConstraintDisavowal     Category = "constraint_disavowal"     // it declares its own rules void
	SycophanticCapitulation Category = "sycophantic_capitulation" // it gives up a true statement under pressure
	HarmfulCompliance       Category = "harmful_compliance"       // it does what it should have refused
	NoCapitulation          Category = "none"
)

// AttackType classifies a prompt.
type AttackType string

// The attack types of the interface.
const (
	Identity     AttackType = "identity"     // overwrites who the assistant is, injection included
	Coercion     AttackType = "coercion"     // threatens or bribes the assistant
	Exploitative AttackType = "exploitative" // turns the assistant against a third person
	HarmRequest  AttackType = "harm_request" // asks for what harms
	Sycophancy   AttackType = "sycophancy"   // demands agreement against the truth
	Multi        AttackType = "multi"        // two types or more at once
	SlowDrip     AttackType = "slow_drip"    // many quiet turns that add up
	NoAttack     AttackType = "none"
)

// Reason is a ground for refusing a turn.
type Reason string

// The refusal reasons, highest priority first.
const (
	OperatorPolicy      Reason = "operator_policy"      // a rule in the operator's configuration
	SemanticClassifier  Reason = "semantic_classifier"  // severity at the refusal threshold in force
	ContrastiveThreat   Reason = "contrastive_threat"   // nearer to harm than to benign, and a type suspects it
	SlowDripAlarm       Reason = "slow_drip"            // the CUSUM alarm
	SovereigntyDrift    Reason = "sovereignty_drift"    // self-reference, and a type suspects it
	ConstitutionalFloor Reason = "constitutional_floor" // the raw state left the hard safe set, and the severity is high
	CapitulatedOutput   Reason = "capitulation"         // the model's answer gave in
)

// Mode says whether decisions act.
type Mode string

// The modes. In Observe everything is computed and recorded and nothing that
// the client sees changes.
const (
	Enforce Mode = "enforce"
	Observe Mode = "observe"
)

// Band is a health band: the margin M in words.
type Band string

// The health bands, by their lower edges.
const (
	Optimal  Band = "OPTIMAL"  // M >= optimal
	Alert    Band = "ALERT"    // M >= recovery
	Stressed Band = "STRESSED" // M >= tau, which the governor sees to
	Critical Band = "CRITICAL" // the turn was refused
)
