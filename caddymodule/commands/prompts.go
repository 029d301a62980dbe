package commands

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel/detect"
)

// A prompt is one line of JSON that a command reads: a text or a conversation, with
// labels for the benchmark. Other members are ignored.
type prompt struct {
	ID    jsontext.Value `json:"id"`
	Text  *string        `json:"text"`
	Turns []message      `json:"turns"`

	Label   string `json:"label"`
	Source  string `json:"source"`
	Lang    string `json:"lang"`
	Channel string `json:"channel"` // user, document or tool_output
}

// A message is one message of a conversation. The roles are those of the OpenAI chat
// API.
type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// readPrompt reads a line. Its errors, and those of check, quote nothing of the line.
func readPrompt(line []byte) (prompt, error) {
	var p prompt
	if err := json.Unmarshal(line, &p); err != nil {
		return prompt{}, errors.New("it is not a JSON object with an id and text or turns")
	}
	return p, nil
}

// check reports what is missing for an assessment.
func (p prompt) check() error {
	switch {
	case p.ID.Kind() != '"' && p.ID.Kind() != '0':
		return errors.New("id is missing, or is neither a string nor a number")
	case (p.Text != nil) == (len(p.Turns) > 0):
		return errors.New("it needs either text or turns")
	}
	return nil
}

// lastSaid is the last thing that the user said.
func (p prompt) lastSaid() string {
	if p.Text != nil {
		return *p.Text
	}
	for _, m := range slices.Backward(p.Turns) {
		if m.Role == "user" {
			return m.Content
		}
	}
	return ""
}

// dryTurns returns the turns of the session. speaker is the source of a text without
// turns.
func (p prompt) dryTurns(speaker detect.Source) ([]govern.DryTurn, error) {
	if p.Text == nil {
		return conversation(p.Turns)
	}
	if strings.TrimSpace(*p.Text) == "" {
		return nil, errors.New("text is blank")
	}
	turn := govern.DryTurn{Said: []detect.Text{{Source: speaker, Body: *p.Text}}}
	if speaker == detect.User {
		turn.Prompt = *p.Text
	}
	return []govern.DryTurn{turn}, nil
}

// conversation groups messages into turns. Each answer of the assistant ends a turn.
// The application's instructions apply to their own turn and to all later ones.
func conversation(messages []message) ([]govern.DryTurn, error) {
	var turns []govern.DryTurn
	var turn govern.DryTurn
	for i, m := range messages {
		switch m.Role {
		case "system", "developer":
			turn.Instructions = append(turn.Instructions, detect.Text{Source: detect.System, Body: m.Content})
		case "user":
			turn.Said, turn.Prompt = append(turn.Said, detect.Text{Source: detect.User, Body: m.Content}), m.Content
		case "tool", "function":
			turn.Said = append(turn.Said, detect.Text{Source: detect.Tool, Body: m.Content})
		case "assistant":
			if len(turn.Said) > 0 { // a greeting is no answer
				turn.Answer = m.Content
				turns = append(turns, turn)
				turn = govern.DryTurn{Instructions: turn.Instructions}
			}
		default:
			return nil, fmt.Errorf("turn %d has an unknown role; give system, user, assistant or tool", i+1)
		}
	}
	if len(turn.Said) > 0 {
		turns = append(turns, turn)
	}
	if len(turns) == 0 {
		return nil, errors.New("no turn has a message of a user or a tool")
	}
	return turns, nil
}
