package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"
)

// How calls are taken out of an answer. In the place of each stands a message with its
// note, so that the numbers of the other items stay, and clients have something to show
// and to send back.
//
// Reasoning and the items that it led to belong together: the API answers 400 to
// reasoning without its item ("was provided without its required following item",
// https://github.com/vercel/ai/issues/7099), and to an item without its reasoning ("was
// provided without its required 'reasoning' item",
// https://github.com/vercel/ai/issues/11036). A message of ours is not its item. So
// reasoning all of whose items are blocked goes with them, as a whole, because it may be
// encrypted; any other stays as it is, and an item of its own comes right behind it,
// before the notes. Reasoning that a client of a stream already has cannot go: it stays in
// the last frame too, which must say what the frames said, and AnswerCalls leaves it out
// when it comes back.

// A responsesEdit takes calls out of one answer.
type responsesEdit struct {
	hosted     responsesHosted
	blocked    map[string]BlockedCall // by key
	found      map[string]bool
	ids        map[string]string // of the messages in the place of calls, by key
	taken      map[string]bool   // those ids
	answerID   string
	structured bool // the text of messages is JSON
}

func newResponsesEdit(hosted responsesHosted, blocked []BlockedCall) *responsesEdit {
	e := &responsesEdit{
		hosted: hosted, blocked: make(map[string]BlockedCall), found: make(map[string]bool),
		ids: make(map[string]string), taken: make(map[string]bool),
	}
	for _, b := range blocked {
		e.blocked[b.Key] = b
	}
	return e
}

// in notes the answer that is edited.
func (e *responsesEdit) in(answer gjson.Result) {
	if id := answer.Get("id").Str; id != "" {
		e.answerID = id
	}
	e.structured = e.structured || wantsJSON(answer)
}

// check reports why a blocked item cannot be taken out.
func (e *responsesEdit) check(item gjson.Result) error {
	switch {
	case !e.hosted.runByClient(item):
		return cannotEdit("an item is not a call")
	case item.Get("caller.type").Str == "program":
		return cannotEdit("a program of the provider waits for the call")
	case item.Get("type").Str == "computer_call":
		return cannotEdit("the result of a computer call is a screenshot and nothing else")
	}
	return nil
}

// unknownCall reports that a blocked call is nowhere.
func (e *responsesEdit) unknownCall() error {
	for key := range e.blocked {
		if !e.found[key] {
			return cannotEdit("a blocked call is not there")
		}
	}
	return nil
}

// message is the message in the place of a call. No other has its id, because the API
// refuses an input with an id twice, and it is the same in the stream and in the whole.
func (e *responsesEdit) message(key, callID string) Refusal {
	if e.ids[key] == "" {
		id := messageID(callID)
		if callID == "" || e.taken[id] {
			id = messageID(e.answerID + " " + key)
		}
		e.ids[key], e.taken[id] = id, true
	}
	r := Refusal{ID: e.ids[key], Text: e.blocked[key].Note, Place: OnlyContent}
	if e.structured || e.blocked[key].Place == OnlyRefusal {
		r.Place = OnlyRefusal // clients parse the content
	}
	return r
}

// messageID is the id of the message in the place of a call.
func messageID(callID string) string {
	sum := sha256.Sum256([]byte(callID))
	return hex.EncodeToString(sum[:16])
}

// A responsesItemEdit is what becomes of one item.
type responsesItemEdit struct {
	key       string
	raw       string // as it is, or the message in its place
	reasoning bool
	blocked   bool
	sent      bool // the client has its beginning
	index     int  // in a stream
	begun     bool // in a stream: one of its frames has been passed
	open      bool // in a stream: it has begun, and is not done
	gone      bool // in a stream: it is left out
	called    bool // in a stream: pieces of a call came
}

