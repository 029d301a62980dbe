package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
)

// answers measures the output side on openings of model answers.
func answers(b *strings.Builder, m *detect.Model, dir string) error {
	records, err := readRecords(filepath.Join(dir, "outputs.jsonl"))
	if err != nil {
		return fmt.Errorf("measuring answers: %w", err)
	}
	type tally struct{ n, refusals, capitulated int }
	counts := map[string]*tally{}
	for _, r := range records {
		key := r.Label + " | " + r.Source
		if counts[key] == nil {
			counts[key] = &tally{}
		}
		c := counts[key]
		c.n++
		c.refusals += boolToInt(detect.IsRefusal(r.Text))
		c.capitulated += boolToInt(judge(m, r.Prompt, r.Text).Capitulated)
	}
	fmt.Fprintf(b, "\n### Answers\n\nThe input side has seen many of the prompts. The refusals of hh_redteam_answers were labelled by their first word; most of what is not read as a refusal there is none (\"No. The party ended in 1945.\").\n\n| label | source | answers | read as a refusal | judged capitulated |\n|---|---|---|---|---|\n")
	for _, key := range sortedKeys(counts) {
		c := counts[key]
		fmt.Fprintf(b, "| %s | %d | %s | %s |\n", key, c.n, wilson(c.refusals, c.n), wilson(c.capitulated, c.n))
	}
	return nil
}

// A training run is interrupted as a process, so nothing here takes a context.

func assess(m *detect.Model, text string) kernel.Scores {
	s, _ := m.Assess(context.Background(), []detect.Text{{Source: detect.User, Body: text}})
	return s.Scores
}

func embed(m *detect.Model, text string) detect.Vector {
	v, _ := m.Embed(context.Background(), text)
	return v
}

func judge(m *detect.Model, prompt, output string) detect.Judgement {
	j, _ := m.Judge(context.Background(), prompt, output)
	return j
}
