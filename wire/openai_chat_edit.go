package wire

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// How blocked calls are taken out of the answers of the chat completions API. The calls
// that stay are numbered from 0 without a gap, because JavaScript's helper takes numbers
// for places. Lists without elements go too: a client sends the message back, and the API
// takes no empty list.

// chatEdit is what is taken out of an answer, by choice.
type chatEdit map[int]*chatEditedChoice

type chatEditedChoice struct {
	blocked map[string]bool // keys
	left    int             // how many calls stay
	numbers map[string]int  // those of them in tool_calls, by key
	first   string          // the key of the first call, if it is blocked
	heir    string          // the key of the first in tool_calls that stays
	extra   string          // what the first one leaves to the heir, as JSON
	member  string          // where the note stands: content or refusal
	note    string
	spoken  bool // the client has text of the choice before the note
	noted   bool
}

// newChatEdit takes the calls of an answer in order. An error wraps [ErrCalls].
func newChatEdit(calls []ToolCall, blocked []BlockedCall) (chatEdit, error) {
	notes, err := byKey(calls, blocked)
	if err != nil {
		return nil, err
	}
	edit := make(chatEdit)
	for _, c := range calls {
		b, ok := notes[c.Key]
		switch {
		case ok && standsAstray(c):
			return nil, cannotEdit("a blocked call stands where the dialect has none")
		case ok:
			edit.block(c, b)
		}
	}
	for i, c := range calls {
		e := edit[c.Choice]
		switch {
		case e == nil:
		case e.blocked[c.Key]:
			if i == 0 || calls[i-1].Choice != c.Choice {
				e.first = c.Key
			}
		default:
			if e.left++; !isLegacyCall(c) {
				e.heir = cmp.Or(e.heir, c.Key)
				e.numbers[c.Key] = len(e.numbers)
			}
		}
	}
	return edit, nil
}

// block notes a call to take out. The notes of a choice stand in one place, that of the
// first.
func (edit chatEdit) block(c ToolCall, b BlockedCall) {
	e := edit[c.Choice]
	if e == nil {
		e = &chatEditedChoice{blocked: make(map[string]bool), numbers: make(map[string]int), member: "content"}
		if b.Place == OnlyRefusal {
			e.member = "refusal"
		}
		edit[c.Choice] = e
	}
	e.blocked[c.Key] = true
	e.note = joinNotes(e.note, b.Note)
}

func isLegacyCall(c ToolCall) bool { return strings.Contains(c.Key, "/"+strconv.Itoa(legacyCall)+"/") }

// inherit notes what a call has besides. Gemini's endpoint signs the first of parallel
// calls there, and takes none back without the signature
// (https://ai.google.dev/gemini-api/docs/thought-signatures).
func (e *chatEditedChoice) inherit(key string, call gjson.Result) {
	switch v := call.Get("extra_content"); {
	case !v.IsObject():
	case key == e.first:
		e.extra = cmp.Or(e.extra, v.Raw)
	case key == e.heir:
		e.heir = "" // it has its own
	}
}

// bequeath gives the heir what the first call had.
func (c *changes) bequeath(key string, call gjson.Result, e *chatEditedChoice) {
	if key == e.heir && e.extra != "" {
		c.add(call, "extra_content", e.extra, 1)
		e.heir = "" // once
	}
}

// WithoutCalls implements [CallEditor].
func (chat) WithoutCalls(body []byte, blocked []BlockedCall) ([]byte, error) {
	root, err := parse(body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCalls, err)
	}
	choices := root.Get("choices")
	edit, err := newChatEdit(chatResponseCalls(choices), blocked)
	if err != nil {
		return nil, err
	}
	if choices.Get("#").Int() > MaxChoices {
		return nil, cannotEdit("it has too many choices")
	}
	var s changes
	elements(choices, func(place int, choice gjson.Result) {
		e := edit[place]
		if e == nil || err != nil {
			return
		}
		message := choice.Get("message")
		chatCallsOf(message, func(at int, v gjson.Result) { e.inherit(chatKey(place, at, 0), v) })
		chatCallsOf(message, func(at int, v gjson.Result) { s.bequeath(chatKey(place, at, 0), v, e) })
		left := s.withoutCalls(message, func(at int) bool { return e.blocked[chatKey(place, at, 0)] })
		err = s.say(message, e.member, e.note, "", left)
		s.endChoice(choice, e)
	})
	if err != nil {
		return nil, err
	}
	return s.apply(body), nil
}

