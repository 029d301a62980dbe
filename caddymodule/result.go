package caddymodule

import (
	"math"
	"time"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
)

// crsSource names what produced the state.
const crsSource = "go-kernel"

// pillars is a triple as the interface writes it.
type pillars struct {
	C float64 `json:"C"`
	R float64 `json:"R"`
	S float64 `json:"S"`
}

func asPillars(p kernel.Point) pillars { return pillars{p[0], p[1], p[2]} }

// semanticSignal classifies the threat on the input side.
type semanticSignal struct {
	AttackType kernel.AttackType `json:"attack_type"`
	Severity   float64           `json:"severity"`
}

// capitulationSignal is a judgement on an output.
type capitulationSignal struct {
	Capitulated bool            `json:"capitulated"`
	Category    kernel.Category `json:"category"`
	Confidence  float64         `json:"confidence"`
	Reason      string          `json:"reason"`
	JudgeModel  string          `json:"judge_model"`
}

// outputMetrics compares what was measured on the output with the governed state.
type outputMetrics struct {
	CMeasured float64 `json:"c_measured"`
	RMeasured float64 `json:"r_measured"`
	SMeasured float64 `json:"s_measured"`
	CDelta    float64 `json:"c_delta"`
	RDelta    float64 `json:"r_delta"`
	SDelta    float64 `json:"s_delta"`
}

// governorSensing reports what the previous output's pressure did this turn.
type governorSensing struct {
	Fired             bool    `json:"fired"`
	ActivePillar      *string `json:"active_pillar"`
	CorrectionApplied bool    `json:"correction_applied"`
}

// openings are the keys of the two commitments, "" where there was no such text.
type openings struct {
	Prompt string `json:"prompt"`
	Output string `json:"output"`
}

// timing is in milliseconds.
type timing struct {
	Assess   float64 `json:"assess"`
	Generate float64 `json:"generate"`
	Conclude float64 `json:"conclude"`
	Commit   float64 `json:"commit"`
	Total    float64 `json:"total"`
}

func milliseconds(d time.Duration) float64 {
	return math.Round(float64(d)/float64(time.Microsecond)) / 1000
}

// result is the governance result, the answer of POST /lex/govern. Every field
// is present in every answer.
type result struct {
	GovernedOutput string `json:"governed_output"`
	RawOutput      string `json:"raw_output"`

	pillars
	M             float64     `json:"M"`
	State         pillars     `json:"state"`
	RawState      pillars     `json:"raw_state"`
	MBefore       float64     `json:"m_before"`
	HealthBand    kernel.Band `json:"health_band"`
	WeakestPillar string      `json:"weakest_pillar"`

	InterventionTriggered bool            `json:"intervention_triggered"`
	Refused               bool            `json:"refused"`
	RefusalReasons        []kernel.Reason `json:"refusal_reasons"`
	PrimaryRefusalReason  *kernel.Reason  `json:"primary_refusal_reason"`

	SemanticSignal     semanticSignal `json:"semantic_signal"`
	Scores             kernel.Scores  `json:"scores"`
	PromptThreatSignal float64        `json:"prompt_threat_signal"`
	SlowDrip           bool           `json:"slow_drip"`
	SovereigntyDrift   bool           `json:"sovereignty_drift"`
	DetectionDegraded  bool           `json:"detection_degraded"`
	PreEvalLabel       string         `json:"pre_eval_label"`

	DeltaV             float64      `json:"delta_V"`
	LyapunovV          float64      `json:"lyapunov_V"`
	StabilityRatio     float64      `json:"stability_ratio"`
	ZWeights           kernel.Point `json:"z_weights"`
	ZShift             float64      `json:"z_shift"`
	SigmaViol          float64      `json:"sigma_viol"`
	GovernorEffort     float64      `json:"governor_effort"`
	GovernorMode       string       `json:"governor_mode"`
	GovernancePressure pillars      `json:"governance_pressure"`

	ReceiptID        *string         `json:"receipt_id"`
	ReceiptPersisted bool            `json:"receipt_persisted"`
	PromptCommitment string          `json:"prompt_commitment"`
	OutputCommitment string          `json:"output_commitment"`
	Openings         openings        `json:"openings"`
	Coverage         kernel.Coverage `json:"coverage"`

	SessionID      string  `json:"session_id"`
	Turn           int     `json:"turn"`
	Timestamp      int64   `json:"timestamp"`
	MemoryInjected bool    `json:"memory_injected"`
	IdentityMode   string  `json:"identity_mode"`
	Model          string  `json:"model"`
	CRSSource      string  `json:"crs_source"`
	GovernedSource *string `json:"governed_source"`
	EmbedProvider  *string `json:"embed_provider"`

	CapitulationSignal *capitulationSignal `json:"capitulation_signal"`
	RawSignal          *capitulationSignal `json:"raw_signal"`
	Metrics            *outputMetrics      `json:"metrics"`
	GovernorSensing    *governorSensing    `json:"governor_sensing"`

	Timing  timing `json:"timing_ms"`
	Version string `json:"version"`
}

