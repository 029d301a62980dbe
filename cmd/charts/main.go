// Command charts measures what the kernel's reasons that look at more than one severity
// cost ordinary users and catch of attacks, with the shipped detector on labelled data:
//
//	go run ./cmd/charts -data <folder of *.jsonl> [-out cmd/plot/arl.json]
//
// It prints a report in Markdown: which constants of the slow-drip charts the rule in
// choose.go chooses on one half of the sources, how long ordinary use runs between two
// alarms on the other half, when each pattern of attack is seen, what the contrastive
// signal refuses, and the refusals of ordinary sessions under this policy and the one
// before it. With -out it also writes the run lengths that cmd/plot draws.
//
// It is reproducible: the same data give the same figures.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	data := flag.String("data", "", "folder of labelled records, *.jsonl")
	out := flag.String("out", "", "file for the run lengths")
	flag.Parse()
	if err := run(os.Stdout, *data, *out); err != nil {
		fmt.Fprintln(os.Stderr, "charts:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, folder, out string) error {
	all, err := read(folder)
	if err != nil {
		return err
	}
	choosing, reporting := halves(all)
	var report bytes.Buffer
	reportChoice(&report, choosing)
	curves := reportRunLengths(&report, choosing, reporting)
	reportDelays(&report)
	reportThreat(&report, choosing, reporting)
	reportRefusals(&report, choosing, reporting, all)
	if _, err := report.WriteTo(w); err != nil || out == "" {
		return err
	}
	return writeCurves(out, curves)
}
