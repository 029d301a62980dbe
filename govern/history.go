package govern

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/wire"
	"github.com/caddy-lex/lex/wire/loose"
)

// The newest turn is judged, and the history is cleaned. A message of an earlier turn
// is replaced before the request is forwarded if it was refused when it was new or
// would be refused now, whatever its role. The model never sees it, and the
// conversation goes on. The same message is replaced by the same words in every turn,
// so that the provider's prompt cache keeps working.

// removedText replaces a message that was removed.
const removedText = "[This message was removed by the governance policy of this service.]"

// removedCap bounds the score of a removed message. The score adds pressure to the
// session and counts for the slow-drip test, but it stays under the severity from
// which a turn is refused, so the newest turn is not refused because of it.
const removedCap = 0.49

// cleanHistory inspects the earlier turns that a call resends. It records the
// treatment of each part and returns the parts to replace. If the operator wants such
// a turn refused, it adds their texts to the assessed texts instead. In the mode
// observe nothing is replaced.
func (o *Opened) cleanHistory(ctx context.Context, in *Input, parts []wire.Part) (replaced []wire.Part, err error) {
	var found, treated []wire.Part
	var unread []pastMessage
	refused := make(map[int]bool)
	known := o.knowsHistory()
	past := pastMessages(parts)
	digests, places := in.place(past, newestMessages(parts))
	for i, m := range past {
		kept := slices.Contains(o.memory.Kept, places[i])
		refused[m[0].Message] = !kept && slices.Contains(o.memory.Refused, digests[i])
		poisoned, m := o.treatedResults(m, kept) // their evidence is in the session
		treated = append(treated, poisoned...)
		if len(m) == 0 {
			continue
		}
		if !kept && o.wasRefused(m) { // and so is this one's
			found, refused[m[0].Message] = append(found, m...), true
			continue
		}
		known := known && (!o.memory.Distrust || !o.Conversation.wrote(m[0]))
		if known {
			// The digest of the conversation covers a part of the message, and only that
			// part. Whoever changes the hidden part resends the same digest.
			covered, rest := o.recognised(m)
			o.inspectedThen(covered, detectorEarlier)
			m = rest
		}
		switch {
		case len(m) == 0:
		case known && !kept && o.wasRefused(m):
			found, refused[m[0].Message] = append(found, m...), true
		case known && slices.Contains(o.memory.Seen, o.markOf(m)):
			m.inspected(o.Coverage, detectorEarlier)
			in.seen = append(in.seen, o.markOf(m))
			for _, gap := range o.memory.gapsOf(o.markOf(m)) {
				o.Coverage.Skip("request."+m[0].Path, gap.Why, gap.Bytes)
				in.gaps = append(in.gaps, gap)
			}
		default:
			for _, p := range m {
				delete(o.unread, p.Path) // what is read now says itself what could not be
			}
			unread = append(unread, m)
		}
	}
	unread = o.affordable(in, unread, parts)
	unread, condemned := o.separateCondemned(unread)
	kept, attacks, read, err := o.separateAttacks(ctx, unread)
	if err != nil {
		return nil, fmt.Errorf("reading the history: %w", err)
	}
	attacks = append(attacks, condemned...)
	in.past, in.condemned = read.Scores, o.condemnedScores()
	o.skipGaps(in, kept, read.Gaps)
	if o.Mode == kernel.Observe {
		o.skipGaps(in, attacks, read.Gaps) // they stay
	}
	for _, m := range attacks {
		o.recordRemoval(m, refusedNow)
		found, refused[m[0].Message] = append(found, m...), true
		in.removed = append(in.removed, m.digest())
		covered, _ := o.Conversation.divide(m)
		in.distrust = in.distrust || len(covered) > 0 && o.Conversation.wrote(m[0])
	}
	for _, m := range kept {
		m.inspected(o.Coverage, DetectorLocal)
		_, framing := o.governor.unframe(m.texts())
		o.recordTemplates(framing)
		if _, hidden := o.Conversation.divide(m); len(hidden) > 0 {
			in.seen = append(in.seen, o.markOf(hidden))
		}
	}
	in.equals = slices.DeleteFunc(in.equals, func(place string) bool {
		digest := digests[slices.Index(places, place)]
		return slices.Contains(o.memory.Refused, digest) || slices.Contains(in.removed, digest)
	})
	in.earlier = lastWords(kept)
	found = o.withoutThoughts(found)
	switch {
	case o.Reading.RefuseHistory:
		for _, p := range slices.Concat(treated, found) {
			in.said = append(in.said, detect.Text{Source: loose.SourceOf(p), Body: p.Text, Part: "request." + p.Path})
		}
		return nil, nil
	case o.Mode == kernel.Observe:
		return nil, nil
	}
	in.refused = refused
	found, err = o.withoutNames(ctx, found)
	return append(treated, found...), err
}

