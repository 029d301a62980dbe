package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-lex/lex/store"
)

// journal is a slow disk: a batch takes 10 ms.
type journal struct {
	batches [][]int
}

var errOdd = errors.New("odd")

func (j *journal) write(batch []int) []error {
	time.Sleep(10 * time.Millisecond)
	j.batches = append(j.batches, slices.Clone(batch))
	errs := make([]error, len(batch))
	for i, n := range batch {
		if n%2 == 1 {
			errs[i] = fmt.Errorf("%d: %w", n, errOdd)
		}
	}
	return errs
}

func TestGroupCommitTellsEachWriterItsOwnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		g := store.NewGroupCommit(j.write)
		defer g.Close()
		const writers, writesEach = 300, 3
		var group sync.WaitGroup
		for w := range writers {
			group.Go(func() {
				for i := range writesEach {
					n := w*writesEach + i
					if err := g.Do(t.Context(), n); errors.Is(err, errOdd) != (n%2 == 1) {
						t.Errorf("write %d: %v", n, err)
					}
				}
			})
		}
		group.Wait()
		written := slices.Sorted(slices.Values(slices.Concat(j.batches...)))
		for i, n := range written {
			if n != i {
				t.Fatalf("write %d is missing or doubled", i)
			}
		}
		if len(written) != writers*writesEach {
			t.Errorf("%d writes, want %d", len(written), writers*writesEach)
		}
		for _, b := range j.batches {
			if len(b) > 256 {
				t.Errorf("a batch of %d writes", len(b))
			}
		}
		if got, most := len(j.batches), writesEach*writers/50; got > most {
			t.Errorf("%d batches for %d writes, want at most %d", got, writers*writesEach, most)
		}
	})
}

func TestGroupCommitDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		g := store.NewGroupCommit(j.write)
		defer g.Close()
		took := func() time.Duration {
			begin := time.Now()
			if err := g.Do(t.Context(), 0); err != nil {
				t.Fatalf("writing: %v", err)
			}
			return time.Since(begin)
		}
		if got := took(); got != 10*time.Millisecond {
			t.Errorf("a lone write took %v: it waited for company", got)
		}
		// One is being written while the others come, so that they make one batch.
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() { took() })
			synctest.Wait()
		}
		group.Wait()
		if got := len(j.batches); got != 3 {
			t.Errorf("%d batches, want 3: what comes during a write is the next batch", got)
		}
		if got := took(); got != 10*time.Millisecond {
			t.Errorf("a write after a busy time took %v: it waited for company", got)
		}
	})
}

func TestGroupCommitCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		g := store.NewGroupCommit(j.write)
		defer g.Close()
		var group sync.WaitGroup
		group.Go(func() { // being written when the others come
			if err := g.Do(t.Context(), 0); err != nil {
				t.Errorf("the first write: %v", err)
			}
		})
		synctest.Wait()
		begin := time.Now()
		for _, n := range []int{2, 4, 6} {
			group.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n)*time.Millisecond)
				defer cancel()
				err := g.Do(ctx, n)
				if waited := time.Since(begin); !errors.Is(err, context.DeadlineExceeded) || waited != time.Duration(n)*time.Millisecond {
					t.Errorf("write %d: %v after %v", n, err, waited)
				}
			})
		}
		group.Go(func() {
			if err := g.Do(t.Context(), 8); err != nil {
				t.Errorf("the write that was not cancelled: %v", err)
			}
		})
		group.Wait()
		if got := fmt.Sprint(j.batches); got != "[[0] [8]]" {
			t.Errorf("batches %s: writes that nobody waits for must be left out", got)
		}
	})
}

func TestGroupCommitCloseFinishesWhatWasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		g := store.NewGroupCommit(j.write)
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() {
				if err := g.Do(t.Context(), 2); err != nil && !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("writing while closing: %v", err)
				}
			})
		}
		synctest.Wait()
		group.Go(g.Close)
		g.Close()
		group.Wait()
		if len(j.batches) == 0 {
			t.Error("the batch that was begun is lost")
		}
		if err := g.Do(t.Context(), 2); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("writing after Close: %v", err)
		}
	})
}
