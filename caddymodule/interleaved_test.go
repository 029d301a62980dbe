package caddymodule_test

import (
	"fmt"
	"strings"
	"testing"
)

// Clients put the pieces of one part of an answer together. A text whose pieces come in turn
// with those of another part, or with what no dialect knows, is judged as clients show it.
func TestInterleavedTextIsJudged(t *testing.T) {
	var pieces []string
	for i := 0; i < len(capitulation); i += 5 {
		pieces = append(pieces, capitulation[i:min(len(capitulation), i+5)])
	}
	// inTurn makes a stream that brings a piece, then a word of something harmless.
	inTurn := func(begin string, piece, harmless func(string) string, end string) string {
		words := strings.SplitAfter(strings.Repeat("the weather in Lisbon is nice and warm today ", 20), " ")
		var b strings.Builder
		b.WriteString(begin)
		for i, p := range pieces {
			b.WriteString(piece(p) + harmless(words[i%len(words)]))
		}
		return b.String() + end
	}
	block := func(index int) func(string) string {
		return func(text string) string {
			return claudeFrame("content_block_delta", fmt.Sprintf(`"index":%d,"delta":{"type":"text_delta","text":%q}`, index, text))
		}
	}
	delta := func(member string) func(string) string {
		return func(text string) string {
			return fmt.Sprintf("data: {\"choices\":[{\"index\":0,\"delta\":{%q:%q},\"finish_reason\":null}]}\n\n", member, text)
		}
	}
	output := func(item, part int) func(string) string {
		return func(text string) string {
			return fmt.Sprintf("data: {\"type\":\"response.output_text.delta\",\"output_index\":%d,\"content_index\":%d,\"delta\":%q}\n\n", item, part, text)
		}
	}
	none := func(string) string { return "" }
	const chatEnd = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
	claudeBegin := claudeStart + claudeFrame("content_block_start", `"index":0,"content_block":{"type":"text","text":""}`) +
		claudeFrame("content_block_start", `"index":1,"content_block":{"type":"text","text":""}`)
	twoCandidates := func(text string) string {
		return fmt.Sprintf("data: {\"candidates\":[{\"index\":0,\"content\":{\"parts\":[{\"text\":%q}]}},{\"index\":0,\"content\":{\"parts\":[{\"text\":\"nice weather \"}]}}]}\n\n", text)
	}
	const claudeAsks = `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"Who are you?"}]}`
	for name, c := range map[string]struct{ path, request, body string }{
		"blocks of Messages":       {"/v1/messages", claudeAsks, inTurn(claudeBegin, block(0), block(1), claudeEnd("end_turn"))},
		"content and refusal":      {"/v1/chat/completions", chatStreamed, inTurn("", delta("content"), delta("refusal"), chatEnd)},
		"content and a stray word": {"/v1/chat/completions", chatStreamed, inTurn("", delta("content"), func(s string) string { return fmt.Sprintf("data: %q\n\n", s) }, chatEnd)},
		"a field nobody knows":     {"/v1/chat/completions", chatStreamed, inTurn("", func(s string) string { return "foo: nice weather\n" + delta("content")(s) }, none, chatEnd)},
		"items of Responses":       {"/v1/responses", replyStreamed, inTurn("", output(0, 0), output(1, 0), "data: {\"type\":\"response.completed\",\"response\":"+reply()+"}\n\n")},
		"parts of Responses":       {"/v1/responses", replyStreamed, inTurn("", output(0, 0), output(0, 1), "data: {\"type\":\"response.completed\",\"response\":"+reply()+"}\n\n")},
		"candidates of one index": {
			"/v1beta/models/m:streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"Who are you?"}]}]}`,
			inTurn("", twoCandidates, none, "data: {\"candidates\":[{\"index\":0,\"content\":{\"parts\":[{\"text\":\"!\"}]},\"finishReason\":\"STOP\"}]}\n\n"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, `{}`, answering("text/event-stream", c.body))
			out := s.post(c.path, c.request).Body.String()
			receipt := s.turns()[0]
			if receipt["outcome"] != "refused" || !strings.Contains(out, "declined by the governance policy") {
				t.Errorf("the receipt says %v of %s", receipt["outcome"], out)
			}
			s = newSite(t, `{}`, answering("text/plain", c.body)) // as some servers say, and clients read it all the same
			if s.post(c.path, c.request); s.turns()[0]["outcome"] != "refused" {
				t.Errorf("as plain text: the receipt says %v", s.turns()[0]["outcome"])
			}
			s = newSite(t, `{"mode":"observe"}`, answering("text/event-stream", c.body))
			if out := s.post(c.path, c.request).Body.String(); out != c.body {
				t.Errorf("observed: %s", out)
			}
			if outcome, _ := detectorRun(s.turns()[0], "local_judge"); outcome != "flagged" {
				t.Errorf("observed: the local judge says %q", outcome)
			}
		})
	}
}