// arrange returns the items that stay, in their new order.
func arrange(items []*responsesItemEdit) (kept []*responsesItemEdit) {
	for len(items) > 0 {
		reasoning, rest := cutItems(items, func(i *responsesItemEdit) bool { return !i.reasoning })
		group, rest := cutItems(rest, func(i *responsesItemEdit) bool { return i.reasoning })
		items = rest
		own := slices.IndexFunc(group, func(i *responsesItemEdit) bool { return !i.blocked })
		switch {
		case len(reasoning) == 0 || len(group) == 0:
		case own < 0:
			reasoning = slices.DeleteFunc(reasoning, func(i *responsesItemEdit) bool { return !i.sent })
		case own > 0:
			first := group[own]
			group = slices.Insert(slices.Delete(group, own, own+1), 0, first)
		}
		kept = append(append(kept, reasoning...), group...)
	}
	return kept
}

// cutItems cuts a list before the first item that is of a kind.
func cutItems(items []*responsesItemEdit, of func(*responsesItemEdit) bool) (before, rest []*responsesItemEdit) {
	at := slices.IndexFunc(items, of)
	if at < 0 {
		at = len(items)
	}
	return slices.Clone(items[:at]), items[at:]
}

// WithoutCalls implements [CallEditor].
func (d responses) WithoutCalls(body []byte, blocked []BlockedCall) ([]byte, error) {
	if len(blocked) == 0 {
		return body, nil
	}
	root, err := parse(body)
	if err != nil {
		return nil, cannotEdit("the answer cannot be read")
	}
	e := newResponsesEdit(d.hosted, blocked)
	e.in(root)
	edits, err := e.answer(root, strconv.Itoa, func(string) bool { return false })
	if err == nil {
		err = e.unknownCall()
	}
	if err != nil {
		return nil, err
	}
	return edits.apply(body), nil
}

// answer takes the calls out of the object of an answer. Key names the call at a position,
// and sent tells what the client has the beginning of.
func (e *responsesEdit) answer(answer gjson.Result, key func(position int) string, sent func(key string) bool) (changes, error) {
	items := answer.Get("output").Array()
	plan := make([]*responsesItemEdit, 0, len(items))
	for i, item := range items {
		one := &responsesItemEdit{key: key(i), raw: item.Raw, reasoning: item.Get("type").Str == "reasoning"}
		one.sent = sent(one.key)
		if _, one.blocked = e.blocked[one.key]; one.blocked {
			if err := e.check(item); err != nil {
				return nil, err
			}
			e.found[one.key] = true
			r := e.message(one.key, responsesCallID(item))
			one.raw = string(encode(r.responsesMessage("completed", r.part(r.Text))))
		}
		plan = append(plan, one)
	}
	var with []string
	for _, one := range arrange(plan) {
		with = append(with, one.raw)
	}
	changed := replaceItems(items, with)
	if text := answer.Get("output_text"); len(changed) > 0 && text.Type == gjson.String {
		before := make([]string, 0, len(items))
		for _, item := range items {
			before = append(before, item.Raw)
		}
		if text.Str == saidIn(before) { // a copy, as it should be
			changed.replace(text, string(encode(saidIn(with))))
		}
	}
	return changed, nil
}

// saidIn is the text of the messages of an answer.
func saidIn(items []string) string {
	var w walk
	for _, raw := range items {
		responsesOutputItem(&w, gjson.Parse(raw))
	}
	return joinText(w.parts, Text)
}

// An editedFrame is a frame that has not left.
type editedFrame struct {
	Frame
	event gjson.Result
	item  *responsesItemEdit // that the frame is about; see itemOf
}

// WithoutCalls implements [StreamCallEditor].
func (s *responsesStream) WithoutCalls(frames []Frame, blocked []BlockedCall) ([]byte, error) {
	if len(blocked) == 0 {
		return appendRaw(nil, frames), nil
	}
	if s.size > maxKept {
		return nil, cannotEdit("too much of the stream was sent")
	}
	e := &responsesStreamEdit{
		responsesEdit: newResponsesEdit(s.hosted, blocked), indexes: slices.Clone(s.indexes),
		at: make(map[int]*responsesItemEdit), byID: make(map[string]*responsesItemEdit),
		begun: len(s.indexes), seen: slices.Clone(s.indexes), responsesRest: responsesRest{sequence: s.sequence},
	}
	e.in(gjson.ParseBytes(s.answer))
	for _, item := range s.items {
		e.items = append(e.items, &responsesItemEdit{
			index: item.index, sent: true, reasoning: gjson.GetBytes(item.raw, "type").Str == "reasoning",
		})
	}
	held, err := e.read(frames)
	if err != nil {
		return nil, err
	}
	e.order()
	for _, f := range held {
		if err := e.pass(f); err != nil {
			return nil, err
		}
	}
	e.writeMessages(true)
	if err := e.unknownCall(); err != nil {
		return nil, err
	}
	return e.out, nil
}

