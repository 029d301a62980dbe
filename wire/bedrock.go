package wire

import (
	"bytes"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// matchBedrock knows the calls of Amazon Bedrock. Converse is one API for all models; a call to
// invoke has the body that its model wants, and of these Anthropic's is governed.
func matchBedrock(_ string, address *url.URL) Dialect {
	switch model, method := bedrockCall(address.Path); method {
	case "converse", "converse-stream":
		return converse{model: model, stream: method == "converse-stream"}
	case invokeWhole, invokeStreamed:
		if strings.Contains(strings.ToLower(model), "anthropic.") {
			return invokeOf(method)
		}
	}
	return nil
}

// bedrockCall takes a path of Bedrock apart, /model/{model}/{method}. The name of a model may have
// slashes, because it may be that of a resource.
func bedrockCall(p string) (model, method string) {
	dir, method := path.Split(path.Clean(p))
	at := strings.Index(strings.ToLower(dir), "/model/")
	if at < 0 || at+len("/model/") == len(dir) {
		return "", ""
	}
	return strings.TrimSuffix(dir[at+len("/model/"):], "/"), strings.ToLower(method)
}

// The methods that take the body of the model's own API.
const (
	invokeWhole    = "invoke"
	invokeStreamed = "invoke-with-response-stream"
)

func invokeOf(method string) bedrockInvoke {
	return bedrockInvoke{anthropic{streamed: method == invokeStreamed}}
}

// MatchBody tells which dialect is spoken at an address that [Match] does not know and whose body
// leaves no doubt: Claude behind Bedrock's InvokeModel. The resource that the address names, such as an
// application inference profile, need not name its model, but Bedrock hands it the body as it is.
// Claude refuses one without anthropic_version, and the other models refuse one with it, since they
// allow no member that they do not know. Its value tells no more: SDKs send that of Bedrock
// (bedrock-2023-05-31) or that of Anthropic's own API.
//
// A model that is more lenient, or a server in the place of Bedrock, might still take such a body
// for another one. So the caller has to read every text of it, also where Anthropic's API shows none to
// its models ([LooseParts]). An answer in the form of another model cannot be read as one of the
// dialect, so it does not pass.
func MatchBody(address *url.URL, body []byte) (Dialect, bool) {
	for _, p := range Paths(address) {
		_, method := bedrockCall(p)
		if method != invokeWhole && method != invokeStreamed {
			continue
		}
		d := invokeOf(method)
		if _, err := d.Request(body); err != nil {
			return nil, false // also where a name occurs twice, and servers take one or the other
		}
		return d, gjson.GetBytes(body, "anthropic_version").Str != ""
	}
	return nil, false
}

// bedrockInvoke is Anthropic's Messages API in Bedrock's InvokeModel and
// InvokeModelWithResponseStream. Bodies are Anthropic's own, errors are Bedrock's, and the events
// of a stream come as chunks of Amazon's encoding
// (https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html).
type bedrockInvoke struct{ anthropic }

// Framing returns the framing of streams.
func (bedrockInvoke) Framing() Framing { return AmazonStream }

// Error is the body of an HTTP error, for the SDKs of AWS and those of Anthropic, which look for it
// in other members.
func (d bedrockInvoke) Error(e Error) []byte {
	body := d.anthropic.Error(e)
	return append(append(body[:len(body)-1], ','), converse{}.Error(e)[1:]...)
}

// Events returns a reader of a stream.
func (d bedrockInvoke) Events() EventReader { return chunkReader{d.anthropic.Events()} }

// A chunkReader reads the events of Anthropic's API out of chunks.
type chunkReader struct{ EventReader }

// Rest implements [EventReader].
func (r chunkReader) Rest() EventReader { return chunkReader{r.EventReader.Rest()} }

// Event implements [EventReader].
func (r chunkReader) Event(f Frame) (Event, error) {
	switch {
	case f.failed():
		return failedEvent(f)
	case f.amazon != nil && !f.amazon.chunk:
		return Event{}, invalid("an event is no chunk")
	case f.amazon != nil:
		if f.Event = eventType(f); f.Event == "" { // a chunk has no other name
			return Event{}, invalid("a chunk has no type, so it is of another model")
		}
	}
	return r.EventReader.Event(f)
}

// eventType is the name of an event of Anthropic's own streams.
func eventType(f Frame) string { return gjson.GetBytes(f.Data, "type").Str }

// Stream returns a writer for the end of a stream.
func (bedrockInvoke) Stream() StreamWriter { return new(chunkWriter) }

// A chunkWriter ends a stream of chunks as Anthropic's API ends its own.
type chunkWriter struct{ events anthropicStream }

// Sent implements [StreamWriter].
func (w *chunkWriter) Sent(f Frame) { w.events.Sent(f) }

// Refusal implements [Ender].
func (w *chunkWriter) Refusal(r Refusal) []byte { return asChunks(w.events.Refusal(r)) }

// Error implements [Ender]: clients raise an exception.
func (w *chunkWriter) Error(e Error) []byte { return appendBedrockException(nil, e) }

// KeepAlive implements [Filler].
func (w *chunkWriter) KeepAlive() []byte { return asChunks(w.events.KeepAlive()) }

// Note implements [Filler].
func (w *chunkWriter) Note(string) []byte { return nil }

// WithoutCalls implements [StreamCallEditor].
func (w *chunkWriter) WithoutCalls(frames []Frame, blocked []BlockedCall) ([]byte, error) {
	if len(blocked) == 0 {
		return appendRaw(nil, frames), nil
	}
	failed := slices.IndexFunc(frames, Frame.failed)
	if failed < 0 {
		failed = len(frames)
	}
	var events []Frame
	for _, f := range frames[:failed] {
		if f.amazon == nil || !f.amazon.chunk {
			return nil, cannotEdit("an event is no chunk")
		}
		data := bytes.ReplaceAll(bytes.ReplaceAll(f.Data, []byte("\r"), []byte(" ")), []byte("\n"), []byte(" "))
		events = append(events, Frame{Raw: AppendEvent(nil, data), Event: eventType(f), Data: data})
	}
	out, err := w.events.WithoutCalls(events, blocked)
	return appendRaw(asChunks(out), frames[failed:]), err
}

// asChunks returns an event stream as chunks.
func asChunks(stream []byte) (out []byte) {
	events := NewSplitter(EventStream, len(stream)+1)
	_ = events.Push(stream) // no frame is longer than all of them
	for f, ok := events.Next(); ok; f, ok = events.Next() {
		out = appendAmazonEvent(out, amazonChunk, map[string][]byte{"bytes": f.Data})
	}
	return out
}

// Interface guards
var (
	_ Dialect          = bedrockInvoke{}
	_ CallEditor       = bedrockInvoke{}
	_ StreamCallEditor = (*chunkWriter)(nil)
)
