//go:build unix

package bolt_test

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/store/bolt"
)

// BenchmarkCommit measures durable turns of 16 callers, and of one: named sessions, each
// with a read and a commit; conversations without a name, in which every turn leaves a
// session of its own; and turns that another turn has gone before, which add a receipt
// alone. Besides the time it reports the processor time of a turn, and what it adds to the file.
func BenchmarkCommit(b *testing.B) {
	for _, callers := range []int{1, 16, 256} {
		benchmarkCommit(b, fmt.Sprint("named/", callers), callers, func(s *bolt.Store, caller int) error {
			return commitTurn(b, s, fmt.Sprint("k", caller), 0)
		})
	}
	benchmarkCommit(b, "calls/16", 16, func(s *bolt.Store, caller int) error {
		return commitTurn(b, s, fmt.Sprint("k", caller), 8)
	})
	benchmarkCommit(b, "unnamed/16", 16, func(s *bolt.Store, _ int) error {
		return commitTurn(b, s, randomHex(32), 0)
	})
	benchmarkCommit(b, "append/16", 16, func(s *bolt.Store, caller int) error {
		return s.Append(b.Context(), realReceipt(randomHex(16), store.KindText, fmt.Sprint("k", caller)))
	})
}

func benchmarkCommit(b *testing.B, name string, callers int, write func(s *bolt.Store, caller int) error) {
	b.Run(name, func(b *testing.B) {
		path := filepath.Join(b.TempDir(), "lex.db")
		s := open(b, path, bolt.Options{})
		b.ReportAllocs()
		b.ResetTimer()
		begin := processorTime(b)
		var done atomic.Int64
		var group sync.WaitGroup
		for caller := range callers {
			group.Go(func() {
				for done.Add(1) <= int64(b.N) {
					if err := write(s, caller); err != nil {
						b.Errorf("committing: %v", err)
						return
					}
				}
			})
		}
		group.Wait()
		b.StopTimer()
		b.ReportMetric(float64(processorTime(b)-begin)/float64(b.N), "cpu-ns/op")
		must(b, s.Close())
		b.ReportMetric(float64(sizeOf(b, path))/float64(b.N), "disk-B/op")
	})
}

// processorTime is what this process has used so far, in nanoseconds.
func processorTime(b *testing.B) int64 {
	b.Helper()
	var used syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return used.Utime.Nano() + used.Stime.Nano()
}

// sizeOf is what the file holds. The file itself grows by 16 MB at a time.
func sizeOf(b *testing.B, path string) (size int64) {
	b.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	must(b, err)
	must(b, db.View(func(tx *bbolt.Tx) error { size = tx.Size(); return nil }))
	must(b, db.Close())
	return size
}

// commitTurn reads a session and commits its next turn.
func commitTurn(b *testing.B, s *bolt.Store, key string, calls int) error {
	session, err := s.Session(b.Context(), key)
	if errors.Is(err, store.ErrNotFound) {
		session, err = store.Session{Key: key, PublicID: "s_be7c1a42fdd6539a", Secret: make([]byte, 32), Centre: make([]float32, 64), Memory: make([]byte, 200)}, nil
		_, _ = rand.Read(session.Memory)
		session.State = kernel.Session{X: kernel.Point{1.0 / 3, 1.0 / 3, 1.0 / 3}, Z: kernel.Point{0.25, 0.25, 0.5}, Policy: strings.Repeat("ab", 32)}
	}
	if err != nil {
		return err
	}
	c := store.Change{Receipt: realReceipt(randomHex(16), store.KindText, key)}
	for range calls {
		c.Calls = append(c.Calls, realReceipt(randomHex(16), store.KindToolCall, key))
	}
	session.Turns++
	session.Head = strings.ToUpper(randomHex(48))
	c.Session = session
	return s.Commit(b.Context(), c)
}

