package console_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-lex/lex/console"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/store/bolt"
	"github.com/caddy-lex/lex/store/redis"
	"github.com/caddy-lex/lex/store/storetest"
)

// stores are those that a window is held against.
var stores = map[string]func(t *testing.T) store.Store{
	"bolt": func(t *testing.T) store.Store {
		s, err := bolt.Open(filepath.Join(t.TempDir(), "lex.db"), bolt.Options{})
		return opened(t, s, err)
	},
	"redis": func(t *testing.T) store.Store {
		s, err := redis.Open(t.Context(), []string{storetest.StartRedis(t)}, redis.Options{Timeout: 10 * time.Second})
		return opened(t, s, err)
	},
}

func opened(t *testing.T, s store.Store, err error) store.Store {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// newWindow returns a window that ends with the test.
func newWindow(t testing.TB, from console.Lister) *console.Window {
	t.Helper()
	w := console.NewWindow(from, time.Now)
	t.Cleanup(w.Close)
	return w
}

// answered is an ordinary turn.
func answered(at int64) kernel.Receipt {
	return kernel.Receipt{
		SessionID: "s_1", Turn: 1, Timestamp: at, Mode: kernel.Enforce, Endpoint: "openai_chat", Dialect: "openai_chat", Model: "m",
		Outcome: kernel.Answered, AttackType: kernel.NoAttack, GovernorMode: kernel.GovernorPass, Policy: strings.Repeat("0", 64),
		Coverage: kernel.Coverage{Detectors: []kernel.DetectorRun{{Name: "local", Outcome: kernel.Clean}, {Name: "local_judge", Outcome: kernel.Clean}}},
	}
}

var nonces struct {
	sync.Mutex
	n int
}

// entry seals a receipt for a store.
func entry(t testing.TB, r kernel.Receipt) store.Receipt {
	t.Helper()
	nonces.Lock()
	nonces.n++
	r.Nonce = strconv.Itoa(nonces.n)
	nonces.Unlock()
	record, err := r.Seal()
	if err != nil {
		t.Fatal(err)
	}
	kind := store.KindText
	if r.Tool != "" {
		kind = store.KindToolCall
	}
	return store.Receipt{ID: r.ID, Kind: kind, SessionID: r.SessionID, Turn: r.Turn, Timestamp: r.Timestamp, JSON: record}
}

// write appends receipts in their order.
func write(t *testing.T, s store.Store, entries []store.Receipt) {
	t.Helper()
	for some := range slices.Chunk(entries, store.MaxCalls) {
		if err := s.Append(t.Context(), some...); err != nil {
			t.Fatal(err)
		}
	}
}

// someReceipt is any receipt that there may be, of the last two hours or older.
func someReceipt(rnd *rand.Rand, now int64) kernel.Receipt {
	r := answered(now - rnd.Int64N(7_200_000))
	if rnd.IntN(20) == 0 {
		r.Timestamp -= 90_000_000
	}
	pick := func(words ...string) string { return words[rnd.IntN(len(words))] }
	r.SessionID, r.Endpoint = pick("s_1", "s_2", "</script>"), pick("openai_chat", "lex/govern", "unknown")
	switch rnd.IntN(8) {
	case 0:
		r.Refused, r.Outcome = true, kernel.Refused
		r.Reasons = []kernel.Reason{kernel.Reason(pick("semantic_classifier", "slow_drip")), kernel.CapitulatedOutput}
		r.AttackType, r.Severity = kernel.AttackType(pick("identity", "coercion", "none")), rnd.Float64()
	case 1:
		r.Mode, r.WouldRefuse, r.Reasons, r.AttackType = kernel.Observe, true, []kernel.Reason{kernel.SemanticClassifier}, kernel.Identity
	case 2:
		r.Outcome = kernel.Outcome(pick("provider_failed", "client_gone", "aborted", "failed"))
	case 3:
		r.GovernorMode = kernel.GovernorCorrect
	case 4:
		r.Tool, r.Invariant, r.Decision = "bash", pick("destructive_command", ""), kernel.Approved
		if r.Invariant != "" {
			r.Refused, r.Outcome, r.Decision = true, kernel.Refused, kernel.Blocked
		}
	case 5:
		r.Coverage.Skipped = []kernel.SkippedPart{{Part: fmt.Sprintf("request.messages.%d.content.1.image_url", rnd.IntN(9)), Why: "image", Bytes: rnd.IntN(1000)}}
		r.Coverage.Unknown = []kernel.SkippedPart{{Part: "request.sha256:0123456789abcdef", Why: "not known to the dialect", Bytes: 7}}
	case 6:
		r.Unassessed = true
		r.Coverage.Detectors = []kernel.DetectorRun{{Name: "local", Outcome: kernel.NotRun, Why: "no text to read"}}
		r.Coverage.Skipped = []kernel.SkippedPart{{Part: "request.messages.0.content.0", Why: "image", Bytes: 10}}
	}
	return r
}

// A list is a store that the test holds in its hand.
type list struct {
	mu      sync.Mutex
	entries []store.Receipt // oldest first
	down    error
	damaged string // cursor of a receipt that the store cannot read
	asked   int
}

var errDown = fmt.Errorf("down: %w", store.ErrUnavailable)

func (l *list) add(entries ...store.Receipt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range entries {
		e.Seq = uint64(len(l.entries) + 1)
		e.Cursor = strconv.Itoa(len(l.entries) + 1)
		l.entries = append(l.entries, e)
	}
}

// keep loses all receipts but the oldest, as a store that begins anew does.
func (l *list) keep(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = l.entries[:n]
}

func (l *list) set(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = err
}

func (l *list) questions() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked
}

func (l *list) Recent(ctx context.Context, before string, limit int) ([]store.Receipt, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	if err := errors.Join(ctx.Err(), l.down); err != nil {
		return nil, err
	}
	end := len(l.entries)
	if before != "" {
		n, err := strconv.Atoi(before)
		if err != nil {
			return nil, fmt.Errorf("cursor: %w", store.ErrNotFound)
		}
		end = min(end, n-1)
	}
	page := slices.Clone(l.entries[max(0, end-limit):end])
	slices.Reverse(page)
	if slices.ContainsFunc(page, func(r store.Receipt) bool { return r.Cursor == l.damaged }) {
		return nil, errors.New("decoding a receipt: it is cut")
	}
	return page, nil
}
