package govern

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/model"
	"github.com/caddy-lex/lex/wire"
)

// The names of the detectors in receipts.
const (
	DetectorLocal       = "local"
	DetectorLocalJudge  = "local_judge"
	DetectorRemoteJudge = "openai_judge" // the judge that is configured beside the local one
	DetectorToolCall    = "toolcall"
	// DetectorTemplate says how many bytes of a part are the words of templates (see [Template]).
	DetectorTemplate = "template"

	// detectorEcho looks for the system context in the governed answer.
	detectorEcho = "echo"
	// detectorEarlier says that an earlier turn inspected the part, when it was new.
	detectorEarlier = "earlier_turn"
)

// Coverage records for the receipt what of a turn was inspected and what was not.
type Coverage struct {
	kernel.Coverage
	judged int                      // bytes of the answer that the judge reads
	waited map[string]time.Duration // for guards, by their names in receipts
}

// clone returns a copy that shares no list.
func (c *Coverage) clone() Coverage {
	out := *c
	out.Detectors, out.Inspected = slices.Clone(c.Detectors), slices.Clone(c.Inspected)
	out.Redacted, out.Skipped, out.Unknown = slices.Clone(c.Redacted), slices.Clone(c.Skipped), slices.Clone(c.Unknown)
	return out
}

// Ran records that a detector ran, and whether it found something.
func (c *Coverage) Ran(detector string, flagged bool) {
	outcome := kernel.Clean
	if flagged {
		outcome = kernel.Flagged
	}
	c.Detectors = append(c.Detectors, kernel.DetectorRun{Name: detector, Outcome: outcome})
}

// NotRun records why a detector did not run.
func (c *Coverage) NotRun(detector, why string) {
	c.Detectors = append(c.Detectors, kernel.DetectorRun{Name: detector, Outcome: kernel.NotRun, Why: why})
}

// failed records that a remote detector gave no evidence.
func (c *Coverage) failed(detector string, err error) {
	c.Detectors = append(c.Detectors, kernel.DetectorRun{Name: detector, Outcome: kernel.DetectorFailed, Why: string(model.Why(err))})
}

// guarded records what a guard said of a text. What it found stands although it failed on
// another piece of the text; the entry says why it failed. A guard has one entry for each
// role, which a second text in that role can only make worse.
func (c *Coverage) guarded(a asking) {
	run := kernel.DetectorRun{Name: a.guard.detector(a.text.Role), Outcome: kernel.Clean}
	switch {
	case a.verdict.Highest() >= 0.5:
		run.Outcome = kernel.Flagged
	case a.err != nil:
		run.Outcome = kernel.DetectorFailed
	}
	run.Why = string(model.Why(a.err))
	run.Score = math.Round(a.verdict.Highest()*1e6) / 1e6
	failed := model.Unread(a.err)
	if unread := max(0, len(a.text.Text)-a.guard.Model.Reads()) + a.left + failed; unread > 0 && (a.err == nil || failed > 0) {
		part := "request"
		switch a.text.Role {
		case model.RoleAnswer:
			part = "response"
		case model.RoleToolCall:
			part = "request.context"
		}
		c.SkipOnce(part, beyondReach(run.Name), unread)
	}
	c.worsen(run)
}

// beyondReach is why a second detector did not read a text, or not all of it.
func beyondReach(detector string) string { return "beyond what " + detector + " reads" }

// notGuarded records why a guard was not asked about a text.
func (c *Coverage) notGuarded(detector, why string) {
	c.worsen(kernel.DetectorRun{Name: detector, Outcome: kernel.NotRun, Why: why})
}

// worsen records a run, or makes the entry of the same detector worse.
func (c *Coverage) worsen(run kernel.DetectorRun) {
	at := slices.IndexFunc(c.Detectors, func(d kernel.DetectorRun) bool { return d.Name == run.Name })
	if at < 0 {
		c.Detectors = append(c.Detectors, run)
		return
	}
	d := &c.Detectors[at]
	order := []kernel.DetectorOutcome{kernel.Clean, kernel.Flagged, kernel.NotRun, kernel.DetectorFailed}
	switch now, before := slices.Index(order, run.Outcome), slices.Index(order, d.Outcome); {
	case now > before:
		d.Outcome, d.Why = run.Outcome, run.Why
	case now == before && d.Why == "":
		d.Why = run.Why
	}
	d.Score = max(d.Score, run.Score)
}

// waitedFor records how long guards were waited for when all of them were asked at once.
// The times of several such waits add up.
func (c *Coverage) waitedFor(guards map[string]time.Duration) {
	if c.waited == nil {
		c.waited = make(map[string]time.Duration)
	}
	for i := range c.Detectors {
		if d := &c.Detectors[i]; guards[d.Name] > 0 {
			c.waited[d.Name] += guards[d.Name]
			d.Millis = int(c.waited[d.Name].Milliseconds())
		}
	}
}

// Inspect records a part that a detector reads.
func (c *Coverage) Inspect(part, detector string, bytes int) {
	c.Inspected = append(c.Inspected, kernel.CoveredPart{Part: part, Detector: detector, Bytes: bytes})
	c.BytesInspected += bytes
}

