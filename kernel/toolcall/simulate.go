package toolcall

import "context"

// Scenario is one scripted tool call and the decision that it must get.
type Scenario struct {
	Name    string // unique, snake_case
	Call    Call
	Blocked bool // the expected answer; [Simulate] never reads it
}

// SimResult is the outcome of the scripted calls.
type SimResult struct {
	Scenarios []ScenarioResult `json:"scenarios"`
	Summary   Summary          `json:"summary"`
}

// ScenarioResult is the decision of one scripted call.
type ScenarioResult struct {
	Name    string  `json:"name"`
	Blocked bool    `json:"blocked"`
	Reason  *string `json:"reason"` // nil, JSON null, when approved
}

// Summary counts the decisions: Total is always Blocked plus Approved.
type Summary struct {
	Total    int `json:"total"`
	Blocked  int `json:"blocked"`
	Approved int `json:"approved"`
}

// Simulate decides every one of [Scenarios]. The results are what [Decide]
// returned, whatever the script expects, so that a weakened reader shows here.
func Simulate() SimResult {
	scenarios := Scenarios()
	out := SimResult{Scenarios: make([]ScenarioResult, 0, len(scenarios))}
	for _, s := range scenarios {
		d, _ := Decide(context.Background(), s.Call) // the only error is a context's, and this one does not end
		out.add(s.Name, d)
	}
	return out
}

func (r *SimResult) add(name string, d Decision) {
	row := ScenarioResult{Name: name, Blocked: !d.Allowed}
	r.Summary.Total++
	if d.Allowed {
		r.Summary.Approved++
	} else {
		r.Summary.Blocked++
		row.Reason = &d.Reason
	}
	r.Scenarios = append(r.Scenarios, row)
}
