package main

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/caddy-lex/lex/kernel"
)

// revision0 is the policy before there was a revision.
func revision0() kernel.Policy {
	p := shipped()
	p.Revision, p.ThreatSeverity = 0, 0
	p.CUSUMK, p.CUSUMH, p.CUSUMRelief = former[0].K, former[0].H, former[0].Relief
	p.CUSUMSlowK, p.CUSUMSlowH, p.CUSUMSlowRelief = 0, 0, 0
	return p
}

// sessionLength is how many prompts of a source are put in one session, in their order.
const sessionLength = 20

// reportRefusals says how many turns of whole sessions are refused, before and now, and
// for which primary reason.
func reportRefusals(b *bytes.Buffer, choosing, reporting half, all []dialogue) {
	fmt.Fprintf(b, "## Refused turns\n\nOf whole sessions: dialogues as they are, prompts of one source %d to a session.\n\n| sessions | turns | revision 0 | now | now, by primary reason |\n|---|---|---|---|---|\n", sessionLength)
	groups := append([][]dialogue{slices.Concat(choosing.dialogues, reporting.dialogues)}, bySource(joined(reporting.prompts))...)
	for _, group := range append(groups, bySource(joined(labelled(all, "borderline_benign")))...) {
		rowOfRefusals(b, group, group[0].source+" ("+group[0].label+")")
	}
	var dialogues []dialogue
	for _, d := range labelled(all, "redteam_attempt") {
		if len(d.turns) > 1 {
			dialogues = append(dialogues, d)
		}
	}
	rowOfRefusals(b, dialogues, "hh_redteam, dialogues (attempts)")
	fmt.Fprintln(b)
}

func labelled(all []dialogue, label string) (out []dialogue) {
	for _, d := range all {
		if d.label == label {
			out = append(out, d)
		}
	}
	return out
}

// joined puts prompts of one source into sessions.
func joined(prompts []dialogue) (out []dialogue) {
	for _, of := range bySource(prompts) {
		for i, d := range of {
			if i%sessionLength == 0 {
				out = append(out, dialogue{id: d.id, source: d.source, label: d.label})
			}
			last := &out[len(out)-1]
			last.turns = append(last.turns, d.turns...)
		}
	}
	return out
}

func rowOfRefusals(b *bytes.Buffer, sessions []dialogue, name string) {
	before, _ := refusals(revision0(), sessions)
	now, why := refusals(shipped(), sessions)
	reasons := ""
	for _, r := range []kernel.Reason{kernel.SemanticClassifier, kernel.ContrastiveThreat, kernel.SlowDripAlarm, kernel.SovereigntyDrift, kernel.ConstitutionalFloor} {
		if why[r] > 0 {
			reasons += fmt.Sprintf(" %s %d", r, why[r])
		}
	}
	n := turnsOf(sessions)
	fmt.Fprintf(b, "| %s | %d | %s | %s |%s |\n", name, n, share(before, n), share(now, n), reasons)
}

func refusals(p kernel.Policy, sessions []dialogue) (n int, why map[kernel.Reason]int) {
	k, why := must(kernel.New(p)), map[kernel.Reason]int{}
	for _, d := range sessions {
		s := k.NewSession()
		for _, t := range d.turns {
			turn := must(k.Assess(s, t.evidence, kernel.Enforce))
			if turn.Refused {
				n++
				why[turn.Reasons[0]]++
			}
			s = turn.Next
		}
	}
	return n, why
}
