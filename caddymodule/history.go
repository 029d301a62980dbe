package caddymodule

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/wire"
)

// The newest turn is judged, the history is cleaned: a message of an earlier turn
// that was refused when it was new, or that would be refused now, is replaced
// before anything is forwarded, whoever is said to have said it. So the model
// never sees it, and the conversation goes on. The same message is replaced by
// the same words in every turn, which keeps the provider's prompt cache.

// removedText stands in the place of a message that was removed.
const removedText = "[This message was removed by the governance policy of this service.]"

// pastCap bounds what a removed message scores. It presses on the session and
// counts for the slow-drip test, but the newest turn is not refused for it: it
// stays under the severity from which anything is.
const pastCap = 0.49

// readHistory looks at the earlier turns that a call resends. It records what
// becomes of each of their parts, and returns the parts to replace, or, where the
// operator wants the turn refused for them, their texts to judge with the newest.
// The mode observe replaces nothing, and counts what it would have.
func (t *interceptTurn) readHistory(ctx context.Context) (removed []wire.Part, judged []detect.Text, err error) {
	x, known := t.x, t.x.knowsHistory()
	var fresh []pastMessage
	for _, m := range pastMessages(t.call.Parts) {
		switch {
		case slices.Contains(x.memory.Refused, m.digest()): // its evidence is in the session
			removed = append(removed, t.remove(m, "refused when it was new")...)
		case known:
			m.cover(x, detectorEarlier)
		default:
			fresh = append(fresh, m)
		}
	}
	fresh = x.affordable(fresh, t.call.Parts)
	fresh, guilty, err := x.sift(ctx, fresh)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the history: %w", err)
	}
	for _, m := range guilty {
		removed = append(removed, t.remove(m, "would be refused now")...)
		x.removed = append(x.removed, m.digest())
	}
	for _, m := range fresh {
		m.cover(x, detectorLocal)
	}
	x.earlier = lastWords(fresh)
	switch {
	case t.handler.History == "refuse":
		for _, p := range removed {
			judged = append(judged, detect.Text{Source: sourceOf(p.Role), Body: p.Text})
		}
		return nil, judged, nil
	case x.mode == kernel.Observe:
		return nil, nil, nil
	}
	return removed, nil, nil
}

// lastWords are the user's last messages before the newest turn, as far as an
// attack that it completes is looked for.
func lastWords(messages []pastMessage) []detect.Text {
	var out []detect.Text
	size := int64(0)
	for _, m := range slices.Backward(messages) {
		if m[0].Role != wire.User {
			continue
		}
		if size += m.size(); len(out) == splitMost-1 || size > splitReach {
			break
		}
		out = append(m.texts(), out...)
	}
	return out
}

// remove records that a message is replaced. In the mode observe nothing is: the
// message was read, and that is all.
func (t *interceptTurn) remove(m pastMessage, why string) []wire.Part {
	if t.handler.History == "refuse" || t.x.mode == kernel.Observe {
		m.cover(t.x, detectorLocal)
		return m
	}
	for _, p := range m {
		t.x.coverage.Redacted = append(t.x.coverage.Redacted, kernel.SkippedPart{Part: "request." + p.Path, Why: why, Bytes: p.Bytes})
	}
	return m
}

// sift separates the messages that would be refused now. An attack may be split
// over several: what only neighbours together say is removed with all of them.
// What is removed counts for the session by its scores.
func (x *exchange) sift(ctx context.Context, fresh []pastMessage) (kept, guilty []pastMessage, err error) {
	flagged, err := x.suspects(ctx, fresh)
	if err != nil || !flagged {
		return fresh, nil, err
	}
	var worst kernel.Scores
	for _, m := range fresh {
		alone, scores, err := x.wouldRefuse(ctx, m)
		if err != nil {
			return nil, nil, err
		}
		if alone {
			guilty, worst = append(guilty, m), worse(worst, scores)
		} else {
			kept = append(kept, m)
		}
	}
	together, scores, err := x.accomplices(ctx, kept)
	if err != nil {
		return nil, nil, err
	}
	for i, m := range kept {
		if together[i] {
			guilty = append(guilty, m)
		}
	}
	x.past = bearable(worse(worst, scores), x.app.kernel.Policy())
	kept = slices.DeleteFunc(slices.Clone(kept), func(m pastMessage) bool {
		return slices.ContainsFunc(guilty, func(g pastMessage) bool { return g[0].Message == m[0].Message })
	})
	return kept, guilty, nil
}

// suspects reports whether there is anything to find in messages, read once as
// they follow and once the user's alone.
func (x *exchange) suspects(ctx context.Context, messages []pastMessage) (bool, error) {
	flagged, _, err := x.wouldRefuse(ctx, messages...)
	if err != nil || flagged {
		return flagged, err
	}
	said := slices.DeleteFunc(slices.Clone(messages), func(m pastMessage) bool { return m[0].Role != wire.User })
	flagged, _, err = x.wouldRefuse(ctx, said...)
	return flagged, err
}