// InspectOnce is Inspect for a part of a stream, which comes in many pieces.
func (c *Coverage) InspectOnce(part, detector string, bytes int) {
	for i := range c.Inspected {
		if p := &c.Inspected[i]; p.Part == part && p.Detector == detector {
			p.Bytes += bytes
			c.BytesInspected += bytes
			return
		}
	}
	c.Inspect(part, detector, bytes)
}

// notInspected takes back that a detector reads parts; why is the reason.
func (c *Coverage) notInspected(detector, why string) {
	c.Inspected = slices.DeleteFunc(c.Inspected, func(p kernel.CoveredPart) bool {
		if p.Detector == detector {
			c.BytesInspected -= p.Bytes
			c.SkipOnce(p.Part, why, p.Bytes)
		}
		return p.Detector == detector
	})
}

// readAfterAll records that a detector that had no text to read has read one since.
func (c *Coverage) readAfterAll(detector string) {
	for i := range c.Detectors {
		if d := &c.Detectors[i]; d.Name == detector && d.Outcome == kernel.NotRun {
			d.Outcome, d.Why = kernel.Clean, ""
		}
	}
}

// flag records that a detector that ran has found something since.
func (c *Coverage) flag(detector string) {
	for i := range c.Detectors {
		if d := &c.Detectors[i]; d.Name == detector {
			d.Outcome, d.Why = kernel.Flagged, ""
		}
	}
}

// InspectAnswer records how much of a part of the answer the local judge reads.
// The parts are given in the order in which they are judged.
func (c *Coverage) InspectAnswer(part string, bytes int) {
	read := min(bytes, maxJudged-c.judged)
	c.judged += read
	if read > 0 {
		c.Inspect(part, DetectorLocalJudge, read)
	}
	if bytes > read {
		c.Skip(part, beyondJudge, bytes-read)
	}
}

// Why a text is not inspected, or not all of it. What of a conversation was skipped for one
// of these reasons stays known to its session (see memory.Unread).
const (
	beyondLimit = "beyond inspect_limit"
	beyondJudge = "beyond what the judge reads"
	tooDeep     = "encoded more deeply than is opened"
	noLanguage  = "reads as no language"
)

// isGap reports whether a text was skipped for one of these reasons.
func isGap(why string) bool {
	return why == beyondLimit || why == beyondJudge || why == tooDeep || why == noLanguage
}

// onlySecond reports whether it was only a second detector that did not read a text whole.
func onlySecond(why string) bool {
	return why != beyondJudge && strings.HasPrefix(why, "beyond what ") && strings.HasSuffix(why, " reads")
}

// leavesUnread reports whether a part of the turn was read by no detector, or not whole. What
// only a second detector did not read whole was read, and what is said of the history is
// remembered by itself.
func (c *Coverage) leavesUnread() bool {
	ofHistory := []string{historyUnseen, historyUnread, historyTainted, blockedUnanswered}
	return slices.ContainsFunc(c.Skipped, func(p kernel.SkippedPart) bool {
		return !onlySecond(p.Why) && !slices.Contains(ofHistory, p.Why)
	}) || slices.ContainsFunc(c.Unknown, func(p kernel.SkippedPart) bool { return p.Bytes > 0 })
}

// skipGaps records what the detector could not read of the texts that it read.
func (c *Coverage) skipGaps(gaps []detect.Gap) {
	for _, g := range gaps {
		if g.Unopened {
			c.skipMore(g.Part, tooDeep, 0)
		}
		if g.Unread > 0 {
			c.skipMore(g.Part, noLanguage, g.Unread)
		}
	}
}

// skipMore is Skip for a part whose texts come one after the other: they make one entry
// for each reason.
func (c *Coverage) skipMore(part, why string, bytes int) {
	for i := max(0, len(c.Skipped)-2); i < len(c.Skipped); i++ {
		if p := &c.Skipped[i]; p.Part == part && p.Why == why {
			p.Bytes += bytes
			return
		}
	}
	c.Skip(part, why, bytes)
}

// cut records of parts of which not all is read how many bytes are.
func (c *Coverage) cut(read map[string]int) {
	kept := c.Inspected[:0]
	for _, p := range c.Inspected {
		if n, ok := read[p.Part]; ok && p.Detector == DetectorLocal && n < p.Bytes {
			c.BytesInspected -= p.Bytes - n
			p.Bytes = n
		}
		if _, ok := read[p.Part]; !ok || p.Bytes > 0 {
			kept = append(kept, p)
		}
	}
	c.Inspected = kept
}

// Skip records a part that no detector reads.
func (c *Coverage) Skip(part, why string, bytes int) {
	c.Skipped = append(c.Skipped, kernel.SkippedPart{Part: part, Why: why, Bytes: bytes})
}

// SkipOnce is Skip for a part of a stream, which comes in many pieces.
func (c *Coverage) SkipOnce(part, why string, bytes int) {
	c.Skipped = addOnce(c.Skipped, part, why, bytes)
}

