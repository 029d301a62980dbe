package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/pprof/profile"
	"golang.org/x/sync/errgroup"
)

// lex is where our packages are.
const lex = "github.com/caddy-lex/lex/"

// An area is a part of the code. A sample of the profile belongs to the area of the
// innermost function that is in one: what a function of the standard library does is
// counted for the package that called it.
type area struct {
	name     string
	prefixes []string // of the names of functions
}

// areas are the columns of the table. The last one has what is in no other: the
// collector, the scheduler, idle turns of both.
var areas = []area{
	{"Caddy and net/http", []string{"github.com/caddyserver/", "net/http."}},
	{"governing", []string{lex + "caddymodule.", lex + "govern.", lex + "model."}},
	{"dialects", []string{lex + "wire.", lex + "wire/loose."}},
	{"detector and judge", []string{lex + "kernel/detect."}},
	{"kernel and receipt", []string{lex + "kernel.", lex + "kernel/toolcall."}},
	{"store", []string{lex + "store.", lex + "store/", "go.etcd.io/bbolt"}},
	{"collector and scheduler", nil},
}

// profiled is the share of each area in the processor time of a work.
type profiled struct {
	work   work
	shares []float64
}

// profiles measures where the governed target spends its time in each work, after all
// rounds, and keeps the profiles in a folder for `go tool pprof`.
func profiles(ctx context.Context, t *target, of []work, d time.Duration, folder string) ([]profiled, error) {
	var out []profiled
	for i, w := range of {
		raw, err := profileOf(ctx, t, w, d)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("bench-%d.pprof", i+1)), raw, 0o600); err != nil {
			return nil, err
		}
		parsed, err := profile.Parse(bytes.NewReader(raw))
		if err != nil {
			return nil, fmt.Errorf("reading the profile of %s: %w", w, err)
		}
		out = append(out, profiled{w, sharesOf(parsed)})
	}
	return out, nil
}

// profileOf is the profile of a target that does a work for whole seconds.
func profileOf(ctx context.Context, t *target, w work, d time.Duration) (raw []byte, err error) {
	seconds := strconv.Itoa(max(1, int(d.Seconds())))
	busy, finish := context.WithCancel(ctx)
	defer finish()
	var group errgroup.Group
	group.Go(func() error {
		_, err := load(busy, t, w, w.connections)
		return err
	})
	raw, err = fetch(ctx, t.admin+"/debug/pprof/profile?seconds="+seconds)
	if err != nil {
		return nil, err
	}
	finish()
	return raw, group.Wait()
}

func sharesOf(p *profile.Profile) []float64 {
	shares := make([]float64, len(areas))
	var all float64
	for _, s := range p.Sample {
		spent := float64(s.Value[len(s.Value)-1]) // nanoseconds of the processor
		shares[areaOf(s)] += spent
		all += spent
	}
	for i := range shares {
		shares[i] /= max(all, 1)
	}
	return shares
}

func areaOf(s *profile.Sample) int {
	for _, location := range s.Location { // innermost first
		for _, line := range location.Line {
			for i, a := range areas {
				for _, prefix := range a.prefixes {
					if strings.HasPrefix(line.Function.Name, prefix) {
						return i
					}
				}
			}
		}
	}
	return len(areas) - 1
}
