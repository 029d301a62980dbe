package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/caddy-lex/lex/kernel/detect"
)

// The part of the model for languages is trained by itself: one reader for English, one for
// the other languages. They learn from hand-written prompts of nineteen languages, for each
// question a folder (seeds/languages and seeds/assistant, with one of applications in each), and
// the terms of the concepts (seeds/concepts); running text of thirty-six languages and of English
// counts as ordinary. The English reader sees no labelled record, so that every English source of
// the data is new to it.

// prompt is a line of seeds/languages or seeds/assistant. Kind H is a request for harm, A an attack
// on the assistant, T the harmless twin of one of them, which has many of its words, B an ordinary
// prompt.
type prompt struct{ kind, lang, text string }

// applications is the folder of what applications send, beside the other prompts of a question.
// Its harmless prompts are all of kind T: as B they would lower the anchors.
const applications = "applications"

const (
	languageFolds = 5
	// runningWeight, questionWeight and actWeight are how much a line of running text, a question
	// there, and an act in its frames count beside a prompt.
	runningWeight  = 0.05
	questionWeight = 0.3
	actWeight      = 0.5
	// runningStep leaves lines of running text out, which say little and cost time.
	runningStep = 4
	// windowWeight is how much the English running text counts, a window of it.
	windowWeight = 0.3
	// strangerWeight is how much the harmless prompts of the other question count.
	strangerWeight = 0.5
	// floor is the logit of a question's head below which the English reader is not asked.
	floor = -3.5
)

// anchors are the shares of the hand-written ordinary prompts, held out, that exceed two
// severities: the one that 5 % of the ordinary English prompts exceed (MODEL.md), and that
// which refuses. They are harder than what users send, of which fewer do: a quarter of them
// was written to sound like harm.
var anchors = [2]struct{ share, severity float64 }{{0.04, 0.335}, {0.0075, refuseAt}}

// trainLanguages returns the part for languages, and the same without concepts, as a baseline.
// The lexicon is the one of the model that the part belongs to.
func trainLanguages(lexicon *detect.Lexicon, text, data, seeds string) (full, plain detect.Languages, err error) {
	requests, err := readPrompts(filepath.Join(seeds, "languages"), filepath.Join(seeds, "languages", applications))
	if err != nil {
		return full, plain, err
	}
	attacks, err := readPrompts(filepath.Join(seeds, "assistant"), filepath.Join(seeds, "assistant", applications))
	if err != nil {
		return full, plain, err
	}
	technical, err := borderlinePrompts(data)
	if err != nil {
		return full, plain, err
	}
	requests = append(requests, technical...)
	acts, err := framedActs(filepath.Join(seeds, "tongues.txt"))
	if err != nil {
		return full, plain, err
	}
	concepts, err := readConcepts(filepath.Join(seeds, "concepts"))
	if err != nil {
		return full, plain, err
	}
	running, err := background(text)
	if err != nil {
		return full, plain, err
	}
	english, other := byEnglish(requests, attacks)
	full.Floor = [detect.Questions]float32{floor, floor}
	full.Foreign, full.Gate = foreignBuckets(lexicon, other.requests, running)
	plain = full
	if full.Other, plain.Other, err = trainOther(other, acts, running, text, concepts); err != nil {
		return full, plain, err
	}
	full.English, plain.English, err = trainEnglish(english, running, text, concepts)
	return full, plain, err
}

// lessons are the prompts that a reader learns from: for the first question, and the second.
type lessons struct{ requests, attacks []prompt }

// byEnglish divides prompts into English ones and others.
func byEnglish(requests, attacks []prompt) (english, other lessons) {
	divide := func(all []prompt) (yes, no []prompt) {
		for _, p := range all {
			if p.lang == "en" {
				yes = append(yes, p)
			} else {
				no = append(no, p)
			}
		}
		return yes, no
	}
	english.requests, other.requests = divide(requests)
	english.attacks, other.attacks = divide(attacks)
	return english, other
}

