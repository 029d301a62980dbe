package wire

import (
	"bytes"
	"strings"

	"github.com/tidwall/gjson"
)

// WithPrevious returns the body of a call with another id at the path of
// [Request.HistoryPath], so that the call goes on from another answer, or without
// that member if id is "". Every other byte stays as it was, except that the comma
// beside a removed member goes too. It returns the body itself if nothing is at the
// path. The body must be one that a dialect has read.
func WithPrevious(body []byte, path, id string) []byte {
	value := gjson.GetBytes(body, path)
	if value.Raw == "" || value.Index == 0 {
		return body
	}
	if id != "" {
		return splice(body, value.Index, value.Index+len(value.Raw), encode(id))
	}
	from, to := memberAt(body, path, value)
	return splice(body, from, to, nil)
}

func splice(body []byte, from, to int, with []byte) []byte {
	out := make([]byte, 0, from+len(with)+len(body)-to)
	out = append(out, body[:from]...)
	out = append(out, with...)
	return append(out, body[to:]...)
}

// memberAt returns the place of a member with the comma that goes with it: the one
// behind it, or at the end of the object the one before it.
func memberAt(body []byte, path string, value gjson.Result) (from, to int) {
	name := path[strings.LastIndexByte(path, '.')+1:]
	to = value.Index + len(value.Raw)
	from = openingQuote(body, value.Index, name)
	const space = " \t\r\n"
	if rest := bytes.TrimLeft(body[to:], space); rest[0] == ',' {
		return from, len(body) - len(rest) + 1
	}
	if before := bytes.TrimRight(body[:from], space); before[len(before)-1] == ',' {
		from = len(before) - 1
	}
	return from, to
}

// openingQuote returns where the name of a member begins whose value begins at the
// index. The name may be written with escapes.
func openingQuote(body []byte, value int, name string) int {
	end := bytes.LastIndexByte(body[:value], '"')
	for from := end - 1; ; from-- {
		if body[from] == '"' && gjson.ParseBytes(body[from:end+1]).Str == name && backslashesBefore(body, from)%2 == 0 {
			return from
		}
	}
}
