package main

import (
	"fmt"
	"image/color"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// colours are those of the bars, target by target.
var colours = []color.Color{
	color.NRGBA{150, 156, 166, 255},
	color.NRGBA{45, 95, 170, 255},
	color.NRGBA{46, 139, 87, 255},
	color.NRGBA{214, 150, 30, 255},
	color.NRGBA{130, 90, 160, 255},
	color.NRGBA{200, 60, 50, 255},
}

// draw writes the picture: for each work at many connections, the share of bare Caddy's
// throughput that each proxy has.
func (r *report) draw(file string) error {
	p := plot.New()
	p.Title.Text = "Share of bare Caddy's throughput at 16 connections"
	p.Y.Label.Text = "per cent"
	p.Y.Min, p.Y.Max = 0, 150 // room for the legend
	var ticks plot.ConstantTicks
	for at := 0; at <= 100; at += 20 {
		ticks = append(ticks, plot.Tick{Value: float64(at), Label: strconv.Itoa(at)})
	}
	p.Y.Tick.Marker = ticks
	p.Legend.Padding = vg.Points(2)
	p.Legend.Top, p.Legend.Left = true, true
	shown := r.busy()
	var labels []string
	for _, w := range shown {
		labels = append(labels, w.label)
	}
	p.NominalX(labels...)
	p.X.Min, p.X.Max = -0.5, float64(len(labels))-0.5
	const width = 12
	proxies := r.targets[1:] // the first is the upstream
	for n, t := range proxies {
		bars, err := plotter.NewBarChart(r.shares(t, shown), vg.Points(width))
		if err != nil {
			return fmt.Errorf("drawing %s: %w", t.name, err)
		}
		bars.Color, bars.LineStyle.Width = colours[n%len(colours)], 0
		bars.Offset = vg.Points(width * (float64(n) - float64(len(proxies)-1)/2))
		p.Add(bars)
		p.Legend.Add(t.name, bars)
	}
	return p.Save(20*vg.Centimeter, 10*vg.Centimeter, file)
}

// busy are the works over more than one connection.
func (r *report) busy() []work {
	var out []work
	for _, w := range works {
		if w.connections > 1 {
			out = append(out, w)
		}
	}
	return out
}

// shares are a target's, in per cent, and 0 where it cannot do the work.
func (r *report) shares(t *target, of []work) plotter.Values {
	out := make(plotter.Values, len(of))
	for i, w := range of {
		if got := r.results[cell{t, w}]; len(got) > 0 {
			out[i] = 100 * against(got, r.results[cell{r.bare, w}], share).median
		}
	}
	return out
}
