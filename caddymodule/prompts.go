package caddymodule

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel/detect"
)

// A record is one line of JSON that a command reads: a prompt or a
// conversation, and for the benchmark what it is labelled. Other members are
// ignored.
type record struct {
	ID    jsontext.Value `json:"id"`
	Text  *string        `json:"text"`
	Turns []message      `json:"turns"`

	Label   string `json:"label"`
	Source  string `json:"source"`
	Lang    string `json:"lang"`
	Channel string `json:"channel"` // user, document or tool_output
}

// A message is one of a conversation, in the roles of the OpenAI chat API.
type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// readRecord reads a line. Its errors, and those of check, hold nothing of it.
func readRecord(raw []byte) (record, error) {
	var r record
	if err := json.Unmarshal(raw, &r); err != nil {
		return record{}, errors.New("it is not a JSON object with an id and text or turns")
	}
	return r, nil
}

// check reports what a prompt needs to be assessed.
func (r record) check() error {
	switch {
	case r.ID.Kind() != '"' && r.ID.Kind() != '0':
		return errors.New("id is missing, or no string or number")
	case (r.Text != nil) == (len(r.Turns) > 0):
		return errors.New("it needs either text or turns")
	}
	return nil
}

// lines turns a record into the turns of a session. as is who speaks in text.
func (r record) lines(as detect.Source) ([]govern.DryTurn, error) {
	if r.Text == nil {
		return linesOf(r.Turns)
	}
	if strings.TrimSpace(*r.Text) == "" {
		return nil, errors.New("text is blank")
	}
	l := govern.DryTurn{Said: []detect.Text{{Source: as, Body: *r.Text}}}
	if as == detect.User {
		l.Prompt = *r.Text
	}
	return []govern.DryTurn{l}, nil
}

// linesOf groups messages: each answer of the assistant ends a turn, and the
// application's instructions hold from where they stand on.
func linesOf(messages []message) (out []govern.DryTurn, err error) {
	var l govern.DryTurn
	for i, m := range messages {
		switch m.Role {
		case "system", "developer":
			l.Instructions = append(l.Instructions, detect.Text{Source: detect.System, Body: m.Content})
		case "user":
			l.Said, l.Prompt = append(l.Said, detect.Text{Source: detect.User, Body: m.Content}), m.Content
		case "tool", "function":
			l.Said = append(l.Said, detect.Text{Source: detect.Tool, Body: m.Content})
		case "assistant":
			if len(l.Said) > 0 { // a greeting answers nothing
				l.Answer = m.Content
				out = append(out, l)
				l = govern.DryTurn{Instructions: l.Instructions}
			}
		default:
			return nil, fmt.Errorf("turn %d has an unknown role; give system, user, assistant or tool", i+1)
		}
	}
	if len(l.Said) > 0 {
		out = append(out, l)
	}
	if len(out) == 0 {
		return nil, errors.New("turns hold nothing that a user or tool says")
	}
	return out, nil
}
