package console_test

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-lex/lex/console"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// What the window counts is what a scan of all receipts counts, in both stores, while it
// fills and when more comes.
func TestCountsEqualAScan(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			rnd := rand.New(rand.NewPCG(1, 2))
			now := time.Now().UnixMilli()
			var all []kernel.Receipt
			more := func(n int) (last string) {
				var written []store.Receipt
				for range n {
					r := someReceipt(rnd, now)
					e := entry(t, r)
					r.ID = e.ID
					all, written = append(all, r), append(written, e)
				}
				write(t, s, written)
				return written[n-1].ID
			}
			more(1500) // than the first page
			w := newWindow(t, s)
			f, err := w.Follow(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			untilWhole(t, w, now-7_200_000)
			compareWithScan(t, w, rnd, now, all)
			awaitRow(t, f, more(300))
			compareWithScan(t, w, rnd, now, all)
		})
	}
}

// untilWhole waits until the window has everything from a time on. Every call waits for a
// part of it.
func untilWhole(t testing.TB, w *console.Window, from int64) {
	t.Helper()
	for {
		c, err := w.Counts(t.Context(), console.Span{From: from, To: from + 1}, 1000)
		if err != nil || t.Context().Err() != nil {
			t.Fatal(err)
		}
		if c.Since <= from {
			return
		}
	}
}

// awaitRow reads on until a row comes.
func awaitRow(t *testing.T, f *console.Follower, id string) {
	t.Helper()
	for {
		news, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(news.Rows, func(r console.Row) bool { return r.ID == id }) {
			return
		}
	}
}

func compareWithScan(t *testing.T, w *console.Window, rnd *rand.Rand, now int64, all []kernel.Receipt) {
	t.Helper()
	for range 30 {
		from := now - rnd.Int64N(7_200_000)
		span := console.Span{From: from, To: from + 1 + rnd.Int64N(3_600_000)}
		step := 1000 * (1 + rnd.Int64N(120))
		for !console.ValidStep(span, step) {
			step += 7000
		}
		got, err := w.Counts(t.Context(), span, step)
		if err != nil {
			t.Fatal(err)
		}
		if want := scan(span, step, all); !reflect.DeepEqual(withoutClock(got), withoutClock(want)) {
			t.Fatalf("counts of %v by %d:\n got %+v\nwant %+v", span, step, got, want)
		}
		coverage, err := w.Coverage(t.Context(), span)
		if err != nil {
			t.Fatal(err)
		}
		if want := scanCoverage(span, all); !reflect.DeepEqual(sortedCoverage(coverage), sortedCoverage(want)) {
			t.Fatalf("coverage of %v:\n got %+v\nwant %+v", span, coverage, want)
		}
	}
}

// withoutClock leaves out what depends on the clock.
func withoutClock(c console.Counts) console.Counts {
	c.Since, c.ProvisionalFrom = 0, 0
	return c
}

func sortedCoverage(c console.Coverage) console.Coverage {
	c.Since = 0
	slices.SortFunc(c.Parts, func(a, b console.PartCount) int { return strings.Compare(a.Part+a.Why, b.Part+b.Why) })
	slices.SortFunc(c.Detectors, func(a, b console.DetectorCount) int { return strings.Compare(a.Name, b.Name) })
	return c
}

// scan counts receipts by looking at each.
func scan(span console.Span, step int64, all []kernel.Receipt) console.Counts {
	from, to := span.From/1000*1000, (span.To+999)/1000*1000
	c := console.Counts{From: from, To: to, Step: step, Reasons: map[string]int{}, AttackTypes: map[string]int{}}
	lists := []*[]int{&c.Turns, &c.Refused, &c.WouldRefuse, &c.Corrected, &c.Gaps, &c.Failed}
	for at := from; at < to; at += step {
		c.At = append(c.At, at)
		for _, l := range lists {
			*l = append(*l, 0)
		}
	}
	before := []*int{&c.Before.Turns, &c.Before.Refused, &c.Before.WouldRefuse, &c.Before.Corrected, &c.Before.Gaps, &c.Before.Failed}
	for _, r := range all {
		counted := []bool{
			true, r.Refused || r.Outcome == kernel.Refused, r.WouldRefuse, r.GovernorMode == "correct", uninspected(r) > 0,
			!slices.Contains([]string{"answered", "refused"}, string(r.Outcome)),
		}
		for i, holds := range counted {
			switch {
			case !holds:
			case r.Timestamp >= from && r.Timestamp < to:
				(*lists[i])[(r.Timestamp-from)/step]++
			case r.Timestamp >= 2*from-to && r.Timestamp < from:
				*before[i]++
			}
		}
		if r.Timestamp < from || r.Timestamp >= to {
			continue
		}
		if r.AttackType != "none" {
			c.AttackTypes[string(r.AttackType)]++
		}
		if (r.Refused || r.WouldRefuse) && len(r.Reasons) > 0 {
			c.Reasons[string(r.Reasons[0])]++
		}
		if r.Refused && r.Invariant != "" {
			c.Reasons[r.Invariant]++
		}
	}
	return c
}

