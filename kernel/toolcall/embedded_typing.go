package toolcall

import "strings"

// isTyped reports whether an argument is typed into a computer: the action type of OpenAI's
// computer_call and of Anthropic's tool computer, or its tool type in a set of tools.
func (r *reading) isTyped(l leaf) bool {
	return l.typed && r.tool.words["computer"] || l.key == "text" && (r.name == "type" || r.name == "computer.type")
}

// typed reads a text that is typed. Where it ends up, in a shell or in a letter, nobody knows, so
// it is read as a shell would if it begins like a command line. In any other text, lines that
// do are read one by one: a letter that mentions a command runs none.
func (r *reading) typed(text string) {
	switch {
	case !strings.ContainsAny(text, betweenWords):
		return
	case beginsCommand(text):
		r.shell(text)
		return
	}
	for line := range strings.Lines(text) {
		for _, part := range strings.FieldsFunc(line, func(c rune) bool { return c == ';' || c == '|' || c == '&' }) {
			if beginsCommand(part) {
				r.shell(part)
			}
		}
	}
}

// beginsCommand reports whether the first word of a text is a program, a builtin or an assignment
// of a shell, or what runs one.
func beginsCommand(text string) bool {
	words := strings.Fields(text[:min(len(text), maxOpening)])
	if len(words) == 0 {
		return false
	}
	first := strings.TrimLeft(words[0], "({!")
	return first == "" || startsProgram(first) || typedBuiltins[first] || strings.ContainsAny(first, "=/$") || isOfWindows(text)
}

// maxOpening is more than a first word needs.
const maxOpening = 4 * maxKey

// typedBuiltins are what command lines begin with beside the programs that are known by what
// they do.
var typedBuiltins = words("cd echo true false exec eval source export alias unset set trap ls printf test nohup env time if for while until function mkdir touch ps kill reg del rd rmdir mshta cmd powershell pwsh")
