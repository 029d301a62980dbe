package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"
)

// figures are what one target did with one work in one round.
type figures struct {
	rate                float64       // answers per second
	p50, p99            time.Duration // from sending a request to the end of its answer
	first50, first99    time.Duration // from sending a request to the first text
	cpu, beside, client time.Duration // of processors an answer: proxy, its server, clients with the upstream
	allocated           float64       // bytes an answer
}

// results are all figures. Those of a target and a work are in the order of the rounds;
// there are none where a peer cannot do a work.
type results map[cell][]figures

type cell struct {
	target *target
	work   work
}

// measure lets all targets do all works in each round. The targets take turns within
// seconds, each round begins with another one, and so what disturbs the machine for a
// while disturbs all of them.
func measure(ctx context.Context, f *field, o options, progress io.Writer) (results, error) {
	out := make(results)
	for round := range o.rounds {
		for i, w := range works {
			_, _ = fmt.Fprintf(progress, "round %d of %d: %s\n", round+1, o.rounds, w)
			for n := range f.targets {
				t := f.targets[(n+round+i)%len(f.targets)]
				if t.peer && once(ctx, t, w) != nil {
					continue
				}
				got, err := timed(ctx, t, w, o.time)
				if err != nil {
					return nil, err
				}
				out[cell{t, w}] = append(out[cell{t, w}], got)
			}
		}
	}
	return out, nil
}

// A reading is the state of all meters at a time.
type reading struct {
	at                  time.Time
	cpu, beside, client time.Duration
	allocated           float64
}

func read(ctx context.Context, t *target) (r reading, err error) {
	if r.allocated, err = t.allocated(ctx); err != nil {
		return r, err
	}
	if r.cpu, err = t.proxy.cpu(); err != nil {
		return r, err
	}
	if r.beside, err = t.beside.cpu(); err != nil {
		return r, err
	}
	r.client, err = ownCPU()
	r.at = time.Now()
	return r, err
}

// timed keeps a target busy with a work, and measures from when a fifth of the time
// has passed until all connections have stopped: the meters are read while the proxy is
// busy, so that start and end cost nothing that is counted.
func timed(ctx context.Context, t *target, w work, d time.Duration) (figures, error) {
	busy, finish := context.WithCancel(ctx)
	defer finish()
	type outcome struct {
		samples []sample
		err     error
	}
	done := make(chan outcome, 1)
	go func() {
		samples, err := load(busy, t, w, w.connections)
		done <- outcome{samples, err}
	}()
	if err := pause(ctx, d/5); err != nil {
		return figures{}, err
	}
	before, err := read(ctx, t)
	if err != nil {
		return figures{}, err
	}
	for seen := t.answers.Load(); ; { // a slow target gets the time for some answers
		if err := pause(ctx, d); err != nil {
			return figures{}, err
		}
		if t.answers.Load() > seen+int64(w.connections) || time.Since(before.at) > time.Minute {
			break
		}
	}
	after, err := read(ctx, t)
	if err != nil {
		return figures{}, err
	}
	finish()
	did := <-done
	if did.err != nil {
		return figures{}, did.err
	}
	return between(before, after, did.samples)
}

// pause waits, or ends with an error when the user interrupts it.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// between computes the figures of the answers that ended between two readings.
func between(before, after reading, samples []sample) (figures, error) {
	samples = slices.DeleteFunc(samples, func(s sample) bool { return s.at.Before(before.at) || s.at.After(after.at) })
	if len(samples) == 0 {
		return figures{}, fmt.Errorf("no answer within %v", after.at.Sub(before.at))
	}
	n := time.Duration(len(samples))
	out := figures{
		rate:      float64(n) / after.at.Sub(before.at).Seconds(),
		cpu:       (after.cpu - before.cpu) / n,
		beside:    (after.beside - before.beside) / n,
		client:    (after.client - before.client) / n,
		allocated: (after.allocated - before.allocated) / float64(n),
	}
	out.p50, out.p99 = quantiles(samples, func(s sample) time.Duration { return s.whole })
	out.first50, out.first99 = quantiles(samples, func(s sample) time.Duration { return s.first })
	return out, nil
}

func quantiles(samples []sample, of func(sample) time.Duration) (p50, p99 time.Duration) {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = float64(of(s))
	}
	slices.Sort(values)
	quantile := func(p float64) time.Duration { return time.Duration(stat.Quantile(p, stat.Empirical, values, nil)) }
	return quantile(0.5), quantile(0.99)
}

// A spread is a figure over the rounds.
type spread struct{ median, least, most float64 }

func spreadOf(values []float64) spread {
	slices.Sort(values)
	n := len(values)
	return spread{(values[(n-1)/2] + values[n/2]) / 2, values[0], values[n-1]}
}

// over takes a figure of each round.
func over(rounds []figures, of func(figures) float64) spread {
	values := make([]float64, len(rounds))
	for i, f := range rounds {
		values[i] = of(f)
	}
	return spreadOf(values)
}

// against compares each round of a target with the same round of bare Caddy.
func against(rounds, bare []figures, of func(f, bare figures) float64) spread {
	values := make([]float64, len(rounds))
	for i, f := range rounds {
		values[i] = of(f, bare[i])
	}
	return spreadOf(values)
}

// checkReceipts compares the receipts of each governed target with the answers that it
// gave: a figure of a proxy that skips its work is worth nothing.
func checkReceipts(ctx context.Context, f *field) error {
	for _, t := range f.targets {
		if !t.governed {
			continue
		}
		stored, err := t.receipts(ctx)
		if err != nil {
			return fmt.Errorf("%s: counting its receipts: %w", t.name, err)
		}
		if stored < t.turns.Load() {
			return fmt.Errorf("%s: %d receipts of %d answers", t.name, stored, t.turns.Load())
		}
	}
	return nil
}