// uninspected says how much of a receipt of someReceipt nobody read: 0, 1 in part, 2 all.
func uninspected(r kernel.Receipt) int {
	switch {
	case r.Unassessed:
		return 2
	case len(r.Coverage.Skipped)+len(r.Coverage.Unknown) > 0:
		return 1
	}
	return 0
}

var digits = regexp.MustCompile(`\.(\d+|sha256:\w+)`)

func scanCoverage(span console.Span, all []kernel.Receipt) console.Coverage {
	c := console.Coverage{From: span.From / 60_000 * 60_000, To: (span.To + 59_999) / 60_000 * 60_000, Parts: []console.PartCount{}, Detectors: []console.DetectorCount{}}
	parts, detectors := map[string]*console.PartCount{}, map[string]*console.DetectorCount{}
	for _, r := range all {
		if r.Timestamp < c.From || r.Timestamp >= c.To {
			continue
		}
		c.Turns++
		if uninspected(r) > 0 {
			c.Gaps++
		}
		unread := slices.Concat(r.Coverage.Skipped, r.Coverage.Unknown)
		if r.Unassessed {
			c.Whole++
			unread = append(unread, kernel.SkippedPart{Part: "turn", Why: "no detector ran"})
		}
		for _, p := range unread {
			part := digits.ReplaceAllString(p.Part, ".*")
			sum := parts[part]
			if sum == nil {
				sum = &console.PartCount{Part: part, Why: p.Why, Class: console.ClassGap}
				parts[part] = sum
			}
			sum.Turns++
			sum.Bytes += p.Bytes
			if at := sum.Latest.At; r.Timestamp > at || r.Timestamp == at && r.ID > sum.Latest.ID {
				sum.Latest = console.Place{ID: r.ID, At: r.Timestamp}
			}
		}
		for _, d := range r.Coverage.Detectors {
			if detectors[d.Name] == nil {
				detectors[d.Name] = &console.DetectorCount{Name: d.Name}
			}
			if d.Outcome == kernel.NotRun {
				detectors[d.Name].NotRun++
			} else {
				detectors[d.Name].Clean++
			}
		}
	}
	for _, p := range parts {
		c.Parts = append(c.Parts, *p)
	}
	for _, name := range slices.Sorted(maps.Keys(detectors)) {
		c.Detectors = append(c.Detectors, *detectors[name])
	}
	return c
}

// A turn counts once for a part that it lists twice, and what callers make up is counted together
// once a minute has a hundred kinds: nothing of it is lost.
func TestCoverageOfManyParts(t *testing.T) {
	inBubble(t, func(t *testing.T, l *list, w *console.Window) {
		now := time.Now()
		twice := answered(now.UnixMilli())
		for range 2 {
			twice.Coverage.Skipped = append(twice.Coverage.Skipped, kernel.SkippedPart{Part: "request.image", Why: "an image", Bytes: 5})
		}
		l.add(entry(t, twice))
		const kinds = 150
		for i := range kinds {
			r := answered(now.UnixMilli())
			r.Coverage.Skipped = []kernel.SkippedPart{{Part: "request." + strings.Repeat("a", i+1), Why: "not known", Bytes: 1}}
			l.add(entry(t, r))
		}
		l.add(entry(t, twice)) // of a kind that was there before
		span := console.Span{From: now.Add(-time.Hour).UnixMilli(), To: now.Add(time.Minute).UnixMilli()}
		untilWhole(t, w, span.From)
		c, err := w.Coverage(t.Context(), span)
		if err != nil {
			t.Fatal(err)
		}
		turns, others := 0, 0
		for _, p := range c.Parts {
			turns += p.Turns
			switch p.Part {
			case "others":
				others = p.Turns
			case "request.image":
				if p.Turns != 2 || p.Bytes != 20 {
					t.Errorf("listed twice: %+v", p)
				}
			}
		}
		if !slices.IsSortedFunc(c.Parts, func(a, b console.PartCount) int { return b.Turns - a.Turns }) {
			t.Errorf("the parts are not listed by their turns: %v", c.Parts)
		}
		if turns != kinds+2 || others != kinds+1-100 {
			t.Errorf("%d turns, %d of them of others, in %d parts", turns, others, len(c.Parts))
		}
	})
}

