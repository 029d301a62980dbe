package storetest

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// model is what the statistics are said to be, computed the slow way: by a scan
// of all receipts, without those of excluded sessions.
type model struct {
	receipts []store.Receipt
	excluded map[string]bool
	since    int64 // of the first level that was counted
}

func (m *model) scan() (total, interventions int, margin float64, levels map[store.Level]int64) {
	levels = map[store.Level]int64{}
	for _, r := range m.receipts {
		if r.SessionKey == "" && r.Turn > 80 || m.excluded[r.SessionKey] {
			continue
		}
		total++
		margin += r.MAfter
		if r.Intervened {
			interventions++
		}
		if r.Level.Counted() {
			levels[r.Level]++
		}
	}
	return total, interventions, margin, levels
}

func (m *model) add(r store.Receipt, eval bool) {
	m.receipts = append(m.receipts, r)
	if r.SessionKey != "" && (eval || r.Turn > 80) {
		m.excluded[r.SessionKey] = true
	}
	out := r.SessionKey == "" && r.Turn > 80 || m.excluded[r.SessionKey]
	if m.since == 0 && r.Level.Counted() && !out {
		m.since = r.Timestamp
	}
}

func (m *model) check(t *testing.T, s store.Store) {
	t.Helper()
	got, err := s.Stats(t.Context())
	must(t, err)
	total, interventions, margin, levels := m.scan()
	want := store.Stats{TotalReceipts: total}
	if total > 0 {
		want.InterventionRate = float64(interventions) / float64(total)
		want.StabilityMargin = margin / float64(total)
	}
	// Margins are kept to 1e-9 each, so that their mean is, too.
	if got.TotalReceipts != want.TotalReceipts || got.InterventionRate != want.InterventionRate ||
		math.Abs(got.StabilityMargin-want.StabilityMargin) > 1e-9 {
		t.Fatalf("after %d receipts: statistics %+v, a scan gives %+v", len(m.receipts), got, want)
	}
	if counted := countedLevels(got); !maps.Equal(counted, levels) {
		t.Fatalf("after %d receipts: levels %v, a scan gives %v", len(m.receipts), counted, levels)
	}
	if got.LevelsSince != m.since {
		t.Fatalf("levels counted since %d, want %d", got.LevelsSince, m.since)
	}
}

// countedLevels are the levels of the statistics that are not 0.
func countedLevels(s store.Stats) map[store.Level]int64 {
	levels := map[store.Level]int64{}
	for attackType, counts := range s.Levels {
		for at, n := range counts {
			if n != 0 {
				levels[store.Level{AttackType: attackType, At: at}] = n
			}
		}
	}
	return levels
}

func statsAreThoseOfAFullScan(t *testing.T, s store.Store) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	m := &model{excluded: map[string]bool{}}
	sessions := map[string]store.Session{}
	m.check(t, s)
	for i := range 250 {
		key := fmt.Sprint("k", random.IntN(12))
		switch n := random.IntN(20); {
		case n == 0:
			must(t, s.Erase(t.Context(), key))
			delete(sessions, key)
		case n == 1 && len(m.receipts) > 0: // a repeated receipt
			must(t, s.Append(t.Context(), m.receipts[random.IntN(len(m.receipts))]))
		case n < 6:
			r := randomReceipt(random, fmt.Sprint("TCR-", i), []string{"", key, "unknown"}[random.IntN(3)])
			must(t, s.Append(t.Context(), r))
			m.add(r, false)
		default:
			commitRandom(t, s, m, sessions, random, key, fmt.Sprint("KRN-", i))
		}
		m.check(t, s)
	}
	if got := len(all(t, s, 64)); got != len(m.receipts) {
		t.Errorf("the store lists %d receipts, want %d", got, len(m.receipts))
	}
}

func commitRandom(
	t *testing.T, s store.Store, m *model, sessions map[string]store.Session, random *rand.Rand, key, id string,
) {
	t.Helper()
	session, ok := sessions[key]
	if !ok {
		session = newSession(key)
	}
	r := randomReceipt(random, id, key)
	turn := labelled(session, id, r.Turn)
	turn.Receipt = r
	turn.Session.Eval = session.Eval || random.IntN(50) == 0
	for n := range random.IntN(3) {
		turn.Calls = append(turn.Calls, randomReceipt(random, fmt.Sprintf("TCR-%s-%d", id, n), key))
	}
	must(t, s.Commit(t.Context(), turn))
	for _, written := range turn.Receipts() {
		m.add(written, turn.Session.Eval)
	}
	var err error
	sessions[key], err = s.Session(t.Context(), key)
	must(t, err)
}

// randomReceipt has a label around the limit of 80 now and then.
func randomReceipt(random *rand.Rand, id, key string) store.Receipt {
	r := newReceipt(id, key, 1+random.IntN(20))
	if random.IntN(30) == 0 {
		r.Turn = 79 + random.IntN(4)
	}
	if id[0] == 'T' {
		r.Kind = store.KindToolCall
	}
	r.Intervened = random.IntN(3) == 0
	r.MAfter = random.Float64()*0.8 - 0.45 // sums of either sign
	r.Timestamp = 1 + random.Int64N(1e12)
	if r.Kind == store.KindText && random.IntN(8) > 0 {
		types := []kernel.AttackType{kernel.NoAttack, kernel.Identity, kernel.Multi, kernel.SlowDrip}
		r.Level = store.Level{AttackType: types[random.IntN(len(types))], At: []int{0, 1, 50, 99, 100}[random.IntN(5)]}
	}
	return r
}

func statsOfConcurrentCommits(t *testing.T, s store.Store) {
	const sessions, turnsEach = 16, 6
	var group sync.WaitGroup
	for c := range sessions {
		group.Go(func() {
			session := newSession(fmt.Sprint("k", c))
			for i := range turnsEach {
				turn := next(session, fmt.Sprintf("KRN-%d-%d", c, i))
				turn.Receipt.Level = store.Level{AttackType: kernel.NoAttack, At: c % 3}
				turn.Session.Eval = c%4 == 0 && i == turnsEach-1
				if err := s.Commit(t.Context(), turn); err != nil {
					t.Errorf("committing: %v", err)
					return
				}
				session, _ = s.Session(t.Context(), session.Key)
			}
		})
	}
	group.Wait()
	got, err := s.Stats(t.Context())
	must(t, err)
	if want := sessions * 3 / 4 * turnsEach; got.TotalReceipts != want || got.InterventionRate != 1 {
		t.Errorf("statistics %+v, want %d receipts, all with an intervention", got, want)
	}
	want := map[store.Level]int64{}
	for c := range sessions {
		if c%4 != 0 {
			want[store.Level{AttackType: kernel.NoAttack, At: c % 3}] += turnsEach
		}
	}
	if levels := countedLevels(got); !maps.Equal(levels, want) {
		t.Errorf("levels %v, want %v", levels, want)
	}
}
