package caddymodule

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/wire"
)

// An answer may ask the client for calls of tools. Which of them the client gets is known
// only in the commit, so an answer is edited there, and what its text then is goes into the
// receipt. Nothing is trusted to an editor: an edited answer is read again, and it must
// have exactly the calls that were allowed.

// commitAnswer commits the turn of a judged answer. edit makes what leaves. If a blocked
// call cannot be taken out of the answer, the turn is refused.
func (c *interception) commitAnswer(judged *govern.Judged, outcome kernel.Outcome, edit govern.SentText) (*govern.Receipt, error) {
	receipt, err := c.commit(c.r, judged, outcome, edit)
	if !errors.Is(err, wire.ErrCalls) {
		return receipt, err
	}
	c.app.logger.Warn("a blocked tool call could not be taken out of an answer, which was therefore refused", zap.String("dialect", c.dialectName))
	if err := judged.RefuseUneditable(); err != nil {
		return receipt, err
	}
	return c.commit(c.r, judged, outcome, edit)
}

// editWhole takes blocked calls out of a whole answer. It returns the body to send and the
// texts of its choices.
func (a *governedAnswer) editWhole(body []byte, texts govern.Answer, d govern.Decisions) ([]byte, govern.Answer, error) {
	blocked := a.blocked(d)
	if len(blocked) == 0 {
		return body, texts, nil
	}
	editor, ok := a.dialect.(wire.CallEditor)
	if !ok {
		return nil, nil, wire.ErrCalls
	}
	edited, err := editor.WithoutCalls(body, blocked)
	if err != nil {
		return nil, nil, err
	}
	response, err := a.dialect.Response(edited)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", wire.ErrCalls, err)
	}
	return edited, govern.TextsOf(response.Parts), sameCalls(response.Calls, d)
}

// editTail takes blocked calls out of the frames that wait for the receipt. It returns the
// bytes to send in their place, and the text of each choice in the whole answer.
func (a *governedAnswer) editTail(d govern.Decisions) (rest []byte, texts []string, err error) {
	blocked := a.blocked(d)
	if len(blocked) == 0 {
		return bytes.Join(appendRaw(nil, a.tail), nil), a.gate.Texts(), nil
	}
	editor, ok := a.stream.(wire.StreamCallEditor)
	if !ok {
		return nil, nil, wire.ErrCalls
	}
	if rest, err = editor.WithoutCalls(a.tail, blocked); err != nil {
		return nil, nil, err
	}
	texts, calls, err := a.rereadTail(rest)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", wire.ErrCalls, err)
	}
	return rest, texts, sameCalls(calls, d)
}

// blocked returns the calls to take out. Where structured output was asked for, clients parse
// the content, so the notes stand elsewhere if they can.
func (a *governedAnswer) blocked(d govern.Decisions) []wire.BlockedCall {
	blocked := d.Blocked()
	for i := range blocked {
		if a.call.Structured {
			blocked[i].Place = wire.OnlyRefusal
		}
	}
	return blocked
}

// rereadTail reads an edited tail behind what came before it.
func (a *governedAnswer) rereadTail(rest []byte) (texts []string, calls []wire.ToolCall, err error) {
	var gathered wire.CallGatherer
	events, said := a.atTail.Rest(), maps.Clone(a.beforeTail) // the commit may edit again
	read := func(f wire.Frame) {
		event, failed := events.Event(f)
		err = errors.Join(err, failed, gathered.Add(event.Calls))
		for _, delta := range event.Deltas {
			if delta.IsText() {
				said[delta.Choice] += delta.Text
			}
		}
	}
	split := wire.NewSplitter(a.dialect.Framing(), len(rest)+1)
	if err := split.Push(rest); err != nil {
		return nil, nil, err
	}
	for f, ok := split.Next(); ok; f, ok = split.Next() {
		read(f)
	}
	if f, ok := split.Last(); ok && len(bytes.TrimSpace(f.Raw)) > 0 {
		read(f)
	}
	for _, choice := range slices.Sorted(maps.Keys(said)) {
		if said[choice] != "" {
			texts = append(texts, said[choice])
		}
	}
	return texts, gathered.Calls(), err
}

