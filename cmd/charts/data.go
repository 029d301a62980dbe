package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
)

// record is one line of the labelled data: a prompt or a dialogue.
type record struct {
	ID      string `json:"id"`
	Source  string `json:"source"`
	Label   string `json:"label"`
	Channel string `json:"channel"`
	Text    string `json:"text"`
	Turns   []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"turns"`
}

// A dialogue is what the shipped detector says of each turn of a user.
type dialogue struct {
	id, source, label string
	turns             []turn
}

type turn struct {
	evidence kernel.Evidence
	severity float64
}

// read returns everything in the folder that a user says, as the detector sees it.
// Documents and the results of tools are left out.
func read(folder string) ([]dialogue, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(err, fmt.Errorf("no *.jsonl in %s: %w", folder, fs.ErrNotExist))
	}
	var records []record
	for _, file := range files {
		if filepath.Base(file) == "outputs.jsonl" {
			continue // answers of models
		}
		more, err := readFile(file)
		if err != nil {
			return nil, err
		}
		records = append(records, more...)
	}
	return assessAll(records), nil
}

func readFile(path string) (records []record, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening the data: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("reading %s: %w", filepath.Base(path), err)
		}
		if r.Channel == "" || r.Channel == "user" {
			records = append(records, r)
		}
	}
	return records, lines.Err()
}

// assessAll keeps the order of the records.
func assessAll(records []record) []dialogue {
	out := make([]dialogue, len(records))
	var wg sync.WaitGroup
	next := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				out[i] = assess(&records[i])
			}
		})
	}
	for i := range records {
		next <- i
	}
	close(next)
	wg.Wait()
	return slices.DeleteFunc(out, func(d dialogue) bool { return len(d.turns) == 0 })
}

func assess(r *record) dialogue {
	d := dialogue{id: r.ID, source: r.Source, label: r.Label}
	if r.Text != "" {
		d.turns = append(d.turns, measure(r.Text))
	}
	for _, t := range r.Turns {
		if t.Role == "user" {
			d.turns = append(d.turns, measure(t.Content))
		}
	}
	return d
}

func measure(text string) turn {
	said, _ := detect.Default().Assess(context.Background(), []detect.Text{{Source: detect.User, Body: text}})
	e := kernel.Evidence{Scores: said.Scores, ThreatSignal: said.Threat, SovereigntyDrift: said.SelfReference}
	k := must(kernel.New(kernel.DefaultPolicy()))
	return turn{e, must(k.Assess(k.NewSession(), e, kernel.Enforce)).Severity}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
