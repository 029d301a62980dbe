package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

// What docs/kernel.md says of the session in the pictures is what the kernel does.
func TestTheStoryIsToldRight(t *testing.T) {
	taken, err := turns(kernel.DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	var corrected, refused []int
	var margins []string
	for i, turn := range taken {
		if turn.Intervened {
			corrected = append(corrected, i+1)
			margins = append(margins, fmt.Sprintf("%.3f", turn.MBefore))
		}
		if turn.Refused {
			refused = append(refused, i+1)
		}
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "kernel.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(string(text)), " ")
	for _, sentence := range []string{
		fmt.Sprintf("In turns %d to %d the raw state leaves the barrier set", corrected[0], corrected[len(corrected)-1]),
		fmt.Sprintf("Turns %d to %d are refused.", refused[0], refused[len(refused)-1]),
		fmt.Sprintf("the margin of the raw state (%s and %s for turns", strings.Join(margins[:len(margins)-1], ", "), margins[len(margins)-1]),
	} {
		if !strings.Contains(page, sentence) {
			t.Errorf("docs/kernel.md does not say: %s", sentence)
		}
	}
	if corrected[len(corrected)-1]-corrected[0] != len(corrected)-1 || refused[len(refused)-1]-refused[0] != len(refused)-1 {
		t.Errorf("turns %v were corrected and %v refused: say which", corrected, refused)
	}
}

// The pictures in docs are those that the present kernel gives.
func TestPicturesAreUpToDate(t *testing.T) {
	folder := t.TempDir()
	if err := render(folder); err != nil {
		t.Fatal(err)
	}
	pictures, err := filepath.Glob(filepath.Join(folder, "*.svg"))
	if err != nil || len(pictures) != 5 {
		t.Fatal(pictures, err)
	}
	for _, path := range pictures {
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		kept := filepath.Join("..", "..", "docs", filepath.Base(path))
		if want, err := os.ReadFile(kept); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is out of date: go run ./cmd/plot docs (%v)", kept, err)
		}
	}
}
