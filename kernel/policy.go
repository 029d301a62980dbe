package kernel

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/go-json-experiment/json"
)

// Policy holds every constant of the kernel. It is a plain value; [New] takes a
// valid one. Its JSON has one member a field.
type Policy struct {
	// Revision says by which rules the constants act. Under revision 1, the default,
	// asking again never turns a refusal into a pass: a severe turn only presses, the
	// floor is judged on Turn.MFloor, a refused turn leaves the carried pressure, and a
	// slow-drip statistic stays at its alarm level. Revision 0, absent in JSON, is that
	// of older receipts.
	Revision int `json:"revision,omitzero"`

	// Floor bounds the hard safe set {x_i >= floor}. Default 0.05, at least
	// 0.001.
	Floor float64 `json:"floor"`
	// Tau is the margin under which the governor fires, and the lower edge of
	// the band STRESSED. Default 0.08, over floor and under 1/3.
	Tau float64 `json:"tau"`
	// Recovery is the lower edge of the band ALERT. Default 0.15, over tau and
	// under 1/3.
	Recovery float64 `json:"recovery"`
	// Optimal is the lower edge of the band OPTIMAL. Default 0.25, over
	// recovery and under 1/3.
	Optimal float64 `json:"optimal"`
	// Rho is the relaxation per turn towards the weights. Default 0.35, in
	// (0, 1).
	Rho float64 `json:"rho"`
	// Eta is the gain of pressure. Default 4.6, in (0, 50].
	Eta float64 `json:"eta"`
	// Beta is the weights' rate of change per turn. Default 0.25, in (0, 1].
	Beta float64 `json:"beta"`
	// Kappa is the gain of pressure on the weights. Default 0.4, at least 0 and
	// under 1 - 3 tau.
	Kappa float64 `json:"kappa"`
	// Clip is the largest component of pressure. Default 1.5, in (0, 4].
	Clip float64 `json:"clip"`

	// Pressure maps attack types to pillars.
	Pressure PressureTable `json:"pressure"`
	// CarryCapitulated is the pressure that a capitulated output leaves for the
	// next turn, times the judge's confidence. Default 0.5, in [0, 1].
	CarryCapitulated float64 `json:"carry_capitulated"`
	// CarryLostThread is the pressure on C that an output without the thread of
	// the session leaves. Default 0.15, in [0, 1].
	CarryLostThread float64 `json:"carry_lost_thread"`

	// WatchAt is the score from which a type counts: it presses, corroborates
	// other signals and names the attack; and the severity of the label WATCH.
	// Default 0.30.
	WatchAt float64 `json:"watch_at"`
	// MultiAt is the score that two types must reach for the type multi.
	// Default 0.50, over watch_at.
	MultiAt float64 `json:"multi_at"`
	// SevereAt is the severity from which a turn only presses (rho is 0) and is
	// judged by the floor. Default 0.50, over watch_at.
	SevereAt float64 `json:"severe_at"`
	// RefuseAt is the severity from which a turn is refused. Default 0.70.
	RefuseAt float64 `json:"refuse_at"`
	// RefuseAtDegraded is the same while detection is degraded. Default 0.50,
	// over watch_at and at most refuse_at.
	RefuseAtDegraded float64 `json:"refuse_at_degraded"`
	// ThreatAt is the contrastive threat signal over which a corroborated turn
	// is refused. Default 0.15, in (0, 1).
	ThreatAt float64 `json:"threat_at"`
	// ThreatSeverity is the severity that such a turn must have as well. Default
	// 0.50, in [0, 1); 0, absent in JSON, asks for none.
	ThreatSeverity float64 `json:"threat_severity,omitzero"`

	// CUSUMK is the severity per turn that the fast slow-drip chart takes for
	// ordinary. Default 0.31, in (0, 1).
	CUSUMK float64 `json:"cusum_k"`
	// CUSUMH is its alarm level. Default 0.90, in (0, 10].
	CUSUMH float64 `json:"cusum_h"`
	// CUSUMRelief is the most that one quiet turn takes off its statistic, so
	// that an attacker cannot buy a loud turn with one silent one. Default 0.10,
	// in (0, 1].
	CUSUMRelief float64 `json:"cusum_relief"`
	// CUSUMSlowK, CUSUMSlowH and CUSUMSlowRelief are the same of the slow chart, which
	// forgets less and so sees loud turns that are far apart. Defaults 0.31, 1.25 and 0.04; in
	// the same ranges, or all 0, absent in JSON, for no slow chart.
	CUSUMSlowK      float64 `json:"cusum_slow_k,omitzero"`
	CUSUMSlowH      float64 `json:"cusum_slow_h,omitzero"`
	CUSUMSlowRelief float64 `json:"cusum_slow_relief,omitzero"`
}

