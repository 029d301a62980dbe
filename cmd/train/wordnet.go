package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// glosses is how often a line of WordNet counts as a line of running text: few
// lines, each about what a word means.
const glosses = 6

// eachGloss calls f with the words of every set of synonyms of WordNet 3.0
// (Miller 1995), those of its hypernym and its definition.
func eachGloss(dir string, f func(words []string)) error {
	for _, name := range []string{"data.noun", "data.verb", "data.adj", "data.adv"} {
		sets, order, err := readSynsets(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		for _, at := range order {
			s := sets[at]
			line := s.words
			if above, ok := sets[s.hypernym]; ok {
				line += " " + above.words
			}
			words := wordsOf(line + " " + s.gloss + " " + s.words)
			for range glosses {
				f(words)
			}
		}
	}
	return nil
}

type synset struct{ words, hypernym, gloss string }

// readSynsets reads a data file as wndb(5WN) describes it: offset, file,
// type, a hexadecimal number of words, pairs of word and sense, a number of
// pointers, "@" before the offset of the hypernym, then | and the gloss.
func readSynsets(path string) (map[string]synset, []string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("opening WordNet (Debian's package wordnet-base has it): %w", err)
	}
	defer file.Close()
	sets, order := map[string]synset{}, []string(nil)
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		head, gloss, ok := strings.Cut(lines.Text(), " | ")
		fields := strings.Fields(head)
		if !ok || strings.HasPrefix(head, " ") || len(fields) < 6 {
			continue
		}
		n, err := strconv.ParseInt(fields[3], 16, 32)
		if err != nil || len(fields) < 4+2*int(n) {
			return nil, nil, fmt.Errorf("reading %s at %s: not a set of synonyms", filepath.Base(path), fields[0])
		}
		s := synset{gloss: gloss}
		for i := range int(n) {
			s.words += strings.ReplaceAll(fields[4+2*i], "_", " ") + " "
		}
		for i, field := range fields {
			if field == "@" && i+1 < len(fields) {
				s.hypernym = fields[i+1]
				break
			}
		}
		sets[fields[0]] = s
		order = append(order, fields[0])
	}
	return sets, order, lines.Err()
}
