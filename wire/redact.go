package wire

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"slices"
)

// Redact returns the body with the values of some parts replaced by text, each
// in a form that its place in the dialect takes. An attachment goes with the block that it
// stands in. Every other byte stays as it
// was, so that a provider's prompt cache finds the same prefix again, turn after
// turn. The parts must be of this very body and have Text or be attachments; their
// order does not matter. The body itself is not changed.
func Redact(body []byte, parts []Part, text string) []byte {
	edits := make([]Edit, len(parts))
	for i, p := range parts {
		edits[i] = Edit{Part: p, Text: text}
	}
	return Apply(body, edits)
}

// An Edit puts a text in the place of a part or, with Before, in front of it.
type Edit struct {
	Part   Part
	Text   string
	Before bool
}

// Apply is Redact with a text for each part.
func Apply(body []byte, edits []Edit) []byte {
	var c changes
	for _, e := range edits {
		from, to := e.Part.Start-e.Part.before, e.Part.Start+e.Part.Bytes+e.Part.after
		c.put(from, to, string(e.value(body[from:to])))
	}
	return c.outermost().apply(body)
}

// outermost leaves out the changes inside of others: a block that is replaced may have
// several parts.
func (c changes) outermost() (out changes) {
	slices.SortStableFunc(c, func(a, b change) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	for _, one := range c {
		if len(out) == 0 || one.from >= out[len(out)-1].to {
			out = append(out, one)
		}
	}
	return out
}

// value is what stands in the place of a raw value.
func (e Edit) value(raw []byte) []byte {
	if !e.Before {
		return e.Part.redacted(raw[0], e.Text)
	}
	if raw[0] == '{' && (e.Part.replacement == "" || e.Part.replacement == noted) {
		note := slices.Concat([]byte(`{"note":`), encode(e.Text))
		if rest := bytes.TrimLeft(raw[1:], " \t\r\n"); rest[0] != '}' {
			note = append(note, ',')
		}
		return append(note, raw[1:]...)
	}
	return e.Part.redacted(raw[0], e.Text+"\n"+e.Part.Text)
}

// A replacement is a form of what replaces a part.
type replacement string

// The zero value replaces a value by one of its own JSON type.
const (
	// textBlock is a block of text, for a part that is a whole block: a signed one must
	// not be changed, but may be missing.
	textBlock replacement = "text block"
	// textPart is the same for a part of Gemini, which names no type.
	textPart replacement = "text part"
	// textBlocks and textParts are lists of one of these, for content that has none.
	textBlocks replacement = "text blocks"
	textParts  replacement = "text parts"
	// base64Text is a string that holds the text in base64.
	base64Text replacement = "base64"
	// messageItem is an item with a message, for an item of a list of messages and others.
	messageItem replacement = "message item"
	// inputText and outputText are parts of a message, said to the model or by it.
	inputText  replacement = "input_text"
	outputText replacement = "output_text"
	// noted is an object that holds the text, for one whose members have any names.
	noted replacement = "noted"
	// plainSource is the source of a document of Anthropic's API.
	plainSource replacement = "plain source"
	// logsOutput is what a program wrote, for an image that it made.
	logsOutput replacement = "logs"
	// blankScreenshot is a picture of one white dot: the result of a computer must be one.
	blankScreenshot replacement = "screenshot"
	// emptied is a list with nothing in it, for one that takes no text.
	emptied replacement = "emptied"
)

// redacted is the JSON value that replaces a part whose raw value begins with the
// byte opens. It keeps the form that servers check: they parse the arguments of a
// call and look at the characters of a name.
func (p Part) redacted(opens byte, text string) []byte {
	switch {
	case p.replacement == textBlock:
		return encode(map[string]string{"type": "text", "text": text})
	case p.replacement == textPart:
		return encode(map[string]string{"text": text})
	case p.replacement == textBlocks:
		return encode([]map[string]string{{"type": "text", "text": text}})
	case p.replacement == textParts:
		return encode([]map[string]string{{"text": text}})
	case p.replacement == base64Text:
		return encode(base64.StdEncoding.EncodeToString([]byte(text)))
	case p.replacement == messageItem:
		return encode(map[string]string{"type": "message", "role": "assistant", "content": text})
	case p.replacement == inputText, p.replacement == outputText:
		return encode(map[string]string{"type": string(p.replacement), "text": text})
	case p.replacement == noted:
		return encode(map[string]string{"note": text})
	case p.replacement == plainSource:
		return encode(map[string]string{"type": "text", "media_type": "text/plain", "data": text})
	case p.replacement == logsOutput:
		return encode(map[string]string{"type": "logs", "logs": text})
	case p.replacement == blankScreenshot:
		return encode(map[string]string{"type": "computer_screenshot", "image_url": blankImage})
	case p.replacement == emptied:
		return []byte(`[]`)
	case p.Attachment() && opens == '"':
		return []byte(`""`)
	case p.Kind == Arguments && opens == '"':
		return encode(string(encode(map[string]string{"redacted": text})))
	case p.Kind == Arguments:
		return encode(map[string]string{"redacted": text})
	case p.Kind == Name:
		return []byte(`"redacted"`)
	case opens == '{':
		return []byte(`{}`)
	case opens == '[':
		return []byte(`[]`)
	}
	return encode(text)
}

// blankImage is a PNG of one white pixel.
const blankImage = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mP4DwABAQEAHLCMmQAAAABJRU5ErkJggg=="