// trainOther trains the reader for other languages than English.
func trainOther(l lessons, acts []prompt, running []example, text string, c concepts) (full, plain detect.Requests, err error) {
	terms := detect.NewTerms(c.of(func(lang string) bool { return lang != "en" }))
	full.Terms = terms
	requests := samplesOf(l.requests, &terms, nil)
	for _, p := range acts {
		s := newSample(p.text, &terms)
		s.yes, s.weight, s.fold = p.kind == "H", actWeight, -1
		requests = append(requests, s)
	}
	var ordinary []sample
	for i, e := range running {
		if e.lang != "en" && isKept(e.text) {
			continue
		}
		weight := runningWeight
		if e.lang != "en" && isQuestion(e.text) {
			weight = questionWeight
		} else if i%runningStep != 0 {
			continue
		}
		s := newSample(e.text, &terms)
		s.weight, s.fold = weight, -1
		ordinary = append(ordinary, s)
	}
	requests = append(requests, ordinary...)
	mistaken, err := mistakenWindows(text, "multi_*.txt.gz", requests, &terms)
	if err != nil {
		return full, plain, err
	}
	fitBoth(append(requests, mistaken...), c.names, detect.AsksForHarm, otherHarmCaution, &full, &plain)
	attacks := withoutConcepts(slices.Concat(samplesOf(l.attacks, &terms, passagesOf), strangers(l.requests, &terms), ordinary))
	none := detect.NewTerms(nil)
	if mistaken, err = mistakenWindows(text, "multi_*.txt.gz", attacks, &none); err != nil {
		return full, plain, err
	}
	fitSpelling(append(attacks, mistaken...), detect.AttacksAssistant, otherAttackCaution, &full, &plain)
	return full, plain, nil
}

// trainEnglish trains the English reader.
func trainEnglish(l lessons, running []example, text string, c concepts) (full, plain detect.Requests, err error) {
	terms := detect.NewTerms(c.of(func(lang string) bool { return lang == "en" }))
	full.Terms = terms
	var ordinary []sample
	for _, e := range running {
		if e.lang != "en" {
			continue
		}
		for _, window := range windowsOf(strings.Fields(e.text)) {
			s := newSample(window, &terms)
			s.weight, s.fold = windowWeight, -1
			ordinary = append(ordinary, s)
		}
	}
	requests := slices.Concat(samplesOf(l.requests, &terms, nil), ordinary)
	mistaken, err := mistakenWindows(text, "en_*.txt.gz", requests, &terms)
	if err != nil {
		return full, plain, err
	}
	fitBoth(append(requests, mistaken...), c.names, detect.AsksForHarm, 0, &full, &plain)
	attacks := withoutConcepts(slices.Concat(samplesOf(l.attacks, &terms, passagesOf), strangers(l.requests, &terms), ordinary))
	none := detect.NewTerms(nil)
	if mistaken, err = mistakenWindows(text, "en_*.txt.gz", attacks, &none); err != nil {
		return full, plain, err
	}
	fitSpelling(append(attacks, mistaken...), detect.AttacksAssistant, englishAttackCaution, &full, &plain)
	return full, plain, nil
}

// strangers are the samples of the harmless prompts of the other question and of their
// passages: harm is no attack on the assistant, but may well be asked for in one, so its
// requests say nothing.
func strangers(prompts []prompt, terms *detect.Terms) (out []sample) {
	for _, p := range prompts {
		if p.kind == "H" {
			continue
		}
		for _, text := range append([]string{p.text}, passagesOf(p.text)...) {
			s := newSample(text, terms)
			s.weight, s.fold = strangerWeight, -1
			out = append(out, s)
		}
	}
	return out
}

// samplesOf are the samples of prompts, and of what cut returns of the harmless ones, if it is
// not nil. Neighbours, and twins, are in one fold.
func samplesOf(prompts []prompt, terms *detect.Terms, cut func(text string) []string) (out []sample) {
	count := map[string]int{}
	for _, p := range prompts {
		s := newSample(p.text, terms)
		s.yes, s.weight, s.kind = p.kind == "H" || p.kind == "A", 1, p.kind
		s.fold = count[p.lang+p.kind] / 8 % languageFolds
		count[p.lang+p.kind]++
		out = append(out, s)
		if s.yes || cut == nil {
			continue
		}
		for _, passage := range cut(p.text) {
			part := newSample(passage, terms)
			part.weight, part.fold = s.weight, s.fold
			out = append(out, part)
		}
	}
	return out
}

