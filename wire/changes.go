package wire

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// Changes are what changes in a valid body. Every other byte stays.
type changes []change

// A change puts text in place of the bytes from..to.
type change struct {
	from, to int
	text     string
}

func (c *changes) put(from, to int, text string) { *c = append(*c, change{from, to, text}) }

// replace puts JSON in place of a value.
func (c *changes) replace(v gjson.Result, json string) { c.put(v.Index, endOf(v), json) }

// renumber puts another number in place of one. What is no number stays.
func (c *changes) renumber(v gjson.Result, n int) {
	if number := strconv.Itoa(n); v.Type == gjson.Number && v.Raw != number {
		c.replace(v, number)
	}
}

// endOf is where a value ends.
func endOf(v gjson.Result) int { return v.Index + len(v.Raw) }

// drop takes members out of an object or elements out of an array, with the commas that
// they leave over, and returns how many are left. Gone gets the name or the place.
func (c *changes) drop(container gjson.Result, gone func(name string, at int) bool) (left int) {
	at, end := 0, -1 // of the last one that stays
	open := -1       // where the ones to drop begin that nothing stays before
	container.ForEach(func(key, v gjson.Result) bool {
		start := v.Index
		if container.IsObject() {
			start = key.Index
		}
		switch dropped := gone(key.Str, at); {
		case dropped && end >= 0:
			c.put(end, endOf(v), "")
			end = endOf(v)
		case dropped && open < 0:
			open = start
		case !dropped && open >= 0:
			c.put(open, start, "")
			open, end, left = -1, endOf(v), left+1
		case !dropped:
			end, left = endOf(v), left+1
		}
		at++
		return true
	})
	if open >= 0 { // all
		c.put(open, strings.LastIndexAny(container.Raw, "]}")+container.Index, "")
	}
	return left
}

// thin takes elements out of a list, and reports whether none is left. Then the list stays
// as it is: an empty one may mean something else, so the caller drops it as a whole.
func (c *changes) thin(list gjson.Result, gone func(at int) bool) (emptied bool) {
	all, stay := 0, 0
	elements(list, func(at int, _ gjson.Result) {
		all++
		if !gone(at) {
			stay++
		}
	})
	if stay > 0 {
		c.drop(list, func(_ string, at int) bool { return gone(at) })
	}
	return all > 0 && stay == 0
}

// add puts a member before the others of an object, of which so many are left.
func (c *changes) add(object gjson.Result, name, json string, left int) {
	member := string(encode(name)) + ":" + json
	if left > 0 {
		member += ","
	}
	c.put(object.Index+1, object.Index+1, member)
}

// apply returns the body with the changes, which must not overlap.
func (c changes) apply(body []byte) []byte {
	slices.SortStableFunc(c, func(a, b change) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	out, from := make([]byte, 0, len(body)), 0
	for _, one := range c {
		out = append(append(out, body[from:one.from]...), one.text...)
		from = one.to
	}
	return append(out, body[from:]...)
}

// say puts a note into a member of a message that has so many members left: behind its
// text, or else behind the lead.
func (c *changes) say(message gjson.Result, member, note, lead string, left int) error {
	v, json := message.Get(member), string(encode(lead+note))
	switch {
	case !v.Exists():
		c.add(message, member, json, left)
	case v.Type == gjson.Null, v.Raw == `""`, v.Raw == `[]`:
		c.replace(v, json)
	case v.Type == gjson.String:
		c.put(endOf(v)-1, endOf(v)-1, insideString(paragraph+note))
	case v.IsArray():
		c.put(endOf(v)-1, endOf(v)-1, `,{"type":"text","text":`+json+`}`)
	default:
		return cannotEdit("there is no place for a note")
	}
	return nil
}

// insideString is text as it stands between the quotes of a string.
func insideString(text string) string {
	json := encode(text)
	return string(json[1 : len(json)-1])
}

// paragraph stands between a text and the note behind it.
const paragraph = "\n\n"

// lead is what a note begins with, if the client has text before it.
func lead(spoken bool) string {
	if spoken {
		return paragraph
	}
	return ""
}

// joinNotes puts one note a line.
func joinNotes(notes, note string) string {
	if notes == "" {
		return note
	}
	return notes + "\n" + note
}
