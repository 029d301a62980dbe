package wire

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"
)

// Stream returns a writer for the end of a stream.
func (d responses) Stream() StreamWriter { return &responsesStream{hosted: d.hosted} }

// A responsesStream ends a stream. The frame that ends an answer repeats all of it, and
// clients keep what that frame says. So the answer is kept here as the client has it.
type responsesStream struct {
	openaiStream
	hosted   responsesHosted
	answer   []byte // the newest object of the answer; nil before the first
	sequence int64  // of the next frame
	items    []*sentItem
	at       map[int]*sentItem // by output index
	index    int               // of an item behind all others
	indexes  outputIndexes
	size     int // of what was sent
}

// maxKept bounds what is kept of a stream, in bytes. The frame that would repeat more
// is more than clients read.
const maxKept = MaxFrame

// A sentItem is one item of the output as the client has it.
type sentItem struct {
	index int
	raw   []byte                      // as it was added or done
	done  bool                        // no frame of it follows
	parts map[string][]byte           // parts as they were added or done, by place: content.0
	texts map[string]*strings.Builder // texts in pieces, by place: content.0.text
	ended map[string]bool             // the places that are done

	annotations map[string][]jsontext.Value // of texts, by place: content.0.annotations
}

func newSentItem(index int, raw string) *sentItem {
	return &sentItem{
		index: index, raw: []byte(raw), parts: make(map[string][]byte),
		texts: make(map[string]*strings.Builder), ended: make(map[string]bool),
		annotations: make(map[string][]jsontext.Value),
	}
}

// Sent implements [StreamWriter].
func (s *responsesStream) Sent(f Frame) {
	s.openaiStream.Sent(f)
	if !gjson.ValidBytes(f.Data) {
		return
	}
	event := gjson.ParseBytes(f.Data)
	kind := event.Get("type").Str
	if s.size += len(f.Data); s.size > maxKept {
		s.items, s.at = nil, nil
	}
	s.sequence = max(s.sequence, event.Get("sequence_number").Int()+1)
	if index := event.Get("output_index"); index.Exists() {
		s.indexes.saw(int(index.Int()))
	}
	switch kind {
	case "response.created", "response.queued", "response.in_progress":
		if response := event.Get("response"); response.IsObject() {
			s.answer = []byte(response.Raw)
		}
		return
	}
	known := responsesEvents[kind]
	item := event.Get("item")
	switch {
	case kind == "response.output_item.added":
		s.add(int(event.Get("output_index").Int()), item.Raw)
	case kind == "response.output_item.done":
		if at := s.item(event); at != nil {
			*at = sentItem{index: at.index, raw: []byte(item.Raw), done: true}
		}
	case known.place != "":
		if at := s.item(event); at != nil && !at.done {
			at.sent(known, kind, event)
		}
	}
}

// add notes a new item.
func (s *responsesStream) add(index int, raw string) {
	s.index = max(s.index, index+1)
	if s.size > maxKept {
		return
	}
	if s.at == nil {
		s.at = make(map[int]*sentItem)
	}
	s.at[index] = newSentItem(index, raw)
	s.items = append(s.items, s.at[index])
}

// item finds the item that an event belongs to.
func (s *responsesStream) item(event gjson.Result) *sentItem {
	return s.at[int(event.Get("output_index").Int())]
}

// sent notes an event within an item that is not done.
func (item *sentItem) sent(known responsesEvent, kind string, event gjson.Result) {
	place := known.at(event)
	switch part, annotation := event.Get("part"), event.Get("annotation"); {
	case annotation.IsObject():
		item.annotations[place] = append(item.annotations[place], jsontext.Value(annotation.Raw))
	case part.IsObject():
		item.parts[place] = []byte(part.Raw)
	case known.grows:
		item.add(place, event.Get("delta").Str)
	case strings.HasSuffix(kind, ".done"):
		delete(item.texts, place)
		item.add(place, event.Get(place[strings.LastIndexByte(place, '.')+1:]).Str)
	}
	if strings.HasSuffix(kind, ".done") {
		item.ended[place] = true
	}
}

func (item *sentItem) add(place, piece string) {
	text := item.texts[place]
	if text == nil {
		text = new(strings.Builder)
		item.texts[place] = text
	}
	_, _ = text.WriteString(piece) // a strings.Builder never fails
}

