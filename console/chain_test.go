package console_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/console"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// An archive is what a session is read from.
type archive struct {
	receipts map[string]store.Receipt
	sessions map[string]store.Session
	policies map[string][]byte
	damaged  string // a receipt that cannot be read
	down     bool
	reads    int // how many there were
	fails    int // which one of them fails, 0 for none
}

func get[V any](a *archive, m map[string]V, key string) (V, error) {
	v, found := m[key]
	a.reads++
	switch {
	case a.down, a.reads == a.fails:
		return v, errDown
	case !found:
		return v, fmt.Errorf("%q: %w", key, store.ErrNotFound)
	}
	return v, nil
}

func (a *archive) Receipt(_ context.Context, id string) (store.Receipt, error) {
	if id == a.damaged {
		return store.Receipt{}, fmt.Errorf("%q: %w", id, store.ErrInvalid)
	}
	return get(a, a.receipts, id)
}

func (a *archive) Session(_ context.Context, key string) (store.Session, error) {
	return get(a, a.sessions, key)
}

func (a *archive) Document(_ context.Context, hash string) ([]byte, error) {
	return get(a, a.policies, hash)
}

// chained makes a session of so many turns and returns their ids.
func chained(t *testing.T, n int, change func(i int, r *kernel.Receipt)) (*archive, []string) {
	t.Helper()
	p := kernel.DefaultPolicy()
	hash := strings.Repeat("0", 64)
	text, err := p.JSON()
	if err != nil {
		t.Fatal(err)
	}
	a := &archive{receipts: map[string]store.Receipt{}, sessions: map[string]store.Session{}, policies: map[string][]byte{hash: text}}
	var ids []string
	prev := ""
	for i := range n {
		r := answered(int64(i + 1))
		r.Turn, r.Prev, r.Policy = i+1, prev, hash
		if change != nil {
			change(i, &r)
		}
		e := entry(t, r)
		e.SessionKey = "key"
		sealed, err := kernel.ParseReceipt(e.JSON)
		if err != nil {
			t.Fatal(err)
		}
		prev = sealed.Link()
		a.receipts[e.ID] = e
		ids = append(ids, e.ID)
	}
	a.sessions["key"] = store.Session{Key: "key", Head: prev}
	return a, ids
}

func TestChains(t *testing.T) {
	for name, c := range map[string]struct {
		turns, at, limit int
		change           func(a *archive, ids []string)
		first, last      int // turns
		head             bool
		truncated        bool
	}{
		"whole":              {5, 2, 200, nil, 1, 5, true, false},
		"one turn":           {1, 0, 200, nil, 1, 1, true, false},
		"its head":           {5, 4, 200, nil, 1, 5, true, false},
		"its first":          {5, 0, 200, nil, 1, 5, true, false},
		"limit at the head":  {9, 6, 4, nil, 6, 9, true, true},
		"limit exactly":      {9, 5, 4, nil, 6, 9, true, true},
		"limit not by it":    {9, 4, 4, nil, 2, 5, true, true},
		"limit 1":            {9, 4, 1, nil, 5, 5, true, true},
		"long":               {1100, 1000, 200, nil, 901, 1100, true, true},
		"head far away":      {1100, 100, 200, nil, 1, 101, false, false},
		"erased":             {5, 2, 200, func(a *archive, _ []string) { clear(a.sessions) }, 1, 3, false, false},
		"one is missing":     {5, 3, 200, func(a *archive, ids []string) { delete(a.receipts, ids[1]) }, 3, 5, true, true},
		"a later is missing": {5, 1, 200, func(a *archive, ids []string) { delete(a.receipts, ids[3]) }, 1, 2, false, false},
		"one is damaged":     {5, 3, 200, func(a *archive, ids []string) { a.damaged = ids[1] }, 3, 5, true, true},
		"a later is damaged": {5, 1, 200, func(a *archive, ids []string) { a.damaged = ids[3] }, 1, 2, false, false},
		"one is broken": {5, 3, 200, func(a *archive, ids []string) {
			a.receipts[ids[1]] = store.Receipt{ID: ids[1], Kind: "KRN", Turn: 2, JSON: []byte("{")}
		}, 2, 5, true, false},
		"policy not known": {5, 2, 200, func(a *archive, _ []string) { clear(a.policies) }, 1, 5, true, false},
	} {
		a, ids := chained(t, c.turns, nil)
		if c.change != nil {
			c.change(a, ids)
		}
		chain, err := console.ReadChain(t.Context(), a, ids[c.at], c.limit)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		n := len(chain.Steps)
		if n != c.last-c.first+1 || chain.Steps[0].Turn != c.first || chain.Steps[n-1].Turn != c.last || chain.Truncated != c.truncated || chain.Branched {
			t.Errorf("%s: %d steps, turns %d to %d, truncated %v, branched %v", name, n, chain.Steps[0].Turn, chain.Steps[n-1].Turn, chain.Truncated, chain.Branched)
		}
		if (chain.Head != nil) != c.head || c.head && *chain.Head != ids[len(ids)-1] {
			t.Errorf("%s: head %v", name, chain.Head)
		}
		if level := chain.Steps[n-1].CUSUMH; (level == kernel.DefaultPolicy().CUSUMH) != (name != "policy not known") {
			t.Errorf("%s: cusum_h %v", name, level)
		}
	}
}

