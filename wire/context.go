package wire

import "strings"

// Coding agents and other applications put things into the user's turn that the user did not
// write: the date, the files of a folder, rules of a project, reminders. They mark them as an
// element that is a part of its own, beside what the user wrote or what a tool returned:
//
//	{"role": "user", "content": [
//	  {"type": "text", "text": "<system-reminder>\nToday is …\n</system-reminder>"},
//	  {"type": "text", "text": "List the files of this folder"}]}
//
// (Claude Code, the Codex CLI and the Gemini CLI do so, Codex with the name of the file as a
// heading.) Read as the user's words, what they tell the assistant to do looks like an attack on
// its rules.

// markContext marks the parts that an application put into a user's turn, see Part.Context. It is
// called when the roles of all parts are known.
func (w *walk) markContext() {
	var elements []*Part
	spoken := false // the turn has something else
	endTurn := func() {
		for _, p := range elements {
			p.Context = spoken
		}
		elements, spoken = nil, false
	}
	for i := range w.parts {
		switch p := &w.parts[i]; {
		case p.Role == Assistant:
			endTurn()
		case p.Role == Tool:
			spoken = true
		case p.Role != User || p.Kind != Text:
		case isElement(p.Text):
			elements = append(elements, p)
		default:
			spoken = spoken || strings.TrimSpace(p.Text) != ""
		}
	}
	endTurn()
}

// isElement reports whether a text is one element of markup, from its first to its last
// character, whatever stands in it, or a heading of Markdown and such an element.
func isElement(text string) bool {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "#") {
		_, text, _ = strings.Cut(text, "\n")
		text = strings.TrimSpace(text)
	}
	end := strings.IndexAny(text, "> \t\r\n")
	if end < 2 || text[0] != '<' || strings.ContainsFunc(text[1:end], notInName) {
		return false
	}
	opening, closing := text[:end], "</"+text[1:end]+">"
	depth := 0
	for at := 0; at < len(text); {
		next := strings.IndexByte(text[at:], '<')
		if next < 0 {
			return false
		}
		rest := text[at+next:]
		switch {
		case strings.HasPrefix(rest, closing):
			if depth--; depth == 0 {
				return rest == closing
			}
		case strings.HasPrefix(rest, opening) && len(rest) > end && strings.IndexByte("> \t\r\n", rest[end]) >= 0:
			depth++
		}
		at += next + 1
	}
	return false
}

// notInName reports the characters that no name of an element has.
func notInName(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_'
}
