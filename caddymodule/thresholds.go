package caddymodule

import (
	"errors"
	"fmt"
	"slices"

	"github.com/caddy-lex/lex/evaluation"
	"github.com/caddy-lex/lex/store"
)

// Thresholds says what other values of refuse_at would have refused of the turns that were
// counted, whatever the mode was. It is the member thresholds of GET /stats.
type Thresholds struct {
	// Since is when the first of the turns came, in Unix milliseconds; null if there is none.
	// Turns before that, which an older version governed, are not counted.
	Since *int64 `json:"since"`
	Turns int64  `json:"turns"`
	// RefuseAt are the values that are looked at, and Refused how many turns each of them
	// refuses, at the same places.
	RefuseAt []float64 `json:"refuse_at"`
	Refused  []int64   `json:"refused"`
	// AttackTypes has the same of each attack type that came up.
	AttackTypes map[string]RefusedTurns `json:"attack_types"`
	// Rates are the thresholds at which the given shares of the turns are refused.
	Rates []evaluation.Threshold `json:"rates"`
}

// RefusedTurns are the turns of one attack type.
type RefusedTurns struct {
	Turns   int64   `json:"turns"`
	Refused []int64 `json:"refused"`
}

// refusedRates are the shares of turns that thresholds are given for.
var refusedRates = []float64{0.001, 0.002, 0.005, 0.01}

func newThresholds(s store.Stats) Thresholds {
	var total evaluation.Levels
	t := Thresholds{AttackTypes: make(map[string]RefusedTurns)}
	for attackType, counts := range s.Levels {
		levels := (*evaluation.Levels)(counts)
		total.Add(levels)
		t.AttackTypes[string(attackType)] = RefusedTurns{levels.N(), refusedAt(levels)}
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

// Levels returns the levels that the counts go back to, as far as the thresholds tell them
// apart: all under the lowest are 0. Counts that cannot be are an error.
func (t *Thresholds) Levels() (evaluation.LevelsByType, error) {
	levels := make(evaluation.LevelsByType)
	for attackType, turns := range t.AttackTypes {
		if len(turns.Refused) != evaluation.HighestThreshold-evaluation.LowestThreshold+1 {
			return nil, fmt.Errorf("%d thresholds were counted, and not those from 0.31 to 0.99", len(turns.Refused))
		}
		l, above := new(evaluation.Levels), int64(0)
		for i, refused := range slices.Backward(turns.Refused) {
			l[evaluation.LowestThreshold+i], above = refused-above, refused
		}
		l[0] = turns.Turns - above
		if slices.Min(l[:]) < 0 {
			return nil, errors.New("a threshold refuses more turns than a lower one")
		}
		levels[attackType] = l
	}
	return levels, nil
}
