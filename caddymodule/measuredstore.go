package caddymodule

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddy-lex/lex/store"
)

// A measuredStore is a store whose operations on the way of requests are timed. The others
// (lists, keys, benchmarks) pass as they are.
type measuredStore struct {
	store.Store
	session, commit, append, consume, refund, key, receipt prometheus.Observer
}

func measured(s store.Store) *measuredStore {
	of := allMetrics.storeSeconds.WithLabelValues
	return &measuredStore{s, of("session"), of("commit"), of("append"), of("consume"), of("refund"), of("key"), of("receipt")}
}

// since observes the time since an operation began.
func since(o prometheus.Observer, began time.Time) { o.Observe(time.Since(began).Seconds()) }

func (m *measuredStore) Session(ctx context.Context, key string) (store.Session, error) {
	defer since(m.session, time.Now())
	return m.Store.Session(ctx, key)
}

func (m *measuredStore) Commit(ctx context.Context, c store.Change) error {
	defer since(m.commit, time.Now())
	return m.Store.Commit(ctx, c)
}

func (m *measuredStore) Append(ctx context.Context, receipts ...store.Receipt) error {
	defer since(m.append, time.Now())
	return m.Store.Append(ctx, receipts...)
}

func (m *measuredStore) Consume(ctx context.Context, subject, run string, limit int, window time.Duration) (store.Allowance, error) {
	defer since(m.consume, time.Now())
	return m.Store.Consume(ctx, subject, run, limit, window)
}

func (m *measuredStore) Refund(ctx context.Context, subject, run string) error {
	defer since(m.refund, time.Now())
	return m.Store.Refund(ctx, subject, run)
}

func (m *measuredStore) Key(ctx context.Context, hash string) (store.Key, error) {
	defer since(m.key, time.Now())
	return m.Store.Key(ctx, hash)
}

func (m *measuredStore) Receipt(ctx context.Context, id string) (store.Receipt, error) {
	defer since(m.receipt, time.Now())
	return m.Store.Receipt(ctx, id)
}
