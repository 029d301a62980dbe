package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// A process is a server that this program started. Its methods do nothing, and count
// nothing, for nil.
type process struct {
	cmd    *exec.Cmd
	ended  chan struct{}
	output bytes.Buffer // read only after the end
}

// ready is how long a process may take until it answers.
const ready = time.Minute

// startProcess starts a server and waits until it is ready.
func startProcess(ctx context.Context, cmd *exec.Cmd, isReady func(context.Context) bool) (*process, error) {
	p := &process{cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.output, &p.output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // stop ends it with a signal
	}()
	ctx, cancel := context.WithTimeout(ctx, ready)
	defer cancel()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for !isReady(ctx) {
		select {
		case <-look.C:
		case <-p.ended:
			return nil, fmt.Errorf("it ended at once: %s", tail(p.output.Bytes()))
		case <-ctx.Done():
			p.stop()
			return nil, fmt.Errorf("it did not answer: %s", tail(p.output.Bytes()))
		}
	}
	return p, nil
}

// tail is the end of a log.
func tail(log []byte) []byte { return log[max(0, len(log)-2000):] }

// stop ends the process and those that it started, and waits for the end.
func (p *process) stop() {
	if p == nil {
		return
	}
	select {
	case <-p.ended:
		return
	default:
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.ended
	}
}

// cpu is the time that the process has spent on processors, in steps of 10 ms.
func (p *process) cpu() (time.Duration, error) {
	if p == nil {
		return 0, nil
	}
	proc, err := procfs.NewProc(p.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	stat, err := proc.Stat()
	return time.Duration(stat.CPUTime() * float64(time.Second)), err
}

// memory is what a process holds of the machine's memory, in bytes.
type memory struct {
	resident  uint64
	anonymous uint64 // without mapped files: bolt's pages and the program itself
}

func (p *process) memory() (memory, error) {
	proc, err := procfs.NewProc(p.cmd.Process.Pid)
	if err != nil {
		return memory{}, err
	}
	status, err := proc.NewStatus()
	return memory{status.VmRSS, status.RssAnon}, err
}

// ownCPU is the time that this process, the clients and the upstream, has spent on
// processors.
func ownCPU() (time.Duration, error) {
	var use unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &use); err != nil {
		return 0, err
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano()), nil
}

// allocated is how many bytes Caddy has allocated since its start.
func (t *target) allocated(ctx context.Context) (float64, error) {
	if t.admin == "" {
		return 0, nil
	}
	metrics, err := fetch(ctx, t.admin+"/metrics")
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(metrics, []byte("\ngo_memstats_alloc_bytes_total "))
	value, _, ok := bytes.Cut(rest, []byte("\n"))
	if !ok {
		return 0, errors.New("no go_memstats_alloc_bytes_total in the metrics of Caddy")
	}
	return strconv.ParseFloat(string(value), 64)
}
