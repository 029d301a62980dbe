package caddymodule_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/tidwall/gjson"
)

const amazonType = "application/vnd.amazon.eventstream"

// amazonStream writes a stream in Amazon's encoding. Each line has the type of an event and its
// payload; that of an exception begins with a mark of exclamation.
func amazonStream(lines string) string {
	var out bytes.Buffer
	for line := range strings.Lines(lines) {
		name, payload, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			continue
		}
		kind := "event"
		if name, ok = strings.CutPrefix(name, "!"); ok {
			kind = "exception"
		}
		message := eventstream.Message{Payload: []byte(payload), Headers: eventstream.Headers{
			{Name: ":" + kind + "-type", Value: eventstream.StringValue(name)},
			{Name: ":content-type", Value: eventstream.StringValue("application/json")},
			{Name: ":message-type", Value: eventstream.StringValue(kind)},
		}}
		if err := eventstream.NewEncoder().Encode(&out, message); err != nil {
			panic(err)
		}
	}
	return out.String()
}

// amazonLines reads a stream back, as every client reads it.
func amazonLines(t testing.TB, stream []byte) string {
	t.Helper()
	var out strings.Builder
	for in := bytes.NewReader(stream); in.Len() > 0; {
		message, err := eventstream.NewDecoder().Decode(in, nil)
		if err != nil {
			t.Fatalf("%v in %q", err, stream)
		}
		name := message.Headers.Get(":event-type")
		if name == nil {
			name = eventstream.StringValue("!" + message.Headers.Get(":exception-type").String())
		}
		fmt.Fprintf(&out, "%s %s\n", name, message.Payload)
	}
	return out.String()
}

// amazonPayloads are the payloads of a stream, and how many bytes from its first message on
// that cannot be read.
func amazonPayloads(stream string) (payloads []gjson.Result, rest int) {
	for in := strings.NewReader(stream); in.Len() > 0; {
		rest = in.Len()
		message, err := eventstream.NewDecoder().Decode(in, nil)
		if err != nil {
			return payloads, rest
		}
		payloads = append(payloads, gjson.ParseBytes(message.Payload))
	}
	return payloads, 0
}

// amazonFinish is why an answer of Converse ends.
func amazonFinish(stream string) (reason string) {
	payloads, _ := amazonPayloads(stream)
	for _, payload := range payloads {
		reason += payload.Get("stopReason").Str
	}
	return reason
}

// bedrockDelta and bedrockStop are lines of a stream of Converse.
func bedrockDelta(index int, delta string) string {
	return fmt.Sprintf("contentBlockDelta {\"contentBlockIndex\":%d,\"delta\":%s}\n", index, delta)
}

func bedrockStop(index int) string {
	return fmt.Sprintf("contentBlockStop {\"contentBlockIndex\":%d}\n", index)
}
