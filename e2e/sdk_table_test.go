package e2e

import (
	"fmt"
	"slices"
	"strings"
)

// apis are the tables of docs/sdks.md, in their order.
var apis = []struct {
	name, title string
	refusal     string // where the API has a place for a refusal
}{
	{"chat", "OpenAI Chat Completions", "refusal"},
	{"completions", "OpenAI completions", ""},
	{"responses", "OpenAI Responses", "refusal"},
	{"anthropic", "Anthropic Messages", "stop_details.explanation"},
	{"gemini", "Gemini generateContent", "promptFeedback.blockReasonMessage"},
	{"ollama", "Ollama chat", ""},
	{"ollama generate", "Ollama generate", ""},
	{"mcp", "Model Context Protocol", ""},
}

// tables writes what was seen, a table for each API, for the documentation.
func tables(seen []sighting) string {
	var out strings.Builder
	for _, api := range apis {
		if !slices.Contains(landed, api.name) {
			continue
		}
		cells := make(map[string]map[string]string) // by call and SDK
		var columns []string
		for _, of := range sdks {
			for _, saw := range seen {
				if saw.API != api.name || saw.SDK != of.name {
					continue
				}
				if !slices.Contains(columns, of.name) {
					columns = append(columns, of.name)
				}
				if cells[saw.Call] == nil {
					cells[saw.Call] = make(map[string]string)
				}
				cells[saw.Call][of.name] = saw.cell(api.refusal)
			}
		}
		fmt.Fprintf(&out, "\n### %s\n\n| call | %s |\n|---|%s\n", api.title, strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
		for _, c := range calls {
			if cells[c.name] == nil {
				continue
			}
			row := make([]string, len(columns))
			for i, column := range columns {
				row[i] = cells[c.name][column]
			}
			fmt.Fprintf(&out, "| %s | %s |\n", c.name, strings.Join(row, " | "))
		}
	}
	return out.String() + "\n"
}

// cell tells in a few words what the application saw.
func (saw sighting) cell(place string) string {
	if saw.Exception != "" {
		cell := "`" + saw.Exception + "`"
		if saw.Status != 0 {
			cell += fmt.Sprintf(" %d", saw.Status)
		}
		if saw.Requests > 1 {
			cell += fmt.Sprintf(", %d requests", saw.Requests)
		}
		if saw.holdsRefusal() {
			cell += ", refusal in the text"
		}
		if saw.Finish != "" {
			cell += ", `" + saw.Finish + "`"
		}
		return cell
	}
	var parts []string
	refusing := saw.holdsRefusal()
	switch {
	case saw.Reasoning != "" && saw.holdsAnswer():
		parts = append(parts, "reasoning, answer")
	case saw.holdsAnswer():
		parts = append(parts, "answer")
	case saw.Calls != "" && !refusing:
		parts = append(parts, "tool call")
	case strings.HasPrefix(saw.Text, storyBegins) && refusing:
		parts = append(parts, "part of the answer")
	case saw.Text != "" && !refusing:
		parts = append(parts, "part of the answer")
	}
	if strings.Contains(saw.Text, refusalText) {
		parts = append(parts, "refusal in the text")
		if strings.Count(saw.Text, refusalText) > 1 {
			parts[len(parts)-1] = "refusal twice in the text"
		}
	}
	if strings.Contains(saw.Refusal, refusalText) {
		parts = append(parts, "refusal in `"+place+"`")
	}
	if saw.Finish != "" {
		parts = append(parts, "`"+saw.Finish+"`")
	} else {
		parts = append(parts, "no end")
	}
	return strings.Join(parts, ", ")
}
