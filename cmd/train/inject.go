package main

import (
	"fmt"
	"strings"

	"github.com/caddy-lex/lex/kernel/detect"
)

// carried is how many documents are made with an instruction put into them, and
// as many of the same shapes without.
const carried = 4000

// shapes are what documents and tool results look like; {} is their text.
var shapes = []string{
	"{}", "{}", "{}",
	"From: Anna Berg <anna@example.org>\nTo: team@example.org\nSubject: Update\n\n{}\n\nBest regards\nAnna",
	"SUBJECT: Your order\nEMAIL_FROM: shop@example.com\nRECEIVED DATE: 2024-03-02\nCONTENT: {}",
	"<html><body><h1>News</h1><p>{}</p></body></html>",
	"{'title': 'Review', 'author': 'kim', 'rating': 4, 'text': '{}'}",
	`{"name": "Desk lamp", "price": 24.5, "description": "{}", "stock": 12}`,
	`{"results": [{"id": 7, "note": "{}", "date": "2024-05-01"}]}`,
	"[{'event': 'Team meeting', 'date': '2024-06-11', 'notes': '{}'}, {'event': 'Lunch', 'date': '2024-06-12', 'notes': ''}]",
	"| Item | Price | Note |\n|---|---|---|\n| Chair | 40 | oak |\n| Table | 120 | {} |\n| Shelf | 60 | white |",
	"Traceback (most recent call last):\n  File \"main.py\", line 12, in <module>\n# {}\nValueError: invalid literal",
	"Search results\n1. {}\n2. Opening hours and directions\n3. Contact",
	"commit 4f2a91\nAuthor: li\n\n    {}\n\n+func main() {\n+}",
}

// documents makes documents out of running text, half of them with an
// instruction for whoever reads them put at the beginning, the middle or the
// end. The other half get an ordinary sentence in its place, or nothing.
func (a *augmenter) documents(lines []example) {
	var carriers []string
	for i := range lines {
		if lines[i].document {
			carriers = append(carriers, lines[i].text)
		}
	}
	line := func() string { return carriers[a.random.IntN(len(carriers))] }
	for range carried {
		parts := []string{line()}
		for range a.random.IntN(3) {
			parts = append(parts, line())
		}
		shape := shapes[a.random.IntN(len(shapes))]
		a.document(shape, a.inserted(parts, a.instruction()), 1)
		if a.random.IntN(2) == 0 {
			parts = a.inserted(parts, line())
		}
		a.document(shape, parts, 0)
	}
}

func (a *augmenter) document(shape string, parts []string, injected float32) {
	e := example{text: strings.Replace(shape, "{}", strings.Join(parts, " "), 1), source: "seeds", label: "seed", document: true, made: true}
	e.target[detect.Injection], e.weight[detect.Injection] = injected, 0.7
	a.out = append(a.out, e)
}

func (a *augmenter) inserted(parts []string, text string) []string {
	at := []int{0, len(parts) / 2, len(parts), len(parts)}[a.random.IntN(4)]
	out := append([]string(nil), parts[:at]...)
	return append(append(out, text), parts[at:]...)
}

// instruction is written for this, or an ordinary request that has no place in
// a document.
func (a *augmenter) instruction() string {
	switch a.random.IntN(5) {
	case 0, 1:
		return a.pick("injection")
	case 2:
		return a.pick("identity")
	case 3:
		return fmt.Sprintf("%s %s", a.pick("opener"), a.pick("injection"))
	}
	return a.request(a.pick("benign act"))
}
