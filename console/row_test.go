package console_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-lex/lex/console"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// listed is the one row of a store with one receipt.
func listed(t *testing.T, e store.Receipt) console.Row {
	t.Helper()
	l := &list{}
	l.add(e)
	found, err := newWindow(t, l).Receipts(t.Context(), console.Filter{Span: allTime}, "", 1)
	if err != nil || len(found.Receipts) != 1 {
		t.Fatal(found, err)
	}
	return found.Receipts[0]
}

func TestVerdicts(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(r *kernel.Receipt)
		verdict string
		flags   []string
		reason  string
	}{
		"plain": {func(*kernel.Receipt) {}, console.Answered, nil, ""},
		"refused": {func(r *kernel.Receipt) {
			r.Refused, r.Outcome, r.Reasons = true, kernel.Refused, []kernel.Reason{"slow_drip", "capitulation"}
		}, console.Refused, []string{console.Refused}, "slow_drip"},
		"refused, said an older version in the outcome alone": {func(r *kernel.Receipt) { r.Outcome = kernel.Refused }, console.Refused, []string{console.Refused}, ""},
		"refused and the client left":                         {func(r *kernel.Receipt) { r.Refused, r.Outcome = true, kernel.ClientGone }, console.Refused, []string{console.Refused, console.Failed}, ""},
		"observed": {func(r *kernel.Receipt) {
			r.Mode, r.WouldRefuse, r.GovernorMode, r.Intervened = kernel.Observe, true, kernel.GovernorObserve, true
		}, console.WouldRefuse, []string{console.WouldRefuse}, ""},
		"observed, with a correction that was not made": {func(r *kernel.Receipt) {
			r.Mode, r.GovernorMode, r.Intervened = kernel.Observe, kernel.GovernorObserve, true
		}, console.Answered, nil, ""},
		"corrected, with an image": {func(r *kernel.Receipt) {
			r.GovernorMode, r.Coverage.Skipped = kernel.GovernorCorrect, []kernel.SkippedPart{{Part: "request", Why: "image", Bytes: 1}}
		}, console.Corrected, []string{console.Corrected, console.Uninspected}, ""},
		"failed": {func(r *kernel.Receipt) { r.Outcome = kernel.ProviderFailed }, console.Failed, []string{console.Failed}, ""},
		"blocked": {func(r *kernel.Receipt) {
			r.Tool, r.Refused, r.Outcome, r.Invariant = "bash", true, kernel.Refused, "destructive_command"
		}, console.Blocked, []string{console.Blocked}, ""},
		"blocked by a rule": {func(r *kernel.Receipt) {
			r.Tool, r.Refused, r.Outcome, r.Rule = "bash", true, kernel.Refused, "no_drops"
		}, console.Blocked, []string{console.Blocked}, "operator_policy"},
	} {
		r := answered(1)
		c.change(&r)
		row := listed(t, entry(t, r))
		if row.Verdict != c.verdict || !slices.Equal(row.Flags, c.flags) || row.Flags == nil {
			t.Errorf("%s: %s %v", name, row.Verdict, row.Flags)
		}
		if row.Reason == nil && c.reason != "" || row.Reason != nil && *row.Reason != c.reason {
			t.Errorf("%s: reason %v", name, row.Reason)
		}
	}
}

