// Command plot draws the pictures of docs/kernel.md from the kernel itself, and from what
// cmd/charts measured (arl.json):
//
//	go run ./cmd/plot docs
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"github.com/caddy-lex/lex/kernel"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: plot <folder>")
		os.Exit(2)
	}
	if err := render(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// story is the session that the first three pictures show: quiet turns, an attack on the
// assistant's identity that grows until it is refused, and recovery.
var story = []float64{0.05, 0.05, 0.45, 0.6, 0.66, 0.85, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05}

// turns takes the steps of the story under the policy.
func turns(p kernel.Policy) ([]kernel.Turn, error) {
	k, err := kernel.New(p)
	if err != nil {
		return nil, err
	}
	s := k.NewSession()
	taken := make([]kernel.Turn, len(story))
	for i, score := range story {
		e := kernel.Evidence{Scores: kernel.Scores{Identity: score}}
		if taken[i], err = k.Assess(s, e, kernel.Enforce); err != nil {
			return nil, err
		}
		s = taken[i].Next
	}
	return taken, nil
}

// render writes all pictures into the folder.
func render(folder string) error {
	policy := kernel.DefaultPolicy()
	taken, err := turns(policy)
	if err != nil {
		return err
	}
	for _, picture := range []struct {
		name          string
		width, height vg.Length
		draw          func(*plot.Plot, kernel.Policy, []kernel.Turn) error
	}{
		{"kernel-simplex.svg", 16 * vg.Centimeter, 14.5 * vg.Centimeter, drawSimplex},
		{"kernel-energy.svg", 16 * vg.Centimeter, 8 * vg.Centimeter, drawEnergy},
		{"kernel-bands.svg", 16 * vg.Centimeter, 8 * vg.Centimeter, drawBands},
		{"kernel-run-lengths.svg", 16 * vg.Centimeter, 9 * vg.Centimeter, drawRunLengths},
		{"kernel-delays.svg", 16 * vg.Centimeter, 9 * vg.Centimeter, drawDelays},
	} {
		p := plot.New()
		if err := picture.draw(p, policy, taken); err != nil {
			return err
		}
		if err := p.Save(picture.width, picture.height, filepath.Join(folder, picture.name)); err != nil {
			return fmt.Errorf("drawing %s: %w", picture.name, err)
		}
	}
	return nil
}
