package govern_test

import (
	"strings"
	"testing"
	"time"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/wire"
)

// BenchmarkFrame is the cost of one frame of a streamed answer: reading it, checking
// the text, holding it back and letting it go.
func BenchmarkFrame(b *testing.B) {
	g, _ := newGovernor(b)
	opened, err := g.Open(b.Context(), request("s"))
	if err != nil {
		b.Fatal(err)
	}
	a, err := opened.Assess(b.Context(), opened.ReadPrompt(question))
	if err != nil {
		b.Fatal(err)
	}
	words := strings.SplitAfter(prose, " ")
	b.ReportAllocs()
	var events wire.EventReader
	var gate *govern.Gate
	for i := range b.N {
		if i%2000 == 0 { // a long answer
			if gate != nil {
				gate.Close()
			}
			events = chat.Events()
			gate = a.NewGate(govern.GateConfig{Window: 256, MaxDelay: time.Hour, Limit: roomy, Write: func([]wire.Frame) error { return nil }}, func() {})
		}
		data := []byte(`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"` + words[i%len(words)] + `"},"finish_reason":null}]}`)
		event := a.ReadEvent(events, wire.Frame{Raw: data, Data: data})
		if !gate.Append(wire.Frame{Raw: data, Data: data}, event.Deltas) {
			b.Fatal("the gate stopped")
		}
	}
}

// prose is harmless.
const prose = "The quarterly report covers sales, costs and staff in every region. We compared the figures with last year and found that " +
	"travel costs fell while rents rose. The new office opened in May, and most of the team moved there during the summer. Customers " +
	"asked for longer opening hours, so the shop now closes at eight. Deliveries were late twice because of the strike at the harbour. "