// What became of each detector is counted, over minutes that are looked at together.
func TestCoverageOfDetectors(t *testing.T) {
	inBubble(t, func(t *testing.T, l *list, w *console.Window) {
		now := time.Now()
		outcomes := []kernel.DetectorOutcome{
			kernel.Clean, kernel.Flagged, kernel.Flagged, kernel.DetectorFailed, kernel.DetectorFailed, kernel.DetectorFailed,
			kernel.NotRun, kernel.NotRun, kernel.NotRun, kernel.NotRun,
		}
		for i := range 2 {
			for _, outcome := range outcomes {
				r := answered(now.Add(time.Duration(i-1) * time.Minute).UnixMilli())
				r.Coverage.Detectors = []kernel.DetectorRun{{Name: "guard", Outcome: outcome}}
				if outcome == kernel.NotRun || outcome == kernel.DetectorFailed {
					r.Coverage.Detectors[0].Why = "timeout"
				}
				l.add(entry(t, r))
			}
		}
		span := console.Span{From: now.Add(-time.Hour).UnixMilli(), To: now.Add(time.Minute).UnixMilli()}
		untilWhole(t, w, span.From)
		c, err := w.Coverage(t.Context(), span)
		if want := (console.DetectorCount{Name: "guard", Clean: 2, Flagged: 4, Failed: 6, NotRun: 8}); err != nil || len(c.Detectors) != 1 || c.Detectors[0] != want {
			t.Errorf("%v %+v", err, c.Detectors)
		}
	})
}

func TestValidStep(t *testing.T) {
	for _, c := range []struct {
		span console.Span
		step int64
		want bool
	}{
		{console.Span{From: 0, To: 500_000}, 1000, true},
		{console.Span{From: 1, To: 500_000}, 1000, true},
		{console.Span{From: 0, To: 500_001}, 1000, false},
		{console.Span{From: 999, To: 500_001}, 1000, false},
		{console.Span{From: 0, To: console.MaxTime}, 1 << 50, false}, // not whole seconds
		{console.Span{From: 0, To: console.MaxTime}, 1_000_000_000_000_000, true},
		{console.Span{From: 0, To: 1}, 9_223_372_036_854_775_000, true},
		{console.Span{From: 0, To: 1000}, 0, false},
		{console.Span{From: 0, To: 1000}, -1000, false},
		{console.Span{From: 0, To: 1000}, 1500, false},
	} {
		if got := console.ValidStep(c.span, c.step); got != c.want {
			t.Errorf("%v by %d: %v", c.span, c.step, got)
		}
		if c.want {
			w := newWindow(t, &list{})
			if counts, err := w.Counts(t.Context(), c.span, c.step); err != nil || len(counts.At) > console.MaxBuckets || len(counts.At) == 0 {
				t.Errorf("%v by %d: %d buckets, %v", c.span, c.step, len(counts.At), err)
			}
		}
	}
}

// hundredThousand receipts of the last 24 hours.
func hundredThousand(b *testing.B) *list {
	b.Helper()
	l := &list{}
	rnd := rand.New(rand.NewPCG(3, 4))
	now := time.Now().UnixMilli()
	var some []store.Receipt
	for range 100_000 {
		r := someReceipt(rnd, now)
		r.Timestamp = now - rnd.Int64N(86_000_000)
		some = append(some, entry(b, r))
	}
	slices.SortFunc(some, func(a, b store.Receipt) int { return int(a.Timestamp - b.Timestamp) })
	l.add(some...)
	return l
}

// filled is a window that has read hundredThousand back, a span with all of it, and what
// the window keeps in memory.
func filled(b *testing.B) (w *console.Window, span console.Span, megabytes float64) {
	b.Helper()
	l := hundredThousand(b)
	before := heap()
	w = newWindow(b, l)
	now := time.Now().UnixMilli()
	span = console.Span{From: now - 86_400_000, To: now}
	untilWhole(b, w, span.From+120_000)
	return w, span, heap() - before
}

// heap is what is in use, in megabytes.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / 1e6
}

// BenchmarkCounts counts 24 hours of 100,000 receipts in 72 buckets.
func BenchmarkCounts(b *testing.B) {
	w, span, megabytes := filled(b)
	b.ReportAllocs()
	for b.Loop() {
		if c, err := w.Counts(b.Context(), span, 1_200_000); err != nil || c.Turns[10] == 0 {
			b.Fatal(err)
		}
	}
	b.ReportMetric(megabytes, "MB")
}

// BenchmarkCoverage sums up the coverage of the same receipts.
func BenchmarkCoverage(b *testing.B) {
	w, span, _ := filled(b)
	b.ReportAllocs()
	for b.Loop() {
		if c, err := w.Coverage(b.Context(), span); err != nil || c.Turns == 0 {
			b.Fatal(err)
		}
	}
}
