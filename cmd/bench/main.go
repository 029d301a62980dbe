// Command bench measures governed traffic against bare Caddy on this machine, side by
// side, and writes the figures into docs/performance.md, which describes the method:
//
//	make bench
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// options say what is measured, and for how long.
type options struct {
	caddy   string // the binary
	page    string
	rounds  int
	time    time.Duration // of each target and work in a round
	soak    time.Duration // of the load before memory is read for the last time
	streams int           // open at the same time
	install bool          // let npm fetch the peer
	works   int           // that are profiled
}

func main() {
	o := options{streams: 500, install: true, works: len(works)}
	flag.StringVar(&o.caddy, "caddy", filepath.Join("bin", "caddy"), "the binary to measure; the stores lie beside it")
	flag.StringVar(&o.page, "page", filepath.Join("docs", "performance.md"), "the page to write the figures into, and the picture beside it")
	flag.IntVar(&o.rounds, "rounds", 3, "how often everything is repeated")
	flag.DurationVar(&o.time, "time", 3*time.Second, "how long each work lasts in each round")
	flag.DurationVar(&o.soak, "soak", 10*time.Minute, "how long the load before the last look at memory lasts")
	short := flag.Bool("short", false, "go through everything in seconds; the figures mean nothing")
	flag.Parse()
	if *short {
		o.rounds, o.time, o.soak, o.streams, o.install, o.works = 1, 50*time.Millisecond, 50*time.Millisecond, 20, false, 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run measures everything, prints the figures to out and writes them into the page.
func run(ctx context.Context, o options, out, progress io.Writer) error {
	// Beside the binary, and not in the folder for temporary files: on many machines
	// that is in memory, where an fsync costs nothing.
	folder, err := os.MkdirTemp(filepath.Dir(o.caddy), "bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	r := &report{options: o, picture: strings.TrimSuffix(filepath.Base(o.page), ".md") + ".svg"}
	if r.machine, err = describe(ctx, o.caddy, folder); err != nil {
		return err
	}
	u, err := startUpstream()
	if err != nil {
		return err
	}
	defer func() { _ = u.close() }()
	f, err := startField(ctx, o, folder, u.address)
	defer f.stop()
	if err != nil {
		return err
	}
	if err := r.measure(ctx, f, u, progress); err != nil {
		return err
	}
	if _, err := fmt.Fprint(out, r.text()); err != nil {
		return err
	}
	if err := r.draw(filepath.Join(filepath.Dir(o.page), r.picture)); err != nil {
		return err
	}
	return writePage(o.page, r.text())
}

// measure takes all figures of a field: memory before the load, the rounds, profiles,
// and memory after the load.
func (r *report) measure(ctx context.Context, f *field, u *upstream, progress io.Writer) (err error) {
	o := r.options
	r.targets, r.absent, r.bare, r.governed = f.targets, f.absent, f.named(bareName), f.named(governedName)
	if r.memory, err = atRest(ctx, f, u, o.streams); err != nil {
		return err
	}
	before, err := readMachine(f)
	if err != nil {
		return err
	}
	if r.results, err = measure(ctx, f, o, progress); err != nil {
		return err
	}
	after, err := readMachine(f)
	if err != nil {
		return err
	}
	r.others = after.others(before)
	if err := remember(r.memory, func(m *footprint) *memory { return &m.rounds }); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(progress, "profiles")
	if r.profiles, err = profiles(ctx, r.governed, works[:o.works], 3*o.time, filepath.Dir(o.caddy)); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(progress, "load for %v\n", o.soak)
	if err := soak(ctx, f, o.soak); err != nil {
		return err
	}
	if err := remember(r.memory, func(m *footprint) *memory { return &m.soak }); err != nil {
		return err
	}
	return checkReceipts(ctx, f)
}