// A responsesStreamEdit takes calls out of the rest of a stream.
type responsesStreamEdit struct {
	*responsesEdit
	responsesRest
	items   []*responsesItemEdit          // the sent ones and then the held ones, in order
	at      map[int]*responsesItemEdit    // the held ones, by output index
	byID    map[string]*responsesItemEdit // and by id
	indexes outputIndexes
	begun   int                  // how many indexes were sent
	seen    outputIndexes        // those of the frames so far
	left    []*responsesItemEdit // of the held ones, in their new order
	next    int                  // the one of left that begins next
}

// read reads the held frames. What clients would take for different items is none that
// can be edited.
func (e *responsesStreamEdit) read(frames []Frame) ([]editedFrame, error) {
	held := make([]editedFrame, 0, len(frames))
	for _, f := range frames {
		one := editedFrame{Frame: f}
		if !f.Comment && !bytes.HasPrefix(f.Data, doneData) {
			event, err := parse(f.Data)
			if err != nil {
				return nil, cannotEdit("a frame cannot be read")
			}
			e.in(event.Get("response"))
			one.event = event
			if one.item, err = e.itemOf(event); err != nil {
				return nil, err
			}
		}
		held = append(held, one)
	}
	return held, nil
}

// itemOf returns the item that an event is about; nil if it is about none, or about one
// whose beginning was sent.
func (e *responsesStreamEdit) itemOf(event gjson.Result) (*responsesItemEdit, error) {
	known, item, index := responsesEvents[event.Get("type").Str], event.Get("item"), event.Get("output_index")
	named := e.byID[event.Get("item_id").Str]
	one, err := named, error(nil)
	switch {
	case index.Exists():
		one, err = e.itemAt(index, known.calls && !known.inAction() || e.hosted.runByClient(item))
	case item.Exists():
		return nil, cannotEdit("an item has no output index")
	case one == nil && known.calls:
		return nil, cannotEdit("an event belongs to no item")
	}
	if err != nil || one == nil {
		return nil, err
	}
	if named != nil && named != one {
		return nil, cannotEdit("an event belongs to two items")
	}
	if item.Exists() {
		if err := e.noteItem(one, event.Get("type").Str, item); err != nil {
			return nil, err
		}
	}
	if one.called = one.called || known.calls; one.called && one.reasoning {
		return nil, cannotEdit("reasoning has pieces of a call")
	}
	return one, nil
}

// itemAt returns the item at an output index. Items must begin in order, as in every
// stream of the API: clients put one that comes out of order at different places.
func (e *responsesStreamEdit) itemAt(index gjson.Result, isCall bool) (*responsesItemEdit, error) {
	if _, ok := outputKey(index); !ok {
		return nil, cannotEdit("an output index is none")
	}
	n := int(index.Int())
	_, isBlocked := e.blocked[index.Raw]
	switch last := len(e.indexes) - 1; {
	case e.wasSent(index.Raw) && (isBlocked || isCall):
		return nil, cannotEdit("a call goes on what has left")
	case e.wasSent(index.Raw) || e.at[n] != nil:
		return e.at[n], nil
	case last >= 0 && n <= e.indexes[last]:
		return nil, cannotEdit("items begin out of order")
	case last+2 >= maxParts:
		return nil, cannotEdit("it has too many items")
	}
	one := &responsesItemEdit{index: n, key: index.Raw, blocked: isBlocked}
	e.at[n], e.items = one, append(e.items, one)
	e.indexes.saw(n)
	return one, nil
}

