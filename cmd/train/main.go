// Command train makes the detector's model and the description that belongs to
// it. The data are not part of the repository; MODEL.md names them.
//
//	go run ./cmd/train -data <dir> -out kernel/detect/model.bin
//
// It is reproducible: the same data and seeds give the same bytes on the same
// architecture.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	data := flag.String("data", "", "folder of the labelled prompts")
	seeds := flag.String("seeds", "cmd/train/seeds.jsonl", "hand-written examples")
	out := flag.String("out", "kernel/detect/model.bin", "file to write; MODEL.md is written beside it")
	flag.Parse()
	if err := train(*data, *seeds, *out); err != nil {
		fmt.Fprintln(os.Stderr, "train:", err)
		os.Exit(1)
	}
}

func train(data, seeds, out string) error {
	all, err := load(data, seeds)
	if err != nil {
		return err
	}
	margins, strict := heldOut(all)
	c := calibrate(all, margins)
	raw, model, err := build(all, c, data)
	if err != nil {
		return err
	}
	text, err := report(all, margins, strict, &c, model, data)
	if err != nil {
		return err
	}
	fmt.Print(text)
	if err := os.WriteFile(out, raw, 0o644); err != nil {
		return fmt.Errorf("writing the model: %w", err)
	}
	return os.WriteFile(filepath.Join(filepath.Dir(out), "MODEL.md"), []byte(text), 0o644)
}
