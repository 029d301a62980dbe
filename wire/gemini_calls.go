package wire

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"
)

// geminiTools are the functions that a call declares.
func geminiTools(root gjson.Result) (tools []ToolDefinition) {
	forOneOrMore(root.Get("tools"), func(tool gjson.Result) {
		forOneOrMore(member(tool, "functionDeclarations"), func(declared gjson.Result) {
			d := ToolDefinition{Name: declared.Get("name").Str, Description: declared.Get("description").Str}
			for _, name := range []string{"parameters", "parametersJsonSchema"} {
				if schema := member(declared, name); schema.Type != gjson.Null && d.Schema == nil {
					d.Schema = []byte(schema.Raw)
				}
			}
			if d.Name != "" {
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
			Unclear: at != nil || name == "",
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

// geminiPieces are arguments that come value by value, each with the path of the place
// where it belongs. They are read as the AI SDK reads them (google-json-accumulator.ts).
type geminiPieces struct {
	key, id string
	root    geminiValue
	unclear bool
}

// A geminiValue is a value of JSON that is being put together.
type geminiValue struct {
	names    []string
	members  map[string]*geminiValue // of an object, in the order of names
	elements []*geminiValue          // of an array
	text     *strings.Builder        // of a string
	raw      string                  // of any other value
	complete bool                    // it does not go on
}

// add adds a piece. Of what goes on behind its end, or has two forms, some clients take
// the first, some the last and some both. A piece without a value ends a text or a list,
// or is an empty object or, with [] behind its path, an empty list.
func (p *geminiPieces) add(piece gjson.Result) {
	steps, list, ok := jsonPath(member(piece, "jsonPath").Str)
	value, given := pieceValue(piece)
	goesOn := member(piece, "willContinue").Type == gjson.True
	at := p.root.find(steps)
	switch {
	case !ok, given > 1, given == 1 && list:
		p.unclear = true
	case given == 0 && at != nil:
		at.complete = at.complete || !goesOn
	case given == 0 && goesOn:
	default:
		if at = p.root.make(steps); at == nil || !at.set(value, list) {
			p.unclear = true
			return
		}
		at.complete = !goesOn
	}
}

// pieceValue is the value that a piece brings, and how many it does.
func pieceValue(piece gjson.Result) (value gjson.Result, given int) {
	for name, is := range map[string]func(gjson.Result) bool{
		"stringValue": func(v gjson.Result) bool { return v.Type == gjson.String },
		"numberValue": func(v gjson.Result) bool { return v.Type == gjson.Number },
		"boolValue":   gjson.Result.IsBool,
	} {
		switch v := member(piece, name); {
		case v.Type == gjson.Null:
		case !is(v):
			return value, 2 // or none, for some clients
		default:
			value, given = v, given+1
		}
	}
	if member(piece, "nullValue").Exists() {
		return gjson.Result{Raw: "null"}, given + 1
	}
	return value, given
}

// find returns the value at a path; nil if there is none.
func (v *geminiValue) find(steps []any) *geminiValue {
	for _, step := range steps {
		if v == nil {
			return nil
		}
		switch step := v.step(step).(type) {
		case string:
			v = v.members[step]
		case int:
			if step >= len(v.elements) {
				return nil
			}
			v = v.elements[step]
		}
	}
	return v
}

// make returns the value at a path, a new one if need be; nil if there can be none.
// Elements come in their order.
func (v *geminiValue) make(steps []any) *geminiValue {
	for _, step := range steps {
		var next *geminiValue
		switch step := v.step(step).(type) {
		case string:
			if v.text != nil || v.raw != "" || v.elements != nil {
				return nil
			}
			if next = v.members[step]; next == nil {
				if v.members == nil {
					v.members = make(map[string]*geminiValue)
				}
				next = new(geminiValue)
				v.members[step] = next
				v.names = append(v.names, step)
			}
		case int:
			if v.text != nil || v.raw != "" || v.members != nil || step > len(v.elements) {
				return nil
			}
			if step == len(v.elements) {
				v.elements = append(v.elements, new(geminiValue))
			}
			next = v.elements[step]
		}
		v = next
	}
	return v
}

// step is a step into a value. A number below a list is an index, with a dot too.
func (v *geminiValue) step(step any) any {
	if name, ok := step.(string); ok && v.elements != nil {
		if n, ok := canonicalIndex(name); ok {
			return n
		}
	}
	return step
}

// set gives a value what a piece brings, and reports whether it can have it.
func (v *geminiValue) set(value gjson.Result, list bool) bool {
	switch {
	case v.members != nil, v.elements != nil, v.raw != "", v.complete:
		return false
	case value.Type == gjson.String:
		if v.text == nil {
			v.text = new(strings.Builder)
		}
		v.text.WriteString(value.Str)
	case v.text != nil:
		return false
	case list:
		v.elements = []*geminiValue{}
	case value.Raw == "": // none
		v.members = map[string]*geminiValue{}
	default:
		v.raw = value.Raw
	}
	return true
}

// arguments are the pieces put together.
func (p *geminiPieces) arguments() string {
	if p.root.members == nil {
		return "{}"
	}
	return string(p.root.append(nil))
}

func (v *geminiValue) append(dst []byte) []byte {
	switch {
	case v.members != nil:
		dst = append(dst, '{')
		for i, name := range v.names {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = v.members[name].append(append(append(dst, quoted(name)...), ':'))
		}
		return append(dst, '}')
	case v.elements != nil:
		dst = append(dst, '[')
		for i, element := range v.elements {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = element.append(dst)
		}
		return append(dst, ']')
	case v.text != nil:
		return append(dst, quoted(v.text.String())...)
	}
	return append(dst, cmp.Or(v.raw, `""`)...)
}

// quoted is a string of JSON.
func quoted(s string) []byte {
	out, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		panic(fmt.Errorf("quoting a string that was read from JSON: %w", err))
	}
	return out
}

// jsonPath reads the path of one value below the root, such as $.a[0].b, into names and
// indexes, and whether it ends in []. Clients know no other forms of RFC 9535.
func jsonPath(path string) (steps []any, list, ok bool) {
	path, list = strings.CutSuffix(strings.TrimPrefix(path, "$."), "[]")
	for part := range strings.SplitSeq(path, ".") {
		name, indexes, bracket := strings.Cut(part, "[")
		if name == "" || strings.ContainsAny(name, `$*?@'"]`) {
			return nil, list, false
		}
		steps = append(steps, name)
		for bracket {
			number, rest, closed := strings.Cut(indexes, "]")
			n, ok := canonicalIndex(number)
			if !closed || !ok {
				return nil, list, false
			}
			steps = append(steps, n)
			if indexes, bracket = strings.CutPrefix(rest, "["); !bracket && rest != "" {
				return nil, list, false
			}
		}
	}
	return steps, list, len(steps) <= MaxDepth
}

// canonicalIndex reads an index as everybody writes it.
func canonicalIndex(s string) (n int, ok bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == s
}

// geminiDeltas are what a chunk brings of calls.
func (s *geminiCalls) geminiDeltas(root gjson.Result) (deltas []CallDelta) {
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
	if all.Add(append(s.geminiDeltas(root), s.endAll()...)) == nil {
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
