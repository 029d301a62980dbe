package wire

import (
	"bytes"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// matchBedrock knows the calls of Amazon Bedrock, /model/{model}/{method}. The name of a model may
// have slashes, because it may be that of a resource. Converse is one API for all models; a call to
// invoke has the body that its model wants, and of these Anthropic's is governed.
func matchBedrock(_ string, address *url.URL) Dialect {
	dir, method := path.Split(path.Clean(address.Path))
	at := strings.Index(strings.ToLower(dir), "/model/")
	if at < 0 || at+len("/model/") == len(dir) {
		return nil
	}
	model := strings.TrimSuffix(dir[at+len("/model/"):], "/")
	switch method = strings.ToLower(method); method {
	case "converse", "converse-stream":
		return converse{model: model, stream: method == "converse-stream"}
	case "invoke", "invoke-with-response-stream":
		if strings.Contains(strings.ToLower(model), "anthropic.") {
			return bedrockInvoke{anthropic{streamed: method != "invoke"}}
		}
	}
	return nil
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
		f.Event = eventType(f) // a chunk has no other name
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
