package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// A machine is what the figures depend on besides the code. It names no host, user or
// path.
type machine struct {
	day       string
	processor string
	cores     int
	memory    uint64 // GiB
	system    string
	goVersion string // that built the measured binary
	caddy     string
	redis     string // empty if it is not there
	node      string // empty if it is not there
	fsync     time.Duration
}

// describe reads the description; folder is where the stores will be.
func describe(ctx context.Context, caddy, folder string) (machine, error) {
	m := machine{
		day:   time.Now().UTC().Format(time.DateOnly),
		cores: runtime.NumCPU(),
		redis: versionOf(ctx, "redis-server", "v="),
		node:  versionOf(ctx, "node", "v"),
	}
	built, err := buildinfo.ReadFile(caddy)
	if err != nil {
		return m, fmt.Errorf("reading %s: %w (make build makes it)", filepath.Base(caddy), err)
	}
	m.goVersion = built.GoVersion
	for _, dep := range built.Deps {
		if dep.Path == "github.com/caddyserver/caddy/v2" {
			m.caddy = dep.Version
		}
	}
	if err := m.readProc(); err != nil {
		return m, fmt.Errorf("describing the machine: %w", err)
	}
	m.fsync, err = fsyncTime(folder)
	return m, err
}

func (m *machine) readProc() error {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return err
	}
	cpus, err := proc.CPUInfo()
	if err != nil {
		return err
	}
	m.processor = "unknown processor"
	if len(cpus) > 0 && cpus[0].ModelName != "" {
		m.processor = cpus[0].ModelName
	}
	info, err := proc.Meminfo()
	if err != nil {
		return err
	}
	if info.MemTotal != nil {
		m.memory = (*info.MemTotal + 1<<19) >> 20
	}
	var kernel unix.Utsname
	if err := unix.Uname(&kernel); err != nil {
		return err
	}
	m.system = distribution() + ", Linux " + unix.ByteSliceToString(kernel.Release[:])
	return nil
}

// distribution is the name in /etc/os-release.
func distribution() string {
	text, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return "unknown distribution"
	}
	_, rest, _ := strings.Cut("\n"+string(text), "\nPRETTY_NAME=")
	name, _, _ := strings.Cut(rest, "\n")
	return strings.Trim(name, `"`)
}

// versionOf asks a program for its version: the word that begins with prefix, or
// nothing if the program is not there.
func versionOf(ctx context.Context, program, prefix string) string {
	out, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return ""
	}
	for word := range strings.FieldsSeq(string(out)) {
		if version, ok := strings.CutPrefix(word, prefix); ok {
			return version
		}
	}
	return ""
}

// fsyncTime is the median time that the disk takes to keep 4 KiB.
func fsyncTime(folder string) (took time.Duration, err error) {
	file, err := os.Create(filepath.Join(folder, "fsync"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	times := make([]time.Duration, 51)
	for i := range times {
		began := time.Now()
		if _, err := file.WriteAt(make([]byte, 4<<10), 0); err != nil {
			return 0, err
		}
		if err := file.Sync(); err != nil {
			return 0, err
		}
		times[i] = time.Since(began)
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

// A busyness is how much time the processors of the machine have spent since its start.
type busyness struct {
	all  time.Duration // of all processors, idle or not
	work time.Duration // at work for any program; interrupts, which are ours too, aside
	ours time.Duration // at work for this program and those that it started
}

func readMachine(f *field) (b busyness, err error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return b, err
	}
	stat, err := proc.Stat()
	if err != nil {
		return b, err
	}
	c := stat.CPUTotal
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	b.work = seconds(c.User + c.Nice + c.System + c.Steal)
	b.all = b.work + seconds(c.Idle+c.Iowait+c.IRQ+c.SoftIRQ)
	if b.ours, err = ownCPU(); err != nil {
		return b, err
	}
	for _, t := range f.targets {
		for _, p := range []*process{t.proxy, t.beside} {
			spent, err := p.cpu()
			if err != nil {
				return b, err
			}
			b.ours += spent
		}
	}
	return b, nil
}

// others is the share of the processors that other programs took since an earlier
// reading, those of other virtual machines among them.
func (b busyness) others(since busyness) float64 {
	work := (b.work - since.work) - (b.ours - since.ours)
	return max(0, float64(work)/float64(max(1, b.all-since.all)))
}