// The rows of the table at gapsOf.
func TestGaps(t *testing.T) {
	skipped := func(part, why string) func(r *kernel.Receipt) {
		return func(r *kernel.Receipt) {
			r.Coverage.Skipped = []kernel.SkippedPart{{Part: part, Why: why, Bytes: 3}}
		}
	}
	detectors := func(outcomes ...kernel.DetectorOutcome) func(r *kernel.Receipt) {
		return func(r *kernel.Receipt) {
			r.Coverage.Detectors = nil
			for _, o := range outcomes {
				r.Coverage.Detectors = append(r.Coverage.Detectors, kernel.DetectorRun{Name: "local", Outcome: o, Why: "timeout"})
			}
		}
	}
	blocked := func(change func(r *kernel.Receipt)) func(r *kernel.Receipt) {
		return func(r *kernel.Receipt) {
			change(r)
			r.Refused, r.Outcome, r.DeniedBy = true, kernel.Refused, "unknown_block"
		}
	}
	unknown := func(r *kernel.Receipt) {
		r.Coverage.Unknown = []kernel.SkippedPart{{Part: "request.sha256:00ff", Why: "not known to the dialect", Bytes: 3}}
	}
	// ran has detectors that are clean, and the others that failed.
	ran := func(clean, failed string) func(r *kernel.Receipt) {
		return func(r *kernel.Receipt) {
			r.Coverage.Detectors = nil
			for _, name := range strings.Fields(clean) {
				r.Coverage.Detectors = append(r.Coverage.Detectors, kernel.DetectorRun{Name: name, Outcome: kernel.Clean})
			}
			for _, name := range strings.Fields(failed) {
				r.Coverage.Detectors = append(r.Coverage.Detectors, kernel.DetectorRun{Name: name, Outcome: kernel.DetectorFailed, Why: "timeout"})
			}
		}
	}
	failed := func(name string) []console.Gap { return []console.Gap{{Part: "detector " + name, Why: "timeout"}} }
	beyond := func(detectors func(r *kernel.Receipt), name string) func(r *kernel.Receipt) {
		return func(r *kernel.Receipt) {
			skipped("request", "beyond what "+name+" reads")(r)
			detectors(r)
		}
	}
	observed := func(r *kernel.Receipt) {
		detectors(kernel.NotRun)(r)
		r.Mode, r.WouldRefuse, r.DeniedBy = kernel.Observe, true, "unknown_block"
	}
	for name, c := range map[string]struct {
		change func(r *kernel.Receipt)
		gap    string
		gaps   []console.Gap
		scored bool
	}{
		"clean":                 {detectors(kernel.Clean), "none", nil, true},
		"flagged":               {detectors(kernel.Flagged), "none", nil, true},
		"judge not run":         {detectors(kernel.Flagged, kernel.NotRun), "none", nil, true},
		"guard":                 {ran("local", "guard_g.prompt guard_g.tool_result"), "none", nil, true},
		"guard, answer":         {ran("local local_judge", "guard_g.answer"), "none", nil, true},
		"only guard, answer":    {ran("local", "guard_g.answer"), "part", failed("guard_g.answer"), true},
		"only guard":            {ran("local_judge", "guard_g.prompt"), "part", failed("guard_g.prompt"), true},
		"only guard, tool":      {ran("local_judge", "guard_g.tool_result"), "part", failed("guard_g.tool_result"), true},
		"judge":                 {ran("local local_judge", "openai_judge"), "none", nil, true},
		"only judge":            {ran("local", "openai_judge"), "part", failed("openai_judge"), true},
		"embedder":              {ran("local", "jina_embedder"), "none", nil, true},
		"only embedder":         {ran("local_judge", "jina_embedder"), "part", failed("jina_embedder"), true},
		"local":                 {ran("local_judge guard_g.prompt", "local"), "part", failed("local"), true},
		"nobody knows what":     {ran("local local_judge", "mystery"), "part", failed("mystery"), true},
		"beyond a guard":        {beyond(ran("local guard_g.prompt", ""), "guard_g.prompt"), "none", nil, true},
		"beyond the only guard": {beyond(ran("guard_g.prompt", ""), "guard_g.prompt"), "part", []console.Gap{{Part: "request", Why: "beyond what guard_g.prompt reads", Bytes: 3}}, true},
		"beyond the judge":      {beyond(ran("local local_judge", ""), "the judge"), "part", []console.Gap{{Part: "request", Why: "beyond what the judge reads", Bytes: 3}}, true},
		"all failed":            {detectors(kernel.DetectorFailed), "whole", []console.Gap{{Part: "detector local", Why: "timeout"}, {Part: "turn", Why: "no detector ran"}}, false},
		"none":                  {detectors(), "whole", []console.Gap{{Part: "turn", Why: "no detector ran"}}, false},
		"not run":               {detectors(kernel.NotRun), "whole", []console.Gap{{Part: "turn", Why: "no detector ran"}}, false},
		"unknown":               {unknown, "part", []console.Gap{{Part: "request.*", Why: "not known to the dialect", Bytes: 3}}, true},
		"image":                 {skipped("request.messages.0.content.12.image_url", "image"), "part", []console.Gap{{Part: "request.messages.*.content.*.image_url", Why: "image", Bytes: 3}}, true},
		"places that touch":     {skipped("request.0.1.2", "image"), "part", []console.Gap{{Part: "request.*.*.*", Why: "image", Bytes: 3}}, true},
		"more":                  {skipped("17 more", "beyond what a receipt lists"), "part", []console.Gap{{Part: "more", Why: "beyond what a receipt lists", Bytes: 3}}, true},
		"baseline":              {skipped("response.raw_output", "ungoverned baseline"), "none", nil, true},
		"provider's error":      {skipped("response", "the provider's error"), "none", nil, true},
		"no text":               {skipped("response", "carries no text of a model"), "none", nil, true},
		"blocked unread":        {blocked(detectors(kernel.NotRun)), "none", nil, true},
		"blocked unknown":       {blocked(unknown), "none", nil, true},
		"blocked, image":        {blocked(skipped("request", "image")), "part", []console.Gap{{Part: "request", Why: "image", Bytes: 3}}, true},
		"would be blocked":      {observed, "whole", []console.Gap{{Part: "turn", Why: "no detector ran"}}, false},
		"six parts": {func(r *kernel.Receipt) {
			r.Coverage.Skipped = slices.Repeat([]kernel.SkippedPart{{Part: "p", Why: "image"}}, 6)
		}, "part", slices.Repeat([]console.Gap{{Part: "p", Why: "image"}}, 5), true},
	} {
		r := answered(1)
		c.change(&r)
		row := listed(t, entry(t, r))
		if row.Gap != c.gap || !slices.Equal(row.Gaps, c.gaps) || row.Gaps == nil || row.Scored != c.scored {
			t.Errorf("%s: %s %v, scored %v", name, row.Gap, row.Gaps, row.Scored)
		}
		if slices.Contains(row.Flags, console.Uninspected) != (c.gap != "none") {
			t.Errorf("%s: flags %v", name, row.Flags)
		}
	}
}