// PressureTable holds one row (C, R, S) for each attack type, entries in [0, 1]:
// how much a certain attack of this type presses on each pillar. Injection
// shares Identity's row.
type PressureTable struct {
	Identity     Point `json:"identity"`
	Coercion     Point `json:"coercion"`
	Exploitative Point `json:"exploitative"`
	HarmRequest  Point `json:"harm_request"`
	Sycophancy   Point `json:"sycophancy"`
}

// DefaultPolicy returns the defaults, which are valid.
func DefaultPolicy() Policy {
	return Policy{
		Revision: 1,
		Floor:    0.05, Tau: 0.08, Recovery: 0.15, Optimal: 0.25,
		Rho: 0.35, Eta: 4.6, Beta: 0.25, Kappa: 0.4, Clip: 1.5,
		Pressure: PressureTable{
			Identity:     Point{0.30, 0.10, 1.00},
			Coercion:     Point{0.10, 0.40, 1.00},
			Exploitative: Point{0.10, 1.00, 0.35},
			HarmRequest:  Point{0.10, 1.00, 0.20},
			Sycophancy:   Point{0.10, 0.30, 1.00},
		},
		CarryCapitulated: 0.5, CarryLostThread: 0.15,
		WatchAt: 0.30, MultiAt: 0.50, SevereAt: 0.50,
		RefuseAt: 0.70, RefuseAtDegraded: 0.50, ThreatAt: 0.15, ThreatSeverity: 0.50,
		CUSUMK: 0.31, CUSUMH: 0.90, CUSUMRelief: 0.10,
		CUSUMSlowK: 0.31, CUSUMSlowH: 1.25, CUSUMSlowRelief: 0.04,
	}
}

// JSON returns the policy's canonical JSON (RFC 8785), of which the policy's name
// is the hash. A number that is not finite is an error that wraps [ErrPolicy].
func (p Policy) JSON() ([]byte, error) {
	text, err := canonical(policyShape, &p)
	if err != nil {
		return nil, fmt.Errorf("encoding a policy: %w: %w", ErrPolicy, err)
	}
	return text, nil
}

// Hash returns the lower-case hex SHA-256 of [Policy.JSON], which names the
// policy in receipts and versions; "" for a policy that has no JSON.
func (p Policy) Hash() string {
	text, err := p.JSON()
	if err != nil {
		return ""
	}
	digest := sha256.Sum256(text)
	return hex.EncodeToString(digest[:])
}

// ParsePolicy reads what [Policy.JSON] wrote. It refuses, with an error that
// wraps [ErrPolicy], everything that is not one JSON object with a policy's
// members only. Whether the numbers make a policy is for [New] to say.
func ParsePolicy(text []byte) (Policy, error) {
	var p Policy
	if err := json.Unmarshal(text, &p, json.RejectUnknownMembers(true)); err != nil {
		return Policy{}, fmt.Errorf("parsing a policy: %w: %s", ErrPolicy, describeJSONError(err))
	}
	return p, nil
}

// refuseAt is the refusal threshold in force.
func (p Policy) refuseAt(degraded bool) float64 {
	if degraded {
		return p.RefuseAtDegraded
	}
	return p.RefuseAt
}

// weightFloor is the least weight that the update of the weights can reach.
func (p Policy) weightFloor() float64 { return (1 - p.Kappa) / 3 }