// withoutNames returns the parts of removed messages that are replaced: all but the names of
// speakers and tools, by which a provider finds the call that a result belongs to. A name
// goes if it is an attack by itself, and all go that are one together.
func (o *Opened) withoutNames(ctx context.Context, found []wire.Part) (replaced []wire.Part, err error) {
	stays := make(map[string]bool)
	var harmless []pastMessage
	for _, p := range found {
		if _, read := stays[p.Text]; read || p.Kind != wire.Name {
			continue
		}
		refused, s, err := o.wouldRefuse(ctx, pastMessage{p})
		if err != nil {
			return nil, fmt.Errorf("reading the names of the history: %w", err)
		}
		if !refused && o.reread.condemns(messageOf(p, found)) { // perhaps for its name
			moved, err := o.askAlone(ctx, pastMessage{p})
			if err != nil {
				return nil, err
			}
			if refused, err = o.governor.refusesAlone(moved[0]); err != nil {
				return nil, err
			}
		}
		if stays[p.Text] = !refused && !s.Unopened && s.Unread == 0; stays[p.Text] {
			harmless = append(harmless, pastMessage{p})
		}
	}
	together, _, err := o.wouldRefuse(ctx, harmless...)
	if err != nil {
		return nil, fmt.Errorf("reading the names of the history: %w", err)
	}
	for _, p := range found {
		if p.Kind != wire.Name || !stays[p.Text] || together {
			replaced = append(replaced, p)
			continue
		}
		o.Coverage.Redacted = slices.DeleteFunc(o.Coverage.Redacted, func(r kernel.SkippedPart) bool { return r.Part == "request."+p.Path })
		pastMessage{p}.inspected(o.Coverage, DetectorLocal)
	}
	return replaced, nil
}

// messageOf returns those of the parts that stand in the message of one of them.
func messageOf(p wire.Part, parts []wire.Part) (m pastMessage) {
	for _, q := range parts {
		if q.Message == p.Message {
			m = append(m, q)
		}
	}
	return m
}

// wasRefused reports whether a message was refused before, and then records its
// removal.
func (o *Opened) wasRefused(m pastMessage) bool {
	if len(o.memory.Refused) == 0 || !slices.Contains(o.memory.Refused, m.digest()) {
		return false
	}
	o.recordRemoval(m, refusedThen)
	return true
}

// Why a message is removed: its own turn refused it, or it would be refused alone.
const (
	refusedThen = "refused when it was new"
	refusedNow  = "would be refused now"
)

// divide divides a message into what the digest of the conversation has and what it
// does not have, such as the arguments of a call.
func (c *Conversation) divide(m pastMessage) (covered, hidden pastMessage) {
	for _, p := range m {
		if c.covers(p) {
			covered = append(covered, p)
		} else {
			hidden = append(hidden, p)
		}
	}
	return covered, hidden
}

// markOf returns what the session remembers of hidden parts that were read. It is made
// with the session's secret, so nobody can look for other parts with the same mark.
func (o *Opened) markOf(hidden pastMessage) string {
	var b strings.Builder
	for _, p := range hidden {
		fmt.Fprintf(&b, "%s %s %d:%s", p.Role, p.Kind, len(p.Text), p.Text)
	}
	return kernel.Commit(o.session.Secret, "hidden parts "+b.String())[:16]
}

// recordRemoval records that a message is replaced, or that it was only inspected if
// the configuration replaces nothing.
func (o *Opened) recordRemoval(m pastMessage, why string) {
	if o.Mode == kernel.Observe && !o.Reading.RefuseHistory {
		o.inspectedThen(m, DetectorLocal)
		return
	}
	for _, p := range m {
		switch {
		case o.thought(p):
			o.Coverage.Skip("request."+p.Path, thoughtStays, p.Bytes)
		case o.Reading.RefuseHistory: // it is read with the newest turn
			pastMessage{p}.inspected(o.Coverage, DetectorLocal)
		default:
			o.redact(p, why)
		}
	}
}

// redact records that a part is replaced.
func (o *Opened) redact(p wire.Part, why string) {
	o.Coverage.Redacted = append(o.Coverage.Redacted, kernel.SkippedPart{Part: "request." + p.Path, Why: why, Bytes: p.Bytes})
}

// affordable returns the newest of the earlier messages that fit into the limit
// together with the newest turn.
func (o *Opened) affordable(in *Input, messages []pastMessage, parts []wire.Part) []pastMessage {
	if o.Reading.Limit == 0 {
		return messages
	}
	left := o.Reading.Limit
	for _, p := range parts {
		if !isHistory(p) {
			left -= int64(len(p.Text))
		}
	}
	from := len(messages)
	for ; from > 0 && messages[from-1].size() <= left; from-- {
		left -= messages[from-1].size()
	}
	for _, m := range messages[:from] {
		for _, p := range m {
			o.overflow(in, "request."+p.Path, len(p.Text))
		}
	}
	return messages[from:]
}

