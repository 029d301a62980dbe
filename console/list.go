package console

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/caddy-lex/lex/kernel"
)

// What [Filter.Show] may be besides a flag.
const (
	ShowAll     = "all"
	ShowNotable = "notable" // rows with a flag
)

// Shows are the values of [Filter.Show]. Refused shows what is blocked, too.
var Shows = []string{ShowAll, ShowNotable, Refused, WouldRefuse, Corrected, Failed, Uninspected}

// A Filter chooses rows. An empty member chooses all.
type Filter struct {
	Span        // of when turns began
	Show        string
	Reason      string // or invariant
	AttackType  string
	SessionID   string
	Mode        string
	Endpoint    string
	Gap         string
	MinSeverity float64 // over 0, only scored rows
}

// Valid reports whether each member has a value that rows can have, as far as that is known.
func (f *Filter) Valid() bool {
	return f.Span.Valid() && f.MinSeverity >= 0 && f.MinSeverity <= 1 &&
		(f.Show == "" || slices.Contains(Shows, f.Show)) &&
		(f.Mode == "" || f.Mode == string(kernel.Enforce) || f.Mode == string(kernel.Observe)) &&
		(f.Gap == "" || slices.Contains([]string{GapNone, GapPart, GapWhole}, f.Gap)) &&
		(f.Reason == "" || isCode(f.Reason)) && (f.AttackType == "" || isCode(f.AttackType))
}

// isCode reports whether a text is written as reasons and attack types are.
func isCode(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') })
}

// notable reports whether all rows that a filter chooses have a flag.
func (f *Filter) notable() bool { return f.Show != "" && f.Show != ShowAll }

// Matches reports whether the filter chooses a row.
func (f *Filter) Matches(r *Row) bool {
	return r.At >= f.From && r.At < f.To && f.shows(r) &&
		(f.Reason == "" || is(r.Reason, f.Reason) || is(r.Invariant, f.Reason)) &&
		(f.AttackType == "" || r.AttackType == f.AttackType) &&
		(f.SessionID == "" || r.SessionID == f.SessionID) &&
		(f.Mode == "" || r.Mode == f.Mode) &&
		(f.Endpoint == "" || r.Endpoint == f.Endpoint) &&
		(f.Gap == "" || r.Gap == f.Gap) &&
		(f.MinSeverity <= 0 || r.Scored && r.Severity >= f.MinSeverity)
}

func (f *Filter) shows(r *Row) bool {
	switch f.Show {
	case "", ShowAll:
		return true
	case ShowNotable:
		return len(r.Flags) > 0
	case Refused:
		return slices.Contains(r.Flags, Refused) || slices.Contains(r.Flags, Blocked)
	}
	return slices.Contains(r.Flags, f.Show)
}

func is(s *string, want string) bool { return s != nil && *s == want }

// passed reports whether no row behind this one can match: the list is in the order in
// which turns ended, and the filter is by when they began.
func (f *Filter) passed(r *Row) bool { return r.At < f.From-longestTurn.Milliseconds() }

// A List is a part of the rows that a filter chooses, newest first.
type List struct {
	Receipts []Row `json:"receipts"`
	// Scanned is how many rows were looked at.
	Scanned int `json:"scanned"`
	// Complete is false where the search stopped before it had as many as asked for or
	// came to the end.
	Complete bool `json:"complete"`
	// Next is where to go on, nil at the end.
	Next *string `json:"next"`
}

// The limits of one [Window.Receipts].
const (
	MaxListed = 1000

	maxScanned = 20_000
	scanTime   = 2 * time.Second
)

// Receipts lists up to limit rows, newest first, that are older than the one with the
// cursor before; "" begins with the newest. Rows with a flag come from memory as far as it
// reaches, all others from the store. An error of the store is returned as it is: a cursor
// that is none wraps [store.ErrNotFound].
func (w *Window) Receipts(ctx context.Context, f Filter, before string, limit int) (List, error) {
	s := search{Filter: f, limit: limit, before: before, List: List{Receipts: []Row{}, Complete: true}}
	if f.notable() {
		if err := w.use(ctx, f.From); err != nil {
			return List{}, err
		}
		if err := w.searchMemory(&s); err != nil {
			return List{}, err
		}
	}
	if err := w.searchStore(ctx, &s); err != nil {
		return List{}, err
	}
	return s.List, nil
}

// A search goes through rows until it has enough.
type search struct {
	Filter
	List
	limit  int
	before string // where to go on
	ended  bool
}

// look looks at the next row and reports whether to go on.
func (s *search) look(r *Row) bool {
	if s.ended = s.passed(r); s.ended {
		s.Next = nil
		return false
	}
	s.Scanned++
	s.before = r.Cursor
	if s.Matches(r) {
		s.Receipts = append(s.Receipts, r.kept())
	}
	if s.ended = len(s.Receipts) >= s.limit; s.ended {
		s.goOn()
	}
	return !s.ended
}

// goOn says where the next search begins.
func (s *search) goOn() {
	next := strings.Clone(s.before)
	s.Next = &next
}

// searchMemory searches the notable rows. The search goes on in the store where they end.
func (w *Window) searchMemory(s *search) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.unusable(); err != nil {
		return err
	}
	rows, found := w.notable.olderThan(s.before)
	if !found {
		return nil
	}
	for row := range rows {
		if !s.look(row) {
			return nil
		}
	}
	if w.notable.dropped {
		return nil
	}
	s.before, s.ended = w.oldest.cursor, w.whole
	return nil
}

// searchStore searches on in the store, within its limits.
func (w *Window) searchStore(ctx context.Context, s *search) error {
	began, scanned := w.now(), s.Scanned
	for !s.ended {
		if s.Scanned-scanned >= maxScanned || w.now().Sub(began) >= scanTime {
			s.Complete = false
			s.goOn()
			return nil
		}
		list, err := w.list(ctx, s.before, fullPage)
		if err != nil {
			return err
		}
		for i := range list {
			row := read(&list[i]).Row
			if !s.look(&row) {
				return nil
			}
		}
		s.ended = s.ended || len(list) < fullPage
	}
	return nil
}
