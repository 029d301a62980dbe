package wire

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// gemini is Google's generateContent API, as the Gemini API and Vertex AI serve it.
// The model, and whether the answer is streamed and how, stand in the address.
type gemini struct {
	model   string // "" if there is no address
	stream  bool
	array   bool // the stream is one JSON array, which is the API's default
	other   bool // the answer is asked for in another form than JSON
	endless bool // it is asked for without the reason why it ends
}

// matchGemini knows …/models/{model}:generateContent and :streamGenerateContent, under
// any version and any parent (tunedModels, publishers/google/models, endpoints).
func matchGemini(_ string, address *url.URL) Dialect {
	cleaned := path.Clean("/" + address.Path)
	colon := strings.LastIndexByte(cleaned, ':')
	if colon < strings.LastIndexByte(cleaned, '/') {
		return nil
	}
	parent, name := path.Split(cleaned[:colon])
	d := gemini{model: name, other: asksForOther(address.Query()), endless: asksForNoReason(address.Query())}
	if parent = path.Base(parent); !strings.EqualFold(parent, "models") && parent != "/" {
		d.model = parent + "/" + name
	}
	switch method := cleaned[colon+1:]; {
	case strings.EqualFold(method, "generateContent"):
	case strings.EqualFold(method, "streamGenerateContent"):
		d.stream, d.array = true, !asksForEvents(address.Query())
	default:
		return nil
	}
	return d
}

// asksForEvents reports whether a query asks for an event stream.
func asksForEvents(query url.Values) bool {
	return strings.EqualFold(cmp.Or(query.Get("alt"), query.Get("$alt")), "sse")
}

// asksForOther reports whether a query asks for an answer that is not JSON. Google's
// servers also answer in protocol buffers (https://cloud.google.com/apis/docs/system-parameters).
func asksForOther(query url.Values) bool {
	return slices.ContainsFunc(slices.Concat(query["alt"], query["$alt"]), func(form string) bool {
		return form != "" && !strings.EqualFold(form, "json") && !strings.EqualFold(form, "sse")
	})
}

// asksForNoReason reports whether a query asks for some fields of the answer, and the reason why a
// candidate ends is none of them (https://cloud.google.com/apis/docs/system-parameters).
func asksForNoReason(query url.Values) bool {
	mask := cmp.Or(query.Get("fields"), query.Get("$fields"))
	whole := slices.Contains(strings.Split(mask, ","), "candidates")
	return mask != "" && !whole && !strings.Contains(mask, "*") && !strings.Contains(mask, "finishReason") && !strings.Contains(mask, "finish_reason")
}

// Name implements [Dialect].
func (gemini) Name() string { return "gemini_generate" }

// Request reads the body of a call. The system instruction is the first message,
// wherever it stands.
func (d gemini) Request(body []byte) (Request, error) {
	root, err := parse(body)
	if err != nil {
		return Request{}, err
	}
	if d.other {
		return Request{}, invalid("alt asks for an answer that is neither JSON nor an event stream")
	}
	if contents := root.Get("contents"); !contents.IsArray() && !contents.IsObject() {
		return Request{}, invalid("contents is not an array of contents")
	}
	r := Request{Model: d.model, Stream: d.stream, Previous: tokenID(member(root, "continuationToken")), Kept: true}
	config := member(root, "generationConfig")
	if r.Choices, err = geminiChoices(member(config, "candidateCount")); err != nil {
		return Request{}, err
	}
	r.Structured = geminiStructured(config)
	w := walk{role: Other, toModel: true}
	for _, name := range []string{"systemInstruction", "system_instruction"} {
		w.first(root, name, message(System, geminiSystem))
	}
	geminiRequest(&w, root)
	w.markEarlier()
	w.markContext()
	r.Parts, r.prompt, r.Tools = w.parts, lastUserText(w.parts), geminiTools(root)
	return r, w.err
}

