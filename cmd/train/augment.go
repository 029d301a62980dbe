package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/caddy-lex/lex/kernel/detect"
)

// lists are the hand-written lines of one file under their headings.
type lists map[string][]string

func readLists(paths ...string) (lists, error) {
	out := lists{}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("opening the seeds: %w", err)
		}
		heading := ""
		for lines := bufio.NewScanner(f); lines.Scan(); {
			line := strings.TrimSpace(lines.Text())
			if name, ok := strings.CutPrefix(line, "# "); ok {
				heading = name
			} else if line != "" {
				out[heading] = append(out[heading], line)
			}
		}
		f.Close()
	}
	return out, nil
}

// augmenter makes training texts out of the hand-written lists and, by
// wrapping, out of the data. Attacks and ordinary requests go through the same
// frames, so that no frame decides by itself.
type augmenter struct {
	l      lists
	random *rand.Rand
	out    []example
}

func (a *augmenter) pick(name string) string { return a.l[name][a.random.IntN(len(a.l[name]))] }

func fillFrame(frame, text string) string {
	if strings.HasPrefix(frame, "{}") && text != "" {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	return strings.Replace(frame, "{}", text, 1)
}

// request is an act asked for in a random way.
func (a *augmenter) request(act string) string { return fillFrame(a.pick("ask"), act) }

const (
	asksPerAct  = 7
	wrapsPerAct = 3
)

func (a *augmenter) act(act string, heads ...detect.Head) {
	for range asksPerAct {
		a.add(a.request(act), 1, heads...)
	}
	for range wrapsPerAct {
		a.add(fillFrame(a.pick("wrap"), a.request(act)), 1, heads...)
	}
	a.add(fillFrame(a.pick("jailbreak"), a.request(act)), 0.5, append(heads, detect.Identity)...)
}

// add puts a seed with the heads that are to fire.
func (a *augmenter) add(text string, weight float32, heads ...detect.Head) {
	e := example{text: text, source: "seeds", label: "seed", made: true}
	e.heads(weight, userHeads...)
	e.weight[detect.Injection] = 0.1
	for _, h := range heads {
		e.target[h] = 1
	}
	if len(heads) == 1 && heads[0] == detect.Exploitative {
		e.weight[detect.HarmRequest] = 0
	}
	if len(heads) == 1 && heads[0] == detect.HarmRequest {
		e.weight[detect.Exploitative] = 0.2
	}
	a.out = append(a.out, e)
}

// line puts a seed that stands for itself and is held out by its text.
func (a *augmenter) line(text string, weight float32, heads ...detect.Head) {
	a.add(text, weight, heads...)
	a.out[len(a.out)-1].made = false
}

func (a *augmenter) lists() {
	for _, kind := range kinds {
		for _, act := range a.l[kind.name] {
			a.act(act, kind.heads...)
		}
	}
	for _, tongue := range tongues {
		a.tongue(tongue)
	}
	for _, h := range []detect.Head{detect.Identity, detect.Coercion, detect.Sycophancy} {
		for _, text := range a.l[h.String()] {
			a.line(text, 4, h)
		}
	}
	for _, name := range []string{"identity", "injection"} {
		for _, text := range a.l[name] {
			a.line(text, 1, detect.Injection)
			e := &a.out[len(a.out)-1]
			e.document, e.weight = true, [detect.Heads]float32{}
			e.weight[detect.Injection] = 2.5
		}
	}
	for _, text := range a.l["benign"] {
		a.line(text, 6)
	}
}

// tongues are the languages other than English that have acts of their own.
var tongues = strings.Fields("de fr es it pt nl pl ru tr zh ja ar hi ko id vi")

var kinds = []struct {
	name  string
	heads []detect.Head
}{{"harm_request", []detect.Head{detect.HarmRequest}}, {"exploitative", []detect.Head{detect.Exploitative}}, {"benign act", nil}}

// tongue asks for each act of a language in all its ways.
func (a *augmenter) tongue(name string) {
	for _, kind := range kinds {
		weight := float32(0.7)
		if kind.heads == nil {
			weight = 2 // there are fewer of them
		}
		for _, act := range a.l[name+" "+kind.name] {
			for _, frame := range a.l[name+" ask"] {
				a.add(fillFrame(frame, act), weight, kind.heads...)
			}
			a.add(act, weight, kind.heads...)
		}
	}
}

// wrapped puts texts of the data into frames. What comes out belongs to the
// source it comes from, and is held out with it.
func (a *augmenter) wrapped(all []example) {
	for i := range all {
		e := all[i]
		short := len(e.text) < 400 && !e.document
		switch {
		case short && e.label == "harmful":
			e.text = fillFrame(a.pick("wrap"), e.text)
		case short && e.ordinary && a.random.IntN(12) == 0:
			e.text = fillFrame(a.pick("wrap"), e.text)
		case short && e.ordinary && a.random.IntN(60) == 0:
			e.text = fillFrame(a.pick("jailbreak"), e.text)
			e.target[detect.Identity] = 1
		default:
			continue
		}
		e.made, e.ordinary, e.features, e.blocks = true, false, nil, nil
		a.out = append(a.out, e)
	}
}

func augment(all, lines []example, seedDir string) ([]example, error) {
	paths, err := filepath.Glob(filepath.Join(seedDir, "*.txt"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("no seeds in %s: %w", seedDir, err)
	}
	l, err := readLists(paths...)
	if err != nil {
		return nil, err
	}
	a := &augmenter{l: l, random: rand.New(rand.NewPCG(seed, 5))}
	a.lists()
	a.wrapped(all)
	a.documents(lines)
	return append(all, a.out...), nil
}
