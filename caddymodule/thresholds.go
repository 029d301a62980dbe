package caddymodule

import (
	"github.com/caddy-lex/lex/evaluation"
	"github.com/caddy-lex/lex/store"
)

// thresholds says what other values of refuse_at would have refused of the turns that were
// counted, whatever the mode was.
type thresholds struct {
	// Since is when the first of the turns came, in Unix milliseconds; null if there is none.
	// Turns before that, which an older version governed, are not counted.
	Since *int64 `json:"since"`
	Turns int64  `json:"turns"`
	// RefuseAt are the values that are looked at, and Refused how many turns each of them
	// refuses, at the same places.
	RefuseAt []float64 `json:"refuse_at"`
	Refused  []int64   `json:"refused"`
	// AttackTypes has the same of each attack type that came up.
	AttackTypes map[string]refusedTurns `json:"attack_types"`
	// Rates are the thresholds at which the given shares of the turns are refused.
	Rates []evaluation.Threshold `json:"rates"`
}

// refusedTurns are the turns of one attack type.
type refusedTurns struct {
	Turns   int64   `json:"turns"`
	Refused []int64 `json:"refused"`
}

// refusedRates are the shares of turns that thresholds are given for.
var refusedRates = []float64{0.001, 0.002, 0.005, 0.01}

func newThresholds(s store.Stats) thresholds {
	var total evaluation.Levels
	t := thresholds{AttackTypes: make(map[string]refusedTurns)}
	for attackType, counts := range s.Levels {
		levels := (*evaluation.Levels)(counts)
		total.Add(levels)
		t.AttackTypes[string(attackType)] = refusedTurns{levels.N(), refusedAt(levels)}
	}
	if t.Turns = total.N(); t.Turns > 0 {
		t.Since = &s.LevelsSince
	}
	t.Refused = refusedAt(&total)
	for threshold := evaluation.LowestThreshold; threshold <= evaluation.HighestThreshold; threshold++ {
		t.RefuseAt = append(t.RefuseAt, float64(threshold)/100)
	}
	for _, rate := range refusedRates {
		t.Rates = append(t.Rates, evaluation.ThresholdFor(&total, rate))
	}
	return t
}

// refusedAt returns how many turns each of the thresholds refuses.
func refusedAt(l *evaluation.Levels) (refused []int64) {
	for threshold := evaluation.LowestThreshold; threshold <= evaluation.HighestThreshold; threshold++ {
		refused = append(refused, l.Refused(threshold))
	}
	return refused
}
