package commands

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/caddy-lex/lex/kernel/toolcall"
)

// A toolLine is what a line of JSON has beside its id: a call of a tool and what was said
// before it, as messages or as the record of a labelled set. Other members are ignored.
type toolLine struct {
	Tool    *calledTool   `json:"tool"`
	Context []toolMessage `json:"context"`
	Record  *recordedCall `json:"tool_call"`
}

type calledTool struct {
	Name      string         `json:"name"`
	Arguments jsontext.Value `json:"arguments"`
}

// A recordedCall tells the user's request and what the agent had just read.
type recordedCall struct {
	calledTool
	Context struct {
		User       string `json:"user"`
		ToolOutput string `json:"tool_output"`
	} `json:"context"`
}

// A toolMessage is one message before a call. The content is a text, an array of parts
// of which some have a text, or null.
type toolMessage struct {
	Role    string         `json:"role"`
	Name    string         `json:"name"` // of the tool
	Content jsontext.Value `json:"content"`
}

// readToolLine reads a line. Its errors quote nothing of the line. The id is null if it
// could not be read.
func readToolLine(line []byte) (id jsontext.Value, c toolcall.Call, err error) {
	// Duplicates in arguments are for the interceptor to judge.
	duplicates := jsontext.AllowDuplicateNames(true)
	var of struct {
		ID jsontext.Value `json:"id"`
	}
	if err := json.Unmarshal(line, &of, duplicates); err != nil {
		return jsontext.Value("null"), c, errors.New("it is not a JSON object")
	}
	if of.ID.Kind() != '"' && of.ID.Kind() != '0' {
		return jsontext.Value("null"), c, errors.New("id is missing, or is neither a string nor a number")
	}
	var l toolLine
	if err := json.Unmarshal(line, &l, duplicates); err != nil {
		return of.ID, c, errors.New("tool, tool_call or context is not of the documented form")
	}
	c, err = l.call()
	return of.ID, c, err
}

// call is the call as the proxy is asked about it, on POST /lex/tools/check.
func (l toolLine) call() (c toolcall.Call, err error) {
	switch {
	case (l.Tool != nil) == (l.Record != nil):
		return c, errors.New("it needs either tool or tool_call")
	case l.Tool != nil:
		c, err = l.Tool.call()
	default:
		c, err = l.Record.call()
		c.Request = l.Record.Context.User
		c.Context = []toolcall.Observation{{Text: l.Record.Context.ToolOutput}}
	}
	for n, m := range l.Context {
		if err == nil {
			if err = m.addTo(&c); err != nil {
				err = fmt.Errorf("message %d: %w", n+1, err)
			}
		}
	}
	return c, err
}

// call reads the arguments, which are an object, or a text that holds one.
func (t calledTool) call() (toolcall.Call, error) {
	c := toolcall.Call{Name: t.Name, Arguments: t.Arguments, Dialect: "lex"}
	if strings.TrimSpace(t.Name) == "" {
		return c, errors.New("the tool has no name")
	}
	switch t.Arguments.Kind() {
	case 'n':
		c.Arguments = nil
	case '"':
		text, err := jsontext.AppendUnquote(nil, t.Arguments)
		if err != nil {
			return c, errors.New("the arguments are not UTF-8")
		}
		c.Arguments = text
	}
	return c, nil
}

// addTo adds a message to what is known of the session. The assistant's own words name
// nothing.
func (m toolMessage) addTo(c *toolcall.Call) error {
	text, err := m.text()
	if err != nil {
		return err
	}
	switch m.Role {
	case "system", "developer":
		c.System = joinLines(c.System, text)
	case "user":
		c.Request = joinLines(c.Request, text)
	case "tool", "function", "document":
		c.Context = append(c.Context, toolcall.Observation{Tool: m.Name, Text: text})
	case "assistant":
	default:
		return errors.New("the role is none of system, user, assistant, tool, function and document")
	}
	return nil
}

func (m toolMessage) text() (string, error) {
	var text string
	switch m.Content.Kind() {
	case '"', 'n', 0: // also absent
		if m.Content == nil || json.Unmarshal(m.Content, &text) == nil {
			return text, nil
		}
	case '[':
		var parts []struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(m.Content, &parts) == nil {
			for _, p := range parts {
				text = joinLines(text, p.Text)
			}
			return text, nil
		}
	}
	return "", errors.New("the content is neither a text nor an array of parts")
}

func joinLines(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}
