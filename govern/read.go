package govern

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/wire"
	"github.com/caddy-lex/lex/wire/loose"
)

// An Input holds the texts of a request. ReadPrompt and ReadParts make it, and those who
// assess a conversation.
type Input struct {
	// Prompt is the text that the receipt commits to. The answer is judged together
	// with it.
	Prompt string

	said         []detect.Text // in the newest turn
	instructions []detect.Text // of the application itself
	framing      []detect.Text // of its templates, around what is said
	earlier      []pastMessage // of the resent history: new to us, and kept

	past      kernel.Scores // of the messages that were removed from the history
	condemned kernel.Scores // of those of them that guards found
	removed   []string      // digests of the messages that are removed for the first time
	treated   []string      // digests of the results that are replaced or annotated
	refused   map[int]bool  // the messages of the history of which not only results of tools are removed
	deniedBy  string        // the rule that refuses the request, whatever its texts are
	degraded  bool          // a guard failed on a result of a tool that is read by itself

	// silent: the call says nothing and refers to nothing that was said.
	silent bool
	// asking is a digest of what is asked, by which a turn that is repeated after a
	// failure is recognised; "" if that is nothing. messages are the digests of the turn's messages, and places
	// where they stand. equals are the places of earlier messages that say the same as one of
	// them and stay.
	asking   string
	messages []string
	places   []string
	equals   []string
	// continues says that the call has the conversation and names an answer: it asks
	// for the rest of that answer.
	continues bool
	// seen are the marks of the hidden parts of the history that were read, in this
	// turn or before (see markOf).
	seen []string
	// unasked says that guards were to be asked about the request and could not say what it
	// is, so that no later turn takes its history for known.
	unasked bool
	// gaps are what of these hidden parts could not be read.
	gaps []unreadText
	// distrust says that a message of the assistant was removed (see memory.Distrust).
	distrust bool

	history provided // the history that the provider keeps
	results int64    // bytes of results of tools that were read by themselves
}

// deniedOversize names the rule that refuses a request with too much text.
const deniedOversize = "oversize"

// Why what refers to an answer of ours is replaced, or what is left of one.
const (
	refersToOurs = "it refers to a refusal, which the provider does not know"
	leftOfOurs   = "empty, as the client keeps a refusal"
)

// What is said of a part that the dialect does not know, and of one whose texts were read
// all the same.
const (
	notKnown    = "not known to the dialect"
	unknownRead = notKnown + "; its texts were read"
)

// ReadPrompt reads a request that is only a prompt.
func (o *Opened) ReadPrompt(prompt string) Input {
	o.Coverage.Inspect("request.prompt", DetectorLocal, len(prompt))
	o.Coverage.BytesForwarded = len(prompt)
	for _, t := range o.memory.Turns {
		for _, gap := range t.Gaps { // the model may get its beginning again
			o.Coverage.SkipOnce("request.memory", gap.Why, gap.Bytes)
		}
	}
	return Input{
		Prompt: prompt, said: []detect.Text{{Source: detect.User, Body: prompt, Part: "request.prompt"}},
		asking:   messageDigest(strconv.Itoa(o.Label) + " " + prompt),
		messages: []string{messageDigest(prompt)}, places: placesOf([]string{messageDigest(prompt)}),
	}
}

// readConversation reads a request that is a conversation in no API, of system, user
// and assistant messages, and returns the messages to forward. The last message is the
// user's prompt. The history is cleaned as in a call with a resent conversation (see
// readMessages).
func (o *Opened) readConversation(ctx context.Context, messages []wire.Message) (in Input, forwarded []wire.Message, err error) {
	defer add(&o.Timing.Read, time.Now())
	parts := conversationParts(messages)
	in = Input{
		Prompt: messages[len(messages)-1].Text,
		asking: messageDigest(strconv.Itoa(o.Label) + " " + NewConversation(o.Namespace, parts).present()),
	}
	replaced, err := o.readParts(ctx, &in, parts, nil)
	if err != nil {
		return in, nil, err
	}
	forwarded = slices.Clone(messages)
	for _, p := range replaced {
		forwarded[p.Message-1].Text = removedText
	}
	for _, m := range forwarded {
		o.Coverage.BytesForwarded += len(m.Text)
	}
	return in, forwarded, nil
}

// conversationParts returns the messages of a conversation as the parts of a call. All
// messages up to the last answer are history.
func conversationParts(messages []wire.Message) []wire.Part {
	parts, history := make([]wire.Part, len(messages)), 0
	for i, m := range messages {
		parts[i] = wire.Part{
			Path: "messages." + strconv.Itoa(i) + ".content", Role: m.Role, Kind: wire.Text,
			Text: m.Text, Bytes: len(m.Text), Message: i + 1,
		}
		if m.Role == wire.Assistant {
			history = i + 1
		}
	}
	for i := range history {
		parts[i].Earlier = true
	}
	return parts
}

