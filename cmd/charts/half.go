package main

import (
	"hash/fnv"
	"slices"
	"strings"
)

// A half is half of the sources: constants are chosen on one and reported on the other.
type half struct {
	dialogues  []dialogue // ordinary ones of several turns
	prompts    []dialogue // ordinary ones of one turn
	borderline []dialogue // benign, but looks dangerous
	attacks    []dialogue
}

// unseen are sources that the detector was not trained on. They are reported on.
func unseen(source string) bool { return strings.HasPrefix(source, "fresh_") }

// dialogues of several turns come from one source alone, so that source is halved itself.
const dialogueSource = "schema_guided_dialogue"

// halves divides the sources by turns, in the order of their names.
func halves(all []dialogue) (choosing, reporting half) {
	var sources []string
	for _, d := range all {
		if !unseen(d.source) && !slices.Contains(sources, d.source) {
			sources = append(sources, d.source)
		}
	}
	slices.Sort(sources)
	for _, d := range all {
		of := &reporting
		if first := slices.Index(sources, d.source)%2 == 0; first && !unseen(d.source) || d.source == dialogueSource {
			of = &choosing
		}
		if d.source == dialogueSource && even(d.id) {
			of = &reporting
		}
		of.add(d)
	}
	return choosing, reporting
}

func even(id string) bool {
	h := fnv.New32a()
	h.Write([]byte(id))
	return h.Sum32()%2 == 0
}

func (h *half) add(d dialogue) {
	switch {
	case d.label == "benign" && len(d.turns) > 1:
		h.dialogues = append(h.dialogues, d)
	case d.label == "benign":
		h.prompts = append(h.prompts, d)
	case d.label == "borderline_benign":
		h.borderline = append(h.borderline, d)
	case slices.Contains([]string{"harmful", "jailbreak", "injection", "sycophancy", "coercion", "identity"}, d.label):
		h.attacks = append(h.attacks, d)
	}
}

// sources names where dialogues are from.
func sources(ds []dialogue) string {
	var names []string
	for _, d := range ds {
		if !slices.Contains(names, d.source) {
			names = append(names, d.source)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
