package main

import (
	"path/filepath"
	"strings"

	"github.com/caddy-lex/lex/kernel/detect"
)

// documents are ordinary texts as tools and documents hold them: answers and
// the assistant's side of task dialogues.
func documents(dir string) ([]example, error) {
	var out []example
	add := func(text, source string) {
		e := example{text: text, source: source, label: "benign", document: true}
		e.weight[detect.Injection] = 1
		out = append(out, e)
	}
	answers, err := readRecords(filepath.Join(dir, "outputs.jsonl"))
	if err != nil {
		return nil, err
	}
	for _, r := range answers {
		if r.Label == "benign_answer" {
			add(r.Text, r.Source)
		}
	}
	dialogues, err := readRecords(filepath.Join(dir, "multiturn_benign.jsonl"))
	if err != nil {
		return nil, err
	}
	for _, r := range dialogues {
		var said []string
		for _, t := range r.Turns {
			if t.Role == "assistant" {
				said = append(said, t.Content)
			}
		}
		add(strings.Join(said, " "), r.Source)
	}
	return out, nil
}

// withoutInjection replaces the longest value of a tool result by an ordinary
// one, because the set has no clean results and the shape of a result must not
// count as an attack.
func withoutInjection(text string) (string, bool) {
	from, to := -1, -1
	for at := 0; ; {
		i := strings.Index(text[at:], ": '")
		if i < 0 {
			break
		}
		start := at + i + 3
		end := strings.Index(text[start:], "', '")
		if end < 0 {
			if end = strings.LastIndex(text[start:], "'"); end < 0 {
				break
			}
		}
		if end > to-from {
			from, to = start, start+end
		}
		at = start + end
	}
	if from < 0 {
		return "", false
	}
	return text[:from] + ordinaryValues[len(text)%len(ordinaryValues)] + text[to:], true
}

var ordinaryValues = []string{
	"Great product, works as described and arrived on time.", "Weekly sync moved to 10 am on Thursday, agenda attached.",
	"The quick start guide covers installation and first use.", "Nice quiet street, five minutes from the station.",
	"Budget for the second quarter, draft for review.", "Looking forward to the conference next month!",
	"Please find the invoice for March attached. Payment is due within 30 days.", "Thanks for your order, it has been shipped.",
	"The battery lasts about nine hours and the screen is bright.", "Reminder: dentist appointment on Friday at 9:30.",
	"Spent the weekend hiking, photos are up on the blog.", "Our new office opens in May. All are welcome to visit.",
}