// ReadParts reads the texts of a body in no dialect. media is the number of bytes of
// the files among the parts, and ok reports whether there is any text.
func ReadParts(parts []wire.Part) (in Input, media int, ok bool) {
	in.said, in.instructions, media = loose.Texts(parts)
	named("request", in.said, in.instructions)
	var prompt strings.Builder
	for _, t := range in.said {
		prompt.WriteString(t.Body)
	}
	in.Prompt = prompt.String()
	return in, media, len(in.said)+len(in.instructions) > 0
}

// named names the part that texts stand in.
func named(part string, texts ...[]detect.Text) {
	for _, all := range texts {
		for i := range all {
			all[i].Part = part
		}
	}
}

// readMessages reads a call with its resent conversation and returns the body to
// forward. The newest turn and the application's instructions go into the Input, and
// the history is cleaned (see cleanHistory). Only removed messages are replaced in the
// body, and the id of a refused answer that the call goes on from (see goOn); every
// other byte stays.
func (o *Opened) readMessages(ctx context.Context, call wire.Request, body []byte) (in Input, forwarded []byte, err error) {
	defer add(&o.Timing.Read, time.Now())
	in = Input{
		Prompt: call.Prompt(), asking: o.Conversation.present(),
		continues: call.Previous != "" && call.HistoryPath == "",
		silent:    len(call.Parts) == 0 && call.Previous == "" && call.HistoryPath == "" && call.Fetches == "",
	}
	if in.silent {
		in.asking = ""
	}
	replaced, err := o.readParts(ctx, &in, call.Parts, body)
	if err != nil {
		return in, nil, err
	}
	if o.fetchesRefused() && call.Stream {
		in.deniedBy = ruleFetched // before any of it streams
	}
	edits := o.edits(replaced)
	if len(edits) > 0 {
		body = wire.Apply(body, edits)
	}
	o.readTalk(call, edits)
	in.history, body = o.goOn(call, body)
	o.Coverage.BytesForwarded = len(body)
	return in, body, nil
}

// readParts cleans the history of a call and reads all other parts. It returns the
// parts to replace. The body is where parts of an unknown kind stand.
func (o *Opened) readParts(ctx context.Context, in *Input, parts []wire.Part, body []byte) (replaced []wire.Part, err error) {
	o.recall()
	if replaced, err = o.cleanHistory(ctx, in, parts); err != nil {
		return nil, err
	}
	known := o.knowsHistory()
	var results, silent []wire.Part
	for _, p := range parts {
		name := "request." + p.Path
		switch {
		case isHistory(p):
		case p.Ours && o.Mode == kernel.Enforce:
			if p.Kind == wire.Text {
				o.redact(p, leftOfOurs)
			} else {
				o.redact(p, refersToOurs)
			}
			replaced = append(replaced, p)
		case p.Kind == wire.Unknown:
			said, instructions, _ := loose.Texts(looseMember(p, body))
			if !o.Reading.Unknown || len(said)+len(instructions) == 0 {
				o.Coverage.NotKnown(name, notKnown, p.Bytes)
				continue
			}
			o.Coverage.NotKnown(name, unknownRead, 0)
			o.Coverage.Inspect(name, DetectorLocal, p.Bytes)
			named(name, said, instructions)
			in.said, in.instructions = append(in.said, said...), append(in.instructions, instructions...)
		case p.Text == "" && p.Kind == wire.Text:
		case p.Text == "":
			silent = append(silent, p)
		case known && p.Earlier && !o.wasBeyond(p):
			o.inspectedThen(pastMessage{p}, detectorEarlier)
		case o.treatsResults() && loose.SourceOf(p) == detect.Tool:
			results = append(results, p)
		case p.Role == wire.System || p.Role == wire.Definition:
			o.Coverage.Inspect(name, DetectorLocal, p.Bytes)
			in.instructions = append(in.instructions, detect.Text{Source: detect.System, Body: p.Text, Part: name})
		default:
			o.Coverage.Inspect(name, DetectorLocal, p.Bytes)
			in.said = append(in.said, detect.Text{Source: loose.SourceOf(p), Body: p.Text, Part: name})
		}
	}
	poisoned, err := o.readResults(ctx, in, results)
	replaced = append(replaced, poisoned...)
	gone, stay := o.splitAttachments(in, silent, parts, replaced)
	o.recordAttachments(gone, stay)
	return append(replaced, gone...), err
}