// sameCalls returns an error unless the calls are those that were allowed.
func sameCalls(calls []wire.ToolCall, d govern.Decisions) error {
	var allowed []wire.ToolCall
	for i, t := range d.CallTurns {
		if t.Call.Decision == kernel.Approved {
			allowed = append(allowed, d.Calls[i].ToolCall)
		}
	}
	same := slices.EqualFunc(calls, allowed, func(a, b wire.ToolCall) bool {
		return a.Choice == b.Choice && a.ID == b.ID && a.Name == b.Name && a.Arguments == b.Arguments
	})
	if !same {
		return fmt.Errorf("%w: the edited answer has other calls", wire.ErrCalls)
	}
	return nil
}

// sentTexts is what the client gets of an answer with these texts of its choices. Those
// without text count once.
func (c *interception) sentTexts(texts []string) govern.Sent {
	sent := govern.Sent{Text: strings.Join(texts, "")}
	if c.call.Choices > 1 {
		sent.Choices = slices.Clone(texts)
		if len(texts) < c.call.Choices {
			sent.Choices = append(sent.Choices, "")
		}
	}
	return sent
}

// refusedTexts is what the client gets of a refused answer of which these texts had left.
func (c *interception) refusedTexts(begun []string) govern.Sent {
	sent := govern.Sent{Text: strings.Join(begun, "") + c.policy.governor.RefusalText}
	if c.call.Choices > 1 {
		sent.Choices = c.policy.governor.RefusedChoices(begun)
	}
	return sent
}

// decideRequested decides on the calls that the caller asks a server of tools for. The
// decisions are durable before any of the tools runs. It reports whether all may run, and if
// not has answered the caller.
func (c *interception) decideRequested(ctx context.Context, w http.ResponseWriter, assessed *govern.Assessed) (run bool, err error) {
	if len(c.call.Calls) == 0 {
		return true, nil
	}
	calls, err := c.opened.RecordCalls(ctx, c.call.Calls)
	if err != nil {
		return false, c.fail(ctx, "tools", err)
	}
	first, err := c.commit(c.r, calls, kernel.Answered, c.policy.governor.Sent("", ""))
	if err != nil {
		return false, c.fail(ctx, "commit", err)
	}
	var blocked []wire.BlockedCall
	for i, r := range append([]*govern.Receipt{first}, first.Calls...) {
		if r.Turn.Call.Decision == kernel.Blocked {
			blocked = append(blocked, wire.BlockedCall{Key: c.call.Calls[i].Key, Note: govern.BlockedNote(r.Turn.Call)})
		}
	}
	if len(blocked) == 0 {
		return true, nil
	}
	c.opened.Coverage.BytesForwarded = 0
	if err := assessed.RefuseToolCall(); err != nil {
		return false, c.fail(ctx, "tools", err)
	}
	receipt, err := c.commit(c.r, assessed.NotJudged("a tool call was blocked"), kernel.Refused, sentAs(blocked[0].Note))
	if err != nil {
		return false, c.fail(ctx, "commit", err)
	}
	c.setReceiptHeaders(w.Header(), c.opened, receipt)
	refusal := c.refusal(receipt)
	refusal.Text, refusal.Blocked = withBlocked, blocked
	body := c.dialect.Refusal(refusal)
	if body == nil { // nobody waits for an answer
		writeDialectError(w, c.r, c.dialect, errPolicyRefusal.withMessage(blocked[0].Note))
		return false, nil
	}
	_ = writeBody(w, http.StatusOK, "application/json", body) // a failure means that the client left
	return false, nil
}

// withBlocked answers what was sent in one batch with a blocked call.
const withBlocked = "[This was not run, because a tool call sent with it was blocked by the governance policy of this service.]"

// sentAs is a text of ours, whatever is decided.
func sentAs(text string) govern.SentText {
	return func(govern.Decisions) (govern.Sent, error) { return govern.Sent{Text: text}, nil }
}
