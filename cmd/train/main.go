// Command train makes the detector's model and the card that belongs to it. The
// data are not part of the repository; the card names them.
//
//	go run ./cmd/train -data <dir> [-languages] [-out kernel/detect/model.bin]
//
// The folder holds data/ (labelled records, JSON lines) and text/ (running text,
// gzip). WordNet 3.0 is read where Debian's package wordnet-base puts it.
// Without -out the figures are measured and printed, and nothing is written. -languages
// trains only the readers of requests for harm and attacks on the assistant, anew, in a model
// that is there.
//
// It is reproducible: the same data and seeds give the same bytes on the same
// architecture.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

func main() {
	data := flag.String("data", "", "folder of data/ and text/")
	wordnet := flag.String("wordnet", "/usr/share/wordnet", "folder of WordNet's data files")
	seeds := flag.String("seeds", "cmd/train/seeds", "folder of the hand-written examples")
	out := flag.String("out", "", "file to write; MODEL.md and LANGUAGES.md are written beside it")
	languages := flag.Bool("languages", false, "train the readers of requests for harm and attacks on the assistant only, in the file of -out")
	flag.Parse()
	text, records := filepath.Join(*data, "text"), filepath.Join(*data, "data")
	run := func() error { return train(corpus{text, *wordnet}, records, *seeds, *out) }
	if *languages {
		run = func() error { return retrainLanguages(text, records, *seeds, *out) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "train:", err)
		os.Exit(1)
	}
}

// width of the words' vectors.
const width = 128

func train(c corpus, data, seeds, out string) error {
	start := time.Now()
	progress := func(what string) { fmt.Fprintf(os.Stderr, "%6.0f s  %s\n", time.Since(start).Seconds(), what) }
	d, err := c.countWords()
	if err != nil {
		return err
	}
	vectors, err := c.pretrain(d, width)
	if err != nil {
		return err
	}
	progress("learnt the meaning of words")
	s := newSpace(d, vectors, width)
	progress("grouped them")
	all, err := load(data, c.text, seeds)
	if err != nil {
		return err
	}
	for i := range all {
		all[i].scan(s)
	}
	progress("read the data")
	e := evaluate(all)
	progress("trained and measured the folds")
	return finish(&e, s, c.text, data, seeds, out)
}
