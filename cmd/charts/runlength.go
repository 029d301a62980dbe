package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/caddy-lex/lex/kernel"
)

// charts are those that watch a session; either may alarm.
type charts []kernel.Chart

func defaultCharts() charts {
	fast, slow := kernel.DefaultPolicy().Charts()
	return charts{fast, slow}
}

// A walk runs charts over severities.
type walk struct {
	charts charts
	g      []float64
}

func (c charts) start() *walk { return &walk{c, make([]float64, len(c))} }

func (w *walk) alarms(severity float64) (alarm bool) {
	for i, c := range w.charts {
		next, a := c.Next(w.g[i], severity)
		w.g[i], alarm = next, alarm || a
	}
	return alarm
}

// A population is ordinary use: dialogues to draw from, by their severities.
type population [][]float64

func populationOf(ds []dialogue) population {
	out := make(population, len(ds))
	for i, d := range ds {
		for _, t := range d.turns {
			out[i] = append(out[i], t.severity)
		}
	}
	return out
}

// runLength estimates the average run length in control: the turns of endless ordinary
// use, dialogues drawn at random and joined in one session, that pass between two
// alarms when each alarm begins a new session. It is at most the number of turns walked.
func (c charts) runLength(r *rand.Rand, of population, turns int) float64 {
	w, taken, alarms := c.start(), 0, 0
	for taken < turns {
		for _, s := range of[r.IntN(len(of))] {
			taken++
			if w.alarms(s) {
				alarms++
				clear(w.g)
			}
		}
	}
	return float64(taken) / float64(max(1, alarms))
}

// An estimate is a mean with its 95 % interval.
type estimate struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

func (e estimate) String() string {
	return fmt.Sprintf("%s (%s to %s)", rounded(e.Mean), rounded(e.Low), rounded(e.High))
}

// rounded leaves two digits, because no more are known.
func rounded(v float64) string {
	if v >= longest {
		return "over 1,000,000"
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-1)
	n := int(math.Round(v/unit) * unit)
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// measure estimates the run length with the interval of the bootstrap (Efron 1979):
// what it would have been if other dialogues of the same kind had been collected.
func (c charts) measure(of population, samples, turns int) estimate {
	r := rand.New(rand.NewPCG(1, 2))
	lengths := make([]float64, samples)
	for i := range lengths {
		drawn := make(population, len(of))
		for j := range drawn {
			drawn[j] = of[r.IntN(len(of))]
		}
		lengths[i] = c.runLength(r, drawn, turns)
	}
	slices.Sort(lengths)
	at := func(q float64) float64 { return lengths[int(q*float64(samples-1)+0.5)] }
	return estimate{Mean: c.runLength(r, of, 4*turns), Low: at(0.025), High: at(0.975)}
}