// A detector that gave no verdict, or none on the whole text, is named though another one
// read what it was asked about.
func TestRowsNameWhoGaveNoVerdict(t *testing.T) {
	r := answered(1)
	r.Coverage.Detectors = append(r.Coverage.Detectors,
		kernel.DetectorRun{Name: "guard_g.prompt", Outcome: kernel.DetectorFailed, Why: "unreachable"},
		kernel.DetectorRun{Name: "guard_g.answer", Outcome: kernel.Flagged, Why: "timeout"},
		kernel.DetectorRun{Name: "guard_g.tool_result", Outcome: kernel.NotRun, Why: "over its budget"})
	want := []console.NoVerdict{{Detector: "guard_g.prompt", Why: "unreachable"}, {Detector: "guard_g.answer", Why: "timeout"}}
	if row := listed(t, entry(t, r)); row.Verdict != console.Answered || row.Gap != console.GapNone || !slices.Equal(row.NoVerdicts, want) {
		t.Errorf("%s, gap %s: %v", row.Verdict, row.Gap, row.NoVerdicts)
	}
	if row := listed(t, entry(t, answered(1))); row.NoVerdicts == nil || len(row.NoVerdicts) != 0 {
		t.Errorf("all gave one: %v", row.NoVerdicts)
	}
}

func TestScored(t *testing.T) {
	unassessed := answered(1)
	unassessed.Unassessed = true
	blocked := unassessed
	blocked.Refused, blocked.Outcome, blocked.DeniedBy = true, kernel.Refused, "unknown_block"
	call := answered(1)
	call.Tool = "bash"
	pressing := call
	pressing.Scores.HarmRequest, pressing.Invariant = 0.9, "destructive_command"
	for name, c := range map[string]struct {
		receipt kernel.Receipt
		want    bool
	}{"turn": {answered(1), true}, "unassessed": {unassessed, false}, "blocked": {blocked, false}, "call": {call, false}, "pressing call": {pressing, true}} {
		if got := listed(t, entry(t, c.receipt)).Scored; got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A record that cannot be read is a row that says so, and ends no list.
func TestBrokenRecord(t *testing.T) {
	e := entry(t, answered(5))
	for _, record := range []string{"", "{", `{"id":7}`, "null", strings.Repeat("[", 10_000)} {
		e.JSON = []byte(record)
		row := listed(t, e)
		if row.ID != e.ID || row.At != 5 || row.Gap != "whole" || row.Scored || row.Verdict != console.Uninspected {
			t.Errorf("%.20s: %+v", record, row)
		}
	}
}

// A row has the texts of strangers as they are, as JSON that no browser takes for markup is
// for whoever writes it.
func TestRowKeepsTexts(t *testing.T) {
	r := answered(5)
	r.SessionID, r.Model = "</script>\u202e"+strings.Repeat("s", 8000), "m\x00\n"
	row := listed(t, entry(t, r))
	if row.SessionID != r.SessionID || row.Model != r.Model {
		t.Errorf("%+v", row)
	}
	text, err := json.Marshal(row)
	if err != nil || strings.Contains(string(text), "\n") {
		t.Error(err)
	}
}

// Whatever stands in a store, a row comes of it, and the counters take it.
func FuzzRecord(f *testing.F) {
	for _, at := range []int64{0, 5, -1, math.MinInt64, math.MaxInt64} {
		e := entry(f, answered(1))
		f.Add(e.ID, bytes.Replace(e.JSON, []byte(`"timestamp":1,`), fmt.Appendf(nil, `"timestamp":%d,`, at), 1), at)
	}
	f.Add("KRN-1", []byte("{"), int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, id string, record []byte, at int64) {
		row := listed(t, store.Receipt{ID: id, Kind: store.KindText, JSON: record, Timestamp: at})
		if row.ID != id || row.At < 0 || row.At >= console.MaxTime || row.Verdict == "" || row.Gap != console.GapNone && !slices.Contains(row.Flags, console.Uninspected) {
			t.Errorf("%+v", row)
		}
		l := &list{}
		l.add(store.Receipt{ID: id, Kind: store.KindText, JSON: record, Timestamp: at})
		counts, err := newWindow(t, l).Counts(t.Context(), console.Span{From: row.At, To: row.At + 1}, 1000)
		if (err != nil || counts.Turns[0] != 1) && time.Since(time.UnixMilli(row.At)) < 23*time.Hour {
			t.Errorf("it is not counted: %+v %v", counts, err)
		}
	})
}
