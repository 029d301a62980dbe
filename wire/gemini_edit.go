package wire

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/tidwall/gjson"
)

// WithoutCalls implements [CallEditor]. A text stands in the place of each call, whatever
// Place says: a client shows nothing that stands beside the content.
func (gemini) WithoutCalls(body []byte, blocked []BlockedCall) ([]byte, error) {
	if len(blocked) == 0 {
		return body, nil
	}
	return geminiWithoutCalls([]Frame{{Raw: body, Data: body}}, blocked)
}

// WithoutCalls implements [StreamCallEditor].
func (s *geminiStream) WithoutCalls(frames []Frame, blocked []BlockedCall) ([]byte, error) {
	return geminiWithoutCalls(frames, blocked)
}

// WithoutCalls implements [StreamCallEditor]. The first frame of the first call stays, and
// a comma belongs to the element behind it, so the array stays one.
func (s *geminiArray) WithoutCalls(frames []Frame, blocked []BlockedCall) ([]byte, error) {
	return geminiWithoutCalls(frames, blocked)
}

// A geminiPlace is where a part stands in the chunks of an answer.
type geminiPlace struct{ frame, candidate, part int }

// A geminiEdit takes calls out of the chunks of an answer.
type geminiEdit struct {
	frames []Frame
	roots  []gjson.Result // of the frames
	parts  []geminiCallPart
	places []geminiPlace // of the parts
	notes  map[string]BlockedCall
	with   map[geminiPlace][]byte // what stands in the place of a part; nil for nothing
	left   map[int]bool           // whether a call is left, by choice; of those with a blocked one
}

func geminiWithoutCalls(frames []Frame, blocked []BlockedCall) ([]byte, error) {
	if len(blocked) == 0 {
		return appendRaw(nil, frames), nil
	}
	e := geminiEdit{frames: frames, with: make(map[geminiPlace][]byte), left: make(map[int]bool)}
	calls, err := e.read()
	if err != nil {
		return nil, err
	}
	if e.notes, err = byKey(calls, blocked); err != nil {
		return nil, err
	}
	for _, c := range calls {
		if _, ok := e.notes[c.Key]; ok {
			e.left[c.Choice] = false
		}
	}
	if err := e.replaceCalls(); err != nil {
		return nil, err
	}
	return e.write(), nil
}

// read finds the parts with calls, and returns the calls.
func (e *geminiEdit) read() ([]ToolCall, error) {
	var s geminiCalls
	var all CallGatherer
	for i, f := range e.frames {
		root, deltas := gjson.Result{}, []CallDelta(nil)
		if !f.Comment && len(f.Data) > 0 && !bytes.Equal(f.Data, closingBracket) {
			var err error
			if root, err = parse(f.Data); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrCalls, err)
			}
			var w walk
			if geminiAnswer(&w, root); w.err != nil {
				return nil, fmt.Errorf("%w: %w", ErrCalls, w.err)
			}
			parts, ended := s.read(root)
			e.parts = append(e.parts, parts...)
			for _, p := range parts {
				e.places = append(e.places, geminiPlace{i, p.candidate, p.part})
				deltas = append(deltas, p.delta)
			}
			deltas = append(deltas, ended...)
		}
		e.roots = append(e.roots, root)
		if err := all.Add(deltas); err != nil {
			return nil, err
		}
	}
	return all.Calls(), nil
}

// replaceCalls finds what stands in the place of each part of a blocked call: the note in
// that of the first, nothing in those of the rest. Of parallel calls only the first has the
// signature of the reasoning behind them, and the API refuses a history in which the first
// has none (https://ai.google.dev/gemini-api/docs/thought-signatures). So the signature
// moves to the first call that is left. Without one it stays with the note: the API does
// not ask for the signatures of texts.
func (e *geminiEdit) replaceCalls() error {
	firsts := make(map[string]geminiPlace) // by key
	signatures := make(map[string]string)
	left := make(map[int]bool)           // choices of which a call stays
	waiting := make(map[int][]CallDelta) // blocked calls before it, by choice
	for i, p := range e.parts {
		at, call := e.places[i], p.delta
		note, blocked := e.notes[call.Key]
		first, again := firsts[call.Key]
		if !again {
			first, firsts[call.Key] = at, at
		}
		signature := member(p.value, "thoughtSignature").Raw
		switch {
		case blocked && !onlyCalls(p.value):
			return cannotEdit("a part has more than a call")
		case blocked:
			signatures[call.Key] = cmp.Or(signatures[call.Key], signature)
			if at != first {
				e.with[at] = nil
			}
			e.with[first] = notePart(note.Note, signatures[call.Key])
			if !left[call.Choice] && !again {
				waiting[call.Choice] = append(waiting[call.Choice], call)
			}
		case again || left[call.Choice]:
		default:
			left[call.Choice] = true
			from := slices.IndexFunc(waiting[call.Choice], func(c CallDelta) bool { return signatures[c.Key] != "" })
			if signature == "" && from >= 0 {
				key := waiting[call.Choice][from].Key
				e.with[at] = append([]byte(`{"thoughtSignature":`+signatures[key]+","), p.value.Raw[1:]...)
				e.with[firsts[key]] = notePart(e.notes[key].Note, "")
			}
		}
	}
	for choice := range e.left {
		e.left[choice] = left[choice]
	}
	return nil
}

