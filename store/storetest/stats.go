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
		if r.SessionKey == "" && r.Turn > 80 || m.excluded[countedUnder(r)] {
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

// countedUnder names the session of a receipt, or the conversation that its session belongs to.
func countedUnder(r store.Receipt) string {
	if r.Conversation != "" {
		return r.Conversation
	}
	return r.SessionKey
}

func (m *model) add(r store.Receipt, eval bool) {
	m.receipts = append(m.receipts, r)
	if r.SessionKey != "" && (eval || r.Turn > 80) {
		m.excluded[countedUnder(r)] = true
	}
	out := r.SessionKey == "" && r.Turn > 80 || m.excluded[countedUnder(r)]
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
		case n < 9 && sessions[key].Family != "":
			branchRandom(t, s, m, sessions[key], random, fmt.Sprint("KRN-", i))
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

// branchRandom takes a turn of the conversation that goes on from a session, whose state is
// left under a key of its own. A later one of the same texts adds its receipt alone.
func branchRandom(t *testing.T, s store.Store, m *model, from store.Session, random *rand.Rand, id string) {
	t.Helper()
	turn := derived(from, "of "+id, id)
	turn.Receipt = randomReceipt(random, id, turn.Session.Key)
	turn.Receipt.Conversation = from.Family
	turn.Session.Eval = turn.Session.Eval || random.IntN(30) == 0
	must(t, s.Commit(t.Context(), turn))
	m.add(turn.Receipt, turn.Excluded())
	again := randomReceipt(random, id+"-again", turn.Session.Key)
	again.Conversation = from.Family
	must(t, s.Append(t.Context(), again))
	m.add(again, false)
}

// Each turn of a conversation that is known by its history has a session of its own. One of
// them that is excluded takes all of them out, also those that come later.
func conversationsAreCountedAsOne(t *testing.T, s store.Store) {
	wantTotal := func(when string, want int) {
		t.Helper()
		stats, err := s.Stats(t.Context())
		must(t, err)
		if stats.TotalReceipts != want || (stats.Levels == nil) != (want == 0) && countedLevels(stats)[store.Level{AttackType: kernel.NoAttack}] != int64(want) {
			t.Errorf("%s: %d receipts and levels %v, want %d", when, stats.TotalReceipts, countedLevels(stats), want)
		}
	}
	turn := func(c store.Change, conversation string) store.Change {
		c.Receipt.Conversation, c.Receipt.Level = conversation, store.Level{AttackType: kernel.NoAttack}
		return c
	}
	must(t, s.Commit(t.Context(), turn(next(newSession("other"), "KRN-o"), "KRN-o"))) // counts throughout
	for name, exclude := range map[string]func(c *store.Change){
		"eval":         func(c *store.Change) { c.Session.Eval = true },
		"over 80":      func(c *store.Change) { c.Receipt.Turn, c.Session.HighestTurn = 81, 81 },
		"call over 80": func(c *store.Change) { c.Calls[0].Turn = 81 },
		"append":       nil,
	} {
		id := func(n int) string { return fmt.Sprintf("KRN-%s-%d", name, n) }
		key := func(n int) string { return fmt.Sprintf("%s %d", name, n) }
		first := nextWithCalls(newSession(key(1)), id(1), 1)
		first.Calls[0].Conversation, first.Calls[0].Level = id(1), store.Level{AttackType: kernel.NoAttack}
		must(t, s.Commit(t.Context(), turn(first, id(1))))
		must(t, s.Commit(t.Context(), turn(derived(read(t, s, key(1)), key(2), id(2)), id(1))))
		branch := turn(derived(read(t, s, key(1)), key(3), id(3)), id(1))
		must(t, s.Commit(t.Context(), branch))
		again := turn(next(branch.Session, id(4)), id(1)).Receipt
		must(t, s.Append(t.Context(), again))
		wantTotal(name+" before", 6)

		from := read(t, s, key(2))
		from.Key, from.Version = key(5), 0
		last := nextWithCalls(from, id(5), 1)
		last.Calls[0].Conversation = id(1)
		if exclude == nil {
			over := turn(last, id(1)).Receipt
			over.Turn = 81
			must(t, s.Append(t.Context(), over))
		} else {
			exclude(&last)
			must(t, s.Commit(t.Context(), turn(last, id(1))))
		}
		wantTotal(name, 1)

		later := turn(derived(read(t, s, key(1)), key(6), id(6)), id(1)) // from before it was excluded
		must(t, s.Commit(t.Context(), later))
		again.ID = id(7)
		must(t, s.Append(t.Context(), again))
		must(t, s.Erase(t.Context(), key(1)))
		again.ID = id(8)
		must(t, s.Append(t.Context(), again))
		wantTotal(name+" later", 1)
	}
	bad := turn(next(newSession("k"), "KRN-bad"), "KRN-bad")
	bad.Receipt.SessionKey = ""
	wantKind(t, "a conversation without a session", s.Append(t.Context(), bad.Receipt), store.ErrInvalid)
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
