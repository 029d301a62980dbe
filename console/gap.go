package console

import (
	"regexp"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel"
)

// A Class says whether a part that nobody read is a gap.
type Class string

// The classes of unread parts.
const (
	ClassGap           Class = "gap"            // it passed, and nobody inspected it
	ClassBaseline      Class = "baseline"       // the ungoverned answer in older receipts of /lex/govern
	ClassProviderError Class = "provider_error" // an error's body, which no model wrote
	ClassNoText        Class = "no_text"        // an answer that has no text of a model
	ClassReadElsewhere Class = "read_elsewhere" // a detector gave no verdict on it, and another read it
)

// classes are the reasons in receipts of skipped parts that are no gaps.
var classes = map[string]Class{
	"ungoverned baseline":        ClassBaseline,
	"the provider's error":       ClassProviderError,
	"carries no text of a model": ClassNoText,
}

// How much of a turn is a gap.
const (
	GapNone  = "none"
	GapPart  = "part"
	GapWhole = "whole"
)

// A Gap is a part of a turn that nobody inspected.
type Gap struct {
	// Part is where it stands, with * for numbers and for names that a caller chose.
	Part  string `json:"part"`
	Why   string `json:"why"`
	Bytes int    `json:"bytes"` // 0 where a receipt does not say
}

// unread is a part that no detector read, with its class.
type unread struct {
	Gap
	class Class
}

// unknownBlock is the rule of the option `unknown block` in receipts.
const unknownBlock = "unknown_block"

// gapsOf decides what of a turn nobody inspected:
//
//	a gap   class           the receipt has
//	no      -               a detector that is clean or flagged
//	no      -               a detector that did not run, beside one that did
//	no      read_elsewhere  a detector that failed, where another read all it was asked about
//	yes     gap             any other detector that failed
//	yes     gap             no detector that is clean or flagged: the whole turn is one
//	yes     gap             an unknown part
//	no      baseline        a skipped part: ungoverned baseline
//	no      provider_error  a skipped part: the provider's error
//	no      no_text         a skipped part: carries no text of a model
//	no      read_elsewhere  a skipped part: beyond what a detector reads, where another read it
//	yes     gap             any other skipped part
//	no      -               unknown parts, or no detector, where `unknown block` refused
//	                        the turn: what nobody read did not pass
//
// So the judge that does not run on a refusal is none: the detector of the prompt ran.
func gapsOf(r *kernel.Receipt) (gap string, parts []unread) {
	blocked := r.Refused && r.DeniedBy == unknownBlock
	add := func(part, why string, bytes int, class Class) {
		parts = append(parts, unread{Gap{foldPart(part), why, bytes}, class})
	}
	var readers []string
	for _, d := range r.Coverage.Detectors {
		if d.Outcome == kernel.Clean || d.Outcome == kernel.Flagged {
			readers = append(readers, d.Name)
		}
	}
	for _, d := range r.Coverage.Detectors {
		if d.Outcome == kernel.DetectorFailed {
			class := ClassGap
			if readElsewhere(d.Name, readers) {
				class = ClassReadElsewhere
			}
			add("detector "+d.Name, d.Why, 0, class)
		}
	}
	ran := len(readers) > 0
	if !ran && !blocked {
		add("turn", "no detector ran", 0, ClassGap)
	}
	for _, p := range r.Coverage.Skipped {
		add(p.Part, p.Why, p.Bytes, classOf(p.Why, readers))
	}
	for _, p := range r.Coverage.Unknown {
		if !blocked {
			add(p.Part, p.Why, p.Bytes, ClassGap)
		}
	}
	return extent(ran || blocked, parts), parts
}

// classOf is the class of a skipped part by its reason.
func classOf(why string, readers []string) Class {
	if class, known := classes[why]; known {
		return class
	}
	if of := beyondReach.FindStringSubmatch(why); of != nil && readElsewhere(of[1], readers) {
		return ClassReadElsewhere
	}
	return ClassGap
}

// beyondReach is why a part is skipped of which a detector reads only the beginning.
var beyondReach = regexp.MustCompile(`^beyond what (\S+) reads$`)

// readElsewhere reports whether the detector beside which another one stands is among those
// that read: the local one reads all that embedders and guards are asked about of a prompt
// and of what tools say, and the local judge all of an answer. What those did not read is a
// skipped part of its own.
func readElsewhere(detector string, readers []string) bool {
	guard := strings.HasPrefix(detector, "guard_")
	switch {
	case detector == "openai_judge", guard && strings.HasSuffix(detector, ".answer"):
		return slices.Contains(readers, "local_judge")
	case guard, strings.HasSuffix(detector, "_embedder"):
		return slices.Contains(readers, "local")
	}
	return false
}

// A NoVerdict is a detector that gave no verdict, or none on the whole text, and why.
type NoVerdict struct {
	Detector string `json:"detector"`
	Why      string `json:"why"`
}

// NoVerdictsOf returns the detectors of a turn that failed, in part or on the whole.
func NoVerdictsOf(r *kernel.Receipt) []NoVerdict {
	found := []NoVerdict{}
	for _, d := range r.Coverage.Detectors {
		if d.Outcome == kernel.DetectorFailed || d.Outcome == kernel.Flagged && d.Why != "" {
			found = append(found, NoVerdict{d.Name, d.Why})
		}
	}
	return found
}

// GapOf says how much of a turn nobody inspected: [GapNone], [GapPart] or [GapWhole].
func GapOf(r *kernel.Receipt) string {
	gap, _ := gapsOf(r)
	return gap
}

// extent says how much of a turn the gaps among its parts are.
func extent(ran bool, parts []unread) string {
	if !ran {
		return GapWhole
	}
	for _, p := range parts {
		if p.class == ClassGap {
			return GapPart
		}
	}
	return GapNone
}

var (
	variableStep = regexp.MustCompile(`\.(\d+|sha256:[0-9a-f]+)(\.|$)`)
	countedPart  = regexp.MustCompile(`^\d+ more$`)
)

// foldPart writes * for what differs from turn to turn: places in lists, and names that
// callers chose, which receipts have as hashes.
func foldPart(part string) string {
	if countedPart.MatchString(part) {
		return "more"
	}
	for { // matches that touch share a dot
		folded := variableStep.ReplaceAllString(part, ".*$2")
		if folded == part {
			return part
		}
		part = folded
	}
}
