package storetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// Run checks all clauses of the contract. open returns an empty store that
// nothing else uses until the subtest ends, and arranges for it to be closed.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for _, clause := range []struct {
		name  string
		check func(*testing.T, store.Store)
	}{
		{"commit is read back", commitIsReadBack},
		{"new session is not found", newSessionIsNotFound},
		{"stale version conflicts", staleVersionConflicts},
		{"repeated commit adds nothing", repeatedCommitAddsNothing},
		{"one committer wins each version", oneCommitterWinsEachVersion},
		{"many sessions commit at once", manySessionsCommitAtOnce},
		{"commit keeps no reference", commitKeepsNoReference},
		{"invalid turns are refused", invalidTurnsAreRefused},
		{"calls follow their turn", callsFollowTheirTurn},
		{"repeated commit adds no call", repeatedCommitAddsNoCall},
		{"conflicts write no call", conflictsWriteNoCall},
		{"invalid calls are refused", invalidCallsAreRefused},
		{"turns are listed whole", turnsAreListedWhole},
		{"commit keeps no reference to calls", commitKeepsNoReferenceToCalls},
		{"a turn's own receipt comes first", turnsOwnReceiptComesFirst},
		{"excluded sessions take their calls with them", excludedSessionsTakeTheirCalls},
		{"conversations are counted as one", conversationsAreCountedAsOne},
		{"append is all or none", appendIsAllOrNone},
		{"erase forgets the session only", eraseForgetsTheSessionOnly},
		{"erased versions never come back", erasedVersionsNeverComeBack},
		{"aliases lead to the session", aliasesLeadToTheSession},
		{"aliases are written with the session or not at all", aliasesAreAtomic},
		{"a session of its own wins over an alias", ownSessionsWinOverAliases},
		{"erase forgets the family by any name", eraseForgetsTheFamily},
		{"an erased family never comes back", erasedFamiliesNeverComeBack},
		{"erase leaves other families alone", eraseLeavesOtherFamilies},
		{"recent is newest first", recentIsNewestFirst},
		{"paging is exact during commits", pagingIsExactDuringCommits},
		{"foreign cursors are not found", foreignCursorsAreNotFound},
		{"summaries are those of recent", summariesAreThoseOfRecent},
		{"repeated writes add no summary", repeatedWritesAddNoSummary},
		{"summaries leave records alone", summariesLeaveRecordsAlone},
		{"receipts are numbered without a gap", receiptsAreNumbered},
		{"refused writes take no number", refusedWritesTakeNoNumber},
		{"log is oldest first", logIsOldestFirst},
		{"log is one of all", logIsOneOfAll},
		{"receipt by id", receiptByID},
		{"receipt of a turn", receiptOfATurn},
		{"append is idempotent", appendIsIdempotent},
		{"stats are those of a full scan", statsAreThoseOfAFullScan},
		{"stats of concurrent commits", statsOfConcurrentCommits},
		{"limit is exact under contention", limitIsExactUnderContention},
		{"window ends and begins anew", windowEndsAndBeginsAnew},
		{"window is cut to a shorter length", windowIsCutToAShorterLength},
		{"limit of nothing allows nothing", limitOfNothingAllowsNothing},
		{"refunded requests can be consumed again", refundedRequestsCanBeConsumed},
		{"named requests are counted once", namedRequestsAreCountedOnce},
		{"refunds are for their window", refundsAreForTheirWindow},
		{"consumed reads the count and counts nothing", consumedReadsTheCountOnly},
		{"keys are read back", keysAreReadBack},
		{"revocation stays", revocationStays},
		{"policies stay as they were", policiesStayAsTheyWere},
		{"latest benchmark stands", latestBenchmarkStands},
		{"check of a working store", checkOfAWorkingStore},
		{"ended context is respected", endedContextIsRespected},
		{"closed store is unavailable", closedStoreIsUnavailable},
	} {
		t.Run(clause.name, func(t *testing.T) { clause.check(t, open(t)) })
	}
}

