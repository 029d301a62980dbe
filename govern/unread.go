package govern

import (
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/wire"
)

// A text that could not be read whole comes back with the conversation, and is then no
// more inspected than it was. So the session remembers a mark of it, and why and how much
// was not read. Later turns list it again, except that what was beyond the limit is read
// as a new text is: there may be room for it now.

// An unreadText is what a session remembers of a text that was not read whole.
type unreadText struct {
	// Mark recognises the text. It is "" where the text itself is remembered.
	Mark  string `json:"m,omitempty"`
	Why   string `json:"w"`
	Bytes int    `json:"n,omitempty"`
}

// gapsOf returns what is remembered of a text.
func (m *memory) gapsOf(mark string) (gaps []unreadText) {
	for _, u := range m.Unread {
		if u.Mark == mark {
			gaps = append(gaps, u)
		}
	}
	return gaps
}

// A unit is what the digest of a conversation tells apart: a part of a message that is not
// the assistant's, or all that the assistant said in a row, in whatever parts it comes.
type unit struct {
	parts []wire.Part
	said  bool // by the assistant
	text  string
}

// mark recognises the unit when it is resent. The secret is that of its session.
func (u unit) mark(secret []byte) string {
	return kernel.Commit(secret, "not read "+u.text)[:16]
}

// saidUnit is the unit of what the assistant said in a row.
func saidUnit(text string) unit { return unit{said: true, text: strings.TrimSpace(text)} }

// units divides the conversation, as splitAnew does.
func (c *Conversation) units() (units []unit) {
	var said strings.Builder
	var of []wire.Part
	flush := func() {
		if u := saidUnit(said.String()); u.text != "" {
			u.parts = of
			units = append(units, u)
		}
		said.Reset()
		of = nil
	}
	for from := 0; from < len(c.parts); {
		p, to := c.parts[from], from+1
		if !c.assistants[p.Message] {
			flush()
			units = append(units, unit{parts: c.parts[from:to], text: string(p.Role) + " " + string(p.Kind) + " " + partText(p)})
		} else {
			for to < len(c.parts) && c.parts[to].Message == p.Message {
				to++
			}
			covered, _ := c.divide(c.parts[from:to])
			said.WriteString(c.visible(c.parts[from:to]))
			of = append(of, covered...)
		}
		from = to
	}
	flush()
	return units
}

// recall finds the texts of the history that the session knows as not read whole.
func (o *Opened) recall() {
	o.unread = nil
	if o.Conversation == nil || len(o.memory.Unread) == 0 {
		return
	}
	gaps := make(map[string][]unreadText)
	for _, gap := range o.memory.Unread {
		gaps[gap.Mark] = append(gaps[gap.Mark], gap)
	}
	o.unread = make(map[string][]unreadText)
	for _, u := range o.Conversation.units() {
		for _, gap := range gaps[u.mark(o.session.Secret)] {
			o.placeGap(u, gap)
		}
	}
}

// placeGap notes the gap of a unit at its parts. What is not read of a text is its end, and
// for all other gaps the last part stands for the unit.
func (o *Opened) placeGap(u unit, gap unreadText) {
	for i, p := range slices.Backward(u.parts) {
		here := gap
		if gap.Why == beyondJudge && i > 0 {
			here.Bytes = min(gap.Bytes, len(p.Text))
		}
		o.unread[p.Path] = append(o.unread[p.Path], here)
		if gap.Bytes -= here.Bytes; gap.Bytes <= 0 {
			return
		}
	}
}

// wasBeyond reports whether a part of the history was beyond the limit, at least in part.
func (o *Opened) wasBeyond(p wire.Part) bool {
	return slices.ContainsFunc(o.unread[p.Path], func(u unreadText) bool { return u.Why == beyondLimit })
}

// recognised divides a message of a known history into what earlier turns have inspected
// and what is to be read.
func (o *Opened) recognised(m pastMessage) (inspected, rest pastMessage) {
	for _, p := range m {
		if o.Conversation.covers(p) && !o.wasBeyond(p) {
			inspected = append(inspected, p)
		} else {
			rest = append(rest, p)
		}
	}
	return inspected, rest
}

