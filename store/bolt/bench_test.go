package bolt_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-lex/lex/store/bolt"
)

// BenchmarkCommit measures durable turns with so many sessions at once. Every
// turn is a read and a commit.
func BenchmarkCommit(b *testing.B) {
	for _, committers := range []int{1, 64, 256} {
		benchmarkCommit(b, fmt.Sprint(committers), committers, 0)
	}
	benchmarkCommit(b, "64 with 8 calls", 64, 8)
}

func benchmarkCommit(b *testing.B, name string, committers, calls int) {
	b.Run(name, func(b *testing.B) {
		s := open(b, filepath.Join(b.TempDir(), "lex.db"), bolt.Options{})
		b.ReportAllocs()
		b.ResetTimer()
		var left atomic.Int64
		left.Store(int64(b.N))
		var group sync.WaitGroup
		for c := range committers {
			group.Go(func() {
				for left.Add(-1) >= 0 {
					if _, err := advanceWith(b.Context(), s, fmt.Sprint("k", c), func(int) int { return calls }); err != nil {
						b.Errorf("committing: %v", err)
						return
					}
				}
			})
		}
		group.Wait()
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "turns/s")
	})
}

// BenchmarkConsume measures a request against a limit in memory.
func BenchmarkConsume(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "lex.db"), bolt.Options{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Consume(b.Context(), "subject", 1000, time.Minute); err != nil {
			b.Fatal(err)
		}
	}
}