// newResult collects what is known of a turn. The caller adds the outputs, where
// they came from and how long they took. The receipt is one that could not be
// written where the turn failed so late.
func newResult(g *govern.Governor, j *govern.Judged, r *govern.Receipt) result {
	t, o := r.Turn, j.Opened
	embedder := g.EmbedProvider()
	res := result{
		pillars: asPillars(t.State), State: asPillars(t.State), RawState: asPillars(t.Raw),
		M: t.M, MBefore: t.MBefore, HealthBand: t.Band, WeakestPillar: t.State.Weakest().String(),
		InterventionTriggered: t.Intervened, Refused: t.Refused, RefusalReasons: []kernel.Reason{},
		SemanticSignal: semanticSignal{t.AttackType, t.Severity}, Scores: t.Evidence.Scores,
		PromptThreatSignal: t.Evidence.ThreatSignal, SlowDrip: t.SlowDrip,
		SovereigntyDrift: t.Evidence.SovereigntyDrift, DetectionDegraded: t.Evidence.Degraded, PreEvalLabel: t.Label,
		DeltaV: t.DeltaV, LyapunovV: t.LyapunovV, StabilityRatio: t.StabilityRatio, ZWeights: t.Before.Z, ZShift: t.ZShift,
		SigmaViol: t.SigmaViol, GovernorEffort: t.Effort, GovernorMode: t.GovernorMode, GovernancePressure: asPillars(t.Pressure),
		ReceiptPersisted: r.Persisted, PromptCommitment: r.PromptCommitment, OutputCommitment: r.OutputCommitment,
		Openings:  openings{r.Openings.Prompt, r.Openings.Output},
		Coverage:  r.Coverage,
		SessionID: r.PublicID, Turn: r.Receipt.Turn, Timestamp: r.Timestamp,
		Model: o.Model, CRSSource: crsSource, EmbedProvider: &embedder, Version: g.Version,
		CapitulationSignal: signalOf(j.Judgement, j.JudgeModel), Metrics: newOutputMetrics(j.Measured, t.State), GovernorSensing: newSensing(t.Sensing),
	}
	if r.Persisted {
		res.ReceiptID = &r.ID
	}
	if t.Refused {
		primary := t.PrimaryReason()
		res.RefusalReasons, res.PrimaryRefusalReason = t.Reasons, &primary
	}
	return res
}

// signalOf is a judgement with the judge that gave it; nil while there is none.
func signalOf(j *detect.Judgement, judge string) *capitulationSignal {
	if j == nil {
		return nil
	}
	return &capitulationSignal{j.Capitulated, j.Category, j.Confidence, j.Reason, judge}
}

func newOutputMetrics(m *detect.Measured, state kernel.Point) *outputMetrics {
	if m == nil {
		return nil
	}
	return &outputMetrics{m.C, m.R, m.S, m.C - state[0], m.R - state[1], m.S - state[2]}
}

func newSensing(s kernel.Sensing) *governorSensing {
	out := &governorSensing{Fired: s.Fired, CorrectionApplied: s.CorrectionApplied}
	if s.ActivePillar != nil {
		letter := s.ActivePillar.String()
		out.ActivePillar = &letter
	}
	return out
}
