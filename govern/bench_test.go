package govern_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/wire"
)

// frames are what a stream begins with in each dialect, and a frame with WORD of its
// text.
var frames = map[string]struct{ begin, word string }{
	"openai_chat": {
		`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`,
		`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"WORD"},"finish_reason":null}]}`,
	},
	"openai_responses": {
		`{"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}`,
		`{"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"WORD","logprobs":[]}`,
	},
	"anthropic_messages": {
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"WORD"}}`,
	},
	"gemini_generate": {
		`{"modelVersion":"m"}`,
		`{"candidates":[{"content":{"parts":[{"text":"WORD"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":8,"totalTokenCount":8},"modelVersion":"m","responseId":"r"}`,
	},
	"ollama_chat": {
		`{"model":"m","created_at":"2023-08-04T08:52:19Z","message":{"role":"assistant","content":""},"done":false}`,
		`{"model":"m","created_at":"2023-08-04T08:52:19Z","message":{"role":"assistant","content":"WORD"},"done":false}`,
	},
}

// BenchmarkFrame is the cost of one frame of a streamed answer: reading it, checking
// the text, holding it back, letting it go and following what left.
func BenchmarkFrame(b *testing.B) {
	for name, data := range frames {
		b.Run(name, func(b *testing.B) { benchmarkFrame(b, name, data.begin, data.word) })
	}
}

func benchmarkFrame(b *testing.B, name, begin, word string) {
	b.Helper()
	dialect, ok := wire.Named(name)
	if !ok {
		b.Fatal("no such dialect")
	}
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
		text := strings.Replace(word, "WORD", words[i%len(words)], 1)
		if i%2000 == 0 { // a long answer
			if gate != nil {
				gate.Close()
			}
			stream := dialect.Stream()
			release := func(frames []wire.Frame) error {
				for _, f := range frames {
					stream.Sent(f)
				}
				return nil
			}
			events = dialect.Events()
			gate = a.NewGate(govern.GateConfig{Window: 256, MaxDelay: time.Hour, Limit: roomy, Write: release}, func() {})
			text = begin
		}
		frame := wire.Frame{Raw: []byte(text), Data: []byte(text)}
		if name == "anthropic_messages" { // which names each event twice
			frame.Event = gjson.Get(text, "type").Str
		}
		event := a.ReadEvent(events, frame)
		if len(event.Unknown) > 0 {
			b.Fatalf("%s: %v", text, event.Unknown)
		}
		if !gate.Append(frame, event.Deltas) {
			b.Fatal("the gate stopped")
		}
	}
}

// prose is harmless.
const prose = "The quarterly report covers sales, costs and staff in every region. We compared the figures with last year and found that " +
	"travel costs fell while rents rose. The new office opened in May, and most of the team moved there during the summer. Customers " +
	"asked for longer opening hours, so the shop now closes at eight. Deliveries were late twice because of the strike at the harbour. "

// BenchmarkStream is the cost of the checks of a streamed answer of 32 KB, frame by frame.
func BenchmarkStream(b *testing.B) {
	answer := strings.Repeat(prose, 32<<10/len(prose)+1)[:32<<10]
	words := strings.SplitAfter(answer, " ")
	for name, system := range map[string]string{"judged": "", "echoes": govern.DefaultConstitution()} {
		b.Run(name, func(b *testing.B) {
			g, _ := newGovernor(b)
			opened, err := g.Open(b.Context(), request("s"))
			if err != nil {
				b.Fatal(err)
			}
			a, err := opened.Assess(b.Context(), opened.ReadPrompt(question))
			if err != nil {
				b.Fatal(err)
			}
			a.System = system
			b.ReportAllocs()
			b.SetBytes(int64(len(answer)))
			for b.Loop() {
				gate := a.NewGate(govern.GateConfig{Window: 256, MaxDelay: time.Hour, Limit: roomy, Write: discard}, func() {})
				for _, w := range words {
					if !feed(gate, w) {
						b.Fatal("the gate stopped")
					}
				}
				gate.Close()
			}
		})
	}
}
