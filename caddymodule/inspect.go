package caddymodule

import (
	"context"
	"runtime"
	"slices"
	"unicode/utf8"

	"golang.org/x/sync/semaphore"

	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/wire"
)

// defaultInspect is the default of Handler.InspectLimit, in bytes.
const defaultInspect = 1 << 20

// deniedOversize names the rule that refuses what is too long to be read.
const deniedOversize = "oversize"

// readers lets as many texts be read at once as there are processors, in the
// order in which they came: more would only make each other slow, and a caller
// with many long texts must not keep out one with a short one for long.
var readers = semaphore.NewWeighted(int64(runtime.GOMAXPROCS(0)))

// assess reads texts when it is their turn, or not at all if the caller leaves.
func (a *App) assess(ctx context.Context, texts []detect.Text) (detect.Signal, error) {
	if err := readers.Acquire(ctx, 1); err != nil {
		return detect.Signal{}, err
	}
	defer readers.Release(1)
	return a.model.Assess(ctx, texts)
}

// within cuts the texts of a request at the limit: first come those of the newest
// turn, from the last back, and then the application's instructions. What is left
// out is recorded, and is a ground for refusing the request unless the operator
// lets it pass.
func (x *exchange) within(texts, instructions []detect.Text) (said, given []detect.Text) {
	if x.inspectLimit == 0 {
		return texts, instructions
	}
	left, unread := x.inspectLimit, 0
	keep := func(all []detect.Text) (kept []detect.Text) {
		for _, t := range slices.Backward(all) {
			whole := len(t.Body)
			t.Body = prefix(t.Body, left)
			left -= int64(len(t.Body))
			unread += whole - len(t.Body)
			if t.Body != "" {
				kept = append(kept, t)
			}
		}
		slices.Reverse(kept)
		return kept
	}
	said, given = keep(texts), keep(instructions)
	x.overflow(unread)
	return said, given
}

// cut is the beginning of a text, as far as it is read.
func (x *exchange) cut(text string) string {
	if x.inspectLimit == 0 {
		return text
	}
	return prefix(text, x.inspectLimit)
}

// prefix is at most the first n bytes of a text in UTF-8, up to a character's end.
func prefix(text string, n int64) string {
	if int64(len(text)) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// affordable are the newest of the earlier messages, as far as the limit reaches
// besides the newest turn.
func (x *exchange) affordable(messages []pastMessage, parts []wire.Part) []pastMessage {
	left := x.inspectLimit
	for _, p := range parts {
		if !isPast(p) {
			left -= int64(len(p.Text))
		}
	}
	from := len(messages)
	for ; from > 0 && messages[from-1].size() <= left; from-- {
		left -= messages[from-1].size()
	}
	unread := 0
	for _, m := range messages[:from] {
		unread += int(m.size())
	}
	x.overflow(unread)
	return messages[from:]
}

// overflow records text that is beyond the limit.
func (x *exchange) overflow(bytes int) {
	if bytes == 0 {
		return
	}
	x.skip("request", "beyond inspect_limit", bytes)
	if x.oversize == "refuse" {
		x.deniedBy = deniedOversize
	}
}

func (m pastMessage) size() (n int64) {
	for _, p := range m {
		n += int64(len(p.Text))
	}
	return n
}