// inspectedThen records that a message was inspected when it was new, as far as it was.
func (o *Opened) inspectedThen(m pastMessage, detector string) {
	for _, p := range m {
		read := p
		for _, gap := range o.unread[p.Path] {
			if gap.Why == beyondJudge || gap.Why == beyondLimit {
				read.Bytes -= gap.Bytes
			}
		}
		if o.skipAgain(p); read.Bytes > 0 {
			pastMessage{read}.inspected(o.Coverage, detector)
		}
	}
}

// skipAgain lists what was not read of a part when it was new.
func (o *Opened) skipAgain(p wire.Part) {
	for _, gap := range o.unread[p.Path] {
		o.Coverage.Skip("request."+p.Path, gap.Why, gap.Bytes)
	}
}

// skipGaps records what could not be read of messages of the history, and notes it for the
// parts that the session will know by the mark of the message.
func (o *Opened) skipGaps(in *Input, messages []pastMessage, gaps []detect.Gap) {
	if len(gaps) == 0 {
		return
	}
	of := make(map[string][]detect.Gap)
	for _, g := range gaps {
		of[g.Part] = append(of[g.Part], g)
	}
	for _, m := range messages {
		for _, p := range m {
			o.Coverage.skipGaps(of["request."+p.Path])
		}
		if o.Conversation == nil {
			continue
		}
		_, hidden := o.Conversation.divide(m)
		for _, p := range hidden {
			for _, g := range of["request."+p.Path] {
				if g.Unopened {
					in.gaps = append(in.gaps, unreadText{o.markOf(hidden), tooDeep, 0})
				}
				if g.Unread > 0 {
					in.gaps = append(in.gaps, unreadText{o.markOf(hidden), noLanguage, g.Unread})
				}
			}
		}
	}
}

// unreadOfRequest returns what the session is to remember of the texts of the request. The
// client gets the choices: each goes on with what the assistant said last.
func (j *Judged) unreadOfRequest(choices []string) []unreadText {
	o, unread := j.Opened, slices.Clone(j.input.gaps)
	skipped := make(map[string][]kernel.SkippedPart)
	for _, s := range o.Coverage.Skipped {
		if isGap(s.Why) {
			skipped[s.Part] = append(skipped[s.Part], s)
		}
	}
	if len(skipped) == 0 {
		return unread
	}
	units := o.Conversation.units()
	for i, u := range units {
		bytes := make(map[string]int)
		var whys []string
		for _, p := range u.parts {
			for _, s := range skipped["request."+p.Path] {
				if bytes[s.Why] += s.Bytes; !slices.Contains(whys, s.Why) {
					whys = append(whys, s.Why)
				}
			}
		}
		if len(whys) == 0 {
			continue
		}
		later := []unit{u}
		if u.said && i == len(units)-1 { // the answer continues it
			for _, text := range choices {
				later = append(later, saidUnit(u.text+text))
			}
		}
		for _, u := range later {
			for _, why := range whys {
				unread = append(unread, unreadText{u.mark(o.session.Secret), why, bytes[why]})
			}
		}
	}
	return unread
}

// unreadOfAnswer returns what the session with the secret is to remember of the choices of
// the answer, of which the judge reads maxJudged bytes together.
func (j *Judged) unreadOfAnswer(secret []byte, choices []string) (unread []unreadText) {
	c, left := j.Opened.Conversation, maxJudged
	for _, text := range choices {
		read := min(len(text), left)
		if left -= read; read < len(text) {
			_, before := c.split(len(c.parts))
			unread = append(unread, unreadText{saidUnit(before + text).mark(secret), beyondJudge, len(text) - read})
		}
	}
	return unread
}

// unreadOfPrompt returns what the session is to remember of a prompt of which it keeps the
// beginning.
func (j *Judged) unreadOfPrompt() (unread []unreadText) {
	for _, s := range j.Opened.Coverage.Skipped {
		if s.Part == "request.prompt" && isGap(s.Why) {
			unread = append(unread, unreadText{Why: s.Why, Bytes: min(s.Bytes, len(excerpt(j.input.Prompt, maxExcerpt)))})
		}
	}
	return unread
}

// remembers brings what is not read into the memory. A session that would have to remember
// more than maxUnread texts does not recognise its conversation, which is read anew.
func (m *memory) remembers(unread []unreadText) {
	if m.Unread = unread; len(unread) > maxUnread {
		m.Unread, m.Histories = nil, nil
	}
}
