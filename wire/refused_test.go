package wire_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/wire"
)

// What a server of tools would take otherwise than it is read here is no request.
func TestInvalidMCPRequests(t *testing.T) {
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"f"}}`
	batch := func(calls int) string {
		var all []string
		for id := range calls {
			all = append(all, strings.Replace(call, `"id":1`, fmt.Sprintf(`"id":%d`, id), 1))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	for name, c := range map[string]struct {
		body  string
		valid bool
	}{
		"a call":                   {call, true},
		"the largest batch":        {batch(wire.MaxChoices), true},
		"a batch that is larger":   {batch(wire.MaxChoices + 1), false},
		"as many without an id":    {strings.NewReplacer(`"id":`, `"_meta":{},"x":`).Replace(batch(wire.MaxChoices + 1)), false},
		"cut":                      {call[:len(call)-1], false},
		"a NUL":                    {strings.Replace(call, `"f"`, `"f\u0000"`, 1), false},
		"a member twice":           {strings.Replace(call, `"id":1`, `"id":1,"method":"ping"`, 1), false},
		"a text in a batch":        {`[` + call + `,"tools/call"]`, false},
		"a batch in a batch":       {`[[` + call + `]]`, false},
		"neither call nor answer":  {`{"jsonrpc":"2.0","id":1}`, false},
		"a method that is no text": {strings.Replace(call, `"tools/call"`, `["tools/call"]`, 1), false},
	} {
		if _, err := dialect(t, "mcp").Request([]byte(c.body)); (err == nil) != c.valid || err != nil && !errors.Is(err, wire.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A value that should be an object and is none is not known, and never nothing.
func TestValuesInThePlaceOfObjects(t *testing.T) {
	r, err := dialect(t, "mcp").Request([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"f","inputResponses":"says text"}}`))
	if err != nil || len(r.Parts) != 2 || r.Parts[1].Kind != wire.Unknown || r.Parts[1].Path != "params.inputResponses" {
		t.Errorf("%v %+v", err, r.Parts)
	}
}

// In whichever order a call has its members, what the client runs is part of the call, and what
// stands beside that is not.
func TestCallsInAnyOrder(t *testing.T) {
	action, beside := `"action":{"commands":["ls"]}`, `"environment":{"type":"local","skills":[{"name":"says skill"}]}`
	for _, members := range []string{action + "," + beside, beside + "," + action} {
		r, err := dialect(t, "openai_responses").Response([]byte(`{"id":"r","object":"response","status":"completed","output":[{"type":"shell_call","id":"1","call_id":"1",` + members + `}]}`))
		if err != nil || len(r.Parts) != 2 {
			t.Fatalf("%v %+v", err, r.Parts)
		}
		for _, p := range r.Parts {
			if p.Called != strings.Contains(p.Path, "action") {
				t.Errorf("%s: %s is part of the call: %v", members, p.Path, p.Called)
			}
		}
	}
}

// The results of tools are told apart, also two in one message.
func TestResultsAreNumbered(t *testing.T) {
	for name, body := range map[string]string{
		"openai_chat": `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"tool","tool_call_id":"1","content":"b"},{"role":"tool","tool_call_id":"2","content":"c"}]}`,
		"anthropic":   `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"tool_result","tool_use_id":"1","content":"b"},{"type":"tool_result","tool_use_id":"2","content":[{"type":"text","text":"c"}]}]}]}`,
	} {
		r, err := dialect(t, name).Request([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range r.Parts {
			if want := map[string]int{"a": 0, "b": 1, "c": 2}[p.Text]; p.Result != want {
				t.Errorf("%s: %q is of result %d, want %d", name, p.Text, p.Result, want)
			}
		}
	}
}
