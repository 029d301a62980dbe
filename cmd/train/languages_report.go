package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/detect"
)

// languageModels are the models that the card compares, and the part of the full one.
type languageModels struct {
	heads, plain, full *detect.Model
	part               detect.Languages
}

// withLanguages returns a model's file with the part for languages, and the models that its
// card compares: without the part, with one that has no concepts, and as it is.
func withLanguages(file []byte, text, data, seeds string) ([]byte, languageModels, error) {
	m, err := detect.Decode(file)
	if err != nil {
		return nil, languageModels{}, err
	}
	full, plain, err := trainLanguages(m.Lexicon(), text, data, seeds)
	if err != nil {
		return nil, languageModels{}, err
	}
	models := languageModels{part: full}
	for _, m := range []struct {
		part detect.Languages
		to   **detect.Model
	}{{noLanguages(), &models.heads}, {plain, &models.plain}, {full, &models.full}} {
		out, err := detect.ReplaceLanguages(file, m.part)
		if err != nil {
			return nil, models, err
		}
		if *m.to, err = detect.Decode(out); err != nil {
			return nil, models, err
		}
		if m.to == &models.full {
			file = out
		}
	}
	return file, models, nil
}

// noLanguages is a part that never speaks.
func noLanguages() detect.Languages {
	var silent detect.Requests
	for q := range silent.Answers {
		silent.Answers[q].Weights = make([]int8, detect.RequestBuckets)
	}
	return detect.Languages{Gate: 1e6, Floor: [detect.Questions]float32{1e6, 1e6}, Foreign: make([]int8, detect.SpelledBuckets), English: silent, Other: silent}
}

// retrainLanguages replaces the part for languages of a model's file, and its card.
func retrainLanguages(text, data, seeds, path string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the model: %w", err)
	}
	card := filepath.Join(filepath.Dir(path), "MODEL.md") // before the long work
	page, err := os.ReadFile(card)
	if err != nil {
		return fmt.Errorf("reading the card: %w", err)
	}
	file, models, err := withLanguages(old, text, data, seeds)
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(string(page), "\n")
	if err := os.WriteFile(card, fmt.Appendf(nil, modelTitle+"%s", models.full.Version(), rest), 0o644); err != nil {
		return fmt.Errorf("writing the card: %w", err)
	}
	if err := os.WriteFile(path, file, 0o644); err != nil {
		return fmt.Errorf("writing the model: %w", err)
	}
	return writeLanguageCard(models, data, seeds, path)
}

// writeLanguageCard measures the models and writes LANGUAGES.md beside a model's file.
func writeLanguageCard(models languageModels, data, seeds, path string) error {
	sets, err := languageSets(data, filepath.Join(filepath.Dir(seeds), "testdata"))
	if err != nil {
		return err
	}
	card := languageHead + models.table(sets) + models.byLanguage(sets) + models.cuts(sets) + languageTail
	fmt.Print(card)
	return os.WriteFile(filepath.Join(filepath.Dir(path), "LANGUAGES.md"), []byte(card), 0o644)
}

// set is prompts that the readers have not learnt from, unless its name says so.
type set struct {
	name    string
	prompts []prompt
}

// languageSets reads the kept prompts of testdata, and those of the data that the part has not
// seen.
func languageSets(data, testdata string) ([]set, error) {
	var sets []set
	add := func(name string, p prompt) {
		i := slices.IndexFunc(sets, func(s set) bool { return s.name == name })
		if i < 0 {
			i = len(sets)
			sets = append(sets, set{name: name})
		}
		sets[i].prompts = append(sets[i].prompts, p)
	}
	for _, which := range []struct {
		name, folder string
		english      bool
	}{
		{"kept", "languages", false},
		{"kept later", "languages/later", false},
		{"kept English", "languages/english", true},
		{"kept", "assistant", false},
		{"kept English", "assistant", true},
		{"kept English later", "assistant/later", true},
		{"kept English hard", "assistant/hard", true},
		{"kept customers", "assistant/customers", false},
		{"kept English customers", "assistant/customers", true},
		{"kept English applications", "assistant/applications", true},
		{"kept English short", "languages/short", true},
		{"kept English short", "assistant/short", true},
	} {
		prompts, err := readPrompts(filepath.Join(testdata, filepath.FromSlash(which.folder)))
		if err != nil {
			return nil, err
		}
		for _, kind := range []struct{ letter, name string }{{"H", harmSet}, {"A", attackSet}, {"T", twinSet}, {"B", ordinarySet}} {
			for _, p := range prompts {
				if p.kind == kind.letter && (p.lang == "en") == which.english {
					name := which.name
					if strings.HasPrefix(which.folder, "assistant") && p.kind != "A" {
						name += ", assistant"
					}
					add(name+kind.name, p)
				}
			}
		}
	}
	for _, f := range []struct {
		file, label, name string
		english           bool
	}{
		{"fresh_attacks", "harmful", "fresh" + harmSet, false},
		{"fresh_attacks", "benign", "fresh" + ordinarySet, false},
		{"benign_multilingual", "benign", "", false},
		{"benign_borderline", "borderline_benign", "", false},
		{"benign_roleplay", "benign", "", false},
		{"fresh_requests", "harmful", "fresh English" + harmSet, true},
		{"fresh_requests", "borderline_benign", "fresh English" + twinSet, true},
		{"fresh_requests", "benign", "fresh English" + ordinarySet, true},
		{"fresh_attacks", "jailbreak", "fresh jailbreaks", true},
		{"fresh_attacks", "identity", "fresh attacks on the identity", true},
		{"fresh_attacks", "coercion", "fresh coercion", true},
		{"fresh_attacks", "borderline_benign", "fresh English, assistant" + twinSet, true},
	} {
		records, err := readRecords(filepath.Join(data, f.file+".jsonl"))
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			name := f.name
			switch {
			case r.Source == "cyberseceval_frr":
				name = r.Source + " (in the training)"
			case name == "":
				name = r.Source
			}
			if r.Label == f.label && (r.Lang == "en") == f.english {
				add(name, prompt{"", r.Lang, r.Text})
			}
		}
	}
	return sets, nil
}

