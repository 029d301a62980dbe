package bolt_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/store/bolt"
)

const day = 24 * time.Hour

// An aging store is one whose clock the test turns.
type aging struct {
	*bolt.Store
	t        *testing.T
	path     string
	now      time.Time
	receipts int
}

func newAging(t *testing.T) *aging {
	a := &aging{t: t, path: filepath.Join(t.TempDir(), "lex.db"), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	a.reopen()
	return a
}

// reopen takes up the file, as another process leaves it, or none.
func (a *aging) reopen() {
	a.Store = open(a.t, a.path, bolt.Options{Now: func() time.Time { return a.now }})
}

// turn commits a turn of the session with the key, which goes back to another one if it is new.
func (a *aging) turn(key, from string, aliases ...string) {
	a.t.Helper()
	session, err := a.Session(a.t.Context(), key)
	if errors.Is(err, store.ErrNotFound) {
		session, err = store.Session{Key: key, Secret: make([]byte, 32)}, nil
		if from != "" {
			of, err := a.Session(a.t.Context(), from)
			must(a.t, err)
			session.Family, session.Secret = of.Family, of.Secret
		}
	}
	must(a.t, err)
	a.receipts++
	must(a.t, a.Commit(a.t.Context(), store.Change{
		Receipt: store.Receipt{
			ID: fmt.Sprintf("KRN-%d", a.receipts), Kind: store.KindText, SessionKey: key, Turn: 1, MAfter: 0.25,
			Timestamp: a.now.UnixMilli(), JSON: fmt.Appendf(nil, `{"n":%d,"padding":%q}`, a.receipts, strings.Repeat("x", 3000)),
		},
		Session: session, Aliases: aliases,
	}))
}

// pass lets time go by, and then others take turns until the tree has taken in a few journals.
func (a *aging) pass(days int) {
	a.t.Helper()
	a.now = a.now.Add(time.Duration(days) * day)
	for n := range 600 {
		a.turn(fmt.Sprint("others/", n%50), "")
	}
}

// want checks which names lead to a session.
func (a *aging) want(there, gone []string) {
	a.t.Helper()
	for _, name := range there {
		if _, err := a.Session(a.t.Context(), name); err != nil {
			a.t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range gone {
		if _, err := a.Session(a.t.Context(), name); !errors.Is(err, store.ErrNotFound) {
			a.t.Errorf("%s: %v, want it forgotten", name, err)
		}
	}
}

// count returns how many entries a bucket of the closed file has.
func (a *aging) count(bucket string) (n int) {
	a.t.Helper()
	db, err := bbolt.Open(a.path, 0o600, &bbolt.Options{ReadOnly: true})
	must(a.t, err)
	must(a.t, db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(bucket)).ForEach(func(_, _ []byte) error { n++; return nil })
	}))
	must(a.t, db.Close())
	return n
}

// A session lives for thirty days after its last turn, and an alias after the turn that gave it,
// as in Redis. Receipts and statistics stay.
func TestSessionsAreForgotten(t *testing.T) {
	a := newAging(t)
	a.turn("once", "", "its answer")
	a.turn("often", "", "the first answer")
	a.turn("first state", "")
	a.turn("second state", "first state", "another name")
	a.pass(20)
	a.turn("often", "", "a later answer")
	a.turn("third state", "second state")
	a.want([]string{"once", "its answer", "often", "the first answer", "first state", "second state", "another name"}, nil)
	a.pass(11) // 31 days after the beginning
	a.want([]string{"often", "a later answer", "third state"},
		[]string{"once", "its answer", "the first answer", "first state", "second state", "another name"})
	must(t, a.Erase(t.Context(), "third state")) // what is left of the family goes as a whole
	a.want(nil, []string{"third state"})
	a.pass(31)
	a.want([]string{"others/0"}, []string{"often", "a later answer"})
	a.turn("once", "") // a session of the same name begins anew
	a.want([]string{"once"}, nil)

	stats, err := a.Stats(t.Context())
	must(t, err)
	if stats.TotalReceipts != a.receipts {
		t.Errorf("%d receipts are counted, want %d", stats.TotalReceipts, a.receipts)
	}
	for n := range a.receipts {
		if _, err := a.Receipt(t.Context(), fmt.Sprintf("KRN-%d", n+1)); err != nil {
			t.Errorf("receipt %d: %v", n+1, err)
		}
	}
	must(t, a.Close())
	if sessions, families, aliases := a.count("sessions"), a.count("families"), a.count("aliases"); sessions != 51 || families != 51 || aliases != 0 {
		t.Errorf("the file has %d sessions, %d members of families and %d aliases, want 51, 51 and none", sessions, families, aliases)
	}
}