// text is what was sent of the text at a place.
func (item *sentItem) text(place string) string {
	if text := item.texts[place]; text != nil {
		return text.String()
	}
	return ""
}

// A responsesFrame is an event of ours.
type responsesFrame struct {
	Type         string      `json:"type"`
	Sequence     int64       `json:"sequence_number"`
	OutputIndex  *int        `json:"output_index,omitzero"`
	ItemID       string      `json:"item_id,omitzero"`
	ContentIndex *int        `json:"content_index,omitzero"`
	SummaryIndex *int        `json:"summary_index,omitzero"`
	Delta        *string     `json:"delta,omitzero"`
	Text         *string     `json:"text,omitzero"`
	Refusal      *string     `json:"refusal,omitzero"`
	Arguments    *string     `json:"arguments,omitzero"`
	Code         *string     `json:"code,omitzero"`
	Logprobs     *[]struct{} `json:"logprobs,omitzero"`
	Part         any         `json:"part,omitzero"`
	Item         any         `json:"item,omitzero"`
	Response     any         `json:"response,omitzero"`
}

// A responsesRest is the rest of a stream while it is written.
type responsesRest struct {
	out      []byte
	sequence int64
}

func (w *responsesRest) write(f responsesFrame) {
	f.Sequence = w.sequence
	w.sequence++
	w.out = append(append(append(w.out, "event: "...), f.Type...), '\n')
	w.out = AppendEvent(w.out, encode(f))
}

// Refusal implements [Ender]. An open item is closed with what was sent of it. The
// refusal is a further part of a message that is open, and a message of its own after
// anything else. Then the answer is completed with all that the client has.
func (s *responsesStream) Refusal(r Refusal) []byte {
	w := &responsesRest{sequence: s.sequence}
	answer := s.answer
	if !isSound(answer) {
		begun := responsesBegun(r)
		answer = encode(begun)
		w.write(responsesFrame{Type: "response.created", Response: begun})
		w.write(responsesFrame{Type: "response.in_progress", Response: begun})
	}
	if wantsJSON(gjson.ParseBytes(answer)) { // also where a stored prompt asks for it, not the call
		r.Place = OnlyRefusal // clients parse the content
	}

	// Close what is open. A call that the client runs stays open: clients run it when it is
	// closed, whatever its status is.
	var output []any
	refused, halfCall := false, false
	for i, item := range s.items {
		switch {
		case !isSound(item.raw): // a client that got this far did not read it either
			continue
		case item.done:
			output = append(output, jsontext.Value(item.raw))
			continue
		}
		raw := gjson.ParseBytes(item.raw)
		switch kind := raw.Get("type").Str; {
		case kind == "message":
			last := i == len(s.items)-1
			output = append(output, item.endMessage(w, r, last))
			refused = refused || last
		case s.hosted.runByClient(raw):
			halfCall = true
			output = append(output, item.filled())
		default:
			output = append(output, item.end(w, kind))
		}
	}
	if !refused {
		output = append(output, writeRefusedMessage(w, r, s.index))
	}

	// End the answer. Clients parse the text of a completed answer if JSON was asked for,
	// and the arguments of its calls, and fail on the half of either. Those of an
	// incomplete one they leave alone. Of that they also accept that items are missing.
	status, details := "completed", any(nil)
	if halfCall || s.size > maxKept || isHalfJSON(answer, output, r) {
		status, details = "incomplete", map[string]string{"reason": "content_filter"}
	}
	ended := map[string]any{
		"status": status, "error": nil, "incomplete_details": details, "output": output, "output_text": dropped,
	}
	if !gjson.GetBytes(answer, "usage").IsObject() {
		ended["usage"] = noUsage()
	}
	w.write(responsesFrame{Type: "response." + status, Response: setMembers(answer, ended)})
	return w.out
}

// isSound reports whether raw JSON of upstream's can be written into frames of ours.
func isSound(raw []byte) bool {
	return jsontext.Value(raw).IsValid() && gjson.ParseBytes(raw).IsObject()
}

// isHalfJSON reports whether JSON was asked for, and a text of the answer is none. In an
// answer that does not say what was asked for, it was JSON if the refusal is not to stand
// in the content. The refusal itself is no text then.
func isHalfJSON(answer []byte, output []any, r Refusal) bool {
	if r.Place != OnlyRefusal || gjson.GetBytes(answer, "text.format.type").Str == "text" {
		return false
	}
	half := false
	gjson.ParseBytes(encode(output)).ForEach(func(_, item gjson.Result) bool {
		item.Get("content").ForEach(func(_, part gjson.Result) bool {
			half = half || part.Get("type").Str == "output_text" && !gjson.Valid(part.Get("text").Str)
			return true
		})
		return true
	})
	return half
}

