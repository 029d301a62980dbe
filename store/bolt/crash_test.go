//go:build unix

package bolt_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/store/bolt"
	"github.com/caddy-lex/lex/store/storetest"
)

// These tests need a process that may die: the test binary runs itself with a
// role in its environment.
const (
	roleVariable = "LEX_BOLT_TEST_ROLE"
	pathVariable = "LEX_BOLT_TEST_PATH"
)

func TestMain(m *testing.M) {
	role, ok := map[string]func(string) error{"commit": commitForever, "fill": fillTheDisk}[os.Getenv(roleVariable)]
	if !ok {
		os.Exit(m.Run())
	}
	if err := role(os.Getenv(pathVariable)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child returns a command that plays the role on the file.
func child(t *testing.T, role, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role, pathVariable+"="+path)
	cmd.Stderr = os.Stderr
	return cmd
}

// committers is how many sessions commit at once.
const committers = 8

// commitForever prints the ids of the receipts that were acknowledged.
func commitForever(path string) error {
	s, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		return err
	}
	failed := make(chan error)
	for c := range committers {
		go func() {
			for {
				id, err := advance(context.Background(), s, fmt.Sprint("k", c))
				if err != nil {
					failed <- err
					return
				}
				_, _ = os.Stdout.WriteString(id + "\n") // one write: lines do not mix
			}
		}()
	}
	return <-failed
}

func TestKilledProcessLosesNothingAcknowledged(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	path := filepath.Join(t.TempDir(), "lex.db")
	acknowledged := map[string]bool{}
	for range 6 {
		killAfter(t, path, 1+random.IntN(1500), acknowledged) // with several journals
		checkSurvivors(t, path, acknowledged)
	}
}

// killAfter kills a committing process when it has acknowledged n receipts, and
// adds to the set all that it did acknowledge.
func killAfter(t *testing.T, path string, n int, acknowledged map[string]bool) {
	t.Helper()
	cmd := child(t, "commit", path)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewReader(stdout)
	for i := 0; ; i++ {
		id, err := lines.ReadString('\n')
		if err != nil { // it is dead; a line without an end was not said
			break
		}
		acknowledged[strings.TrimSpace(id)] = true
		if i+1 == n {
			must(t, cmd.Process.Kill())
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Exited() {
		t.Fatalf("the process was not killed: %v", err)
	}
}

func checkSurvivors(t *testing.T, path string, acknowledged map[string]bool) {
	t.Helper()
	s, err := bolt.Open(path, bolt.Options{})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	for id := range acknowledged {
		if _, err := s.Receipt(t.Context(), id); err != nil {
			t.Errorf("%s was acknowledged and is lost: %v", id, err)
		}
	}
	receipts := 0
	for c := range committers {
		key := fmt.Sprint("k", c)
		session, err := s.Session(t.Context(), key)
		if errors.Is(err, store.ErrNotFound) {
			continue // killed before its first turn
		}
		must(t, err)
		checkChain(t, s, key, session.Turns)
		receipts += receiptsOf(session.Turns)
	}
	stats, err := s.Stats(t.Context())
	must(t, err)
	logged := len(storetest.Log(t, s))
	if stats.TotalReceipts != receipts || logged != receipts || receipts < len(acknowledged) {
		t.Errorf("%d receipts in chains, %d in the statistics, %d in the log, %d acknowledged", receipts, stats.TotalReceipts, logged, len(acknowledged))
	}
}

// checkChain follows the records from the session's head, over the tool calls of its
// turns, back to its first. A turn of which a call is missing has no chain.
func checkChain(t *testing.T, s *bolt.Store, key string, turns int) {
	t.Helper()
	session, err := s.Session(t.Context(), key)
	must(t, err)
	length := 0
	for id := session.Head; id != ""; length++ {
		r, err := s.Receipt(t.Context(), id)
		if err != nil {
			t.Fatalf("the chain of %s is broken at %s: %v", key, id, err)
		}
		var record struct {
			Prev string `json:"prev"`
		}
		must(t, json.Unmarshal(r.JSON, &record))
		id = record.Prev
	}
	if want := receiptsOf(turns); length != want {
		t.Errorf("the chain of %s has %d receipts, want %d", key, length, want)
	}
}

// fillTheDisk commits until the file may not grow, which to the store is a full
// disk; then it makes room and goes on.
func fillTheDisk(path string) error {
	signal.Ignore(syscall.SIGXFSZ)
	s, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		return err
	}
	var room syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &room); err != nil {
		return err
	}
	full := syscall.Rlimit{Cur: 1 << 20, Max: room.Max}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full); err != nil {
		return err
	}
	if err := commitUntilFull(s); err != nil {
		return err
	}
	if err := s.Check(context.Background()); !errors.Is(err, store.ErrUnavailable) {
		return fmt.Errorf("checking a full store: got %v, want it unavailable", err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &room); err != nil {
		return err
	}
	if err := s.Check(context.Background()); err != nil {
		return fmt.Errorf("checking a store that has room again: %w", err)
	}
	id, err := advance(context.Background(), s, "k0")
	fmt.Println(id)
	return err
}

func commitUntilFull(s *bolt.Store) error {
	var group sync.WaitGroup
	failures := make([]error, committers)
	for c := range committers {
		group.Go(func() {
			for failures[c] == nil {
				var id string
				if id, failures[c] = advance(context.Background(), s, fmt.Sprint("k", c)); failures[c] == nil {
					_, _ = os.Stdout.WriteString(id + "\n")
				}
			}
		})
	}
	group.Wait()
	for _, err := range failures {
		if !errors.Is(err, store.ErrUnavailable) || strings.Contains(err.Error(), ".db") {
			return fmt.Errorf("committing to a full store: got %v, want it unavailable and unnamed", err)
		}
		if err.Error() != failures[0].Error() {
			return fmt.Errorf("committing to a full store: got %v and %v", failures[0], err)
		}
	}
	return nil
}

func TestFullDiskTearsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lex.db")
	output, err := child(t, "fill", path).Output()
	must(t, err)
	acknowledged := map[string]bool{}
	for _, id := range strings.Fields(string(output)) {
		acknowledged[id] = true
	}
	if len(acknowledged) < 50 {
		t.Fatalf("%d receipts before the disk was full", len(acknowledged))
	}
	checkSurvivors(t, path, acknowledged)
}
