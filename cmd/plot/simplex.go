package main

import (
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/caddy-lex/lex/kernel"
)

var (
	ink    = color.NRGBA{40, 44, 52, 255}
	faint  = color.NRGBA{150, 156, 166, 255}
	green  = color.NRGBA{46, 139, 87, 255}
	red    = color.NRGBA{200, 60, 50, 255}
	blue   = color.NRGBA{45, 95, 170, 255}
	yellow = color.NRGBA{214, 150, 30, 255}
)

// flat maps a point of the simplex to the plane: R left, S right, C on top.
func flat(p kernel.Point) plotter.XY {
	return plotter.XY{X: p[kernel.Sovereignty] + p[kernel.Continuity]/2, Y: p[kernel.Continuity] * math.Sqrt(3) / 2}
}

// triangle is the set {x_i >= floor} of the simplex.
func triangle(floor float64) plotter.XYs {
	top := 1 - 2*floor
	return plotter.XYs{
		flat(kernel.Point{top, floor, floor}), flat(kernel.Point{floor, top, floor}),
		flat(kernel.Point{floor, floor, top}), flat(kernel.Point{top, floor, floor}),
	}
}

// drawSimplex shows where the story leads the state, and what the governor
// corrects.
func drawSimplex(p *plot.Plot, policy kernel.Policy, taken []kernel.Turn) error {
	p.HideAxes()
	p.Title.Text = "A session under attack, on the simplex"
	for _, edge := range []struct {
		floor  float64
		colour color.Color
		dashes []vg.Length
		name   string
	}{
		{0, ink, nil, ""},
		{policy.Floor, red, dashed, "floor: the hard safe set"},
		{policy.Tau, yellow, nil, "tau: the barrier set"},
		{policy.Optimal, green, dashed, "OPTIMAL"},
	} {
		line, err := stroke(triangle(edge.floor), edge.colour, edge.dashes)
		if err != nil {
			return err
		}
		p.Add(line)
		if edge.name != "" {
			p.Legend.Add(edge.name, line)
		}
	}
	p.Legend.Top, p.Legend.Left = true, true
	if err := addPath(p, taken); err != nil {
		return err
	}
	return addCorners(p)
}

var dashed = []vg.Length{vg.Points(4), vg.Points(3)}

func stroke(points plotter.XYs, c color.Color, dashes []vg.Length) (*plotter.Line, error) {
	line, err := plotter.NewLine(points)
	if err != nil {
		return nil, err
	}
	line.Color, line.Dashes, line.Width = c, dashes, vg.Points(1.2)
	return line, nil
}

// addPath draws the states, and from each raw state the governor's correction.
func addPath(p *plot.Plot, taken []kernel.Turn) error {
	path := plotter.XYs{flat(taken[0].Before.X)}
	var raws plotter.XYs
	for _, t := range taken {
		path = append(path, flat(t.State))
		if !t.Intervened {
			continue
		}
		raws = append(raws, flat(t.Raw))
		correction, err := stroke(plotter.XYs{flat(t.Raw), flat(t.State)}, red, nil)
		if err != nil {
			return err
		}
		p.Add(correction)
	}
	line, err := stroke(path, blue, nil)
	if err != nil {
		return err
	}
	p.Add(line, dots(path, blue, draw.CircleGlyph{}), dots(raws, red, draw.CrossGlyph{}))
	p.Legend.Add("state, turn by turn", line)
	p.Legend.Add("raw state, before the governor", dots(raws, red, draw.CrossGlyph{}))
	return addNumbers(p, path)
}

func dots(points plotter.XYs, c color.Color, shape draw.GlyphDrawer) *plotter.Scatter {
	return &plotter.Scatter{XYs: points, GlyphStyle: draw.GlyphStyle{Color: c, Radius: vg.Points(3), Shape: shape}}
}

// addNumbers names the turns of the attack; the others lie close together.
func addNumbers(p *plot.Plot, path plotter.XYs) error {
	var labels plotter.XYLabels
	for i := 3; i <= 9; i++ {
		labels.XYs = append(labels.XYs, plotter.XY{X: path[i].X + 0.012, Y: path[i].Y + 0.008})
		labels.Labels = append(labels.Labels, strconv.Itoa(i))
	}
	l, err := plotter.NewLabels(labels)
	if err != nil {
		return err
	}
	p.Add(l)
	return nil
}

func addCorners(p *plot.Plot) error {
	l, err := plotter.NewLabels(plotter.XYLabels{
		XYs:    plotter.XYs{{X: 0.44, Y: 0.89}, {X: -0.06, Y: -0.05}, {X: 0.9, Y: -0.05}},
		Labels: []string{"Continuity", "Reciprocity", "Sovereignty"},
	})
	if err != nil {
		return err
	}
	p.Add(l)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -0.1, 1.1, -0.08, 0.95
	return nil
}