// knowsHistory reports whether the resent conversation is the one that earlier turns of
// this session inspected, as far as its digest covers it. An invented history is
// inspected like any new text.
func (o *Opened) knowsHistory() bool {
	if o.Conversation == nil {
		return false
	}
	past := o.Conversation.Past()
	return past != "" && !o.memory.Forgot && slices.Contains(o.memory.Histories, past)
}

// FillUnknown reads the text of unknown members that belong to messages, so that
// they are cleaned in the history like every other part.
func FillUnknown(parts []wire.Part, body []byte) {
	for i := range parts {
		if p := &parts[i]; p.Kind == wire.Unknown && p.Message > 0 {
			said, instructions, _ := loose.Texts(looseMember(*p, body))
			var texts []string
			for _, t := range slices.Concat(said, instructions) {
				texts = append(texts, t.Body)
			}
			p.Text = strings.Join(texts, "\n")
		}
	}
}

// looseMember reads a member that its dialect does not know. The member's name may
// show that its text comes from the application itself.
func looseMember(p wire.Part, body []byte) []wire.Part {
	parts, _ := wire.LooseParts(body[p.Start : p.Start+p.Bytes])
	for i := range parts {
		if parts[i].Role == wire.User && p.Role == wire.Definition {
			parts[i].Role = p.Role
		}
	}
	return parts
}

// withinLimit cuts the texts of an input at the limit. The newest turn comes first,
// starting with its last text, and then what the application says. Text beyond
// the limit is recorded, and refuses the request if the operator wants that.
func (o *Opened) withinLimit(in Input) Input {
	if o.Reading.Limit == 0 {
		return in
	}
	left := max(0, o.Reading.Limit-in.results)
	read, unread := make(map[string]int), make(map[string]int) // bytes of each part
	keep := func(all []detect.Text) (kept []detect.Text) {
		for _, t := range slices.Backward(all) {
			whole := len(t.Body)
			t.Body = prefix(t.Body, left)
			left -= int64(len(t.Body))
			read[t.Part] += len(t.Body)
			unread[t.Part] += whole - len(t.Body)
			if t.Body != "" {
				kept = append(kept, t)
			}
		}
		slices.Reverse(kept)
		return kept
	}
	in.said, in.framing, in.instructions = keep(in.said), keep(in.framing), keep(in.instructions)
	maps.DeleteFunc(read, func(part string, _ int) bool { return unread[part] == 0 })
	o.Coverage.cut(read)
	for _, part := range slices.Sorted(maps.Keys(read)) {
		o.overflow(&in, part, unread[part])
	}
	return in
}

// overflow records text of a part that is beyond the limit.
func (o *Opened) overflow(in *Input, part string, bytes int) {
	if bytes == 0 {
		return
	}
	o.Coverage.Skip(part, beyondLimit, bytes)
	if o.Reading.RefuseOversize {
		in.deniedBy = deniedOversize
	}
}

// prefix returns at most the first n bytes of a text in UTF-8, without cutting a
// character.
func prefix(text string, n int64) string {
	if int64(len(text)) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// tail returns the last n bytes of s, from a character's start.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[len(s)-n:], "")
}

// ReadStray reads into an event what stands in a frame that its dialect cannot read, or
// beside the fields of one, and records it.
func (a *Assessed) ReadStray(event *wire.Event, data []byte) {
	a.SuspectCalls(data)
	event.Unknown = append(event.Unknown, "frame")
	if !a.Opened.Reading.Unknown {
		a.Opened.Coverage.NotKnownOnce("response.frame", notKnown, len(data))
		return
	}
	a.Opened.Coverage.NotKnownOnce("response.frame", unknownRead, 0)
	texts, _ := wire.LooseParts(bytes.ToValidUTF8(data, []byte("\uFFFD")))
	for _, p := range texts {
		if !a.InPieces { // no model answers, but a server of tools
			a.addStreamed(toolText{name: "response.frame", text: p.Text, bytes: len(p.Text), streamed: true})
			continue
		}
		event.Deltas = append(event.Deltas, strayText(p.Text))
	}
}

// An Answer holds the text of each alternative of a model's answer. Usually there is
// one.
type Answer []string