// writeRefusedMessage writes a message that is a refusal, and returns it.
func writeRefusedMessage(w *responsesRest, r Refusal, index int) any {
	begun, done := r.responsesMessage("in_progress"), r.responsesMessage("completed", r.part(r.Text))
	w.write(responsesFrame{Type: "response.output_item.added", OutputIndex: &index, Item: begun})
	writeRefusedPart(w, r, index, 0, begun.ID)
	w.write(responsesFrame{Type: "response.output_item.done", OutputIndex: &index, Item: done})
	return done
}

// writeRefusedPart writes a part of a message that is a refusal.
func writeRefusedPart(w *responsesRest, r Refusal, index, content int, id string) {
	at := responsesFrame{OutputIndex: &index, ItemID: id, ContentIndex: &content}
	frame := func(kind string) responsesFrame { f := at; f.Type = "response." + kind; return f }
	added, delta, done, ended := frame("content_part.added"), frame("refusal.delta"), frame("refusal.done"), frame("content_part.done")
	added.Part, ended.Part = r.part(""), r.part(r.Text)
	delta.Delta, done.Refusal = &r.Text, &r.Text
	if r.Place != OnlyRefusal {
		delta, done = frame("output_text.delta"), frame("output_text.done")
		delta.Delta, delta.Logprobs, done.Text, done.Logprobs = &r.Text, new([]struct{}), &r.Text, new([]struct{})
	}
	for _, f := range []responsesFrame{added, delta, done, ended} {
		w.write(f)
	}
}

// endMessage closes an open message and returns it. The last item of the output gets the
// refusal as one more part.
func (item *sentItem) endMessage(w *responsesRest, r Refusal, refused bool) any {
	id, index := gjson.GetBytes(item.raw, "id").Str, item.index
	content := item.endParts(w, "content")
	status := "incomplete"
	if refused {
		writeRefusedPart(w, r, index, len(content), id)
		content, status = append(content, r.part(r.Text)), "completed"
	}
	done := setMembers(item.raw, map[string]any{"status": status, "content": content})
	w.write(responsesFrame{Type: "response.output_item.done", OutputIndex: &index, Item: done})
	return done
}

// endParts closes the open parts of a message or of reasoning and returns all of them.
// The list of them is content or summary.
func (item *sentItem) endParts(w *responsesRest, list string) []any {
	var parts []any
	for n := range item.count(list) {
		place := list + "." + strconv.Itoa(n)
		raw := item.parts[place]
		if item.ended[place] && isSound(raw) {
			parts = append(parts, jsontext.Value(raw))
			continue
		}
		parts = append(parts, item.endPart(w, list, place, n))
	}
	return parts
}

// count is how many parts a list has.
func (item *sentItem) count(list string) int {
	n := 0
	count := func(place string) {
		if rest, ok := strings.CutPrefix(place, list+"."); ok {
			number, _, _ := strings.Cut(rest, ".")
			if at, err := strconv.Atoi(number); err == nil {
				n = max(n, at+1)
			}
		}
	}
	for place := range item.parts {
		count(place)
	}
	for place := range item.texts {
		count(place)
	}
	return min(n, len(item.parts)+len(item.texts)) // an upstream may count as it likes
}

