package caddymodule

import (
	"context"
	"runtime"
	"strings"

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

// within cuts the texts of a request at the handler's limit, from the newest,
// which is the last, back to the oldest. What is left out is recorded, and is a
// ground for refusing the request where the operator did not say otherwise.
func (x *exchange) within(h *Handler, texts []detect.Text) []detect.Text {
	left, unread, from := h.InspectLimit, 0, len(texts)
	for ; from > 0 && int64(len(texts[from-1].Body)) <= left; from-- {
		left -= int64(len(texts[from-1].Body))
	}
	if from == 0 {
		return texts
	}
	for _, t := range texts[:from] {
		unread += len(t.Body)
	}
	cut := texts[from-1]
	cut.Body = strings.ToValidUTF8(cut.Body[:left], "")
	x.overflow(h, unread-len(cut.Body))
	return append([]detect.Text{cut}, texts[from:]...)
}

// affordable are the newest of the earlier messages, as far as the handler's
// limit reaches besides the newest turn.
func (x *exchange) affordable(h *Handler, messages []pastMessage, parts []wire.Part) []pastMessage {
	left := h.InspectLimit
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
	if unread > 0 {
		x.overflow(h, unread)
	}
	return messages[from:]
}

// overflow records text that is beyond the limit.
func (x *exchange) overflow(h *Handler, bytes int) {
	x.skip("request", "beyond inspect_limit", bytes)
	if h.Oversize == "refuse" {
		x.deniedBy = deniedOversize
	}
}

func (m pastMessage) size() (n int64) {
	for _, p := range m {
		n += int64(len(p.Text))
	}
	return n
}
