package main

import (
	"hash/fnv"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caddy-lex/lex/kernel/detect"
)

// Running text serves as ordinary text: it attacks nobody, whatever its language
// and its words. Statements of persona evaluations are left out, because some of
// them are written to be nasty, and so are the files that the tables count.
const (
	backgroundLines = 500 // of each file, four times as many of English ones
	lineWeight      = 0.6
)

// background returns lines of the running text as ordinary examples, spread
// over each file by a hash; every third one is read as a document.
func background(dir string) ([]example, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt.gz"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var out []example
	for _, name := range files {
		if slices.Contains(evaluated, textName(name)) || textName(name) == "en_statements" {
			continue
		}
		var chosen []hashed
		err := eachRaw(name, func(line string) {
			h := fnv.New64a()
			h.Write([]byte(line))
			chosen = append(chosen, hashed{h.Sum64(), line})
		})
		if err != nil {
			return nil, err
		}
		slices.SortFunc(chosen, func(a, b hashed) int { return strings.Compare(a.key(), b.key()) })
		n := backgroundLines
		if strings.HasPrefix(textName(name), "en_") {
			n *= 4
		}
		n = min(n, len(chosen))
		begin := len(out)
		for i, line := range chosen[:n] {
			out = append(out, ordinaryLine(line.text, i%3 == 0))
		}
		if !strings.HasPrefix(textName(name), "en_") {
			out = append(out, questions(chosen[n:])...)
		}
		for i := range out[begin:] {
			out[begin+i].lang = textLanguage(name)
		}
	}
	return out, nil
}

// questions are what users of other languages say more often than books do.
func questions(lines []hashed) (out []example) {
	for _, line := range lines {
		if isQuestion(line.text) && len(out) < backgroundLines {
			out = append(out, ordinaryLine(line.text, false))
		}
	}
	return out
}

func isQuestion(text string) bool {
	last, _ := utf8.DecodeLastRuneInString(text)
	return strings.ContainsRune("?？؟", last)
}

type hashed struct {
	hash uint64
	text string
}

func (h hashed) key() string {
	var b [8]byte
	for i := range b {
		b[i] = byte(h.hash >> (56 - 8*i))
	}
	return string(b[:]) + h.text
}

func ordinaryLine(text string, document bool) example {
	e := example{text: text, source: "running text", label: "seed", document: document}
	if document {
		e.weight[detect.Injection] = 0.5
		return e
	}
	e.heads(lineWeight, userHeads...)
	e.weight[detect.Injection] = 0.1
	return e
}