// The cautions lower the logits of answers. The more authors there are, the more of their
// ordinary prompts are easy, and the lower the anchors come to lie. The first two were chosen so
// that about as many of the ordinary prompts of the data are refused as with fewer authors, the
// last one so that of the everyday prompts in other languages (testdata/everyday.txt of the
// package detect) two are.
const (
	englishAttackCaution = 1.2
	otherAttackCaution   = 0.2
	otherHarmCaution     = 0.35
)

// fitBoth fits an answer with the concepts, and one without them.
func fitBoth(samples []sample, concepts []string, q detect.Question, caution float32, full, plain *detect.Requests) {
	full.Concepts = concepts
	full.Answers[q] = fitAnswer(samples, len(concepts))
	plain.Answers[q] = fitAnswer(withoutConcepts(samples), 0)
	full.Answers[q].Offset -= caution
	plain.Answers[q].Offset -= caution
}

// fitSpelling fits an answer to which concepts add nothing, and which the samples do not have.
func fitSpelling(samples []sample, q detect.Question, caution float32, full, plain *detect.Requests) {
	plain.Answers[q] = fitAnswer(samples, 0)
	plain.Answers[q].Offset -= caution
	full.Answers[q] = plain.Answers[q]
	full.Answers[q].Concepts = make([]float32, len(full.Concepts))
}

func withoutConcepts(samples []sample) []sample {
	out := slices.Clone(samples)
	for i := range out {
		out[i].concepts = 0
	}
	return out
}

// fitAnswer fits the weights to all samples, and gain and offset to held-out ones.
func fitAnswer(samples []sample, concepts int) (r detect.Regression) {
	margins := make([]float64, len(samples))
	var wait sync.WaitGroup
	slots := make(chan struct{}, 2)
	for fold := range languageFolds {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			m := fitLogistic(samples, func(s *sample) bool { return s.fold != fold })
			for i := range samples {
				if samples[i].fold == fold {
					margins[i] = m.margin(&samples[i])
				}
			}
		})
	}
	wait.Wait()
	var ordinary []float64
	for i, s := range samples {
		if s.kind == "B" {
			ordinary = append(ordinary, margins[i])
		}
	}
	x, y := [2]float64{}, [2]float64{}
	for i, a := range anchors {
		x[i], y[i] = quantile(slices.Clone(ordinary), 1-a.share), math.Log(a.severity/(1-a.severity))
	}
	gain := (y[1] - y[0]) / (x[1] - x[0])
	m := fitLogistic(samples, func(*sample) bool { return true })
	r.Weights = make([]int8, detect.RequestBuckets)
	unit := m.largest() / 127
	for f, w := range m.weights[:detect.RequestBuckets] {
		r.Weights[f] = toByte(w * m.idf[f] / unit)
	}
	r.Gain = float32(gain * unit)
	r.Offset = float32(gain*(m.bias()-x[0]) + y[0])
	for i := range concepts {
		r.Concepts = append(r.Concepts, float32(gain*conceptScale*m.weights[detect.RequestBuckets+i]))
	}
	return r
}

// foreignBuckets says of each bucket by how much more often it occurs in texts of other
// languages than in English ones, and how large the mean over a text is at most in nearly all
// English ones. Every other English text counts for the first, the rest for the second.
func foreignBuckets(lexicon *detect.Lexicon, prompts []prompt, running []example) (weights []int8, gate float32) {
	var texts [3][][]uint32 // features: of English texts, of others, and of English ones for the gate
	for _, p := range prompts {
		texts[1] = append(texts[1], headFeatures(p.text, lexicon))
	}
	for i, e := range running {
		which := 1
		if e.lang == "en" {
			which = i % 2 * 2
		}
		texts[which] = append(texts[which], headFeatures(e.text, lexicon))
	}
	var share [2][]float64
	for i, all := range texts[:2] {
		share[i] = make([]float64, detect.SpelledBuckets)
		for _, features := range all {
			for _, f := range slices.Compact(slices.Sorted(slices.Values(features))) {
				if f < detect.SpelledBuckets {
					share[i][f]++
				}
			}
		}
		for f, n := range share[i] {
			share[i][f] = (n + 1) / float64(len(all)+2)
		}
	}
	weights = make([]int8, detect.SpelledBuckets)
	for f := range weights {
		weights[f] = toByte(30 * math.Log(share[1][f]/share[0][f]))
	}
	var means []float64
	for _, features := range texts[2] {
		means = append(means, meanForeign(features, weights))
	}
	return weights, float32(quantile(means, 0.999))
}

