package wire

import (
	"bytes"
	"crypto/sha256"
	"hash"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// A responsesEvent is how one type of event is read.
type responsesEvent struct {
	members schema
	// place is where in its item the text of the event stands; # is the index that the
	// event gives. In events that carry a whole item or answer it is "".
	place string
	// grows: the text is the next piece of what stands there, not all of it.
	grows bool
	// calls: the event belongs to a call that the client runs, and is neither its beginning
	// nor its end.
	calls bool
}

// responsesEventOf makes a responsesEvent from the members that its type has beside the
// common ones.
func responsesEventOf(place string, own members) responsesEvent {
	known := members{
		"type": scalar, "sequence_number": unreadScalar, "item_id": scalar, "output_index": scalar, "content_index": scalar,
		"summary_index": scalar, "annotation_index": scalar, "command_index": scalar, "obfuscation": unreadScalar, "stream_id": scalar,
		"status": scalar, "call_id": scalar, "created_at": scalar, "error": opaque,
	}
	maps.Copy(known, own)
	return responsesEvent{members: object(known), place: place}
}

// piece is the event that brings the next piece, and whole the one that has all of it.
func piece(place string, delta schema) responsesEvent {
	e := responsesEventOf(place, members{"delta": delta, "logprobs": responsesLogprobs})
	e.grows = true
	return e
}

func whole(place, member string, read schema) responsesEvent {
	return responsesEventOf(place, members{member: read, "logprobs": responsesLogprobs, "name": text(Name)})
}

// ofCall marks an event of a call that the client runs.
func ofCall(e responsesEvent) responsesEvent {
	e.calls = true
	return e
}

// responsesEvents are the events by their type.
var responsesEvents = func() map[string]responsesEvent {
	answer := responsesEventOf("", members{"response": responsesAnswer})
	item := responsesEventOf("", members{"item": responsesOutputItem})
	status := responsesEventOf("", nil)
	part := responsesEventOf("content.#", members{"part": responsesOutputPart})
	summary := responsesEventOf("summary.#", members{"part": responsesPart(Reasoning)})
	annotation := responsesEventOf("content.#.annotations", members{"annotation": gathered(Annotation)})
	annotation.grows = true
	shellOutput := object(members{"stdout": text(ToolResult), "stderr": text(ToolResult)})
	events := map[string]responsesEvent{
		"response.output_item.added": item, "response.output_item.done": item,
		"response.content_part.added": part, "response.content_part.done": part,
		"response.output_text.delta": piece("content.#.text", text(Text)), "response.output_text.done": whole("content.#.text", "text", text(Text)),
		"response.output_text.annotation.added": annotation,
		"response.refusal.delta":                piece("content.#.refusal", text(RefusalText)),
		"response.refusal.done":                 whole("content.#.refusal", "refusal", text(RefusalText)),

		"response.reasoning_text.delta": piece("content.#.text", text(Reasoning)), "response.reasoning_text.done": whole("content.#.text", "text", text(Reasoning)),
		"response.reasoning_part.added": part, "response.reasoning_part.done": part, // of compatible servers
		"response.reasoning_summary_part.added": summary, "response.reasoning_summary_part.done": summary,
		"response.reasoning_summary_text.delta": piece("summary.#.text", text(Reasoning)), "response.reasoning_summary_text.done": whole("summary.#.text", "text", text(Reasoning)),

		"response.function_call_arguments.delta":         ofCall(piece("arguments", text(Arguments))),
		"response.function_call_arguments.done":          ofCall(whole("arguments", "arguments", text(Arguments))),
		"response.custom_tool_call_input.delta":          ofCall(piece("input", text(Arguments))),
		"response.custom_tool_call_input.done":           ofCall(whole("input", "input", text(Arguments))),
		"response.apply_patch_call_operation_diff.delta": ofCall(piece("operation.diff", text(Arguments))),
		"response.apply_patch_call_operation_diff.done":  ofCall(whole("operation.diff", "diff", text(Arguments))),
		"response.mcp_call_arguments.delta":              piece("arguments", responsesArguments),
		"response.mcp_call_arguments.done":               whole("arguments", "arguments", responsesArguments),
		"response.code_interpreter_call_code.delta":      piece("code", text(Arguments)),
		"response.code_interpreter_call_code.done":       whole("code", "code", text(Arguments)),
		"response.shell_call_command.added":              ofCall(whole("action.commands.#", "command", text(Arguments))),
		"response.shell_call_command.delta":              ofCall(piece("action.commands.#", text(Arguments))),
		"response.shell_call_command.done":               ofCall(whole("action.commands.#", "command", text(Arguments))),
		"response.shell_call_output_content.delta":       piece("output.#", shellOutput),
		"response.shell_call_output_content.done":        whole("output.#", "output", list(responsesShellOutput)),

		"response.image_generation_call.partial_image": responsesEventOf("", members{
			"partial_image_b64": media(Image), "partial_image_index": scalar, "background": scalar, "output_format": scalar, "quality": scalar, "size": scalar,
		}),
		"response.audio.delta": piece("audio", media(Audio)), "response.audio.done": status,
		"response.audio.transcript.delta": piece("transcript", text(Text)), "response.audio.transcript.done": status,

		"error":                          responsesEventOf("", members{"code": scalar, "message": text(Annotation), "param": scalar, "headers": opaque}),
		"keepalive":                      status,
		"response.compaction.compacting": status,
	}
	for _, name := range []string{"created", "queued", "in_progress", "completed", "incomplete", "failed"} {
		events["response."+name] = answer
	}
	for call, states := range map[string][]string{
		"code_interpreter_call": {"in_progress", "interpreting", "completed"}, "file_search_call": {"in_progress", "searching", "completed"},
		"image_generation_call": {"in_progress", "generating", "completed"}, "mcp_call": {"in_progress", "completed", "failed"},
		"mcp_list_tools": {"in_progress", "completed", "failed"}, "web_search_call": {"in_progress", "searching", "completed"},
	} {
		for _, state := range states {
			events["response."+call+"."+state] = status
		}
	}
	return events
}()

// responsesOutputPart reads a part that is added to an item or done: the text of a
// message, or of reasoning.
var responsesOutputPart = func() schema {
	message, reasoning := responsesPart(Text), responsesPart(Reasoning)
	return func(w *walk, v gjson.Result) {
		if v.Get("type").Str == "reasoning_text" {
			reasoning(w, v)
			return
		}
		message(w, v)
	}
}()

// Events returns a reader of a stream.
func (d responses) Events() EventReader {
	return &responsesReader{hosted: d.hosted, texts: make(map[string]*broughtText), said: newBroughtText()}
}

// A responsesReader reads a stream, in which the same text comes up to five times: in
// pieces, and in the frames that end its part, its message and the answer. It comes
// once out of here. Each text has a place, such as 0.content.1.text (output index 0),
// and is compared with what was brought there before.
type responsesReader struct {
	hosted  responsesHosted
	texts   map[string]*broughtText
	said    broughtText // all text of the answer
	indexes outputIndexes

	calls     map[string]*begunCall // by key
	callItems map[string]string     // their keys by the ids of their items

	last   template
	growth *broughtText // what the text of last goes on
}

// Rest implements [EventReader].
func (r *responsesReader) Rest() EventReader {
	fork := &responsesReader{
		hosted: r.hosted, texts: make(map[string]*broughtText, len(r.texts)), said: r.said.fork(), indexes: slices.Clone(r.indexes),
	}
	for place, text := range r.texts {
		copied := text.fork()
		fork.texts[place] = &copied
	}
	return fork
}

// A broughtText is a text that earlier frames brought. It is kept as a digest, because an
// answer may be long.
type broughtText struct {
	length int
	digest hash.Hash
}

// Event reads one frame. Clients go by the type in the data, so the event field says
// nothing; one that differs is unknown.
func (r *responsesReader) Event(f Frame) (Event, error) {
	switch {
	case f.Comment:
		return Event{}, nil
	case bytes.HasPrefix(f.Data, doneData): // clients stop reading there
		return Event{Done: true}, nil
	case len(f.Data) == 0:
		return Event{Unknown: []string{"event"}}, nil
	}
	if e, ok := r.last.read(f); ok {
		r.goOn(e.Deltas[0])
		return e, nil
	}
	root, err := parseAnswer(f.Data)
	if err != nil {
		return Event{}, err
	}
	kind := root.Get("type").Str
	e := Event{Err: kind == "error" || isError(root.Get("error"))}
	if f.Event != "" && f.Event != kind {
		e.Unknown = append(e.Unknown, "event")
	}
	known, ok := responsesEvents[kind]
	if !ok {
		if !e.Err {
			e.Unknown = append(e.Unknown, "frame."+pathName(kind))
		}
		return e, nil
	}
	w := walk{hosted: r.hosted}
	if known.members(&w, root); w.err != nil {
		return Event{}, w.err
	}
	r.finish(&e, kind, root.Get("response"))
	index := int(root.Get("output_index").Int())
	if root.Get("output_index").Exists() {
		r.indexes.saw(index)
	}
	if known.calls || known.place == "" {
		r.readCalls(&e, kind, known, root)
	}
	countTokens(w.parts, f.Data)
	for _, p := range w.parts {
		switch {
		case p.Kind == Unknown:
			e.Unknown = append(e.Unknown, p.Path)
		case p.Text == "":
			e.add(p, 0)
		case p.Path != "response.output_text":
			e.Piece = e.Piece || p.Kind == ToolResult && known.grows
			place := r.place(known, p.Path, index, root)
			r.bring(&e, Delta{Kind: p.Kind, Text: r.fresh(place, p.Text, known, p.Kind), Called: p.Called, Part: place})
		}
	}
	if known.calls || w.called && known.place == "" && root.Get("item").Exists() {
		e.markCalled()
	}
	if all := root.Get("response.output_text"); all.Str != "" && !r.said.is(all.Str) { // not the copy that it should be
		r.bring(&e, Delta{Kind: Text, Text: all.Str, Part: "output_text"})
	}
	if known.grows && !known.calls && len(w.parts) == 1 {
		r.growth = r.texts[r.place(known, w.parts[0].Path, index, root)]
		if r.growth != nil {
			r.last.learn(f, &w, e)
		}
	}
	return e, nil
}

// goOn notes the next piece of the text that grew last.
func (r *responsesReader) goOn(d Delta) {
	r.growth.add(d.Text)
	if d.Kind == Text {
		r.said.add(d.Text)
	}
}

// bring adds a text to an event.
func (r *responsesReader) bring(e *Event, d Delta) {
	if d.Text == "" {
		return
	}
	e.Deltas = append(e.Deltas, d)
	if d.Kind == Text {
		r.said.add(d.Text)
	}
}

// finish notes what an event says of the answer as a whole.
func (r *responsesReader) finish(e *Event, kind string, response gjson.Result) {
	e.ID = response.Get("id").Str
	switch kind {
	case "response.completed", "response.incomplete":
		e.Finish = responsesFinish(response)
	case "response.failed":
		e.Finish, e.Err = "failed", true
	default:
		return
	}
	if e.Finish == "" {
		e.Finish = strings.TrimPrefix(kind, "response.")
	}
	e.Finished, e.Done = []int{0}, true
}

// place names where the text at a path of an event belongs in the answer.
func (r *responsesReader) place(e responsesEvent, path string, index int, event gjson.Result) string {
	at := strconv.Itoa(index) + "."
	first, rest, _ := strings.Cut(path, ".")
	switch {
	case first == "response":
		return r.placeInAnswer(rest)
	case first == "item":
		return at + rest
	case path == "name":
		return at + path
	}
	place := at + e.at(event)
	if rest != "" { // a member of what stands there
		place += "." + rest[strings.LastIndexByte(rest, '.')+1:]
	}
	return place
}

// at is the place in its item of what an event brings.
func (e responsesEvent) at(event gjson.Result) string {
	before, after, indexed := strings.Cut(e.place, "#")
	if !indexed {
		return e.place
	}
	by := "command_index"
	switch {
	case strings.HasPrefix(before, "content"):
		by = "content_index"
	case strings.HasPrefix(before, "summary"):
		by = "summary_index"
	}
	return before + strconv.Itoa(int(event.Get(by).Int())) + after
}

// placeInAnswer is place for the list of all items.
func (r *responsesReader) placeInAnswer(path string) string {
	rest, isItem := strings.CutPrefix(path, "output.")
	if !isItem {
		return path
	}
	position, rest, _ := strings.Cut(rest, ".")
	if n, _ := strconv.Atoi(position); n < len(r.indexes) {
		return strconv.Itoa(r.indexes[n]) + "." + rest
	}
	return "new." + path
}

// fresh returns what of a text was not brought before. A text that begins like the one
// before goes on from it, and any other is new as a whole.
func (r *responsesReader) fresh(place, text string, e responsesEvent, kind Kind) string {
	before := r.texts[place]
	if before == nil && len(r.texts) == maxParts {
		return text // a copy of it will be read again
	}
	if before == nil {
		first := newBroughtText()
		before = &first
		r.texts[place] = before
	}
	switch {
	case e.grows && kind == Annotation && before.length > 0:
		before.add("\n") // as the whole list of them reads
	case e.grows:
	case before.begins(text):
		text = text[before.length:]
	default:
		*before = newBroughtText()
	}
	before.add(text)
	return text
}

func newBroughtText() broughtText { return broughtText{digest: sha256.New()} }

// fork returns a copy that goes on separately.
func (b *broughtText) fork() broughtText {
	digest, err := b.digest.(hash.Cloner).Clone() //nolint:forcetypeassert // every hash of the standard library is one
	if err != nil {
		panic("cloning SHA-256: " + err.Error()) // only hashes of other modules fail
	}
	return broughtText{length: b.length, digest: digest}
}

func (b *broughtText) add(text string) {
	b.length += len(text)
	_, _ = b.digest.Write([]byte(text)) // a hash never fails
}

// begins reports whether a text begins with the one that was brought.
func (b *broughtText) begins(text string) bool {
	return len(text) >= b.length && b.is(text[:b.length])
}

// is reports whether a text is the one that was brought.
func (b *broughtText) is(text string) bool {
	if len(text) != b.length {
		return false
	}
	sum := sha256.Sum256([]byte(text))
	return bytes.Equal(sum[:], b.digest.Sum(nil))
}
