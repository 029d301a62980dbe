package caddymodule_test

import (
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// streamedCalls are a streamed question in each dialect: its address, its body and the
// content type of the answer.
var streamedCalls = map[string][3]string{
	"openai_chat":        {"/v1/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"user","content":"Hello!"}]}`, "text/event-stream"},
	"openai_responses":   {"/v1/responses", `{"model":"m","stream":true,"input":"Hello!"}`, "text/event-stream"},
	"anthropic_messages": {"/v1/messages", `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"Hello!"}]}`, "text/event-stream"},
	"gemini_generate":    {"/v1beta/models/m:streamGenerateContent?alt=sse", `{"contents":[{"parts":[{"text":"Hello!"}]}]}`, "text/event-stream"},
	"bedrock_converse":   {"/model/amazon.nova/converse-stream", `{"messages":[{"role":"user","content":[{"text":"Hello!"}]}]}`, "application/vnd.amazon.eventstream"},
	"ollama_chat":        {"/api/chat", `{"model":"m","messages":[{"role":"user","content":"Hello!"}]}`, "application/x-ndjson"},
	"ollama_generate":    {"/api/generate", `{"model":"m","prompt":"Hello!"}`, "application/x-ndjson"},
	"mcp":                {"/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"f","arguments":{}}}`, "text/event-stream"},
}

var receiptNote = regexp.MustCompile(`(?m)^: x-lex-receipt-id: KRN-[0-9A-F]+\n\n?`)

// Where nothing is found, a stream arrives byte for byte as the model sent it, however
// the network cut it; in enforce with the note of its receipt, in observe without.
func TestDocumentedStreamsPassUnchanged(t *testing.T) {
	files, err := filepath.Glob("../wire/testdata/examples/*/*.stream")
	if err != nil || len(files) < 16 {
		t.Fatalf("%d streams, %v", len(files), err)
	}
	for _, file := range files {
		call, ok := streamedCalls[filepath.Base(filepath.Dir(file))]
		if !ok {
			t.Errorf("%s: no call of its dialect", file)
			continue
		}
		stream, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, mode := range []string{"enforce", "observe"} {
			t.Run(mode+" "+file[len("../wire/testdata/examples/"):], func(t *testing.T) {
				s := newSite(t, `{"mode":"`+mode+`"}`, func(w http.ResponseWriter, _ *http.Request) error {
					w.Header().Set("Content-Type", call[2])
					for rest := stream; len(rest) > 0; {
						n := min(len(rest), 1+rand.IntN(200))
						if _, err := w.Write(rest[:n]); err != nil {
							return err
						}
						rest = rest[n:]
					}
					return nil
				})
				w := s.post(call[0], call[1])
				got, _ := io.ReadAll(w.Body)
				if mode == "enforce" {
					got = receiptNote.ReplaceAll(got, nil)
				}
				if string(got) != string(stream) {
					t.Errorf("%v: got\n%s\nwant\n%s", s.receipts()[0]["outcome"], got, stream)
				}
			})
		}
	}
}