// realReceipt is a receipt as the proxy writes it, with random digits where it has some.
func realReceipt(id, kind, key string) store.Receipt {
	id, nonce := kind+"-"+strings.ToUpper(id), fmt.Sprintf("%013d", time.Now().UnixMilli())+rand.Text()[:13] // in the order of time, as turns are named
	record := fmt.Sprintf(sampleRecord, randomHex(32), id, nonce, randomHex(32), randomHex(32), randomHex(32))
	summary := fmt.Sprintf(sampleSummary, id)
	level := store.Level{}
	if kind == store.KindText { // most turns are quiet
		share := mathrand.Float64()
		level = store.Level{AttackType: kernel.NoAttack, At: int(40 * share * share * share)}
	}
	return store.Receipt{
		Level: level,
		ID:    id, Kind: kind, SessionKey: key, SessionID: "s_be7c1a42fdd6539a", TurnID: nonce, Turn: 1, Timestamp: time.Now().UnixMilli(), MAfter: 1.0 / 3,
		JSON: []byte(record), Summary: []byte(summary),
	}
}

func randomHex(n int) string {
	data := make([]byte, n)
	_, _ = rand.Read(data)
	return hex.EncodeToString(data)
}

const (
	sampleRecord  = `{"arguments_commitment":"","attack_type":"none","capitulated":false,"carry":[0,0,0],"carry_next":[0,0,0],"category":"benign","confidence":0.62,"coverage":{"bytes_forwarded":170,"bytes_inspected":1070,"detectors":[{"name":"local","outcome":"clean","why":""},{"name":"local_judge","outcome":"clean","why":""}],"inspected":[{"bytes":170,"detector":"local","part":"request.messages.0.content"},{"bytes":900,"detector":"local_judge","part":"response"}],"skipped":[],"unknown":[]},"cusum":0,"cusum_next":0,"decision":"","delta_V":-0.0012,"denied_by":"","detection_degraded":false,"dialect":"openai_chat","endpoint":"chat_completions","governor_effort":0,"governor_mode":"pass","health_band":"OPTIMAL","id":"%[2]s","intervention":false,"invariant":"","lost_thread":false,"lyapunov_V":0.0034,"m_after":0.2719,"m_before":0.2719,"migrated":false,"mode":"enforce","model":"gpt-4o-mini","nonce":"%[3]s","outcome":"answered","output_commitment":"%[4]s","policy":"5c0e4d1dbf3e2c6c37a6ae51d3f5a0d7e5a1b26fd4d2b8f2f3b5d8c2f8c9a0e1","pre_eval_label":"CLEAR","pressure":[0,0.01,0],"prev":"%[1]s","prompt_commitment":"%[5]s","prompt_threat_signal":-0.2137,"raw_state":[0.3333333333333333,0.3233333333333333,0.3433333333333333],"reasons":[],"refused":false,"resent":true,"scores":{"coercion":0.000003,"exploitative":0.000039,"harm_request":0.000669,"identity":0.001137,"injection":0,"sycophancy":0.000135},"session_id":"s_be7c1a42fdd6539a","setup":"0d51a7c5e0a2d6f3b1c4e8f7a9b0c1d2e3f405162738495a6b7c8d9eafb0c1d2","severity":0.001137,"sigma_viol":0,"slow_drip":false,"sovereignty_drift":false,"stability_ratio":1,"standing":[],"state":[0.3333333333333333,0.3233333333333333,0.3433333333333333],"timestamp":1795353081611,"tool":"","turn":1,"version":"lex-go/0.1.0+policy.5c0e4d1dbf3e","would_refuse":false,"x":[0.3333333333333333,0.3333333333333333,0.3333333333333333],"z":[0.3333333333333333,0.3333333333333333,0.3333333333333333],"z_next":[0.3333333333333333,0.3333333333333333,0.3333333333333333],"z_shift":0,"padding":"%.8[6]s"}`
	sampleSummary = `{"id":"%s","session_id":"s_be7c1a42fdd6539a","turn":1,"pre_eval_label":"CLEAR","m_before":0.2719,"m_after":0.2719,"governor_mode":"pass","intervention":false,"slow_drip":false,"governor_effort":0,"sigma_viol":0,"timestamp":1795353081611,"refused":false,"would_refuse":false,"attack_type":"none","severity":0.001137}`
)

// BenchmarkConsume measures a request against a limit in memory.
func BenchmarkConsume(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "lex.db"), bolt.Options{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Consume(b.Context(), "subject", "", 1000, time.Minute); err != nil {
			b.Fatal(err)
		}
	}
}
