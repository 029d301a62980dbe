package commands

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/audit"
	"github.com/caddy-lex/lex/caddymodule"
	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/store"
)

// givenTexts are the texts that the flag --texts names, and their receipts as far as the
// source has them. A nil one has no texts.
type givenTexts struct {
	texts    []audit.Texts
	receipts map[string]kernel.Receipt // by id
	setups   map[string]govern.Setup   // by hash

	scored      int            // prompts whose scores were compared
	notCompared map[string]int // other prompts, by the reason
}

// readTexts reads a file of JSON lines; nil if it has no name.
func readTexts(name string) (*givenTexts, error) {
	if name == "" {
		return nil, nil
	}
	file, err := os.Open(name) //nolint:gosec // G304: the user of the command names the file
	if err != nil {
		return nil, fmt.Errorf("reading the texts: %w", err)
	}
	defer file.Close()
	g := &givenTexts{receipts: make(map[string]kernel.Receipt), setups: make(map[string]govern.Setup), notCompared: make(map[string]int)}
	return g, audit.EachLine(file, func(n int, line []byte) error {
		var t audit.Texts
		if err := json.Unmarshal(line, &t); err != nil || t.ID == "" {
			return fmt.Errorf("reading the texts: line %d is not {\"id\", \"prompt\", \"output\", \"arguments\", \"openings\"}", n)
		}
		g.texts = append(g.texts, t)
		return nil
	})
}

// watch returns the source; what is read from it and has texts is kept.
func (g *givenTexts) watch(source audit.Source) audit.Source {
	if g == nil {
		return source
	}
	wanted := make(map[string]bool, len(g.texts))
	for _, t := range g.texts {
		wanted[t.ID] = true
	}
	return watch(source, func(entry store.Receipt) {
		if !wanted[gjson.GetBytes(entry.JSON, "id").Str] {
			return
		}
		if r, err := kernel.OpenReceipt(entry.JSON); err == nil {
			g.receipts[r.ID] = r
		}
	})
}

// compare compares the texts with the commitments and, where that can be done, scores the
// prompts again. It comes after the receipts were read.
func (g *givenTexts) compare(ctx context.Context, v *audit.Verifier, source audit.Source, faults *faultPrinter) error {
	if g == nil {
		return nil
	}
	for _, t := range g.texts {
		before := faults.n
		if err := g.compareOne(ctx, v, t, faults); err != nil {
			return err
		}
		if r, known := g.receipts[t.ID]; known && t.Prompt != nil && faults.n == before {
			if err := g.scoreAgain(ctx, source, r, *t.Prompt, faults); err != nil {
				return err
			}
		}
	}
	return nil
}

// compareOne compares texts by their openings, which nobody needs a right for, or else
// by the secret of their session.
func (g *givenTexts) compareOne(ctx context.Context, v *audit.Verifier, t audit.Texts, faults *faultPrinter) error {
	if t.NeedSession() {
		err := v.CompareTexts(ctx, t)
		if errors.Is(err, audit.ErrNoSessions) {
			return fmt.Errorf("%w: use --url or --store, or give the openings", err)
		}
		return err
	}
	r, known := g.receipts[t.ID]
	if !known {
		faults.print(t.ID, audit.Check{Name: "texts", Detail: "there is no such receipt"})
		return nil
	}
	for _, c := range t.CompareOpened(r) {
		if !c.Passed() {
			faults.print(t.ID, c)
		}
	}
	return nil
}

// scoreAgain scores a prompt that is known to be the one that was sent.
func (g *givenTexts) scoreAgain(ctx context.Context, source audit.Source, r kernel.Receipt, prompt string, faults *faultPrinter) error {
	s, err := g.setupOf(ctx, source, r)
	if err == nil {
		err = govern.CompareScores(ctx, detect.Default(), caddymodule.Code(), r, s, prompt)
	}
	switch {
	case err == nil:
		g.scored++
	case errors.Is(err, govern.ErrNotCompared):
		reason := strings.TrimPrefix(err.Error(), govern.ErrNotCompared.Error()+": ")
		g.notCompared[reason]++
	case errors.Is(err, govern.ErrScores):
		faults.print(r.ID, audit.Check{Name: "scores", Detail: err.Error()})
	default:
		return err
	}
	return nil
}

// setupOf returns the setup that a receipt was made with. The error wraps
// [govern.ErrNotCompared] if it is not known.
func (g *givenTexts) setupOf(ctx context.Context, source audit.Source, r kernel.Receipt) (govern.Setup, error) {
	s, known := g.setups[r.Setup]
	if known {
		return s, nil
	}
	if r.Setup == "" {
		return s, fmt.Errorf("%w: the receipt names no setup", govern.ErrNotCompared)
	}
	text, err := source.Document(ctx, r.Setup)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return s, err
	}
	sum := sha256.Sum256(text)
	if err == nil && hex.EncodeToString(sum[:]) == r.Setup {
		if s, err = govern.ParseSetup(text); err == nil {
			g.setups[r.Setup] = s
			return s, nil
		}
	}
	return s, fmt.Errorf("%w: its setup is not known here", govern.ErrNotCompared)
}

// report says how many prompts were scored again, and why others were not.
func (g *givenTexts) report(out io.Writer) {
	if g == nil {
		return
	}
	line := fmt.Sprintf("scores: %d prompts scored again", g.scored)
	for _, reason := range slices.Sorted(maps.Keys(g.notCompared)) {
		line += fmt.Sprintf(", %d not compared (%s)", g.notCompared[reason], reason)
	}
	_, _ = fmt.Fprintln(out, line)
}