func headFeatures(text string, lexicon *detect.Lexicon) (out []uint32) {
	for s := detect.NewScanner(detect.Normalise(text), lexicon); s.Next(); {
		out = append(out, s.Features()...)
	}
	return out
}

func meanForeign(features []uint32, weights []int8) float64 {
	sum := 0
	for _, f := range features {
		if f < detect.SpelledBuckets {
			sum += int(weights[f])
		}
	}
	return float64(sum) / float64(max(1, len(features)))
}

// framedActs are the acts of the other languages, harmful ones and ordinary ones that sound like
// them, asked for in two ways each.
func framedActs(path string) (out []prompt, err error) {
	l, err := readLists(path)
	for _, heading := range sortedKeys(l) {
		lang, kind, _ := strings.Cut(heading, " ")
		frames := l[lang+" ask"]
		if kind == "ask" || len(frames) == 0 {
			continue
		}
		for i, act := range l[heading] {
			p := prompt{"H", lang, ""}
			if kind == "benign act" {
				p.kind = "B"
			}
			for k := range 2 {
				p.text = fillFrame(frames[(2*i+k)%len(frames)], act)
				out = append(out, p)
			}
		}
	}
	return out, err
}

// borderlinePrompts are the programming tasks of the data that look dangerous and are not, in
// other languages than English, as twins.
func borderlinePrompts(data string) (out []prompt, err error) {
	records, err := readRecords(filepath.Join(data, "benign_borderline.jsonl"))
	for _, r := range records {
		if r.Lang != "en" {
			out = append(out, prompt{"T", r.Lang, r.Text})
		}
	}
	return out, err
}

// concepts are the classes of terms, and their terms by language. A concept's number is its
// place among the names.
type concepts struct {
	names []string
	terms map[string][]detect.Term
}

// of returns the terms of the chosen languages.
func (c *concepts) of(chosen func(lang string) bool) (out []detect.Term) {
	for _, lang := range sortedKeys(c.terms) {
		if chosen(lang) {
			out = append(out, c.terms[lang]...)
		}
	}
	return out
}

// readConcepts reads tables of concept and term, a file for each language.
func readConcepts(dir string) (c concepts, err error) {
	c.terms = map[string][]detect.Term{}
	err = eachRow(dir, func(name, concept, term string) error {
		i := slices.Index(c.names, concept)
		if i < 0 {
			i = len(c.names)
			c.names = append(c.names, concept)
		}
		lang := strings.TrimSuffix(name, ".tsv")
		c.terms[lang] = append(c.terms[lang], detect.Term{Text: term, Concept: i})
		return nil
	})
	return c, err
}

// readPrompts reads the folders' tables of kind and prompt, a file for each language. A prompt has
// \n for a new line.
func readPrompts(dirs ...string) (out []prompt, err error) {
	for _, dir := range dirs {
		err = eachRow(dir, func(name, kind, text string) error {
			if !slices.Contains([]string{"H", "A", "T", "B"}, kind) {
				return fmt.Errorf("%s: a prompt of kind %q", name, kind)
			}
			out = append(out, prompt{kind, strings.TrimSuffix(name, ".tsv"), strings.ReplaceAll(text, `\n`, "\n")})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// eachRow calls f with each row of a folder's tables, which have two columns.
func eachRow(dir string, f func(name, first, second string) error) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.tsv"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("reading the seeds: no table in %s", dir)
	}
	slices.Sort(files)
	for _, path := range files {
		table, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading the seeds: %w", err)
		}
		for row := range strings.Lines(string(table)) {
			first, second, ok := strings.Cut(strings.TrimSuffix(row, "\n"), "\t")
			if !ok {
				return fmt.Errorf("%s: a row without a tab: %q", path, row)
			}
			if err := f(filepath.Base(path), first, second); err != nil {
				return err
			}
		}
	}
	return nil
}
