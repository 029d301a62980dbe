package wire

import (
	"bytes"
	"strconv"

	"github.com/tidwall/gjson"
)

// geminiTools are the functions that a call declares.
func geminiTools(root gjson.Result) (tools []ToolDefinition) {
	forOneOrMore(root.Get("tools"), func(tool gjson.Result) {
		forOneOrMore(member(tool, "functionDeclarations"), func(declared gjson.Result) {
			schema := member(declared, "parameters")
			if schema.Type == gjson.Null {
				schema = member(declared, "parametersJsonSchema")
			}
			if d := toolDefinition(declared, schema); d.Name != "" {
				tools = append(tools, d)
			}
		})
	})
	return tools
}

// forOneOrMore calls a function with each element of an array, or with the one that
// stands for it.
func forOneOrMore(v gjson.Result, do func(gjson.Result)) {
	switch {
	case v.IsArray():
		v.ForEach(func(_, element gjson.Result) bool { do(element); return true })
	case v.Exists():
		do(v)
	}
}

// geminiCalls follows the calls of one answer, whole or streamed. A call is one part, or
// with streamFunctionCallArguments, which the caller has to ask for, several: the first
// has the name, those behind it have partialArgs, and the last has no willContinue.
type geminiCalls struct {
	calls int                   // that have begun
	open  map[int]*geminiPieces // calls that go on, by choice
}

// A geminiCallPart is a part with a functionCall.
type geminiCallPart struct {
	candidate int // its place in the chunk
	part      int // its place in the candidate
	value     gjson.Result
	delta     CallDelta
}

// mayCall reports whether a chunk may have a call, or the end of one.
func (s *geminiCalls) mayCall(chunk []byte) bool {
	return len(s.open) > 0 || bytes.Contains(chunk, []byte("unction")) || bytes.Contains(chunk, []byte(`\u`))
}

// read takes the next chunk. Calls that end with their choice, without an end of their
// own, have no part there.
func (s *geminiCalls) read(root gjson.Result) (parts []geminiCallPart, ended []CallDelta) {
	candidate := 0
	forOneOrMore(root.Get("candidates"), func(v gjson.Result) {
		choice := candidateIndex(v, candidate)
		part := 0
		forOneOrMore(v.Get("content.parts"), func(p gjson.Result) {
			if call := member(p, "functionCall"); call.Type != gjson.Null {
				for _, delta := range s.part(choice, call) {
					parts = append(parts, geminiCallPart{candidate, part, p, delta})
				}
			}
			part++
		})
		if isReason(v.Get("finishReason").Str) || isReason(v.Get("finish_reason").Str) {
			ended = append(ended, s.end(choice)...)
		}
		candidate++
	})
	return parts, ended
}

// candidateIndex is the number of the choice that a candidate belongs to.
func candidateIndex(candidate gjson.Result, place int) int {
	if v := candidate.Get("index"); v.Exists() {
		place, _ = choiceIndex(v)
	}
	if place >= MaxChoices {
		return 0
	}
	return place
}

// part reads a functionCall. Some clients take one that begins before another has ended
// for the rest of that, and one without a name for the rest of one that has ended.
func (s *geminiCalls) part(choice int, call gjson.Result) []CallDelta {
	id, name := call.Get("id").Str, call.Get("name").Str
	args, pieces := call.Get("args"), member(call, "partialArgs")
	goesOn := member(call, "willContinue").Type == gjson.True
	at := s.open[choice]
	if at != nil && name == "" && (id == "" || id == at.id) && args.Type == gjson.Null {
		return s.goOn(choice, at, pieces, goesOn)
	}
	delta := CallDelta{
		ToolCall: ToolCall{
			Key: strconv.Itoa(s.calls), Choice: choice, ID: id, Name: name, Arguments: args.Raw,
			Unclear: at != nil || name == "" || saysElsewhere(call, "name", "args"),
		},
	}
	s.calls++
	if !goesOn && pieces.Type == gjson.Null {
		delta.Whole = true
		return []CallDelta{delta}
	}
	delta.Unclear = delta.Unclear || args.Type != gjson.Null // some clients take these, some the pieces
	at = &geminiPieces{key: delta.Key, id: id}
	if s.open == nil {
		s.open = make(map[int]*geminiPieces)
	}
	s.open[choice] = at
	return append([]CallDelta{delta}, s.goOn(choice, at, pieces, goesOn)...)
}

// goOn takes pieces of a call that is open.
func (s *geminiCalls) goOn(choice int, at *geminiPieces, pieces gjson.Result, goesOn bool) []CallDelta {
	forOneOrMore(pieces, at.add)
	delta := CallDelta{ToolCall: ToolCall{Key: at.key, Choice: choice, Unclear: at.unclear}}
	if goesOn {
		return []CallDelta{delta}
	}
	delete(s.open, choice)
	delta.Arguments, delta.Whole = at.arguments(), true
	return []CallDelta{delta}
}

// end ends the call of a choice that has ended.
func (s *geminiCalls) end(choice int) []CallDelta {
	at := s.open[choice]
	if at == nil {
		return nil
	}
	return s.goOn(choice, at, gjson.Result{}, false)
}

// endAll ends the calls of an answer that has ended.
func (s *geminiCalls) endAll() (deltas []CallDelta) {
	for choice := range MaxChoices {
		if len(s.open) > 0 {
			deltas = append(deltas, s.end(choice)...)
		}
	}
	return deltas
}

// deltas are what a chunk brings of calls.
func (s *geminiCalls) deltas(root gjson.Result) (deltas []CallDelta) {
	parts, ended := s.read(root)
	for _, p := range parts {
		deltas = append(deltas, p.delta)
	}
	return append(deltas, ended...)
}

// geminiWholeCalls are the calls of a whole answer. If clients can put them together in
// different ways, each part is one.
func geminiWholeCalls(root gjson.Result) (calls []ToolCall) {
	var s geminiCalls
	var all CallGatherer
	if all.Add(append(s.deltas(root), s.endAll()...)) == nil {
		return all.Calls()
	}
	candidate := 0
	forOneOrMore(root.Get("candidates"), func(v gjson.Result) {
		choice := candidateIndex(v, candidate)
		candidate++
		forOneOrMore(v.Get("content.parts"), func(part gjson.Result) {
			if call := member(part, "functionCall"); call.Type != gjson.Null {
				calls = append(calls, ToolCall{
					Key: strconv.Itoa(len(calls)), Choice: choice, ID: call.Get("id").Str, Name: call.Get("name").Str,
					Arguments: member(call, "args").Raw, Unclear: true,
				})
			}
		})
	})
	return calls
}
