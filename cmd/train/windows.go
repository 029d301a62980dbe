package main

import (
	"hash/fnv"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/caddy-lex/lex/kernel/detect"
)

// The readers read pages window by window, and nearly all that they read
// is ordinary. So they learn from running text, once more from those of its windows that a
// first fit takes for what a question asks for ("hard negatives"), and from the passages of long
// harmless prompts.

const (
	windowWords = detect.BlockWords * detect.WindowBlocks
	// shortestSentence is how many words a sentence has at least: the detector reads a shorter
	// one with the next.
	shortestSentence = 6
	// mistakenFrom is the margin from which a window counts as mistaken; mistakenWeight is how
	// much it counts then.
	mistakenFrom, mistakenWeight = -0.5, 0.5
	// mistakenLines is how many lines of a file are read at most, spread over it.
	mistakenLines = 30_000
)

// windowsOf cuts a text as the detector does. What is left at the end is no window of its own
// if it is short.
func windowsOf(words []string) (out []string) {
	for i := 0; i == 0 || len(words)-i > detect.BlockWords; i += windowWords {
		out = append(out, strings.Join(words[i:min(i+windowWords, len(words))], " "))
	}
	return out
}

// passagesOf are the windows and the sentences of a text that is longer than a window. Of the
// rules of an agent or the template of a judge, the detector asks the readers about each of them.
func passagesOf(text string) (out []string) {
	words := strings.Fields(text)
	if len(words) <= windowWords {
		return nil
	}
	out = windowsOf(words)
	var sentence []string
	for line := range strings.Lines(text) {
		for _, word := range strings.Fields(line) {
			sentence = append(sentence, word)
			if len(sentence) >= shortestSentence && strings.ContainsAny(word[len(word)-1:], ".!?") {
				out, sentence = append(out, strings.Join(sentence, " ")), nil
			}
		}
		if len(sentence) >= shortestSentence {
			out, sentence = append(out, strings.Join(sentence, " ")), nil
		}
	}
	return out
}

// mistakenWindows returns the windows of running text that a fit to the samples takes for such
// as a question asks for. The files are those that a pattern matches. Lines that are kept are
// not read.
func mistakenWindows(dir, pattern string, samples []sample, terms *detect.Terms) ([]sample, error) {
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	first := fitLogistic(samples, func(*sample) bool { return true })
	found := make([][]sample, len(files)) // in the order of the files
	failed := make([]error, len(files))
	var wait sync.WaitGroup
	slots := make(chan struct{}, 2)
	for k, name := range files {
		if slices.Contains(evaluated, textName(name)) || textName(name) == "en_statements" {
			continue
		}
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			var lines []string
			english := textLanguage(name) == "en"
			failed[k] = eachRaw(name, func(line string) {
				if english || !isKept(line) {
					lines = append(lines, line)
				}
			})
			for i := 0; i < len(lines); i += 1 + len(lines)/mistakenLines {
				words := strings.Fields(lines[i])
				if !english {
					words = wordsOf(lines[i]) // scripts without spaces have some, too
				}
				for _, window := range windowsOf(words) {
					if s := newSample(window, terms); first.margin(&s) > mistakenFrom {
						s.weight, s.fold = mistakenWeight, -1
						found[k] = append(found[k], s)
					}
				}
			}
		})
	}
	wait.Wait()
	for k := range files {
		if failed[k] != nil {
			return nil, failed[k]
		}
	}
	return slices.Concat(found...), nil
}

// isKept says which lines of the running text of other languages, one of ten, are kept from the
// training, to count how many of them are taken for attacks.
func isKept(line string) bool {
	h := fnv.New64a()
	h.Write([]byte("kept " + line))
	return h.Sum64()%10 == 0
}

// requestLogit is the highest logit of a reader's answer over a text's windows of both lengths
// and, but for long texts that are asked for an attack, over the whole, as the detector computes
// it. Of sentences it knows nothing.
func requestLogit(r *detect.Requests, q detect.Question, text string) float64 {
	a := r.Answers[q]
	type span struct {
		weight, n float64
		concepts  uint64
	}
	var blocks []span
	detect.RequestFeatures(detect.Normalise(text), &r.Terms, func(block int, features []uint32, concepts uint64) {
		if block == len(blocks) {
			blocks = append(blocks, span{})
		}
		b := &blocks[block]
		for _, f := range features {
			b.weight += float64(a.Weights[f])
		}
		b.n += float64(len(features))
		b.concepts |= concepts
	})
	over := func(blocks []span) float64 {
		var sum span
		for _, b := range blocks {
			sum = span{sum.weight + b.weight, sum.n + b.n, sum.concepts | b.concepts}
		}
		logit := float64(a.Gain)*sum.weight/math.Sqrt(max(1, sum.n)) + float64(a.Offset)
		for i, weight := range a.Concepts {
			if sum.concepts>>i&1 != 0 {
				logit += float64(weight)
			}
		}
		return logit
	}
	best := math.Inf(-1)
	n := len(blocks)
	if q != detect.AttacksAssistant && n <= detect.WholeBlocks || n <= detect.WindowBlocks {
		best = over(blocks)
	}
	for _, length := range []int{2, detect.WindowBlocks} {
		for end := length; end <= n; end++ {
			logit := over(blocks[end-length : end])
			if end-length >= detect.WindowBlocks && end <= n-detect.WindowBlocks {
				logit -= detect.Doubt(n)
			}
			best = max(best, logit)
		}
	}
	return best
}