// Up to splitMost neighbouring messages, of splitReach bytes together, are searched
// for an attack that is split between them. Larger groups of what people and models say
// would cause false alarms, because harmless messages that are read as one text can look
// like an attack.
const (
	splitMost  = 4
	splitReach = 256
)

// lastWords returns the user's last messages before the newest turn, which are
// searched for an attack that the newest turn completes.
func lastWords(messages []pastMessage) (out []pastMessage) {
	size := int64(0)
	for _, m := range slices.Backward(messages) {
		if m[0].Role != wire.User {
			continue
		}
		if size += m.size(); len(out) == splitMost-1 || size > splitReach {
			break
		}
		out = append(out, m)
	}
	slices.Reverse(out)
	return out
}

// textsOf returns the texts of messages, in order.
func textsOf(messages []pastMessage) (texts []detect.Text) {
	for _, m := range messages {
		texts = append(texts, m.texts()...)
	}
	return texts
}

// separateAttacks separates the messages that would be refused now from those that are kept.
// An attack may be split over several neighbouring messages, which are then all
// removed. What was read of all of them has the scores of the attacks, bounded, for the
// session.
func (o *Opened) separateAttacks(ctx context.Context, messages []pastMessage) (kept, attacks []pastMessage, read detect.Signal, err error) {
	suspicious, read, err := o.suspects(ctx, messages)
	read.Scores = kernel.Scores{}
	if err != nil || !suspicious {
		return messages, nil, read, err
	}
	var worst kernel.Scores
	for _, m := range messages {
		refused, s, err := o.wouldRefuse(ctx, o.withoutThoughts(m))
		if err != nil {
			return nil, nil, read, err
		}
		if refused {
			attacks, worst = append(attacks, m), maxScores(worst, s.Scores)
		} else {
			kept = append(kept, m)
		}
	}
	together, scores, err := o.splitAttacks(ctx, kept)
	if err != nil {
		return nil, nil, read, err
	}
	var harmless []pastMessage
	for i, m := range kept {
		if together[i] {
			attacks = append(attacks, m)
		} else {
			harmless = append(harmless, m)
		}
	}
	read.Scores = capScores(maxScores(worst, scores), o.governor.Kernel.Policy())
	return harmless, attacks, read, nil
}

// suspects reports whether the messages may hold an attack, and what was read of them. It
// reads all of them as one text, and the user's alone as another.
func (o *Opened) suspects(ctx context.Context, messages []pastMessage) (refused bool, read detect.Signal, err error) {
	refused, read, err = o.wouldRefuse(ctx, messages...)
	if err != nil || refused {
		return refused, read, err
	}
	users := slices.DeleteFunc(slices.Clone(messages), func(m pastMessage) bool { return m[0].Role != wire.User })
	refused, _, err = o.wouldRefuse(ctx, users...)
	return refused, read, err
}

// splitAttacks marks the messages that are harmless alone but an attack together with
// their neighbours, among all messages, among the user's alone, and among what tools and
// documents say. Of the latter the detector only reads the seams together, so they may be
// of any size.
func (o *Opened) splitAttacks(ctx context.Context, messages []pastMessage) (marked []bool, worst kernel.Scores, err error) {
	marked = make([]bool, len(messages))
	var all, users, quoted []splitPart
	for i, m := range messages {
		m = o.withoutThoughts(m)
		if len(m) == 0 {
			continue
		}
		all = append(all, splitPart{i, m})
		if m[0].Role == wire.User {
			users = append(users, splitPart{i, m})
		}
		if q := m.quoted(); len(q) > 0 {
			quoted = append(quoted, splitPart{i, q})
		}
	}
	for _, row := range []struct {
		parts []splitPart
		reach int64
	}{{all, splitReach}, {users, splitReach}, {quoted, math.MaxInt64}} {
		for from := range row.parts {
			var group []pastMessage
			size, to := int64(0), from
			for ; to < len(row.parts) && len(group) < splitMost && size+row.parts[to].said.size() <= row.reach; to++ {
				group = append(group, row.parts[to].said)
				size += row.parts[to].said.size()
			}
			if len(group) < 2 {
				continue
			}
			refused, s, err := o.wouldRefuse(ctx, group...)
			if err != nil {
				return nil, worst, err
			}
			if !refused {
				continue
			}
			worst = maxScores(worst, s.Scores)
			for _, p := range row.parts[from:to] {
				marked[p.message] = true
			}
		}
	}
	return marked, worst, nil
}

// A splitPart is what is read of a message, by its index, together with its neighbours.
type splitPart struct {
	message int
	said    pastMessage
}

