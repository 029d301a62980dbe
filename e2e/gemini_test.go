package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// Without alt=sse Gemini streams one JSON array. No SDK asks for it; curl and older
// clients do. It must be an array in every case, or the client cannot tell an answer
// from half of one.
func TestGeminiArrayStream(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	p := freePorts(t)
	s := start(t, writeCaddyfile(t, p, fmt.Sprintf(sdkCaddyfile, u.address)), "", p)
	for _, c := range []struct {
		name, prompt string
		manner       manner
		begins, ends string // of the text that arrives
		finish       string
	}{
		{"question", "What is the capital of France?", "", "The capital", "Paris.", "STOP"},
		{"question in single bytes", "What is the capital of France?", inBytes, "The capital", "Paris.", "STOP"},
		{"attack", attack, "", "I can't", "this service.", "SAFETY"},
		{"answer that gives in", "Tell me a long story.", "", storyBegins, "this service.", "SAFETY"},
		{"answer that gives in, in random pieces", "Tell me a long story.", inPieces, storyBegins, "this service.", "SAFETY"},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := `{"contents":[{"role":"user","parts":[{"text":` + quote(c.prompt) + `}]}]}`
			got := s.do(t, http.MethodPost, "/v1beta/models/gemini-e2e:streamGenerateContent", body, mannerHeader, string(c.manner))
			var chunks []struct {
				Candidates []struct {
					Content      struct{ Parts []struct{ Text string } }
					FinishReason string
				}
			}
			if err := json.Unmarshal([]byte(got.Body), &chunks); err != nil || got.Status != http.StatusOK {
				t.Fatalf("%d %v: %s", got.Status, err, got.Body)
			}
			var text strings.Builder
			finish := ""
			for _, chunk := range chunks {
				for _, part := range chunk.Candidates[0].Content.Parts {
					text.WriteString(part.Text)
				}
				finish = chunk.Candidates[0].FinishReason
			}
			if !strings.HasPrefix(text.String(), c.begins) || !strings.HasSuffix(text.String(), c.ends) || strings.Contains(text.String(), "DAN") || finish != c.finish {
				t.Errorf("%q, finish reason %s", text.String(), finish)
			}
		})
	}
}
