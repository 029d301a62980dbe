package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/caddy-lex/lex/kernel/detect"
)

// record is one line of the labelled data, or of seeds.jsonl.
type record struct {
	Source   string    `json:"source"`
	Label    string    `json:"label"`
	Category string    `json:"category"`
	Text     string    `json:"text"`
	Prompt   string    `json:"prompt"`
	Channel  string    `json:"channel"`
	Lang     string    `json:"lang"`
	Tags     []string  `json:"tags_weak"`
	Turns    []message `json:"turns"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// example is one training text: per head the answer (0 or 1) and how much it
// counts; a head with weight 0 learns nothing from it.
type example struct {
	text, source, label, category, lang string
	document                            bool // read from a tool or document, not from a user
	ordinary                            bool // an ordinary prompt of the data: counted in the false alarms
	target, weight                      [detect.Heads]float32

	made     bool        // by the augmenter or for applications: trained on, never counted
	means    [][]float32 // mean vector of each span
	rule     bool        // detect.SelfReference
	features []uint32    // of the whole text
	blocks   []int       // where each block of words ends in features
}

// files that hold prompts. Dialogues and answers are read elsewhere.
var files = []string{
	"benign_borderline", "benign_code", "benign_instructions", "benign_long", "benign_multilingual",
	"benign_roleplay", "benign_short", "harmful", "injection", "jailbreak", "sycophancy",
}

func readRecords(path string) ([]record, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening the data: %w", err)
	}
	defer f.Close()
	var out []record
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("reading %s line %d: %w", filepath.Base(path), len(out)+1, err)
		}
		out = append(out, r)
	}
	return out, lines.Err()
}

// load reads the data and the seeds, maps every label to targets, and adds what
// the augmenter makes of them, lines of the running text and the prompts of applications.
func load(dir, text, seeds string) ([]example, error) {
	var out []example
	for _, name := range files {
		records, err := readRecords(filepath.Join(dir, name+".jsonl"))
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			out = append(out, fromRecord(r)...)
		}
	}
	documents, err := documents(dir)
	if err != nil {
		return nil, err
	}
	out = append(out, documents...)
	records, err := readRecords(filepath.Join(seeds, "lines.jsonl"))
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		r.Source = "seeds"
		out = append(out, fromSeed(r))
	}
	weigh(out)
	lines, err := background(text)
	if err != nil {
		return nil, err
	}
	if out, err = augment(out, lines, seeds); err != nil {
		return nil, err
	}
	ofApplications, err := applicationExamples(seeds)
	if err != nil {
		return nil, err
	}
	return slices.Concat(out, lines, ofApplications), nil
}

// exploits are the harmful categories and words that turn on deceiving or
// exploiting a person; they train that head, and harm_request learns nothing
// from them, so that one request is not counted as two types.
var exploits = []string{
	"Fraud", "Privacy Violence", "Economic Harm", "Disinformation and deception", "social_engineering",
}

var exploitWords = []string{
	"scam", "phish", "fraud", "stalk", "blackmail", "manipulat", "identity theft", "extort", "elderly", "swindl",
	"steal someone", "trick ", "deceiv", "impersonat", "dox", "spy on", "exploit vulnerable", "exploit people", "gaslight", "con artist",
	"ponzi", "fake charity", "catfish", "groom", "stolen credit card", "personal information", "social engineering", "confidential information",
}

func exploitative(r record) bool {
	for _, c := range exploits {
		if strings.Contains(r.Category, c) {
			return true
		}
	}
	text := strings.ToLower(r.Text)
	return slices.ContainsFunc(exploitWords, func(w string) bool { return strings.Contains(text, w) })
}

// userHeads are the heads that read what a user says.
var userHeads = []detect.Head{detect.Identity, detect.Coercion, detect.Exploitative, detect.HarmRequest, detect.Sycophancy}

// openInjections are the direct techniques whose text itself shows the attack;
// the others are only wrong beside the system prompt they go against.
var openInjections = []string{"ignore_previous_instructions", "system_mode", "virtualization", "token_smuggling"}

func fromRecord(r record) []example {
	e := example{text: r.Text, source: r.Source, label: r.Label, category: r.Category, lang: r.Lang}
	if strings.HasPrefix(r.Category, "inthewild:") {
		e.source += " (" + strings.TrimPrefix(r.Category, "inthewild:") + ")"
	}
	switch r.Label {
	case "benign", "borderline_benign":
		return []example{e.benign(r)}
	case "harmful":
		e.heads(1, userHeads...)
		e.weight[detect.Injection] = 0.1
		if exploitative(r) {
			e.target[detect.Exploitative], e.weight[detect.HarmRequest] = 1, 0
		} else {
			e.target[detect.HarmRequest], e.weight[detect.Exploitative] = 1, 0.3
		}
		return []example{e}
	case "jailbreak":
		return []example{e.jailbreak(r)}
	case "sycophancy":
		e.heads(0.1, userHeads...) // one narrow template, seventeen questions
		e.target[detect.Sycophancy] = 1
		return []example{e}
	case "injection":
		return e.injection(r)
	}
	return nil // policy_restricted: grey area
}

func (e *example) heads(weight float32, heads ...detect.Head) {
	for _, h := range heads {
		e.weight[h] = weight
	}
}

func (e example) benign(r record) example {
	e.document = r.Channel == "document" || r.Channel == "tool_output"
	if e.document {
		e.weight[detect.Injection] = 1
		return e
	}
	e.ordinary = r.Label == "benign" && r.Source != "anthropic_sycophancy"
	e.heads(1, userHeads...)
	if r.Label == "borderline_benign" {
		e.heads(2, userHeads...)
	}
	e.weight[detect.Injection] = 0.1 // a user may instruct
	return e
}

func (e example) jailbreak(r record) example {
	e.heads(1, detect.Identity, detect.Coercion, detect.Sycophancy)
	e.heads(0.3, detect.HarmRequest, detect.Exploitative)
	e.target[detect.Identity] = 1
	e.weight[detect.Injection], e.target[detect.Injection] = 0.5, 1
	for _, tag := range r.Tags {
		if tag == "coercion_threat" || tag == "token_penalty" || tag == "emotional_manipulation" {
			e.target[detect.Coercion] = 1
		}
	}
	return e
}

// injection: instructions inside documents, and the same aimed by a user at the
// system prompt, which are attacks on the assistant's identity as well.
func (e example) injection(r record) []example {
	e.target[detect.Injection], e.weight[detect.Injection] = 1, 1
	direct := strings.HasPrefix(r.Category, "direct:")
	if direct || r.Source == "garak_sysprompt_extraction" {
		technique := strings.TrimPrefix(r.Category, "direct:")
		if direct && !slices.Contains(openInjections, technique) {
			return nil
		}
		e.heads(1, userHeads...)
		e.target[detect.Identity] = 1
		e.weight[detect.HarmRequest], e.weight[detect.Exploitative] = 0.3, 0.3
		return []example{e}
	}
	e.document = true
	out := []example{e}
	if r.Source == "injecagent" {
		if clean, ok := withoutInjection(r.Text); ok && len(r.Text)%2 == 0 {
			c := example{text: clean, source: "injecagent (cleaned)", label: "benign", document: true}
			c.weight[detect.Injection] = 1
			out = append(out, c)
		}
	}
	return out
}

func fromSeed(r record) example {
	e := example{text: r.Text, source: r.Source, label: r.Label}
	e.document = r.Channel == "document" || r.Channel == "tool_output"
	if e.document {
		e.weight[detect.Injection] = 8
	} else {
		e.heads(5, userHeads...)
		e.weight[detect.Injection] = 0.2
	}
	for h := range detect.Heads {
		if detect.Head(h).String() == r.Label {
			e.target[h] = 1
			e.weight[h] = max(e.weight[h], 5)
		}
	}
	if r.Label == "identity" {
		e.target[detect.Injection] = 1
	}
	return e
}