// NotKnown records a part whose meaning no dialect knows.
func (c *Coverage) NotKnown(part, why string, bytes int) {
	c.Unknown = append(c.Unknown, kernel.SkippedPart{Part: part, Why: why, Bytes: bytes})
}

// NotKnownOnce is NotKnown for a part of a stream.
func (c *Coverage) NotKnownOnce(part, why string, bytes int) {
	c.Unknown = addOnce(c.Unknown, part, why, bytes)
}

// addOnce adds to the entry of a part with the same reason, or makes one.
func addOnce(parts []kernel.SkippedPart, part, why string, bytes int) []kernel.SkippedPart {
	for i := range parts {
		if parts[i].Part == part && parts[i].Why == why {
			parts[i].Bytes += bytes
			return parts
		}
	}
	if len(parts) >= maxStreamed { // a stream may have no end
		part, why = "response.others", "beyond what is told apart in a stream"
		if last := &parts[len(parts)-1]; last.Part == part {
			last.Bytes += bytes
			return parts
		}
	}
	return append(parts, kernel.SkippedPart{Part: part, Why: why, Bytes: bytes})
}

// maxStreamed is how many parts of a stream are recorded by their names. It is more than
// a receipt lists.
const maxStreamed = 4 * maxListed

// Uncovered is how many bytes of a kind no detector read.
type Uncovered struct {
	// Direction is request or response.
	Direction string
	// Kind is one of a few: the kinds of [wire.Part], and what limits leave out.
	Kind  string
	Bytes int
}

// Uncovered adds up the parts that no detector read, for metrics.
func (c *Coverage) Uncovered() []Uncovered {
	var sums []Uncovered
	add := func(p kernel.SkippedPart, kind string) {
		direction, _, _ := strings.Cut(p.Part, ".")
		at := slices.IndexFunc(sums, func(u Uncovered) bool { return u.Direction == direction && u.Kind == kind })
		if at < 0 {
			at, sums = len(sums), append(sums, Uncovered{Direction: direction, Kind: kind})
		}
		sums[at].Bytes += p.Bytes
	}
	for _, p := range c.Skipped {
		if !onlySecond(p.Why) {
			add(p, uncoveredKind(p))
		}
	}
	for _, p := range c.Unknown {
		add(p, string(wire.Unknown))
	}
	return sums
}

// uncoveredKind is the kind of a skipped part, which its reason or, in a stream, its
// name tells.
func uncoveredKind(p kernel.SkippedPart) string {
	word, _, _ := strings.Cut(p.Why, ":")
	_, name, _ := strings.Cut(p.Part, ".")
	switch {
	case slices.Contains(wire.Kinds, wire.Kind(word)):
		return word
	case slices.Contains(wire.Kinds, wire.Kind(name)):
		return name
	case strings.HasPrefix(p.Why, "beyond "):
		return "beyond_limit"
	case p.Why == noLanguage:
		return "no_language"
	}
	return "other"
}

// maxListed is how many parts a receipt lists of each kind. It keeps a receipt under
// 64 KiB: receipts are stored for good and are public, so callers must not control
// their size or their wording. A long conversation has about a hundred parts.
const maxListed = 100

// bounded returns the coverage with shortened lists. The last entry of a shortened
// list counts the other parts and adds up their bytes. A list with entries never
// becomes empty, so partial coverage never looks complete.
func (c *Coverage) bounded() kernel.Coverage {
	out := c.Coverage
	out.Inspected = cutList(out.Inspected, func(rest []kernel.CoveredPart) kernel.CoveredPart {
		sum := kernel.CoveredPart{Part: countedPart(len(rest)), Detector: rest[0].Detector}
		for _, p := range rest {
			if sum.Bytes += p.Bytes; p.Detector != sum.Detector {
				sum.Detector = "several"
			}
		}
		return sum
	})
	for _, list := range []*[]kernel.SkippedPart{&out.Redacted, &out.Skipped, &out.Unknown} {
		*list = cutList(*list, func(rest []kernel.SkippedPart) kernel.SkippedPart {
			sum := kernel.SkippedPart{Part: countedPart(len(rest)), Why: "beyond what a receipt lists"}
			for _, p := range rest {
				sum.Bytes += p.Bytes
			}
			return sum
		})
	}
	return out
}

func countedPart(n int) string { return fmt.Sprintf("%d more", n) }

// cutList keeps maxListed entries, the last of which stands for the rest.
func cutList[P any](list []P, sum func(rest []P) P) []P {
	if len(list) <= maxListed {
		return list
	}
	return append(list[:maxListed-1:maxListed-1], sum(list[maxListed-1:]))
}

// maxModelName is how long a model's name in a receipt may be, in bytes.
const maxModelName = 128

// plainName returns a short name of plain letters as it is, and the hash of any other
// name.
func plainName(name string) string {
	plain := len(name) <= maxModelName && !strings.ContainsFunc(name, func(c rune) bool {
		return !strings.ContainsRune("._-/:@+", c) && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
	if plain {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "sha256:" + hex.EncodeToString(sum[:8])
}
