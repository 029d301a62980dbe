package govern

import (
	"github.com/go-json-experiment/json"

	"github.com/caddy-lex/lex/kernel"
)

// A Summary is the entry of a receipt in the public list. It is written together with
// the receipt, so that the list does not have to read records.
type Summary struct {
	ID             string  `json:"id"`
	SessionID      string  `json:"session_id"`
	Turn           int     `json:"turn"`
	PreEvalLabel   string  `json:"pre_eval_label"`
	MBefore        float64 `json:"m_before"`
	MAfter         float64 `json:"m_after"`
	GovernorMode   string  `json:"governor_mode"`
	Intervention   bool    `json:"intervention"`
	SlowDrip       bool    `json:"slow_drip"`
	GovernorEffort float64 `json:"governor_effort"`
	SigmaViol      float64 `json:"sigma_viol"`
	Timestamp      int64   `json:"timestamp"`

	// How the turn ended.
	Refused     bool    `json:"refused"`
	WouldRefuse bool    `json:"would_refuse"`
	AttackType  string  `json:"attack_type"`
	Severity    float64 `json:"severity"`
}

// Summarise returns the JSON of a receipt's [Summary].
func Summarise(r *kernel.Receipt) ([]byte, error) {
	return json.Marshal(&Summary{
		ID: r.ID, SessionID: r.SessionID, Turn: r.Turn, PreEvalLabel: r.Label, MBefore: r.MBefore, MAfter: r.MAfter,
		GovernorMode: r.GovernorMode, Intervention: r.Intervened, SlowDrip: r.SlowDrip, GovernorEffort: r.Effort, SigmaViol: r.SigmaViol,
		Timestamp: r.Timestamp, Refused: r.Refused, WouldRefuse: r.WouldRefuse, AttackType: string(r.AttackType), Severity: r.Severity,
	})
}