// wouldRefuse reports whether messages would be refused in a new session, and returns
// what was read of them.
func (o *Opened) wouldRefuse(ctx context.Context, messages ...pastMessage) (bool, detect.Signal, error) {
	texts := textsOf(messages)
	if len(texts) == 0 {
		return false, detect.Signal{}, nil
	}
	s, err := o.read(ctx, texts)
	if err != nil {
		return false, s, err
	}
	refused, err := o.governor.refusesAlone(s)
	return refused, s, err
}

// capScores keeps only the highest score, and keeps it under every severity threshold
// of a refusal.
func capScores(s kernel.Scores, p kernel.Policy) kernel.Scores {
	limit := min(removedCap, p.RefuseAt-0.01, p.RefuseAtDegraded-0.01, p.SevereAt-0.01)
	scores := []*float64{&s.Identity, &s.Coercion, &s.Exploitative, &s.HarmRequest, &s.Sycophancy, &s.Injection}
	highest := slices.MaxFunc(scores, func(a, b *float64) int { return cmp.Compare(*a, *b) })
	for _, score := range scores {
		if score != highest {
			*score = 0
		}
	}
	*highest = max(0, min(*highest, limit))
	return s
}

// A pastMessage holds the parts of one earlier message that have text, in order. The
// application's own instructions are never part of one, because they are assessed in
// every turn.
type pastMessage []wire.Part

func pastMessages(parts []wire.Part) (out []pastMessage) {
	last := 0
	for _, p := range parts {
		if !isHistory(p) {
			continue
		}
		if p.Message != last {
			out, last = append(out, nil), p.Message
		}
		out[len(out)-1] = append(out[len(out)-1], p)
	}
	return out
}

// isHistory reports whether a part belongs to the history that is cleaned.
func isHistory(p wire.Part) bool { return p.Earlier && p.Text != "" && p.Role != wire.System }

// digest returns a digest of the message's text.
func (m pastMessage) digest() string {
	return digestOf(messageDigestSize, func(h *textHash) {
		last := ""
		for _, p := range m {
			if p.Kind == wire.RefusalText && p.Text == last {
				continue // our refusals have the same text twice
			}
			last = p.Text
			h.write(p.Text)
		}
	})
}

// messageDigestSize is how many bytes of a hash tell the messages of a session apart.
const messageDigestSize = 8

func messageDigest(text string) string {
	return digestOf(messageDigestSize, func(h *textHash) { h.write(text) })
}

func (m pastMessage) texts() []detect.Text {
	out := make([]detect.Text, len(m))
	for i, p := range m {
		out[i] = detect.Text{Source: loose.SourceOf(p), Body: p.Text, Part: "request." + p.Path}
	}
	return out
}

// quoted returns what tools and documents say in the message.
func (m pastMessage) quoted() (out pastMessage) {
	for _, p := range m {
		if loose.SourceOf(p) == detect.Tool {
			out = append(out, p)
		}
	}
	return out
}

func (m pastMessage) size() (n int64) {
	for _, p := range m {
		n += int64(len(p.Text))
	}
	return n
}

// inspected records that a detector read the message.
func (m pastMessage) inspected(c *Coverage, detector string) {
	for _, p := range m {
		if p.Kind == wire.Unknown {
			c.NotKnown("request."+p.Path, unknownRead, 0)
		}
		c.Inspect("request."+p.Path, detector, p.Bytes)
	}
}

// newestMessages returns the messages of the newest turn as they will be when they come
// back as history.
func newestMessages(parts []wire.Part) []pastMessage {
	var newest []wire.Part
	for _, p := range parts {
		if p.Message > 0 && !p.Earlier && p.Role != wire.System {
			p.Earlier = true
			newest = append(newest, p)
		}
	}
	return pastMessages(newest)
}

// place notes the digests and the places of the newest messages, and which of the past ones
// say the same as one of them. It returns the digests and the places of the past ones.
func (in *Input) place(past, newest []pastMessage) (digests, places []string) {
	for _, m := range slices.Concat(past, newest) {
		digests = append(digests, m.digest())
	}
	places = placesOf(digests)
	in.messages, in.places = digests[len(past):], places[len(past):]
	for i, digest := range digests[:len(past)] {
		if slices.Contains(in.messages, digest) {
			in.equals = append(in.equals, places[i])
		}
	}
	return digests[:len(past)], places[:len(past)]
}

// placeSpan is how many messages before it tell the place of a message. The whole
// conversation would tell it better, but clients cut its beginning off.
const placeSpan = 4

// placesOf returns the places of messages in a conversation, by their digests.
func placesOf(digests []string) []string {
	places := make([]string, len(digests))
	for i := range digests {
		places[i] = messageDigest(strings.Join(digests[max(0, i-placeSpan):i+1], " "))
	}
	return places
}