// elementsOf returns the elements of an array, or the one that stands for it.
func elementsOf(v gjson.Result) (all []gjson.Result) {
	forOneOrMore(v, func(element gjson.Result) { all = append(all, element) })
	return all
}

// onlyCalls reports whether a part has nothing but a call, and what is said of it.
func onlyCalls(part gjson.Result) bool {
	only := true
	part.ForEach(func(name, value gjson.Result) bool {
		switch name.Str {
		case "functionCall", "function_call", "thoughtSignature", "thought_signature", "thought", "partMetadata", "part_metadata":
		default:
			only = value.Type == gjson.Null
		}
		return only
	})
	return only
}

// notePart is a part with a note.
func notePart(note, signature string) []byte {
	out := encode(geminiText{note})
	if signature == "" {
		return out
	}
	return append(out[:len(out)-1], `,"thoughtSignature":`+signature+"}"...)
}

// write returns the frames without the calls.
func (e *geminiEdit) write() (out []byte) {
	for i, f := range e.frames {
		var c changes
		empty := true // nothing but metadata is left
		place := 0
		forOneOrMore(e.roots[i].Get("candidates"), func(candidate gjson.Result) {
			empty = e.editCandidate(&c, i, place, candidate) && empty
			place++
		})
		switch {
		case len(c) == 0:
			out = append(out, f.Raw...)
		case !empty || !hasOnly(e.roots[i], "candidates", "usageMetadata", "modelVersion", "responseId", "createTime"):
			out = append(out, f.withData(c.apply(f.Data))...)
		}
	}
	return out
}

// editCandidate edits a candidate, and reports whether nothing is left of it.
func (e *geminiEdit) editCandidate(c *changes, frame, place int, candidate gjson.Result) (emptied bool) {
	left, blocked := e.left[candidateIndex(candidate, place)]
	if !blocked {
		return false
	}
	emptied = e.editParts(c, frame, place, candidate.Get("content.parts"))
	if v := member(candidate, "logprobsResult"); v.Type != gjson.Null { // the answer again, token by token
		c.replace(v, "null")
	}
	if reason := member(candidate, "finishReason"); blamesCall(reason.Str) {
		if message := member(candidate, "finishMessage"); message.Type != gjson.Null { // it quotes the call
			c.replace(message, "null")
		}
		if !left {
			c.replace(reason, `"STOP"`)
		}
	}
	return emptied && hasOnly(candidate, "content", "index", "safetyRatings", "tokenCount", "avgLogprobs", "logprobsResult")
}

// blamesCall reports whether an answer ended for a call that the model should not have made.
func blamesCall(reason string) bool {
	return reason == "MALFORMED_FUNCTION_CALL" || reason == "UNEXPECTED_TOOL_CALL" || reason == "TOO_MANY_TOOL_CALLS"
}

// editParts edits a list of parts, and reports whether none is left. Such a list gets an
// empty text, as the API's own last chunks have it: clients drop a turn with a content that
// has no parts.
func (e *geminiEdit) editParts(c *changes, frame, place int, parts gjson.Result) (emptied bool) {
	left := 0
	all := elementsOf(parts)
	for i, part := range all {
		text, replaced := e.with[geminiPlace{frame, place, i}]
		if replaced && text != nil {
			c.replace(part, string(text))
		}
		if !replaced || text != nil {
			left++
		}
	}
	switch {
	case len(all) == 0 || left == len(all):
		return false
	case left == 0:
		c.replace(parts, `[{"text":""}]`)
		return true
	}
	c.drop(parts, func(_ string, at int) bool {
		text, replaced := e.with[geminiPlace{frame, place, at}]
		return replaced && text == nil
	})
	return false
}

// hasOnly reports whether an object has no members but these, in either spelling.
func hasOnly(v gjson.Result, names ...string) bool {
	only := true
	v.ForEach(func(name, _ gjson.Result) bool {
		only = slices.ContainsFunc(names, func(n string) bool { return name.Str == n || name.Str == snakeCase(n) })
		return only
	})
	return only
}

// Interface guards
var (
	_ CallEditor       = gemini{}
	_ StreamCallEditor = (*geminiStream)(nil)
	_ StreamCallEditor = (*geminiArray)(nil)
)
