package caddymodule_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A flushCounter counts what leaves at a time.
type flushCounter struct {
	*httptest.ResponseRecorder
	flushes int
}

func (c *flushCounter) FlushError() error {
	c.flushes++
	return nil
}

// What comes at a time from the model leaves at a time, and does not wait for more.
func TestFramesLeaveAsTheyCome(t *testing.T) {
	words := strings.SplitAfter(strings.Repeat("Paris is a city. ", 30), " ")
	for name, config := range map[string]string{"enforce": `{"hold_back":{"bytes":0,"duration":1000000000}}`, "observe": `{"mode":"observe"}`} {
		for together, most := range map[int]int{1: 125, 40: 8, 1000: 2} {
			w := &flushCounter{ResponseRecorder: httptest.NewRecorder()}
			s := newSite(t, config, func(upstream http.ResponseWriter, _ *http.Request) error {
				upstream.Header().Set("Content-Type", "text/event-stream")
				frames := strings.SplitAfter(stream(words...), "\n\n")
				for len(frames) > 0 {
					n := min(together, len(frames))
					if _, err := io.WriteString(upstream, strings.Join(frames[:n], "")); err != nil {
						return err
					}
					if frames = frames[n:]; len(frames) > 10 && w.flushes == 0 {
						t.Errorf("%s, %d at a time: nothing has left", name, together)
					}
				}
				return nil
			})
			s.serve(w, httptest.NewRequest(http.MethodPost, "http://site.test/v1/chat/completions", strings.NewReader(chatStreamed)))
			if w.flushes == 0 || w.flushes > most {
				t.Errorf("%s, %d frames at a time: %d flushes", name, together, w.flushes)
			}
			if !strings.HasSuffix(w.Body.String(), "data: [DONE]\n\n") {
				t.Errorf("%s: %s", name, w.Body)
			}
		}
	}
}

// Text that has passed its checks does not wait for a remote model that is asked about what
// came with it.
func TestTextDoesNotWaitForARemoteModel(t *testing.T) {
	result := `data: {"type":"response.output_item.done","output_index":1,"item":{"type":"mcp_call","id":"m","name":"f","server_label":"s","arguments":"{}","output":"` + strings.Repeat("The weather is fine today. ", 30) + `"}}` + "\n\n"
	for name, c := range map[string]struct {
		path, call, answer string
		remote             func(url string) map[string]any
		detector           string
	}{
		"judge": {
			"/v1/chat/completions", chatStreamed, stream("Paris is ", "the capital."),
			func(url string) map[string]any {
				return map[string]any{"judge": map[string]any{"provider": "openai", "base_url": url, "model": "m", "api_key": "k"}}
			}, "openai_judge",
		},
		"guard": {
			"/v1/responses", `{"model":"m","stream":true,"input":"How is the weather?"}`,
			`data: {"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"I look."}` + "\n\n" + result,
			func(url string) map[string]any {
				return map[string]any{"guards": []any{map[string]any{"kind": "classifier", "name": "g", "base_url": url, "model": "leolee99/PIGuard", "ask": "always", "asks": []string{"tool_result"}}}}
			}, "guard_g.tool_result",
		},
	} {
		read := make(chan struct{})
		remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			select {
			case <-read:
			case <-r.Context().Done(): // the proxy waits no longer
			}
			if name == "judge" {
				_, _ = io.WriteString(w, completion(acquits))
				return
			}
			_, _ = io.WriteString(w, `[[{"label":"INJECTION","score":0.02},{"label":"SAFE","score":0.98}]]`)
		}))
		s := newSiteWith(t, `{"hold_back":{"bytes":0,"duration":1000000000}}`, c.remote(remote.URL+"/v1"), answering("text/event-stream", c.answer))
		response, err := http.Post("http://"+listen(t, s)+c.path, "application/json", strings.NewReader(c.call))
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(response.Body)
		for text := ""; !strings.Contains(text, "Paris is ") && !strings.Contains(text, "I look."); {
			if text, err = lines.ReadString('\n'); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		close(read)
		_, _ = io.Copy(io.Discard, lines)
		response.Body.Close()
		remote.Close()
		found := false
		for _, d := range s.receipts()[0]["coverage"].(map[string]any)["detectors"].([]any) {
			run := d.(map[string]any)
			if run["name"] == c.detector {
				found = true
				if run["outcome"] != "clean" {
					t.Errorf("%s: %v", name, run)
				}
			}
		}
		if !found {
			t.Errorf("%s was not asked: %s", name, fmt.Sprint(s.receipts()[0]["coverage"]))
		}
	}
}