// noteItem notes what an event says of an item as a whole.
func (e *responsesStreamEdit) noteItem(one *responsesItemEdit, kind string, item gjson.Result) error {
	id := item.Get("id").Str
	switch {
	case kind == "response.output_item.added" && one.raw != "":
		return cannotEdit("an item begins twice")
	case one.raw != "" && gjson.Get(one.raw, "type").Str != item.Get("type").Str:
		return cannotEdit("an item changes its type")
	case id != "" && e.byID[id] != nil && e.byID[id] != one:
		return cannotEdit("two items have one id")
	case id != "":
		e.byID[id] = one
	}
	one.raw, one.reasoning = item.Raw, item.Get("type").Str == "reasoning"
	if one.blocked {
		return e.check(item)
	}
	return nil
}

// order decides what becomes of the held items.
func (e *responsesStreamEdit) order() {
	for _, item := range e.items {
		item.gone = !item.sent
	}
	for _, item := range arrange(e.items) {
		if item.gone {
			item.gone, item.index = false, e.indexes[e.begun+len(e.left)]
			e.left = append(e.left, item)
		}
	}
}

// pass writes a held frame as it is now, and the messages that come before and behind it.
func (e *responsesStreamEdit) pass(f editedFrame) error {
	if index := f.event.Get("output_index"); index.Exists() {
		e.seen.saw(int(index.Int()))
	}
	item := f.item
	switch {
	case item != nil && item.gone:
		return nil
	case item != nil && item.blocked:
		item.begun = true
		e.writeMessages(false)
		return nil
	case item != nil && !item.begun:
		item.begun, item.open = true, true
		e.writeMessages(true)
		if e.next == len(e.left) || e.left[e.next] != item {
			return cannotEdit("items begin out of order")
		}
		e.next++
	case item == nil && (f.event.Get("response").Exists() || len(f.Data) > 0 && !f.event.Exists()): // maybe the end
		e.writeMessages(true)
	}
	if err := e.write(f); err != nil {
		return err
	}
	if item != nil && f.event.Get("type").Str == "response.output_item.done" {
		item.open = false
	}
	e.writeMessages(false)
	return nil
}

// writeMessages writes the messages that are next, up to one whose call has not begun.
// Unless it must, a message does not come before the item in front of it is done.
func (e *responsesStreamEdit) writeMessages(must bool) {
	for ; e.next < len(e.left) && e.left[e.next].blocked && e.left[e.next].begun; e.next++ {
		if !must && e.next > 0 && e.left[e.next-1].open {
			return
		}
		message := e.left[e.next]
		writeRefusedMessage(&e.responsesRest, e.message(message.key, responsesCallID(gjson.Parse(message.raw))), message.index)
		e.found[message.key] = true
	}
}

// write writes a frame with the numbers that it has now. Sequence numbers may have gaps,
// and change only where there are too few for the messages.
func (e *responsesStreamEdit) write(f editedFrame) error {
	changed, err := e.answer(f.event.Get("response"), e.seen.key, e.wasSent)
	if err != nil {
		return err
	}
	if f.item != nil {
		changed.renumber(f.event.Get("output_index"), f.item.index)
	}
	if sequence := f.event.Get("sequence_number"); sequence.Type == gjson.Number {
		if sequence.Int() < e.sequence {
			changed.renumber(sequence, int(e.sequence))
		}
		e.sequence = max(e.sequence, sequence.Int()) + 1
	}
	if len(changed) == 0 {
		e.out = append(e.out, f.Raw...)
	} else {
		e.out = append(e.out, f.withData(changed.apply(f.Data))...)
	}
	return nil
}

// wasSent reports whether the client has the beginning of an item.
func (e *responsesStreamEdit) wasSent(key string) bool {
	n, err := strconv.Atoi(key)
	_, sent := slices.BinarySearch(e.indexes[:e.begun], n)
	return err == nil && sent
}

// Interface guards
var (
	_ CallEditor       = responses{}
	_ StreamCallEditor = (*responsesStream)(nil)
)