// newSession returns a session that is not stored yet, with every field set.
func newSession(key string) store.Session {
	return store.Session{
		Key: key,
		State: kernel.Session{
			X: kernel.Point{0.2, 0.3, 0.5}, Z: kernel.Point{0.1, 0.2, 0.7}, CUSUM: 1.0 / 3, CUSUMSlow: 2.0 / 3,
			Carry: kernel.Point{0, 1e-300, 0.25}, Policy: "policy-hash",
		},
		Secret: []byte("32 bytes of secret: \x00\xff, 32 bytes"),
		Centre: []float32{0.25, -1.5, 1e-30, 0},
		Memory: []byte{0, 1, 2, 255},
	}
}

// next returns a turn of the session with the label that follows.
func next(s store.Session, id string) store.Change { return labelled(s, id, s.Turns+1) }

// labelled returns a turn of the session with the label. Its record names the
// receipt before it, and has an order of members, spaces and characters that an
// encoder would change.
func labelled(s store.Session, id string, label int) store.Change {
	r := newReceipt(id, s.Key, label)
	r.JSON = fmt.Appendf(nil, `{"prev": %q, "id":%q,"a":"<&>é😀", "n":1e0}`, s.Head, id)
	s.Head = id
	s.Turns++
	s.HighestTurn = max(s.HighestTurn, label)
	return store.Change{Receipt: r, Session: s}
}

func newReceipt(id, sessionKey string, label int) store.Receipt {
	return store.Receipt{
		ID: id, Kind: store.KindText, SessionKey: sessionKey, SessionID: "s_public", Turn: label,
		Timestamp: 1_790_000_000_000, Intervened: true, MAfter: 0.1234567891234, JSON: []byte(`{"id": "` + id + `"}`),
		Summary: summaryOf(id),
	}
}

// summaryOf is the summary that newReceipt gives a receipt, with bytes that an
// encoder would change.
func summaryOf(id string) []byte {
	return []byte(`{"n":1e0, "of": "` + id + "\", \"a\":\"<&>é😀\\n\"}\n")
}

// must stops the test at an error that the clause does not expect.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// wantKind checks that err is of the kind.
func wantKind(t *testing.T, what string, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: got error %v, want %v", what, err, kind)
	}
}

// all returns all receipts, newest first, by pages of the size.
func all(t *testing.T, s store.Store, size int) []store.Receipt {
	t.Helper()
	var list []store.Receipt
	for before := ""; ; before = list[len(list)-1].Cursor {
		page, err := s.Recent(t.Context(), before, size)
		must(t, err)
		list = append(list, page...)
		if len(page) < size {
			return list
		}
		if page[size-1].Cursor == before {
			t.Fatalf("the page after %s ends where it began", before)
		}
	}
}

// summaries returns all summaries, newest first, by pages of the size.
func summaries(t *testing.T, s store.Store, size int) []store.Summary {
	t.Helper()
	var list []store.Summary
	for before := ""; ; before = list[len(list)-1].Cursor {
		page, err := s.Summaries(t.Context(), before, size)
		must(t, err)
		list = append(list, page...)
		if len(page) < size {
			return list
		}
		if page[size-1].Cursor == before {
			t.Fatalf("the page after %s ends where it began", before)
		}
	}
}

// sameReceipt checks all fields but the cursor and the place in the log, which the store
// sets, and the summary, which is read on its own.
func sameReceipt(t *testing.T, got, want store.Receipt) {
	t.Helper()
	if got.Cursor == "" {
		t.Errorf("receipt %s has no cursor", got.ID)
	}
	if got.Seq == 0 || (got.LogPrev == "") != (got.Seq == 1) {
		t.Errorf("receipt %s has no place in the log: %d %q", got.ID, got.Seq, got.LogPrev)
	}
	if string(got.JSON) != string(want.JSON) {
		t.Errorf("record of %s changed: got %s, want %s", want.ID, got.JSON, want.JSON)
	}
	if got.Summary != nil {
		t.Errorf("receipt %s is read with its summary", got.ID)
	}
	got.Seq, got.LogPrev, want.Seq, want.LogPrev = 0, "", 0, ""
	got.Cursor, got.JSON, want.Cursor, want.JSON, want.Summary = "", nil, "", nil, nil
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("receipt: got %+v, want %+v", got, want)
	}
}
