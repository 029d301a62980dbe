package caddymodule

import (
	"math"
	"net/http"
	"time"

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

// capitulationSignal is the judge's verdict on an output.
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

// setTurnHeader names the turn in an answer's headers, as configured: the turn has a
// name before its first byte, its receipt only after the last.
func (g *request) setTurnHeader(h http.Header, x *exchange) {
	if g.handler.Headers != "none" && x.mode == kernel.Enforce && x.nonce != "" {
		h.Set("X-Lex-Turn", x.nonce)
	}
}

// result collects what the exchange knows. The caller adds the outputs, where
// they came from and how long they took.
func (x *exchange) result() result {
	t := x.turn
	embedder := x.app.embedProvider()
	res := result{
		pillars: asPillars(t.State), State: asPillars(t.State), RawState: asPillars(t.Raw),
		M: t.M, MBefore: t.MBefore, HealthBand: t.Band, WeakestPillar: t.State.Weakest().String(),
		InterventionTriggered: t.Intervened, Refused: t.Refused, RefusalReasons: []kernel.Reason{},
		SemanticSignal: semanticSignal{t.AttackType, t.Severity}, Scores: t.Evidence.Scores,
		PromptThreatSignal: t.Evidence.ThreatSignal, SlowDrip: t.SlowDrip,
		SovereigntyDrift: t.Evidence.SovereigntyDrift, DetectionDegraded: t.Evidence.Degraded, PreEvalLabel: t.Label,
		DeltaV: t.DeltaV, LyapunovV: t.LyapunovV, StabilityRatio: t.StabilityRatio, ZWeights: t.Before.Z, ZShift: t.ZShift,
		SigmaViol: t.SigmaViol, GovernorEffort: t.Effort, GovernorMode: t.GovernorMode, GovernancePressure: asPillars(t.Pressure),
		ReceiptPersisted: x.persisted, PromptCommitment: x.receipt.PromptCommitment, OutputCommitment: x.receipt.OutputCommitment,
		Coverage:  x.receipt.Coverage,
		SessionID: x.publicID, Turn: x.receipt.Turn, Timestamp: x.receipt.Timestamp,
		Model: x.model, CRSSource: crsSource, EmbedProvider: &embedder, Version: x.app.version(),
		CapitulationSignal: signalOf(x.judgement, x.judgeModel), Metrics: x.metrics(), GovernorSensing: sensing(t.Sensing),
	}
	if x.persisted {
		res.ReceiptID = &x.receipt.ID
	}
	if t.Refused {
		primary := t.PrimaryReason()
		res.RefusalReasons, res.PrimaryRefusalReason = t.Reasons, &primary
	}
	return res
}

// signalOf is the verdict with who gave it; nil while there is none.
func signalOf(j *detect.Judgement, judge string) *capitulationSignal {
	if j == nil {
		return nil
	}
	return &capitulationSignal{j.Capitulated, j.Category, j.Confidence, j.Reason, judge}
}

// localJudge names the detector's own judge.
func (a *App) localJudge() string { return "lex-local/" + a.model.Version() }

func (x *exchange) metrics() *outputMetrics {
	if x.measured == nil {
		return nil
	}
	m, s := x.measured, x.turn.State
	return &outputMetrics{m.C, m.R, m.S, m.C - s[0], m.R - s[1], m.S - s[2]}
}

func sensing(s kernel.Sensing) *governorSensing {
	out := &governorSensing{Fired: s.Fired, CorrectionApplied: s.CorrectionApplied}
	if s.ActivePillar != nil {
		letter := s.ActivePillar.String()
		out.ActivePillar = &letter
	}
	return out
}
