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
	silent := detect.Requests{Weights: make([]int8, detect.RequestBuckets)}
	return detect.Languages{Gate: 1e6, Floor: 1e6, Foreign: make([]int8, detect.SpelledBuckets), English: silent, Other: silent}
}

// retrainLanguages replaces the part for languages of a model's file, and its card.
func retrainLanguages(text, data, seeds, path string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the model: %w", err)
	}
	file, models, err := withLanguages(old, text, data, seeds)
	if err != nil {
		return err
	}
	card := filepath.Join(filepath.Dir(path), "MODEL.md")
	page, err := os.ReadFile(card)
	if err != nil {
		return fmt.Errorf("reading the card: %w", err)
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
	sets, err := languageSets(data, filepath.Join(filepath.Dir(seeds), "testdata", "languages"))
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

// languageSets reads the kept prompts, and those of the data that the part has not seen.
func languageSets(data, kept string) ([]set, error) {
	var sets []set
	add := func(name string, p prompt) {
		i := slices.IndexFunc(sets, func(s set) bool { return s.name == name })
		if i < 0 {
			i = len(sets)
			sets = append(sets, set{name: name})
		}
		sets[i].prompts = append(sets[i].prompts, p)
	}
	for _, which := range []struct{ name, folder string }{{"kept", kept}, {"kept later", filepath.Join(kept, "later")}, {"kept English", filepath.Join(kept, "english")}} {
		prompts, err := readPrompts(which.folder)
		if err != nil {
			return nil, err
		}
		for _, kind := range []struct{ letter, name string }{{"H", harmSet}, {"T", twinSet}, {"B", ordinarySet}} {
			for _, p := range prompts {
				if p.kind == kind.letter {
					add(which.name+kind.name, p)
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
	for _, author := range []string{"kept", "kept later", "fresh", "kept English", "fresh English"} {
		for _, share := range rates {
			fmt.Fprintf(&b, "| %s%s, %.0f %% |", author, harmSet, 100*share)
			for _, model := range []*detect.Model{m.heads, m.plain, m.full} {
				var ordinary []float64
				for _, p := range promptsOf(sets, author+ordinarySet) {
					ordinary = append(ordinary, saidBy(model, p.text))
				}
				cut, n := quantile(ordinary, 1-share), 0
				harm := promptsOf(sets, author+harmSet)
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
	for _, author := range []string{"kept", "kept later", "kept English"} {
		for _, p := range append(promptsOf(sets, author+harmSet), promptsOf(sets, author+ordinarySet)...) {
			languages[p.lang] = append(languages[p.lang], p)
		}
	}
	var b strings.Builder
	b.WriteString("\n| language | kept requests for harm | refused at 0.70 | over 0.335 | kept ordinary prompts | refused | over 0.335 |\n|---|---|---|---|---|---|---|\n")
	for _, lang := range sortedKeys(languages) {
		var harm, ordinary []prompt
		for _, p := range languages[lang] {
			if p.kind == "H" {
				harm = append(harm, p)
			} else {
				ordinary = append(ordinary, p)
			}
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %d | %s | %s |\n", lang, len(harm), over(m.full, harm, refuseAt), over(m.full, harm, 0.335),
			len(ordinary), over(m.full, ordinary, refuseAt), over(m.full, ordinary, 0.335))
	}
	return b.String()
}
