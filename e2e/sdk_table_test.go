package e2e

import (
	"cmp"
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
	{"bedrock", "Amazon Bedrock Converse", "additionalModelResponseFields.refusal"},
	{"bedrock invoke", "Amazon Bedrock InvokeModel, Claude", "stop_details.explanation"},
	{"ollama", "Ollama chat", ""},
	{"ollama generate", "Ollama generate", ""},
	{"mcp", "Model Context Protocol", ""},
	{"endpoints", "Other endpoints", ""},
}

// table writes what was seen of an API for the documentation: a row for each call, a
// column for each SDK.
func table(api, refusal string, seen []sighting) string {
	cells := make(map[string]map[string]string) // by call and SDK
	var columns []string
	for _, of := range sdks {
		for _, saw := range seen {
			if saw.API != api || saw.SDK != of.name {
				continue
			}
			if !slices.Contains(columns, of.name) {
				columns = append(columns, of.name)
			}
			if cells[saw.Name] == nil {
				cells[saw.Name] = make(map[string]string)
			}
			cells[saw.Name][of.name] = saw.cell(refusal)
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "\n| call | %s |\n|---|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, c := range calls {
		if cells[c.name] == nil {
			continue
		}
		row := make([]string, len(columns))
		for i, column := range columns {
			row[i] = cmp.Or(cells[c.name][column], "–")
		}
		fmt.Fprintf(&out, "| %s | %s |\n", c.name, strings.Join(row, " | "))
	}
	return out.String()
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
		if places := saw.refusalPlaces(place); places != "" {
			cell += ", refusal in " + places
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
	case saw.Calls != "" && !refusing && strings.Contains(saw.Text, blockedText):
		parts = append(parts, "tool call, note")
	case saw.Calls != "" && !refusing:
		parts = append(parts, "tool call")
	case strings.Contains(saw.Text, blockedText):
		parts = append(parts, "note")
	case strings.HasPrefix(saw.Text, storyBegins) && refusing:
		parts = append(parts, "part of the answer")
	case saw.Text != "" && !refusing:
		parts = append(parts, "part of the answer")
	}
	if places := saw.refusalPlaces(place); places != "" {
		parts = append(parts, "refusal in "+places)
	}
	if saw.Finish != "" {
		parts = append(parts, "`"+saw.Finish+"`")
	} else {
		parts = append(parts, "no end")
	}
	return strings.Join(parts, ", ")
}

// refusalPlaces tells where the refusal stands, or nothing.
func (saw sighting) refusalPlaces(place string) string {
	var places []string
	switch strings.Count(saw.Text, refusalText) {
	case 0:
	case 1:
		places = append(places, "text")
	default:
		places = append(places, "text twice")
	}
	if strings.Contains(saw.Refusal, refusalText) {
		places = append(places, "`"+place+"`")
	}
	return strings.Join(places, " and ")
}