// The names of the sets end with what their prompts are.
const (
	harmSet     = ": requests for harm"
	attackSet   = ": attacks on the assistant"
	twinSet     = ": harmless twins"
	ordinarySet = ": ordinary"
)

// saidBy is the severity of a prompt.
func saidBy(m *detect.Model, text string) float64 {
	s, err := m.Assess(context.Background(), []detect.Text{{Source: detect.User, Body: text}})
	if err != nil {
		panic(err) // the context is never done
	}
	return severity([detect.Heads]float64{
		detect.Identity: s.Scores.Identity, detect.Coercion: s.Scores.Coercion, detect.Exploitative: s.Scores.Exploitative,
		detect.HarmRequest: s.Scores.HarmRequest, detect.Sycophancy: s.Scores.Sycophancy, detect.Injection: s.Scores.Injection,
	})
}

func over(m *detect.Model, prompts []prompt, severity float64) string {
	n := 0
	for _, p := range prompts {
		n += boolToInt(saidBy(m, p.text) >= severity)
	}
	return wilson(n, len(prompts))
}

func (m languageModels) table(sets []set) string {
	var b strings.Builder
	b.WriteString("\n| prompts | texts | refused at 0.70: heads alone | n-grams | and concepts | over 0.335: n-grams | and concepts |\n|---|---|---|---|---|---|---|\n")
	for _, s := range sets {
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s | %s |\n", s.name, len(s.prompts), over(m.heads, s.prompts, refuseAt), over(m.plain, s.prompts, refuseAt),
			over(m.full, s.prompts, refuseAt), over(m.plain, s.prompts, 0.335), over(m.full, s.prompts, 0.335))
	}
	return b.String()
}

// cuts compares the models where each has as many false alarms.
func (m languageModels) cuts(sets []set) string {
	var b strings.Builder
	b.WriteString("\n| found where so many of their own ordinary prompts are over | heads alone | n-grams | and concepts |\n|---|---|---|---|\n")
	for _, of := range []struct{ harm, ordinary string }{
		{"kept" + harmSet, "kept" + ordinarySet},
		{"kept later" + harmSet, "kept later" + ordinarySet},
		{"fresh" + harmSet, "fresh" + ordinarySet},
		{"kept English" + harmSet, "kept English" + ordinarySet},
		{"fresh English" + harmSet, "fresh English" + ordinarySet},
		{"kept" + attackSet, "kept, assistant" + ordinarySet},
		{"kept English" + attackSet, "kept English, assistant" + ordinarySet},
	} {
		for _, share := range rates {
			fmt.Fprintf(&b, "| %s, %.0f %% |", of.harm, 100*share)
			for _, model := range []*detect.Model{m.heads, m.plain, m.full} {
				var ordinary []float64
				for _, p := range promptsOf(sets, of.ordinary) {
					ordinary = append(ordinary, saidBy(model, p.text))
				}
				cut, n := quantile(ordinary, 1-share), 0
				harm := promptsOf(sets, of.harm)
				for _, p := range harm {
					n += boolToInt(saidBy(model, p.text) > cut)
				}
				fmt.Fprintf(&b, " %s |", wilson(n, len(harm)))
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func promptsOf(sets []set, name string) []prompt {
	for _, s := range sets {
		if s.name == name {
			return s.prompts
		}
	}
	return nil
}

func (m languageModels) byLanguage(sets []set) string {
	languages := map[string][]prompt{}
	for _, author := range []string{"kept", "kept later", "kept English", "kept, assistant", "kept English, assistant"} {
		for _, kind := range []string{harmSet, attackSet, ordinarySet} {
			for _, p := range promptsOf(sets, author+kind) {
				languages[p.lang] = append(languages[p.lang], p)
			}
		}
	}
	var b strings.Builder
	b.WriteString("\n| language | kept requests for harm | refused at 0.70 | over 0.335 | attacks on the assistant | refused | over 0.335 | ordinary prompts | refused | over 0.335 |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, lang := range sortedKeys(languages) {
		fmt.Fprintf(&b, "| %s |", lang)
		for _, kind := range []string{"H", "A", "B"} {
			var of []prompt
			for _, p := range languages[lang] {
				if p.kind == kind {
					of = append(of, p)
				}
			}
			fmt.Fprintf(&b, " %d | %s | %s |", len(of), over(m.full, of, refuseAt), over(m.full, of, 0.335))
		}
		b.WriteString("\n")
	}
	return b.String()
}
