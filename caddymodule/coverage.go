package caddymodule

import (
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/wire"
)

// The detectors that run here, as receipts name them.
const (
	detectorLocal = "local"
	detectorJudge = "local_judge"
	// detectorRemoteJudge is the judge that is configured beside the local one.
	detectorRemoteJudge = "openai_judge"
	// detectorEcho looks for the system context in the governed answer.
	detectorEcho = "echo"
	// detectorEarlier stands for a turn before: the part was inspected when it
	// was new.
	detectorEarlier = "earlier_turn"
)

// What receipts and metrics call POST /lex/govern, plain and streamed.
const (
	endpointGovern = "lex/govern"
	dialectLex     = "lex"
)

// ran records that a detector did its work, and whether it found something.
func (x *exchange) ran(name string, flagged bool) {
	outcome := kernel.Clean
	if flagged {
		outcome = kernel.Flagged
	}
	x.coverage.Detectors = append(x.coverage.Detectors, kernel.DetectorRun{Name: name, Outcome: outcome})
}

// notRun records why a detector did not run.
func (x *exchange) notRun(name, why string) {
	x.coverage.Detectors = append(x.coverage.Detectors, kernel.DetectorRun{Name: name, Outcome: kernel.NotRun, Why: why})
}

// cover records one inspected part.
func (x *exchange) cover(part, detector string, bytes int) {
	x.coverage.Inspected = append(x.coverage.Inspected, kernel.CoveredPart{Part: part, Detector: detector, Bytes: bytes})
	x.coverage.BytesInspected += bytes
}

// skip records one part that no detector reads.
func (x *exchange) skip(part, why string, bytes int) {
	x.coverage.Skipped = append(x.coverage.Skipped, kernel.SkippedPart{Part: part, Why: why, Bytes: bytes})
}

// unknown records one part whose meaning no dialect knows.
func (x *exchange) unknown(part, why string, bytes int) {
	x.coverage.Unknown = append(x.coverage.Unknown, kernel.SkippedPart{Part: part, Why: why, Bytes: bytes})
}

// knowsHistory reports whether the resent conversation is, to the letter, the
// one that this session's turns inspected before. A history that was made up
// is inspected like everything new.
func (x *exchange) knowsHistory() bool {
	return x.talk != nil && x.talk.history > 0 && x.memory.History == x.talk.past()
}

// coverNewest records what becomes of each part of a request that the history
// does not account for, and returns the texts to assess: what is said in the
// newest turn, and the instructions that the application itself gives. Members
// that the dialect does not know are read loosely where read is set.
func (x *exchange) coverNewest(body []byte, parts []wire.Part, read bool) (texts, instructions []detect.Text) {
	known := x.knowsHistory()
	for _, p := range parts {
		name := "request." + p.Path
		switch {
		case isPast(p):
		case p.Kind == wire.Unknown:
			said, given, _ := looseTexts(looseMember(p, body))
			if !read || len(said)+len(given) == 0 {
				x.unknown(name, "not known to the dialect", p.Bytes)
				continue
			}
			x.unknown(name, unknownRead, 0)
			x.cover(name, detectorLocal, p.Bytes)
			texts, instructions = append(texts, said...), append(instructions, given...)
		case p.Text == "" && p.Kind == wire.Text:
		case p.Text == "":
			x.skip(name, string(p.Kind), p.Bytes)
		case known && p.Earlier:
			x.cover(name, detectorEarlier, p.Bytes)
		case p.Role == wire.System || p.Role == wire.Definition:
			x.cover(name, detectorLocal, p.Bytes)
			instructions = append(instructions, detect.Text{Source: detect.System, Body: p.Text})
		default:
			x.cover(name, detectorLocal, p.Bytes)
			texts = append(texts, detect.Text{Source: sourceOf(p.Role), Body: p.Text})
		}
	}
	return texts, instructions
}

// unknownRead is said of a part whose meaning nobody knows, and whose texts were
// read all the same.
const unknownRead = "not known to the dialect; its texts were read"

// looseMember reads a member that its dialect does not know. Its name may say that
// the application itself speaks there.
func looseMember(p wire.Part, body []byte) []wire.Part {
	parts := wire.LooseParts(body[p.Start : p.Start+p.Bytes])
	for i := range parts {
		if parts[i].Role == wire.User && p.Role == wire.Definition {
			parts[i].Role = p.Role
		}
	}
	return parts
}

// looseText is all that such a member says.
func looseText(p wire.Part, body []byte) string {
	said, given, _ := looseTexts(looseMember(p, body))
	var texts []string
	for _, t := range slices.Concat(said, given) {
		texts = append(texts, t.Body)
	}
	return strings.Join(texts, "\n")
}

// sourceOf maps who speaks to what a detector looks for: attacks in a user's
// words, instructions in a tool's.
func sourceOf(role wire.Role) detect.Source {
	if role == wire.Tool {
		return detect.Tool
	}
	return detect.User
}

// coverResponse records what becomes of each part of an answer, and returns the
// texts to judge, one for each choice.
func (x *exchange) coverResponse(parts []wire.Part) []string {
	var texts, pieces []string
	choice := -1
	flush := func() {
		if len(pieces) > 0 {
			texts, pieces = append(texts, strings.Join(pieces, "")), nil
		}
	}
	for _, p := range parts {
		name := "response." + p.Path
		switch p.Kind {
		case wire.Text, wire.RefusalText:
			if p.Text == "" {
				continue
			}
			x.coverAnswer(name, p.Bytes)
			if p.Message != choice {
				flush()
				choice = p.Message
			}
			pieces = append(pieces, p.Text)
		case wire.Unknown:
			x.unknown(name, "not known to the dialect", p.Bytes)
		default:
			x.skip(name, string(p.Kind)+": not read by a detector on this path", p.Bytes)
		}
	}
	flush()
	return texts
}

// skipOnce is skip for streams, where one part comes in many pieces.
func (x *exchange) skipOnce(part, why string, bytes int) {
	x.coverage.Skipped = addOnce(x.coverage.Skipped, part, why, bytes)
}

// unknownOnce is unknown for streams.
func (x *exchange) unknownOnce(part, why string) {
	x.coverage.Unknown = addOnce(x.coverage.Unknown, part, why, 0)
}

func addOnce(parts []kernel.SkippedPart, part, why string, bytes int) []kernel.SkippedPart {
	for i := range parts {
		if parts[i].Part == part {
			parts[i].Bytes += bytes
			return parts
		}
	}
	return append(parts, kernel.SkippedPart{Part: part, Why: why, Bytes: bytes})
}
