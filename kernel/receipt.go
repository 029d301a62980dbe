package kernel

// A Receipt is the record of one governed turn or of one decided tool call. It
// is flat, and holds the inputs of the kernel's step and its outputs, so that
// the step can be replayed ([Kernel.Replay]). Its id is a hash of everything
// else in it. It holds no text of the conversation: only commitments to it.
//
// JSON is the only form: [Receipt.JSON] writes it and [ParseReceipt] reads it.
// A Receipt is a plain value.
type Receipt struct {
	// The public fields.

	// ID is "KRN-" or "TCR-" and 32 upper-case hex digits; [Receipt.Seal] sets it.
	ID string `json:"id"`
	// SessionID is the session as public lists show it.
	SessionID string `json:"session_id"`
	// Turn is the caller's label of the turn, not a position in the chain.
	Turn int `json:"turn"`
	// Label is how the prompt looked: CLEAR, WATCH or THREAT.
	Label string `json:"pre_eval_label"`
	// MBefore is the margin before the governor, MAfter after it.
	MBefore float64 `json:"m_before"`
	MAfter  float64 `json:"m_after"`
	// GovernorMode is observe, refuse, correct or pass.
	GovernorMode string `json:"governor_mode"`
	// Intervened: the governor fired.
	Intervened bool `json:"intervention"`
	// SlowDrip: a slow-drip chart alarmed.
	SlowDrip bool `json:"slow_drip"`
	// Effort is the Euclidean length of the correction.
	Effort float64 `json:"governor_effort"`
	// SigmaViol is by how much the raw state fell short of tau, summed.
	SigmaViol float64 `json:"sigma_viol"`
	// Timestamp in Unix milliseconds.
	Timestamp int64 `json:"timestamp"`

	// Where the turn stands.

	// Prev is the link of the session's previous receipt ([Receipt.Link]), empty for the
	// first. In older receipts it is that receipt's id.
	Prev string `json:"prev"`
	// Resent: the session is known only by the history that the client resends,
	// so a client that goes back makes its chain branch ([Chain]).
	Resent bool `json:"resent"`
	// Nonce occurs in no other receipt. It tells two turns apart that
	// agree in all else, the same words to the same state in the same millisecond, and
	// gives their commitments keys of their own ([CommitmentKey]).
	Nonce string `json:"nonce"`
	// Version identifies the pipeline.
	Version string `json:"version"`
	// Policy is the policy's hash ([Policy.Hash]).
	Policy string `json:"policy"`
	// Setup is the lower-case hex SHA-256 of the JSON document that names all else that
	// decided: the version of the code, the models, the rules and the texts. Older
	// receipts have none.
	Setup string `json:"setup,omitzero"`
	// TraceID is the trace that the turn belongs to, 32 lower-case hex digits that are not
	// all 0 (W3C Trace Context, 3.2.2.3), or empty. The caller may have chosen it.
	TraceID string `json:"trace_id,omitzero"`
	Mode    Mode   `json:"mode"`
	// Endpoint, Dialect and Model as the caller names them.
	Endpoint string  `json:"endpoint"`
	Dialect  string  `json:"dialect"`
	Model    string  `json:"model"`
	Outcome  Outcome `json:"outcome"`

	// The decision.

	Refused bool `json:"refused"`
	// WouldRefuse: only the mode observe kept Reasons, or the broken Invariant or
	// Rule, from refusing the turn.
	WouldRefuse bool       `json:"would_refuse"`
	Reasons     []Reason   `json:"reasons"`
	AttackType  AttackType `json:"attack_type"`
	Severity    float64    `json:"severity"`
	Band        Band       `json:"health_band"`

	// The inputs of the step. X, Z, CUSUM and Carry are the session before it;
	// when Migrated, after the projection on the policy's range.

	X         Point   `json:"x"`
	Z         Point   `json:"z"`
	CUSUM     float64 `json:"cusum"`
	CUSUMSlow float64 `json:"cusum_slow,omitzero"`
	Carry     Point   `json:"carry"`
	Migrated  bool    `json:"migrated"`
	Evidence
	Output

	// The tool call, empty in the record of governed text. The record of a tool call
	// holds a step where Evidence has scores: see [Kernel.RecordToolCall].

	ToolCall

	// The outputs of the step, as in [Turn].

	// MFloor is the margin that the floor judges; absent where it judges none.
	MFloor         float64 `json:"m_floor,omitzero"`
	Pressure       Point   `json:"pressure"`
	Raw            Point   `json:"raw_state"`
	State          Point   `json:"state"`
	ZNext          Point   `json:"z_next"`
	CUSUMNext      float64 `json:"cusum_next"`
	CUSUMSlowNext  float64 `json:"cusum_slow_next,omitzero"`
	CarryNext      Point   `json:"carry_next"`
	DeltaV         float64 `json:"delta_V"`
	StabilityRatio float64 `json:"stability_ratio"`
	LyapunovV      float64 `json:"lyapunov_V"`
	ZShift         float64 `json:"z_shift"`

	// What was said, sealed, and what was looked at.

	// PromptCommitment and OutputCommitment are made by [Commit] over the texts as they
	// were sent, each under its [CommitmentKey]; empty when there was no such text.
	PromptCommitment string   `json:"prompt_commitment"`
	OutputCommitment string   `json:"output_commitment"`
	Coverage         Coverage `json:"coverage"`

	// link is set where the id is made or checked, because a chain needs it of every
	// receipt.
	link string
}