// geminiChoices reads how many alternative answers are asked for. Protocol buffers
// take an integer in quotes too, and 0 for one that is not set.
func geminiChoices(v gjson.Result) (int, error) {
	if v.Type == gjson.Null {
		return 1, nil
	}
	n, err := strconv.Atoi(strings.Trim(v.Raw, `"`))
	if err != nil || n < 0 || n > MaxChoices {
		return 0, invalid("candidateCount is not an integer from 1 to %d", MaxChoices)
	}
	return max(n, 1), nil
}

// geminiStructured reports whether the answer must have a form.
func geminiStructured(config gjson.Result) bool {
	for _, name := range []string{"responseSchema", "responseJsonSchema", "_responseJsonSchema", "responseFormat"} {
		if member(config, name).Type != gjson.Null {
			return true
		}
	}
	mime := member(config, "responseMimeType").Str
	return mime != "" && mime != "text/plain"
}

// tokenID names an answer by its continuation token, with which the next call goes on
// from it. A token may be large and is not to be logged, so a digest stands for it. Its
// base64 is decoded first: SDKs send it back in the alphabet that they like.
func tokenID(token gjson.Result) string {
	if token.Str == "" {
		return ""
	}
	raw, err := decodeBase64(token.Str)
	if err != nil {
		raw = []byte(token.Str)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// Response reads an answer that is not streamed.
func (gemini) Response(body []byte) (Response, error) {
	root, err := parseAnswer(body)
	if err != nil {
		return Response{}, err
	}
	var w walk
	geminiAnswer(&w, root)
	failed := w.isOnlyError(root)
	if !root.Get("candidates").IsArray() && !root.Get("promptFeedback").IsObject() && !failed {
		return notAnAnswer(root, "it has neither candidates nor promptFeedback")
	}
	if w.err != nil {
		return Response{}, w.err
	}
	r := Response{
		Model: root.Get("modelVersion").Str, Err: failed, Parts: w.parts, Calls: geminiWholeCalls(root),
		Finish: cmp.Or(root.Get("candidates.0.finishReason").Str, root.Get("promptFeedback.blockReason").Str),
	}
	root.Get("candidates").ForEach(func(_, candidate gjson.Result) bool {
		r.ID = tokenID(candidate.Get("continuationToken"))
		return r.ID == ""
	})
	var first []Part
	for _, p := range w.parts {
		if p.Message <= 1 { // promptFeedback stands for the answer that is not there
			first = append(first, p)
		}
	}
	r.text = shownText(first)
	return r, nil
}

// Events returns a reader of a stream.
func (d gemini) Events() EventReader { return &geminiEvents{endless: d.endless} }

// geminiEvents reads the frames of a stream, each of which stands for itself, but for the
// calls that go on over several.
type geminiEvents struct {
	calls   geminiCalls
	last    template
	endless bool // no frame says that the answer ends, so it may end with each
}

// Rest implements [EventReader].
func (s *geminiEvents) Rest() EventReader { return &geminiEvents{endless: s.endless} }

// Event reads one frame of a stream. The API has no end mark in event streams: they
// end with the connection, after each candidate had its finish reason.
func (s *geminiEvents) Event(f Frame) (Event, error) {
	e, err := s.read(f)
	e.MayEnd = e.MayEnd || s.endless && err == nil && len(f.Data) > 0
	return e, err
}

func (s *geminiEvents) read(f Frame) (Event, error) {
	switch {
	case f.Comment:
		return Event{}, nil
	case bytes.Equal(f.Data, closingBracket):
		return Event{Done: true, Calls: s.calls.endAll()}, nil
	case len(f.Data) == 0:
		return Event{Unknown: []string{"event"}}, nil
	}
	if e, ok := s.last.read(f); ok {
		return e, nil
	}
	root, err := parseAnswer(f.Data)
	if err != nil {
		return Event{}, err
	}
	var w walk
	if geminiAnswer(&w, root); w.err != nil {
		return Event{}, w.err
	}
	var e Event
	if f.Event != "" { // some SDKs drop such a frame, others fail
		e.Unknown = append(e.Unknown, "event")
	}
	e.addGeminiError(root.Get("error"))
	countTokens(w.parts, f.Data)
	e.addCandidates(root.Get("candidates"), w.parts)
	if s.calls.mayCall(f.Data) {
		// With automatic function calling the JavaScript SDK runs the tool before it reads
		// the next chunk.
		e.Calls = s.calls.deltas(root)
	}
	if reason := root.Get("promptFeedback.blockReason").Str; isReason(reason) {
		e.Finish, e.Done = cmp.Or(e.Finish, reason), true // there is no answer
	}
	s.last.learn(f, &w, e)
	return e, nil
}

// addGeminiError notes an error. The JavaScript SDK throws only for codes of HTTP
// errors, and reads on after others.
func (e *Event) addGeminiError(v gjson.Result) {
	code := v.Get("code").Num
	switch {
	case !isError(v):
	case code >= 400 && code < 600:
		e.Err = true
	default:
		e.Unknown = append(e.Unknown, "error")
	}
}

// addCandidates turns the parts of a chunk into deltas of the candidates that they
// belong to, which are named by their index or else by their place.
func (e *Event) addCandidates(candidates gjson.Result, parts []Part) {
	var indexes []int
	candidates.ForEach(func(_, candidate gjson.Result) bool {
		index, ok := len(indexes), true
		if v := candidate.Get("index"); v.Exists() {
			index, ok = choiceIndex(v)
		}
		if !ok || index >= MaxChoices {
			index = 0
			e.Unknown = append(e.Unknown, "candidates."+strconv.Itoa(len(indexes))+".index")
		}
		if reason := candidate.Get("finishReason").Str; isReason(reason) {
			// Clients read on to the end of the stream, and old models give a reason in
			// every chunk.
			e.Finish, e.MayEnd = cmp.Or(e.Finish, reason), true
		}
		e.ID = cmp.Or(e.ID, tokenID(candidate.Get("continuationToken")))
		indexes = append(indexes, index)
		return true
	})
	for _, p := range parts {
		choice := 0
		if p.Message > 0 && p.Message <= len(indexes) {
			choice = indexes[p.Message-1]
		}
		e.add(p, choice)
	}
	for i := range e.Deltas { // clients join the texts of a candidate
		if d := &e.Deltas[i]; d.Part != "" {
			d.Part, _, _ = strings.Cut(d.Part, ".content.")
		}
	}
}

// isReason reports whether a reason is one. Where there is none yet, some servers send
// FINISH_REASON_UNSPECIFIED.
func isReason(reason string) bool {
	return reason != "" && !strings.HasSuffix(reason, "_REASON_UNSPECIFIED")
}

// Ask makes the call that asks a model.
func (d gemini) Ask(a Ask) Call {
	type part struct {
		Text string `json:"text"`
	}
	type content struct {
		Role  string `json:"role,omitzero"`
		Parts []part `json:"parts"`
	}
	var call struct {
		System   *content  `json:"systemInstruction,omitzero"`
		Contents []content `json:"contents"`
	}
	if a.System != "" {
		call.System = &content{Parts: []part{{a.System}}}
	}
	for _, m := range slices.Concat(a.History, []Message{{User, a.Prompt}}) {
		role := "user"
		if m.Role == Assistant {
			role = "model"
		}
		call.Contents = append(call.Contents, content{role, []part{{m.Text}}})
	}
	model, method := cmp.Or(a.Model, d.model), ":generateContent"
	if !strings.Contains(model, "/") {
		model = "models/" + model
	}
	if a.Stream {
		method = ":streamGenerateContent?alt=sse"
	}
	return Call{Path: "/v1beta/" + model + method, Body: encode(call)}
}

// Authorize returns the header of an API key.
func (gemini) Authorize(key string) (name, value string) { return "X-Goog-Api-Key", key }

// Interface guards
var (
	_ Dialect = gemini{}
	_ Asker   = gemini{}
)
