package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/caddy-lex/lex/store"
)

func checkOfAWorkingStore(t *testing.T, s store.Store) {
	must(t, s.Check(t.Context()))
	if got := all(t, s, 10); len(got) != 0 {
		t.Errorf("checking left %d receipts", len(got))
	}
}

// everyMethod calls all methods but Close.
func everyMethod(ctx context.Context, s store.Store) map[string]error {
	_, errSession := s.Session(ctx, "k1")
	_, errRecent := s.Recent(ctx, "", 1)
	_, errSummaries := s.Summaries(ctx, "", 1)
	_, errLog := s.Log(ctx, 0, 1)
	_, errReceipt := s.Receipt(ctx, "KRN-1")
	_, errReceiptOfTurn := s.ReceiptOfTurn(ctx, "turn-1")
	_, errStats := s.Stats(ctx)
	_, errConsume := s.Consume(ctx, "subject", "", 1, time.Minute)
	_, errConsumeLong := s.Consume(ctx, "plan", "", 1, 720*time.Hour)
	_, errConsumed := s.Consumed(ctx, "subject")
	_, errKey := s.Key(ctx, "h1")
	_, errKeys := s.Keys(ctx)
	_, errDocument := s.Document(ctx, "h1")
	_, errBenchmarks := s.Benchmarks(ctx, created)
	return map[string]error{
		"Session":      errSession,
		"Commit":       s.Commit(ctx, next(newSession("k1"), "KRN-2")),
		"Erase":        s.Erase(ctx, "k1"),
		"Recent":       errRecent,
		"Summaries":    errSummaries,
		"Log":          errLog,
		"Receipt":      errReceipt,
		"Turn":         errReceiptOfTurn,
		"Append":       s.Append(ctx, newReceipt("KRN-3", "", 1)),
		"Stats":        errStats,
		"Consume":      errConsume,
		"Consume long": errConsumeLong,
		"Refund":       s.Refund(ctx, "subject", "run"),
		"Consumed":     errConsumed,
		"PutKey":       s.PutKey(ctx, store.Key{ID: "1", Hash: "h2"}),
		"Key":          errKey,
		"Keys":         errKeys,
		"PutDocument":  s.PutDocument(ctx, "h2", []byte("{}")),
		"Policy":       errDocument,
		"Publish":      s.Publish(ctx, []store.Benchmark{{Benchmark: "b"}}),
		"Benchmarks":   errBenchmarks,
		"Check":        s.Check(ctx),
	}
}

func endedContextIsRespected(t *testing.T, s store.Store) {
	must(t, s.Commit(t.Context(), next(newSession("k1"), "KRN-1")))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range everyMethod(cancelled, s) {
		wantKind(t, name+" with a cancelled context", err, context.Canceled)
	}
	expired, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for name, err := range everyMethod(expired, s) {
		wantKind(t, name+" after the deadline", err, context.DeadlineExceeded)
	}
	if got := len(all(t, s, 10)); got != 1 {
		t.Errorf("%d receipts, want 1: ended contexts must not have written", got)
	}
	_, err := s.Session(t.Context(), "k1")
	must(t, err)
}

func closedStoreIsUnavailable(t *testing.T, s store.Store) {
	must(t, s.Commit(t.Context(), next(newSession("k1"), "KRN-1")))
	must(t, s.Close())
	must(t, s.Close())
	for name, err := range everyMethod(t.Context(), s) {
		wantKind(t, name+" of a closed store", err, store.ErrUnavailable)
	}
}