// ReadAnswer records for each part of a whole answer whether it is inspected, keeps its
// tool calls to be decided, and returns the texts to judge, one for each choice.
func (a *Assessed) ReadAnswer(answer wire.Response) Answer {
	a.addCalls(wholeCalls(answer.Calls))
	a.tools = append(a.tools, answer.Tools...)
	for _, p := range answer.Parts {
		name := "response." + p.Path
		switch {
		case p.Kind == wire.Text, p.Kind == wire.RefusalText:
			if p.Text != "" {
				a.Opened.Coverage.InspectAnswer(name, p.Bytes)
			}
		case p.Called && p.Kind != wire.Unknown: // what is not known of a call is not decided on
			a.Opened.Coverage.Inspect(name, DetectorToolCall, p.Bytes)
		case p.Kind == wire.Unknown && p.Text == "":
			a.Opened.Coverage.NotKnown(name, notKnown, p.Bytes)
		case p.Kind == wire.Unknown:
			a.Opened.Coverage.NotKnown(name, unknownRead, 0)
			a.fromTool = append(a.fromTool, toolText{name: name, text: p.Text, bytes: p.Bytes, instructs: true})
		case (p.Kind == wire.ToolResult || p.Kind == wire.Instruction) && p.Text != "":
			a.fromTool = append(a.fromTool, toolText{name: name, text: p.Text, bytes: p.Bytes, instructs: p.Kind == wire.Instruction})
		default:
			if p.Kind == wire.Reasoning && p.Text != "" {
				a.thoughts.add(wire.Delta{Choice: p.Message, Part: p.Path, Text: p.Text})
			}
			a.Opened.Coverage.Skip(name, string(p.Kind)+": not read by a detector on this path", p.Bytes)
		}
	}
	return TextsOf(answer.Parts)
}

// TextsOf returns the texts of the choices of an answer that have any, in order.
func TextsOf(parts []wire.Part) Answer {
	var texts Answer
	choice := -1
	for _, p := range parts {
		if p.Kind != wire.Text && p.Kind != wire.RefusalText || p.Text == "" {
			continue
		}
		if p.Message != choice {
			texts, choice = append(texts, ""), p.Message
		}
		texts[len(texts)-1] += p.Text
	}
	return texts
}

// strayText is a text that stands where clients may or may not look for it. It is a part
// of its own, for it must not tear the text apart that all of them show.
func strayText(text string) wire.Delta {
	return wire.Delta{Kind: wire.Text, Text: text + " ", Part: "stray"}
}

// ReadEvent reads a frame of a streamed answer in a dialect and records what the
// checks cannot read. A frame that does not follow the dialect is unknown, but it may
// still end the answer. If the operator wants that, its texts are read loosely, as a part
// of the first choice: some clients show frames with two JSON documents, a member that
// occurs twice, a NUL or a byte order mark.
func (a *Assessed) ReadEvent(events wire.EventReader, frame wire.Frame) wire.Event {
	event, err := events.Event(frame)
	if err != nil {
		event.Deltas, event.Unknown = nil, nil
	}
	a.AnswerID = cmp.Or(a.AnswerID, event.ID)
	a.addCalls(event.Calls)
	a.tools = append(a.tools, event.Tools...)
	unread := len(frame.Data) // a frame's size stands for the size of what is unknown in it
	if unread == 0 {
		unread = len(frame.Raw) // it has nothing but other fields
	}
	for _, path := range event.Unknown {
		a.Opened.Coverage.NotKnownOnce("response."+path, notKnown, unread)
		unread = 0 // counted once a frame
	}
	a.endPieces()
	for _, d := range event.Deltas {
		if d.IsText() && !d.Called {
			continue
		}
		switch name := "response." + string(d.Kind); {
		case (d.Kind == wire.ToolResult || d.Kind == wire.Instruction) && d.Text != "":
			a.addStreamed(toolText{name: name, text: d.Text, bytes: len(d.Text), instructs: d.Kind == wire.Instruction, streamed: true, piece: event.Piece})
		case d.Called:
			a.Opened.Coverage.InspectOnce(name, DetectorToolCall, len(d.Text))
		default:
			if d.Kind == wire.Reasoning && d.Text != "" {
				a.thoughts.add(d)
			}
			a.Opened.Coverage.SkipOnce(name, "not read by a detector on this path", len(d.Text))
		}
	}
	for kind, size := range event.Silent {
		a.Opened.Coverage.SkipOnce("response."+string(kind), "not read by a detector on this path", size)
	}
	if err != nil {
		a.ReadStray(&event, frame.Data)
		a.readForgiven(&event, events, frame)
	}
	return event
}

// readForgiven reads the text that lenient clients show of a frame which its dialect cannot
// read. They put it together with that of the other frames, so it is judged with it, and not
// only as a stray text.
func (a *Assessed) readForgiven(event *wire.Event, events wire.EventReader, frame wire.Frame) {
	if !a.InPieces || !a.Opened.Reading.Unknown {
		return
	}
	forgiven, ok := frame.Forgiven()
	if !ok {
		return
	}
	read, err := events.Event(forgiven)
	if err != nil {
		return
	}
	for _, d := range read.Deltas {
		if d.IsText() && !d.Called {
			event.Deltas = append(event.Deltas, d)
		}
	}
}