// withoutCalls takes calls out of a message or a delta, and returns how many members are
// left of it. Gone gets their places.
func (c *changes) withoutCalls(message gjson.Result, gone func(at int) bool) (left int) {
	emptied := c.thin(message.Get("tool_calls"), gone)
	return c.drop(message, func(name string, _ int) bool {
		return name == "tool_calls" && emptied || name == "function_call" && gone(legacyCall)
	})
}

// endChoice says how an edited choice ends, if it does, and drops the log probabilities,
// which repeat the answer token by token.
func (c *changes) endChoice(choice gjson.Result, e *chatEditedChoice) {
	if v := choice.Get("logprobs"); v.Type != gjson.Null {
		c.replace(v, "null")
	}
	if v := choice.Get("finish_reason"); e.left == 0 && (v.Str == "tool_calls" || v.Str == "function_call") {
		c.replace(v, `"stop"`)
	}
}

// A chatStream ends the streams of the chat completions API.
type chatStream struct {
	openaiStream
	content, refusal bool // the client has text there
}

// Sent implements [StreamWriter].
func (s *chatStream) Sent(f Frame) {
	s.openaiStream.Sent(f)
	if !s.content && !s.refusal && len(f.Data) > 0 {
		delta := gjson.GetBytes(f.Data, "choices.0.delta")
		s.content, s.refusal = delta.Get("content").Str != "", delta.Get("refusal").Str != ""
	}
}

// A chatFrame is a frame with what is read in it.
type chatFrame struct {
	Frame
	root   gjson.Result
	pieces []chatPiece
}

// WithoutCalls implements [StreamCallEditor]. The note of a choice stands before its end,
// in a frame of its own if possible, because some clients read nothing beside a finish
// reason.
func (s *chatStream) WithoutCalls(frames []Frame, blocked []BlockedCall) ([]byte, error) {
	read, edit, err := readChatFrames(frames, blocked)
	if err != nil {
		return nil, err
	}
	for _, f := range read {
		for _, piece := range f.pieces {
			if e := edit[piece.Choice]; e != nil {
				e.spoken = e.member == "content" && s.content || e.member == "refusal" && s.refusal
				e.inherit(piece.Key, piece.value)
			}
		}
	}
	w := chatRewriter{edit: edit, head: s.head(read)}
	for _, f := range read {
		if err := w.frame(f); err != nil {
			return nil, err
		}
	}
	w.endNotes()
	return w.out, nil
}

// head is what the chunks of the stream have in common.
func (s *chatStream) head(frames []chatFrame) openaiBody {
	chunk := gjson.ParseBytes(s.chunk)
	for i := 0; i < len(frames) && !chunk.IsObject(); i++ {
		chunk = frames[i].root
	}
	return openaiBody{ID: chunk.Get("id").Str, Object: s.object, Created: chunk.Get("created").Int(), Model: chunk.Get("model").Str}
}

// readChatFrames reads the frames from the first call on.
func readChatFrames(frames []Frame, blocked []BlockedCall) (read []chatFrame, edit chatEdit, err error) {
	var calls chatCalls
	var gatherer CallGatherer
	for _, f := range frames {
		one := chatFrame{Frame: f}
		if !f.Comment && len(f.Data) > 0 && !bytes.HasPrefix(f.Data, doneData) {
			if one.root, err = parse(f.Data); err != nil {
				return nil, nil, fmt.Errorf("%w: %w", ErrCalls, err)
			}
			one.pieces = calls.read(one.root.Get("choices"))
		}
		for _, piece := range one.pieces {
			if err = gatherer.Add([]CallDelta{piece.CallDelta}); err != nil {
				return nil, nil, err
			}
		}
		read = append(read, one)
	}
	edit, err = newChatEdit(gatherer.Calls(), blocked)
	return read, edit, err
}

