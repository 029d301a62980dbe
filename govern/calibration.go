package govern

import (
	"fmt"
	"math"

	"github.com/caddy-lex/lex/model"
)

// A Calibration corrects the probabilities of a guard that is too sure, or not sure enough:
// their log-odds times the slope, plus the intercept, are the log-odds of the corrected ones.
// "caddy lex calibrate --guard" fits it (Platt in package evaluation). Slope 1 and
// intercept 0 change nothing.
type Calibration struct {
	Slope     float64 `json:"slope"` // over 0, so that the order of probabilities stays
	Intercept float64 `json:"intercept"`
}

// steepest bounds the slope and the intercept. Beyond, nearly every probability becomes 0 or
// 1: a fit to a guard whose probabilities hardly differ is so.
const steepest = 100

// Check returns an error if the slope or the intercept is out of its range.
func (c Calibration) Check() error {
	if c.Slope > 0 && c.Slope <= steepest && math.Abs(c.Intercept) <= steepest { // false for NaN
		return nil
	}
	return fmt.Errorf("calibration %v %v: give a slope over 0 and an intercept, neither over %d", c.Slope, c.Intercept, steepest)
}

// calibrated returns the verdict with corrected probabilities. It is what is fused and what
// receipts have.
func (g *Guard) calibrated(v model.Verdict) model.Verdict {
	if g.Calibration == nil || v == nil {
		return v
	}
	out := make(model.Verdict, len(v))
	for class, p := range v {
		odds := g.Calibration.Slope*logit(p, calibratedSurest) + g.Calibration.Intercept
		out[class] = math.Round(1e6/(1+math.Exp(-odds))) / 1e6
	}
	return out
}

// calibratedSurest bounds probabilities before they are corrected: the log-odds of 0 and 1
// are infinite. The fit has the same bound.
const calibratedSurest = 1 - 1e-6
