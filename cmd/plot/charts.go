package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/caddy-lex/lex/kernel"
)

// runLengths are what cmd/charts measured; the data are not part of the repository.
//
//go:embed arl.json
var runLengths []byte

// A level is the average run length of a chart that alarms at h, and its 95 % interval.
type level struct {
	H         float64 `json:"h"`
	RunLength struct {
		Mean float64 `json:"mean"`
		Low  float64 `json:"low"`
	} `json:"run_length"`
}

// promised is the run length that ordinary dialogues shall have at least.
const promised = 50_000

// drawRunLengths shows how long ordinary dialogues run between two alarms.
func drawRunLengths(p *plot.Plot, policy kernel.Policy, _ []kernel.Turn) error {
	var measured struct{ Fast, Slow []level }
	if err := json.Unmarshal(runLengths, &measured); err != nil {
		return fmt.Errorf("reading the run lengths: %w", err)
	}
	p.Title.Text = "Ordinary dialogues: turns between two alarms of a chart"
	p.X.Label.Text, p.Y.Label.Text = "alarm level h", "turns (average run length)"
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, decades
	fast, slow := policy.Charts()
	for _, chart := range []struct {
		name   string
		levels []level
		h      float64
		colour color.Color
	}{{"fast", measured.Fast, fast.H, blue}, {"slow", measured.Slow, slow.H, green}} {
		mean, err := stroke(lengths(chart.levels, func(l level) float64 { return l.RunLength.Mean }), chart.colour, nil)
		if err != nil {
			return err
		}
		low, err := stroke(lengths(chart.levels, func(l level) float64 { return l.RunLength.Low }), chart.colour, dashed)
		if err != nil {
			return err
		}
		at, err := stroke(plotter.XYs{{X: chart.h, Y: 1e2}, {X: chart.h, Y: most}}, faint, nil)
		if err != nil {
			return err
		}
		p.Add(at, mean, low)
		p.Legend.Add(fmt.Sprintf("%s chart (h = %.2f)", chart.name, chart.h), mean)
		p.Legend.Add("lower end of its 95 % interval", low)
	}
	line, err := stroke(plotter.XYs{{X: 0.4, Y: promised}, {X: 1.5, Y: promised}}, red, dashed)
	if err != nil {
		return err
	}
	p.Add(line)
	p.Legend.Add("50,000 turns", line)
	p.Y.Min, p.Y.Max = 1e2, most
	return nil
}

// most is the longest run length that the measurement tells apart.
const most = 1e6

var decades = plot.ConstantTicks{{Value: 1e2, Label: "100"}, {Value: 1e3, Label: "1,000"}, {Value: 1e4, Label: "10,000"}, {Value: 1e5, Label: "100,000"}, {Value: 1e6, Label: "1,000,000"}}

func lengths(levels []level, of func(level) float64) (out plotter.XYs) {
	for _, l := range levels {
		out = append(out, plotter.XY{X: l.H, Y: min(most, of(l))})
	}
	return out
}

// drawDelays shows on which turn an attack of one severity on every nth turn is first
// seen, with quiet turns of 0.02 between.
func drawDelays(p *plot.Plot, policy kernel.Policy, _ []kernel.Turn) error {
	p.Title.Text = "Slow drip: the turn of the first alarm"
	p.X.Label.Text, p.Y.Label.Text = "severity of the loud turns", "turn"
	for n, colour := range []color.Color{ink, blue, green, yellow, red} {
		line, err := stroke(delays(policy, n+1), colour, nil)
		if err != nil {
			return err
		}
		p.Add(line)
		p.Legend.Add([]string{"every turn", "every 2nd", "every 3rd", "every 4th", "every 5th"}[n], line)
	}
	p.Legend.Top = true
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0.3, policy.RefuseAt, 0, 60
	return nil
}

func delays(policy kernel.Policy, n int) (out plotter.XYs) {
	for percent := 31; percent < int(math.Round(100*policy.RefuseAt)); percent++ {
		severity := float64(percent) / 100
		if turn := firstAlarm(policy, n, severity); turn <= 60 {
			out = append(out, plotter.XY{X: severity, Y: float64(turn)})
		}
	}
	return out
}

// firstAlarm is the turn of the first alarm of either chart, or 61.
func firstAlarm(policy kernel.Policy, n int, severity float64) int {
	const quiet = 0.02
	fast, slow := policy.Charts()
	f, s := 0.0, 0.0
	for turn := 1; turn <= 60; turn++ {
		said := quiet
		if (turn-1)%n == 0 {
			said = severity
		}
		var one, other bool
		f, one = fast.Next(f, said)
		s, other = slow.Next(s, said)
		if one || other {
			return turn
		}
	}
	return 61
}
