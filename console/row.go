package console

import (
	"strings"
	"unique"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// What became of a turn, the gravest first. A row has one as its verdict, and all that hold
// as its flags; a turn that is only answered has no flag.
const (
	Blocked     = "blocked"
	Refused     = "refused"
	WouldRefuse = "would_refuse"
	Failed      = "failed"
	Corrected   = "corrected"
	Uninspected = "uninspected"
	Answered    = "answered"
)

// A Row is a receipt as the console lists it.
type Row struct {
	ID        string   `json:"id"`
	Cursor    string   `json:"cursor"` // the place in the store's list
	At        int64    `json:"at"`     // when the turn began
	Kind      string   `json:"kind"`   // KRN or TCR
	SessionID string   `json:"session_id"`
	Turn      int      `json:"turn"`
	Mode      string   `json:"mode"`
	Endpoint  string   `json:"endpoint"`
	Dialect   string   `json:"dialect"`
	Model     string   `json:"model"`
	Outcome   string   `json:"outcome"`
	Verdict   string   `json:"verdict"`
	Flags     []string `json:"flags"`
	// Reason is the primary reason of a refusal, enforced or not; of a tool call
	// operator_policy where an operator's rule denies it. Nil without.
	Reason *string `json:"reason"`
	// Invariant is what a tool call breaks. Nil without.
	Invariant *string `json:"invariant"`
	// DeniedBy is the rule that refuses the turn whatever its texts are. Nil without.
	DeniedBy   *string `json:"denied_by"`
	AttackType string  `json:"attack_type"`
	Severity   float64 `json:"severity"`
	MBefore    float64 `json:"m_before"`
	MAfter     float64 `json:"m_after"`
	// Scored: a detector gave scores, so severity and margin mean something.
	Scored bool `json:"scored"`
	// Gap is none, part or whole. Gaps are the first of its parts, at most 5.
	Gap  string `json:"gap"`
	Gaps []Gap  `json:"gaps"`
	// NoVerdicts are the detectors that failed, whether others read the parts or not.
	NoVerdicts []NoVerdict `json:"no_verdicts"`
	// Prev is the id of the session's receipt before, nil for the first.
	Prev   *string `json:"prev"`
	Policy string  `json:"policy"`
}

// maxGaps is how many gaps a row lists. All of them are in the receipt.
const maxGaps = 5

// A reading is a row with what its coverage adds to the counts.
type reading struct {
	Row
	place     place
	unread    []unread
	detectors []kernel.DetectorRun
}

// read reads a receipt of a store.
func read(entry *store.Receipt) reading {
	r, whole := parse(entry)
	return readingOf(entry, &r, whole)
}

// parse returns the record of a receipt, and whether it can be read.
func parse(entry *store.Receipt) (r kernel.Receipt, whole bool) {
	r, err := kernel.ParseReceipt(entry.JSON)
	return r, err == nil && r.ID == entry.ID && isTime(r.Timestamp)
}

// readingOf makes the row of a receipt. A record that cannot be read makes one that says so:
// it was written, and nobody can say what became of it.
func readingOf(entry *store.Receipt, r *kernel.Receipt, whole bool) reading {
	at := placeOf(entry)
	if !whole {
		broken := unread{Gap{"record", "the record cannot be read", len(entry.JSON)}, ClassGap}
		return reading{place: at, unread: []unread{broken}, Row: Row{
			ID: entry.ID, Cursor: entry.Cursor, At: min(max(entry.Timestamp, 0), MaxTime-1), Kind: entry.Kind, SessionID: entry.SessionID, Turn: entry.Turn,
			Verdict: Uninspected, Flags: []string{Uninspected}, AttackType: string(kernel.NoAttack), Gap: GapWhole, Gaps: []Gap{broken.Gap}, NoVerdicts: []NoVerdict{},
		}}
	}
	return reading{place: at, Row: newRow(entry.Cursor, r)}.withCoverage(r)
}

// isTime reports whether a time can be counted. Every receipt that Lex writes has one.
func isTime(ms int64) bool { return ms >= 0 && ms < MaxTime }

func newRow(cursor string, r *kernel.Receipt) Row {
	row := Row{
		ID: r.ID, Cursor: cursor, At: r.Timestamp, Kind: store.KindText, SessionID: r.SessionID, Turn: r.Turn,
		Mode: string(r.Mode), Endpoint: r.Endpoint, Dialect: r.Dialect, Model: r.Model, Outcome: string(r.Outcome),
		Invariant: orNull(r.Invariant), DeniedBy: orNull(r.DeniedBy), AttackType: string(r.AttackType), Severity: r.Severity,
		MBefore: r.MBefore, MAfter: r.MAfter, Scored: !r.Unassessed, Prev: orNull(kernel.IDOf(r.Prev)), Policy: r.Policy, Gaps: []Gap{}, NoVerdicts: NoVerdictsOf(r),
	}
	if len(r.Reasons) > 0 {
		row.Reason = orNull(string(r.Reasons[0]))
	}
	if r.Tool != "" {
		row.Kind, row.Scored = store.KindToolCall, r.Scores != kernel.Scores{}
	}
	if r.Tool != "" && r.Rule != "" {
		row.Reason, row.DeniedBy = orNull(string(kernel.OperatorPolicy)), orNull(r.Rule)
	}
	return row
}

// withCoverage adds what the coverage says, and then the verdict.
func (e reading) withCoverage(r *kernel.Receipt) reading {
	e.Gap, e.unread = gapsOf(r)
	e.detectors = r.Coverage.Detectors
	for _, p := range e.unread {
		if p.class == ClassGap && len(e.Gaps) < maxGaps {
			e.Gaps = append(e.Gaps, p.Gap)
		}
	}
	e.Scored = e.Scored && e.Gap != GapWhole
	e.Flags = flags(r, e.Gap)
	e.Verdict = verdict(e.Flags)
	return e
}

// flags finds all that became of a turn, the gravest first:
//
//	blocked       a tool call that was denied
//	refused       a turn that was refused, or ended so for the client
//	would_refuse  the mode observe kept it from being refused or blocked
//	failed        it ended neither answered nor refused
//	corrected     the governor corrected the state (in enforce: observe corrects nothing)
//	uninspected   a part of it is a gap, or the whole
func flags(r *kernel.Receipt, gap string) []string {
	found := []string{}
	for _, f := range []struct {
		name  string
		holds bool
	}{
		{Blocked, r.Tool != "" && r.Refused},
		{Refused, r.Tool == "" && (r.Refused || r.Outcome == kernel.Refused)},
		{WouldRefuse, r.WouldRefuse},
		{Failed, r.Outcome != kernel.Answered && r.Outcome != kernel.Refused},
		{Corrected, r.GovernorMode == kernel.GovernorCorrect},
		{Uninspected, gap != GapNone},
	} {
		if f.holds {
			found = append(found, f.name)
		}
	}
	return found
}

// verdict is the gravest flag.
func verdict(flags []string) string {
	if len(flags) == 0 {
		return Answered
	}
	return flags[0]
}

// orNull is null in JSON for an empty text.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// kept returns the row with texts of its own: those of a receipt are parts of its record,
// which would stay in memory with them. Texts that many rows have are kept once.
func (r Row) kept() Row {
	for _, s := range []*string{&r.ID, &r.Cursor, &r.SessionID} {
		*s = strings.Clone(*s)
	}
	for _, s := range []*string{&r.Mode, &r.Endpoint, &r.Dialect, &r.Model, &r.Outcome, &r.AttackType, &r.Policy} {
		*s = shared(*s)
	}
	for _, s := range []**string{&r.Reason, &r.Invariant, &r.DeniedBy, &r.Prev} {
		if *s != nil {
			text := shared(**s)
			*s = &text
		}
	}
	gaps := make([]Gap, len(r.Gaps))
	for i, g := range r.Gaps {
		gaps[i] = Gap{shared(g.Part), shared(g.Why), g.Bytes}
	}
	r.Gaps = gaps
	silent := make([]NoVerdict, len(r.NoVerdicts))
	for i, n := range r.NoVerdicts {
		silent[i] = NoVerdict{shared(n.Detector), shared(n.Why)}
	}
	r.NoVerdicts = silent
	return r
}

// shared returns the one copy of a text.
func shared(s string) string { return unique.Make(s).Value() }

func (p place) kept() place { return place{strings.Clone(p.cursor), p.seq, strings.Clone(p.id)} }
