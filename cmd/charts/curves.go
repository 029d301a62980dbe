package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// curves are the run lengths that cmd/plot draws.
type curves struct {
	Fast []level `json:"fast"`
	Slow []level `json:"slow"`
	Both level   `json:"both"` // the charts of the policy together, at h of the slow one
}

// A level is the run length of a chart that alarms at h.
type level struct {
	H         float64  `json:"h"`
	RunLength estimate `json:"run_length"`
}

// longest bounds the run lengths that are told apart: so many turns are walked.
const longest = 1_000_000

func reportRunLengths(b *bytes.Buffer, choosing, h half) curves {
	dialogues, both := populationOf(h.dialogues), defaultCharts()
	out := curves{Both: level{both[1].H, both.measure(dialogues, 100, longest)}}
	for step := range 12 {
		fast, slow := both[0], both[1]
		fast.H, slow.H = 0.40+0.1*float64(step), 0.40+0.1*float64(step)
		out.Fast = append(out.Fast, level{fast.H, charts{fast}.measure(dialogues, 40, longest)})
		out.Slow = append(out.Slow, level{slow.H, charts{slow}.measure(dialogues, 40, longest)})
	}
	fmt.Fprintf(b, "## Average run length in control\n\nOf the policy's two charts together, on the other half (over %d is not told apart):\n\n| ordinary use | turns | run length (95 %%) |\n|---|---|---|\n", longest)
	fmt.Fprintf(b, "| %s, dialogues | %d | %v |\n", sources(h.dialogues), turnsOf(h.dialogues), out.Both.RunLength)
	all := slices.Concat(choosing.dialogues, h.dialogues)
	fmt.Fprintf(b, "| the same, of both halves | %d | %v |\n", turnsOf(all), both.measure(populationOf(all), 100, longest))
	for _, source := range bySource(h.prompts) {
		fmt.Fprintf(b, "| %s, prompts | %d | %v |\n", source[0].source, len(source), both.measure(populationOf(source), 40, longest))
	}
	fmt.Fprintln(b)
	return out
}

func writeCurves(path string, c curves) error {
	text, err := json.Marshal(c, jsontext.WithIndent(" "))
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the run lengths: %w", err)
	}
	return nil
}

func turnsOf(ds []dialogue) (n int) {
	for _, d := range ds {
		n += len(d.turns)
	}
	return n
}

// bySource groups dialogues, in the order of the sources' first.
func bySource(ds []dialogue) (groups [][]dialogue) {
	place := map[string]int{}
	for _, d := range ds {
		i, known := place[d.source]
		if !known {
			i = len(groups)
			place[d.source] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], d)
	}
	return groups
}