// endPart closes one open part and returns it.
func (item *sentItem) endPart(w *responsesRest, list, place string, n int) any {
	index := item.index
	at := responsesFrame{OutputIndex: &index, ItemID: gjson.GetBytes(item.raw, "id").Str}
	end := responsesFrame{Type: "response.content_part.done", OutputIndex: at.OutputIndex, ItemID: at.ItemID}
	text, member := item.text(place+".text"), "text"
	reasoning := gjson.GetBytes(item.raw, "type").Str == "reasoning"
	kind := gjson.GetBytes(item.parts[place], "type").Str
	var part any
	switch {
	case list == "summary":
		at.Type, end.Type = "response.reasoning_summary_text.done", "response.reasoning_summary_part.done"
		at.SummaryIndex, end.SummaryIndex = &n, &n
		at.Text, part = &text, map[string]string{"type": "summary_text", "text": text}
	case reasoning:
		at.Type, at.ContentIndex, end.ContentIndex = "response.reasoning_text.done", &n, &n
		at.Text, part = &text, map[string]string{"type": "reasoning_text", "text": text}
	case kind == "refusal" || kind == "" && item.texts[place+".refusal"] != nil:
		text, member = item.text(place+".refusal"), "refusal"
		at.Type, at.ContentIndex, end.ContentIndex = "response.refusal.done", &n, &n
		at.Refusal, part = &text, responsesRefusalPart{"refusal", text}
	default:
		at.Type, at.ContentIndex, end.ContentIndex = "response.output_text.done", &n, &n
		at.Text, at.Logprobs = &text, new([]struct{})
		part = responsesTextPart{Type: "output_text", Text: text, Annotations: item.soundAnnotations(place)}
	}
	if !item.ended[place+"."+member] {
		w.write(at)
	}
	end.Part = part
	w.write(end)
	return part
}

// soundAnnotations are those that were sent of the text of a part.
func (item *sentItem) soundAnnotations(place string) []jsontext.Value {
	return slices.DeleteFunc(item.annotations[place+".annotations"], func(a jsontext.Value) bool { return !isSound(a) })
}

// end closes an open item that is neither a message nor a call that the client runs, and
// returns it.
func (item *sentItem) end(w *responsesRest, kind string) any {
	index, id := item.index, gjson.GetBytes(item.raw, "id").Str
	set := map[string]any{"status": "incomplete"}
	if kind == "reasoning" {
		if summary := item.endParts(w, "summary"); summary != nil {
			set["summary"] = summary
		}
		if content := item.endParts(w, "content"); content != nil {
			set["content"] = content
		}
	}
	if text := item.texts["arguments"]; text != nil && kind == "mcp_call" && !item.ended["arguments"] {
		w.write(responsesFrame{Type: "response.mcp_call_arguments.done", OutputIndex: &index, ItemID: id, Arguments: new(text.String())})
	}
	if text := item.texts["code"]; text != nil && kind == "code_interpreter_call" && !item.ended["code"] {
		w.write(responsesFrame{Type: "response.code_interpreter_call_code.done", OutputIndex: &index, ItemID: id, Code: new(text.String())})
	}
	done := setMembers(item.filled(), set)
	w.write(responsesFrame{Type: "response.output_item.done", OutputIndex: &index, Item: done})
	return done
}

// filled is an item with the texts of its own that were sent, as a call has them.
func (item *sentItem) filled() jsontext.Value {
	set := map[string]any{"status": "incomplete"}
	for _, member := range []string{"arguments", "input", "code"} {
		if text := item.texts[member]; text != nil {
			set[member] = text.String()
		}
	}
	return setMembers(item.raw, set)
}

// dropped is the value of a member that setMembers leaves out.
var dropped = new(struct{})

// setMembers returns a JSON object with some members set or left out, and the others as
// they were.
func setMembers(object []byte, set map[string]any) jsontext.Value {
	var out bytes.Buffer
	separator := byte('{')
	member := func(name string, value []byte) {
		out.WriteByte(separator)
		out.WriteString(name)
		out.WriteByte(':')
		out.Write(value)
		separator = ','
	}
	gjson.ParseBytes(object).ForEach(func(key, value gjson.Result) bool {
		if _, replaced := set[key.Str]; !replaced {
			member(key.Raw, []byte(value.Raw))
		}
		return true
	})
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if value := set[name]; value != any(dropped) {
			member(string(encode(name)), encode(value))
		}
	}
	out.WriteByte('}')
	return out.Bytes()
}

// Error implements [Ender]. The error stands in the frame twice: where the API has it,
// and where the SDKs look to raise one. The older SDK for JavaScript does not raise the
// API's own form.
func (s *responsesStream) Error(e Error) []byte {
	type frame struct {
		Type     string         `json:"type"`
		Sequence int64          `json:"sequence_number"`
		Code     string         `json:"code"`
		Message  string         `json:"message"`
		Param    *string        `json:"param"`
		Error    jsontext.Value `json:"error"`
	}
	nested := gjson.GetBytes(openaiError(e), "error").Raw
	return AppendEvent([]byte("event: error\n"), encode(frame{
		Type: "error", Sequence: s.sequence, Code: e.Code, Message: e.Message, Error: jsontext.Value(nested),
	}))
}
