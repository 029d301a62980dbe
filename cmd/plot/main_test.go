package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The pictures in docs are those that the present kernel gives.
func TestPicturesAreUpToDate(t *testing.T) {
	folder := t.TempDir()
	if err := render(folder); err != nil {
		t.Fatal(err)
	}
	pictures, err := filepath.Glob(filepath.Join(folder, "*.svg"))
	if err != nil || len(pictures) != 3 {
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
