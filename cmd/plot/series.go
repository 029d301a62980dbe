package main

import (
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/caddy-lex/lex/kernel"
)

// series is one value a turn, counted from 1.
func series(taken []kernel.Turn, value func(kernel.Turn) float64) plotter.XYs {
	out := make(plotter.XYs, len(taken))
	for i, t := range taken {
		out[i] = plotter.XY{X: float64(i + 1), Y: value(t)}
	}
	return out
}

// drawEnergy shows V before and after the governor, and the pressure that
// raised it.
func drawEnergy(p *plot.Plot, _ kernel.Policy, taken []kernel.Turn) error {
	p.Title.Text = "V over turns: what pressure raises, relaxation and governor lower"
	p.X.Label.Text, p.Y.Label.Text = "turn", "V (nats)"
	for _, s := range []struct {
		name   string
		colour color.Color
		dashes []vg.Length
		value  func(kernel.Turn) float64
	}{
		{"V(raw), before the governor", red, dashed, rawEnergy},
		{"V(state)", blue, nil, func(t kernel.Turn) float64 { return t.LyapunovV }},
		{"severity of the prompt", faint, nil, func(t kernel.Turn) float64 { return t.Severity }},
	} {
		line, err := stroke(series(taken, s.value), s.colour, s.dashes)
		if err != nil {
			return err
		}
		p.Add(line)
		p.Legend.Add(s.name, line)
	}
	p.Legend.Top = true
	p.X.Tick.Marker, p.X.Max = everyTurn(len(taken)), float64(len(taken))+0.5
	return nil
}

// everyTurn marks the turns on an axis.
func everyTurn(n int) plot.ConstantTicks {
	ticks := make(plot.ConstantTicks, n)
	for i := range ticks {
		ticks[i] = plot.Tick{Value: float64(i + 1), Label: strconv.Itoa(i + 1)}
	}
	return ticks
}

// rawEnergy is V(raw), which no receipt holds: what it exceeds V(state) by is what
// the governor took back.
func rawEnergy(t kernel.Turn) float64 {
	v := 0.0
	for i, z := range t.Before.Z {
		v += z * math.Log(z/t.Raw[i])
	}
	return v
}

// drawBands shows the margin between the edges of the health bands.
func drawBands(p *plot.Plot, policy kernel.Policy, taken []kernel.Turn) error {
	p.Title.Text = "The margin M = min(C, R, S) and the health bands"
	p.X.Label.Text, p.Y.Label.Text = "turn", "M"
	end := float64(len(taken))
	for _, edge := range []struct {
		name   string
		at     float64
		colour color.Color
	}{
		{"OPTIMAL from 0.25", policy.Optimal, green},
		{"ALERT from 0.15", policy.Recovery, yellow},
		{"STRESSED from tau = 0.08", policy.Tau, red},
	} {
		line, err := stroke(plotter.XYs{{X: 1, Y: edge.at}, {X: end, Y: edge.at}}, edge.colour, dashed)
		if err != nil {
			return err
		}
		p.Add(line)
		p.Legend.Add(edge.name, line)
	}
	before, err := stroke(series(taken, func(t kernel.Turn) float64 { return t.MBefore }), faint, nil)
	if err != nil {
		return err
	}
	after, err := stroke(series(taken, func(t kernel.Turn) float64 { return t.M }), blue, nil)
	if err != nil {
		return err
	}
	p.Add(before, after)
	p.Legend.Add("m_before, of the raw state", before)
	p.Legend.Add("M, governed", after)
	p.Y.Min, p.Y.Max = 0, 0.6
	p.Legend.Top = true
	p.X.Tick.Marker, p.X.Max = everyTurn(len(taken)), end+0.5
	return nil
}
