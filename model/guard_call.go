package model

import (
	_ "embed" // the prompt
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A chat model is asked about a call whether it serves what the user asked for. The
// literature calls that alignment, or task alignment (Chennabasappa et al., LlamaFirewall,
// 2025; Jia et al., The Task Shield, 2024).

//go:embed guard_call_prompt.txt
var callPrompt string

// callSchema is the form of a verdict on a call.
var callSchema = jsontext.Value(`{
	"type": "object",
	"properties": {
		"reason": {"type": "string"},
		"category": {"type": "string", "enum": ["injection", "none"]},
		"probability": {"type": "number"}
	},
	"required": ["reason", "category", "probability"],
	"additionalProperties": false
}`)

// maxDefinition is how much of a tool's definition a model is shown, in bytes.
const maxDefinition = 2 << 10

// callQuestion is the question about a call. The parts that others wrote come before the
// call, so that what stands last is what is asked about.
func callQuestion(t GuardText) string {
	var parts markedParts
	definition := t.Call.Definition
	if len(definition) > maxDefinition {
		definition = definition[:boundary(definition, maxDefinition)] + shortened
	}
	for _, p := range []struct{ name, text string }{
		{"APPLICATION", breakTemplateMarks(headAndTail(t.Call.Application))},
		{"USER", t.Prompt},
		{"TOOL", breakTemplateMarks(definition)},
		{"READ", t.Text},
	} {
		if strings.TrimSpace(p.text) != "" {
			parts.add(p.name, p.text)
		}
	}
	parts.add("CALL", "name: "+breakTemplateMarks(strconv.Quote(t.Call.Name))+"\narguments: "+breakTemplateMarks(t.Call.Arguments))
	return parts.ask("Classify the CALL.")
}

// shortened stands where a text was shortened.
const shortened = "[…]"

// maxArguments is how much of the arguments of a call a model is shown, in bytes.
const maxArguments = 8 << 10

// leastText is the length to which texts in arguments are not cut: shorter pieces say
// nothing.
const leastText = 64

// CondenseArguments returns the arguments of a call as a guard is shown them, and how many
// bytes are left out. Names and short texts stay, because a long text beside them must not
// hide a receiver: of the longest texts the beginnings and the ends are kept, so that all of
// them have the same length. Arguments that are no JSON, or have too many members for that,
// are cut as one text.
func CondenseArguments(arguments string) (shown string, unread int) {
	arguments = Condense(arguments)
	if len(arguments) <= maxArguments {
		return arguments, 0
	}
	texts, err := textsIn(arguments)
	room, lengths := maxArguments-len(arguments), make([]int, len(texts))
	for i, t := range texts {
		lengths[i] = t.to - t.from
		room += lengths[i]
	}
	longest := fairLength(lengths, room)
	if err != nil || longest < leastText {
		return cutMiddle(arguments, maxArguments)
	}
	var b strings.Builder
	from := 0
	for _, t := range texts {
		if t.to-t.from > longest {
			kept, left := cutMiddle(arguments[t.from:t.to], longest)
			b.WriteString(arguments[from:t.from] + kept)
			from, unread = t.to, unread+left
		}
	}
	return b.String() + arguments[from:], unread
}

// cutMiddle keeps the beginning and the end of a text, about so many bytes together.
func cutMiddle(text string, size int) (kept string, unread int) {
	head, tail := text[:boundary(text, size/2)], text[boundary(text, len(text)-size/2):]
	return head + shortened + tail, len(text) - len(head) - len(tail)
}

// textsIn finds the texts in a JSON value, without their quotation marks. Names of members
// are none.
func textsIn(value string) (texts []span, err error) {
	d := jsontext.NewDecoder(strings.NewReader(value), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	for {
		in, length := d.StackIndex(d.StackDepth())
		named := in == '{' && length%2 == 0
		if d.PeekKind() != '"' || named {
			if _, err := d.ReadToken(); errors.Is(err, io.EOF) {
				return texts, nil
			} else if err != nil {
				return nil, fmt.Errorf("reading arguments: %w", err)
			}
			continue
		}
		text, err := d.ReadValue()
		if err != nil {
			return nil, fmt.Errorf("reading arguments: %w", err)
		}
		end := int(d.InputOffset())
		texts = append(texts, span{end - len(text) + 1, end - 1})
	}
}

// fairLength returns the greatest length to which texts can be cut so that together they
// have no more than so many bytes. Shorter ones leave what they do not need to the others.
func fairLength(lengths []int, room int) int {
	lengths = slices.Sorted(slices.Values(lengths))
	for i, length := range lengths {
		if others := len(lengths) - i; length*others > room {
			return room / others
		}
		room -= length
	}
	return 0
}