// What was forgotten is so for a process that is killed, too.
func TestForgettingSurvivesAKill(t *testing.T) {
	a := newAging(t)
	a.turn("once", "", "its answer")
	a.pass(31)
	a.want(nil, []string{"once", "its answer"})
	a.path = killed(t, a.path)
	a.reopen()
	a.want([]string{"others/0"}, []string{"once", "its answer"})
}

// A turn that was begun with a session that is forgotten meanwhile conflicts, and so does one that
// goes back to it.
func TestTurnsOfForgottenSessionsConflict(t *testing.T) {
	a := newAging(t)
	a.turn("once", "")
	old, err := a.Session(t.Context(), "once")
	must(t, err)
	a.pass(31)
	for key, session := range map[string]store.Session{"once": old, "new": {Key: "new", Family: old.Family, Secret: old.Secret}} {
		err := a.Commit(t.Context(), store.Change{
			Receipt: store.Receipt{ID: "KRN-late-" + key, Kind: store.KindText, SessionKey: key, JSON: []byte("{}")}, Session: session,
		})
		if !errors.Is(err, store.ErrConflict) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// The statistics know a session that was forgotten: when it is excluded later, all of it goes.
func TestForgottenSessionsAreCounted(t *testing.T) {
	a := newAging(t)
	a.turn("once", "")
	a.turn("once", "")
	a.pass(31)
	a.want(nil, []string{"once"})
	before, err := a.Stats(t.Context())
	must(t, err)
	must(t, a.Append(t.Context(), store.Receipt{
		ID: "KRN-excluded", Kind: store.KindText, SessionKey: "once", Turn: store.MaxCountedTurn + 1, Timestamp: a.now.UnixMilli(), JSON: []byte("{}"),
	}))
	after, err := a.Stats(t.Context())
	must(t, err)
	if after.TotalReceipts != before.TotalReceipts-2 {
		t.Errorf("%d receipts are counted, want %d", after.TotalReceipts, before.TotalReceipts-2)
	}
}

// However many sessions come to their end at once, all are forgotten, a part with each commit.
func TestManySessionsAreForgotten(t *testing.T) {
	a := newAging(t)
	for n := range 1500 {
		a.turn(fmt.Sprint("many/", n), "", fmt.Sprint("answer/", n))
	}
	a.now = a.now.Add(31 * day)
	for range 12 {
		a.pass(0)
	}
	a.want([]string{"others/0"}, []string{"many/0", "many/750", "many/1499", "answer/1499"})
	must(t, a.Close())
	if n := a.count("families"); n != 50 {
		t.Errorf("the file has %d members of families, want 50", n)
	}
}

// A turn that was taken while the clock was ahead keeps no others from being forgotten, nor its
// own session once that time has come and gone.
func TestForgettingAfterAClockThatWasAhead(t *testing.T) {
	a := newAging(t)
	a.now = a.now.Add(365 * day)
	a.turn("ahead", "")
	must(t, a.Close())
	a.now = a.now.Add(-365 * day)
	a.reopen() // a process goes by the time that has passed, however its clock is set
	a.turn("once", "", "its answer")
	a.pass(31)
	a.want([]string{"ahead", "others/0"}, []string{"once", "its answer"})
	a.pass(366)
	a.want([]string{"others/0"}, []string{"ahead"})
}

// A session whose record is damaged stays where it is, and keeps nobody else from being forgotten
// or served.
func TestDamagedSessionsAreNotForgotten(t *testing.T) {
	a := newAging(t)
	for _, key := range []string{"a", "b", "c"} {
		a.turn(key, "")
	}
	must(t, a.Close())
	db, err := bbolt.Open(a.path, 0o600, nil)
	must(t, err)
	must(t, db.Update(func(tx *bbolt.Tx) error {
		sessions := tx.Bucket([]byte("sessions"))
		return sessions.Put([]byte("b"), append(sessions.Get([]byte("b"))[:8:8], "damaged"...))
	}))
	must(t, db.Close())
	a.reopen()
	a.pass(31)
	a.want([]string{"others/0"}, []string{"a", "c"})
	if _, err := a.Session(t.Context(), "b"); err == nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("the damaged one: %v", err)
	}
}