// Whichever read fails, there is no chain: one that was read in part would look like the whole.
func TestEveryReadOfAChainThatFails(t *testing.T) {
	a, ids := chained(t, 5, nil)
	if _, err := console.ReadChain(t.Context(), a, ids[2], 200); err != nil || a.reads < 7 { // each receipt, the session, the policy
		t.Fatalf("%v after %d reads", err, a.reads)
	}
	for n := a.reads; n > 0; n-- {
		a.reads, a.fails = 0, n
		if chain, err := console.ReadChain(t.Context(), a, ids[2], 200); !errors.Is(err, errDown) {
			t.Errorf("read %d fails: %v, %d steps", n, err, len(chain.Steps))
		}
	}
}

func TestChainsOfAnotherKind(t *testing.T) {
	a, ids := chained(t, 3, func(_ int, r *kernel.Receipt) { r.Resent = true })
	chain, err := console.ReadChain(t.Context(), a, ids[1], 200)
	if err != nil || !chain.Branched {
		t.Error("a resent conversation may branch", err)
	}
	if _, err := console.ReadChain(t.Context(), a, "KRN-0", 200); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
	a.damaged = ids[1]
	if _, err := console.ReadChain(t.Context(), a, ids[1], 200); !errors.Is(err, store.ErrInvalid) {
		t.Error(err)
	}
	a.damaged, a.down = "", true
	if _, err := console.ReadChain(t.Context(), a, ids[1], 200); !errors.Is(err, errDown) {
		t.Error(err)
	}
}

// A step has the numbers of its receipt.
func TestSteps(t *testing.T) {
	a, ids := chained(t, 1, func(_ int, r *kernel.Receipt) {
		r.X, r.Raw, r.State, r.Pressure = kernel.Point{.1, .2, .7}, kernel.Point{.2, .2, .6}, kernel.Point{.3, .3, .4}, kernel.Point{0, .5, 1}
		r.CUSUMNext, r.LyapunovV, r.DeltaV = .25, .5, -.125
	})
	chain, err := console.ReadChain(t.Context(), a, ids[0], 1)
	if err != nil {
		t.Fatal(err)
	}
	s := chain.Steps[0]
	if s.X != (kernel.Point{.1, .2, .7}) || s.Raw != (kernel.Point{.2, .2, .6}) || s.State != (kernel.Point{.3, .3, .4}) || s.Pressure != (kernel.Point{0, .5, 1}) ||
		s.CUSUMNext != .25 || s.LyapunovV != .5 || s.DeltaV != -.125 || s.ID != ids[0] {
		t.Errorf("%+v", s)
	}
}