// An attack is looked for over so many short neighbours: up to splitMost messages
// of splitReach bytes together. The more harmless messages are read as one, the
// more of them look like an attack.
const (
	splitMost  = 4
	splitReach = 256
)

// accomplices marks the messages that are harmless alone and an attack with their
// neighbours: the words of each speaker by themselves, and all as they follow.
func (x *exchange) accomplices(ctx context.Context, messages []pastMessage) (marked []bool, worst kernel.Scores, err error) {
	marked = make([]bool, len(messages))
	all, said := make([]int, len(messages)), []int(nil)
	for i, m := range messages {
		if all[i] = i; m[0].Role == wire.User {
			said = append(said, i)
		}
	}
	for _, row := range [][]int{all, said} {
		for from := range row {
			group, size := []pastMessage(nil), int64(0)
			to := from
			for ; to < len(row) && len(group) < splitMost && size+messages[row[to]].size() <= splitReach; to++ {
				group = append(group, messages[row[to]])
				size += messages[row[to]].size()
			}
			if len(group) < 2 {
				continue
			}
			guilty, scores, err := x.wouldRefuse(ctx, group...)
			if err != nil {
				return nil, worst, err
			}
			if !guilty {
				continue
			}
			worst = worse(worst, scores)
			for _, i := range row[from:to] {
				marked[i] = true
			}
		}
	}
	return marked, worst, nil
}

// wouldRefuse reports whether messages would be refused in a session of their
// own, and what they score.
func (x *exchange) wouldRefuse(ctx context.Context, messages ...pastMessage) (bool, kernel.Scores, error) {
	var texts []detect.Text
	for _, m := range messages {
		texts = append(texts, m.texts()...)
	}
	if len(texts) == 0 {
		return false, kernel.Scores{}, nil
	}
	s, err := x.app.assess(ctx, texts)
	if err != nil {
		return false, kernel.Scores{}, err
	}
	refused, err := x.refuses(s)
	return refused, s.Scores, err
}

// bearable keeps of scores the highest alone, and under every threshold of
// severity that refuses.
func bearable(s kernel.Scores, p kernel.Policy) kernel.Scores {
	least := min(pastCap, p.RefuseAt-0.01, p.RefuseAtDegraded-0.01, p.SevereAt-0.01)
	of := []*float64{&s.Identity, &s.Coercion, &s.Exploitative, &s.HarmRequest, &s.Sycophancy, &s.Injection}
	highest := slices.MaxFunc(of, func(a, b *float64) int {
		if *a < *b {
			return -1
		}
		return 1
	})
	for _, score := range of {
		if score != highest {
			*score = 0
		}
	}
	*highest = max(0, min(*highest, least))
	return s
}

// A pastMessage is the parts of one earlier message that have text, in order.
// What the application itself instructs is not among them: that is judged in
// every turn.
type pastMessage []wire.Part

func pastMessages(parts []wire.Part) (out []pastMessage) {
	last := 0
	for _, p := range parts {
		if !isPast(p) {
			continue
		}
		if p.Message != last {
			out, last = append(out, nil), p.Message
		}
		out[len(out)-1] = append(out[len(out)-1], p)
	}
	return out
}

// isPast reports whether a part belongs to the history that is cleaned.
func isPast(p wire.Part) bool { return p.Earlier && p.Text != "" && p.Role != wire.System }

// digest identifies a message by its words.
func (m pastMessage) digest() string {
	var b strings.Builder
	said := ""
	for _, p := range m {
		if p.Kind == wire.RefusalText && p.Text == said {
			continue // the same words again, as our refusals have them
		}
		said = p.Text
		b.WriteString(p.Text)
	}
	return messageDigest(b.String())
}

func messageDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

func (m pastMessage) texts() []detect.Text {
	out := make([]detect.Text, len(m))
	for i, p := range m {
		out[i] = detect.Text{Source: sourceOf(p.Role), Body: p.Text}
	}
	return out
}

func (m pastMessage) cover(x *exchange, detector string) {
	for _, p := range m {
		if p.Kind == wire.Unknown {
			x.unknown("request."+p.Path, unknownRead, 0)
		}
		x.cover("request."+p.Path, detector, p.Bytes)
	}
}

// newestDigests identify the messages of the newest turn, as they will be known
// again when they come back as history.
func newestDigests(parts []wire.Part) []string {
	var newest []wire.Part
	for _, p := range parts {
		if p.Message > 0 && !p.Earlier && p.Role != wire.System {
			p.Earlier = true
			newest = append(newest, p)
		}
	}
	var out []string
	for _, m := range pastMessages(newest) {
		out = append(out, m.digest())
	}
	return out
}