// Outcome is how a turn ended for the client.
type Outcome string

// The outcomes of a turn.
const (
	Answered       Outcome = "answered"        // the client got the model's answer
	Refused        Outcome = "refused"         // the client got the refusal
	ProviderFailed Outcome = "provider_failed" // the model gave no answer
	ClientGone     Outcome = "client_gone"     // the client left before the end
	Aborted        Outcome = "aborted"         // the answer broke off half-way
	Failed         Outcome = "failed"          // this software failed
)

// Receipt returns the record of a turn with everything that the kernel knows.
// The caller adds who, when and where, the commitments and the coverage, and
// then seals it. Outcome is Refused or Answered until the caller knows better.
func (k *Kernel) Receipt(t Turn) Receipt {
	r := Receipt{Outcome: Answered}
	if t.Refused {
		r.Outcome = Refused
	}
	r.record(t)
	return r
}

// record writes every field that follows from the step, inputs included.
func (r *Receipt) record(t Turn) {
	r.Label, r.GovernorMode, r.Band = t.Label, t.GovernorMode, t.Band
	r.MBefore, r.MAfter = t.MBefore, t.M
	r.Intervened, r.Effort, r.SigmaViol = t.Intervened, t.Effort, t.SigmaViol
	r.Policy, r.Mode, r.Migrated = t.Next.Policy, t.Mode, t.Migrated
	r.Refused, r.WouldRefuse = t.Refused, (len(t.Reasons) > 0 || t.Call.denied()) && !t.Refused
	r.Reasons, r.AttackType, r.Severity, r.SlowDrip = t.Reasons, t.AttackType, t.Severity, t.SlowDrip
	r.X, r.Z, r.Carry = t.Before.X, t.Before.Z, t.Before.Carry
	r.CUSUM, r.CUSUMSlow = t.Before.CUSUM, t.Before.CUSUMSlow
	r.Evidence, r.Output, r.ToolCall = t.Evidence, t.Output, t.Call
	r.MFloor, r.Pressure, r.Raw, r.State = t.MFloor, t.Pressure, t.Raw, t.State
	r.ZNext, r.CarryNext = t.Next.Z, t.Next.Carry
	r.CUSUMNext, r.CUSUMSlowNext = t.Next.CUSUM, t.Next.CUSUMSlow
	r.DeltaV, r.StabilityRatio, r.LyapunovV, r.ZShift = t.DeltaV, t.StabilityRatio, t.LyapunovV, t.ZShift
}
