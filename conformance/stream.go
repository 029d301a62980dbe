package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

const streamPath = "/lex/govern/stream"

func streamCases() []testCase {
	header := map[string]string{"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
	cases := []testCase{
		{Name: "stream: a question", Request: request{Path: streamPath, Body: govern(question)}, Status: http.StatusOK, Header: header, Body: isStream},
		{Name: "stream: an attack", Request: request{Path: streamPath, Body: govern(attack)}, Status: http.StatusOK, Header: header, Body: isStream},
		{Name: "stream: the done event has what the plain answer has", Flow: doneIsThePlainAnswer},
	}
	for _, k := range invalidGovernCases() {
		if k.Request.Body != "" && slices.Contains([]string{"no prompt", "truncated", "no session_id", "turn 0", `identity_mode "loud"`, "over 128 KiB"}, strings.TrimPrefix(k.Name, "govern: ")) {
			k.Name = "stream: " + strings.TrimPrefix(k.Name, "govern: ")
			k.Request.Path = streamPath
			cases = append(cases, k)
		}
	}
	return cases
}

// readStream parses the events as a strict reader would: tokens, then exactly
// one done event.
func readStream(r response) (tokens []string, done map[string]any, err error) {
	text := string(r.Body)
	if !strings.HasSuffix(text, "\n\n") {
		return nil, nil, errors.New("the stream does not end with a complete event")
	}
	for frame := range strings.SplitSeq(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		if strings.HasPrefix(frame, ":") {
			continue // a comment
		}
		data, ok := strings.CutPrefix(frame, "data: ")
		if !ok || strings.Contains(data, "\n") {
			return nil, nil, fmt.Errorf("an event is not one data line: %.200q", frame)
		}
		var event map[string]any
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			return nil, nil, fmt.Errorf("an event is not a JSON object: %.200q", data)
		}
		if done != nil {
			return nil, nil, errors.New("an event follows the done event")
		}
		if event["done"] == true {
			done = event
			continue
		}
		token, ok := event["token"].(string)
		if !ok || len(event) != 1 {
			return nil, nil, fmt.Errorf("a token event has other members: %.200q", data)
		}
		tokens = append(tokens, token)
	}
	if done == nil {
		return nil, nil, errors.New("the stream ended without a done event")
	}
	return tokens, done, nil
}

func isStream(r response) error {
	tokens, done, err := readStream(r)
	if err != nil {
		return err
	}
	if done["code"] != nil {
		return fmt.Errorf("the done event has the error %v", done["code"])
	}
	if err := resultAgrees(done); err != nil {
		return err
	}
	if done["governed_output"] != strings.Join(tokens, "") {
		return errors.New("governed_output is not the concatenation of the tokens")
	}
	return nil
}

func doneIsThePlainAnswer(ctx context.Context, c *client) error {
	plain, err := c.governed(ctx, question, newSession())
	if err != nil {
		return err
	}
	r, err := c.do(ctx, request{Path: streamPath, Body: govern(question)})
	if err != nil {
		return err
	}
	_, done, err := readStream(r)
	if err != nil {
		return err
	}
	delete(done, "done")
	if a, b := slices.Sorted(maps.Keys(plain)), slices.Sorted(maps.Keys(done)); !slices.Equal(a, b) {
		return fmt.Errorf("the plain answer has the members %v, the done event %v", a, b)
	}
	for _, name := range []string{"C", "R", "S", "M", "m_before", "health_band", "refused", "delta_V", "identity_mode", "version", "turn"} {
		if plain[name] != done[name] {
			return fmt.Errorf("%s is %v in the plain answer and %v in the done event", name, plain[name], done[name])
		}
	}
	return nil
}
