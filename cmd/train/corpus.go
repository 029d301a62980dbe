package main

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/detect"
)

// The pretraining reads the running text up to these many words a file, in the
// order of the file; what is not named is read whole. The podcasts and old books would outvote everything else.
var wordLimits = map[string]int{"en_podcasts": 15_000_000, "en_classics": 5_000_000, "en_dialogue_services": 800_000}

// evaluated files hold ordinary text of sources that the tables count. They
// give words their meaning, but are no examples.
var evaluated = []string{"en_user_queries", "en_dialogue_services", "en_instructions_qa", "en_instructions_roleplay"}

// A dictionary numbers the words of the running text by frequency.
type dictionary struct {
	words  []string
	counts []int64
	number map[string]int32
}

const (
	vocabulary = 64000 // words that get a vector of their own
	minCount   = 5
)

// corpus is where the words' meanings are learnt from.
type corpus struct {
	text    string // folder of running text: *.txt.gz
	wordnet string // folder of WordNet's data files
}

// eachLine calls f with the words of WordNet's entries, then with those of
// every line of the running text, file by file in the order of their names.
func (c corpus) eachLine(f func(words []string)) error {
	files, err := filepath.Glob(filepath.Join(c.text, "*.txt.gz"))
	if err != nil {
		return fmt.Errorf("looking for running text: %w", err)
	}
	if len(files) == 0 {
		return fmt.Errorf("no running text in %s: it should hold *.txt.gz", c.text)
	}
	slices.Sort(files)
	if err := eachGloss(c.wordnet, f); err != nil {
		return err
	}
	for _, name := range files {
		if err := eachLineOf(name, f); err != nil {
			return err
		}
	}
	return nil
}

func eachLineOf(name string, f func(words []string)) error {
	left, limited := wordLimits[textName(name)]
	return eachRaw(name, func(line string) {
		if limited && left < 0 {
			return
		}
		words := wordsOf(line)
		left -= len(words)
		f(words)
	})
}

func eachRaw(name string, f func(line string)) error {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("opening the running text: %w", err)
	}
	defer file.Close()
	zipped, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("unpacking %s: %w", name, err)
	}
	lines := bufio.NewScanner(zipped)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		f(lines.Text())
	}
	return lines.Err()
}

func (c corpus) countWords() (*dictionary, error) {
	counts := map[string]int64{}
	err := c.eachLine(func(words []string) {
		for _, w := range words {
			counts[w]++
		}
	})
	if err != nil {
		return nil, err
	}
	d := &dictionary{number: map[string]int32{}}
	for w, n := range counts {
		if n >= minCount {
			d.words = append(d.words, w)
		}
	}
	slices.SortFunc(d.words, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	d.words = d.words[:min(vocabulary, len(d.words))]
	for i, w := range d.words {
		d.number[w] = int32(i)
		d.counts = append(d.counts, counts[w])
	}
	return d, nil
}

func textName(path string) string { return strings.TrimSuffix(filepath.Base(path), ".txt.gz") }

// textLanguage is the code of a running text's language: files are called en_… or multi_<code>.
func textLanguage(path string) string {
	kind, rest, _ := strings.Cut(textName(path), "_")
	if kind == "multi" {
		return rest
	}
	return kind
}

// wordsOf returns the words of a text as the detector tells them apart.
func wordsOf(text string) (out []string) {
	for s := detect.NewScanner(detect.Normalise(text), nil); s.Next(); {
		out = append(out, s.Word())
	}
	return out
}