// A chatRewriter writes the frames of an edited answer.
type chatRewriter struct {
	edit chatEdit
	head openaiBody
	out  []byte
}

// frame writes a frame. One that has nothing left but an empty delta is left out.
func (w *chatRewriter) frame(f chatFrame) error {
	if bytes.HasPrefix(f.Data, doneData) || isError(f.root.Get("error")) {
		w.endNotes()
	}
	var s changes
	var err error
	choices, rest, emptied := f.root.Get("choices"), f.pieces, 0
	elements(choices, func(place int, choice gjson.Result) {
		pieces := rest
		for len(rest) > 0 && rest[0].place == place {
			rest = rest[1:]
		}
		number, _ := choiceIndex(choice.Get("index"))
		if e := w.edit[number]; e != nil && err == nil {
			var empty bool
			if empty, err = w.choice(&s, choice, pieces[:len(pieces)-len(rest)], number, e); empty {
				emptied++
			}
		}
	})
	switch {
	case err != nil:
		return err
	case len(s) == 0:
		w.out = append(w.out, f.Raw...)
	case emptied < int(choices.Get("#").Int()) || f.root.Get("usage").IsObject():
		s.drop(f.root, func(name string, _ int) bool { return name == "obfuscation" }) // pads the frame that was
		w.out = append(w.out, f.withData(s.apply(f.Data))...)
	}
	return nil
}

// choice edits one choice of a chunk, with its pieces of calls. It reports whether nothing
// is left of it.
func (w *chatRewriter) choice(s *changes, choice gjson.Result, pieces []chatPiece, number int, e *chatEditedChoice) (empty bool, err error) {
	delta, finish := choice.Get("delta"), choice.Get("finish_reason").Str
	blocked := make(map[int]bool)
	for _, piece := range pieces {
		if blocked[piece.at] = e.blocked[piece.Key]; !blocked[piece.at] && piece.at != legacyCall {
			s.renumber(piece.value.Get("index"), e.numbers[piece.Key])
			s.bequeath(piece.Key, piece.value, e)
		}
	}
	left := s.withoutCalls(delta, func(at int) bool { return blocked[at] })
	if finish != "" && !e.noted {
		if e.noted = true; delta.Get("role").Exists() || delta.Get(e.member).Str != "" {
			err = s.say(delta, e.member, e.note, lead(e.spoken), left)
		} else {
			w.note(number, e)
		}
	}
	s.endChoice(choice, e)
	e.spoken = e.spoken || delta.Get(e.member).Str != ""
	return left == 0 && finish == "" && len(blocked) > 0, err
}

// note writes a frame with the note of a choice.
func (w *chatRewriter) note(choice int, e *chatEditedChoice) {
	w.head.Choices = []openaiChoice{{Index: choice, Delta: map[string]string{e.member: lead(e.spoken) + e.note}}}
	w.out = AppendEvent(w.out, encode(w.head))
}

// endNotes writes the notes that no choice's end has called for.
func (w *chatRewriter) endNotes() {
	for choice := range MaxChoices {
		e := w.edit[choice]
		if e == nil || e.noted {
			continue
		}
		if e.noted = true; !endsFrame(w.out) {
			w.out = append(w.out, "\n\n"...)
		}
		w.note(choice, e)
	}
}

// endsFrame reports whether what was written ends with a blank line.
func endsFrame(b []byte) bool {
	return len(b) == 0 || bytes.HasSuffix(b, []byte("\n\n")) || bytes.HasSuffix(b, []byte("\n\r\n")) || bytes.HasSuffix(b, []byte("\r\r"))
}
