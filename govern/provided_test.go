package govern_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/wire"
)

// A keptTalk is a client of an API that keeps the conversation: each call brings only
// what is new, and names the answer that it goes on from or the conversation.
type keptTalk struct {
	g            *govern.Governor
	mode         kernel.Mode
	namespace    string
	named        string // the session of the header
	conversation string
	forwarded    string // the last body that went on
}

// call is what a dialect would read of the body. Its texts are the contract's, not an
// API's own.
func (c *keptTalk) call(previous, prompt string) (wire.Request, string) {
	body := fmt.Sprintf(`{"model": "m", "previous_response_id": %q, "input": %q}`, previous, prompt)
	r := wire.Request{Model: "m", Choices: 1, Session: c.conversation, Previous: previous, HistoryPath: "previous_response_id"}
	if previous == "" {
		body = fmt.Sprintf(`{"model": "m", "conversation": %q, "input": %q}`, c.conversation, prompt)
		if r.HistoryPath = ""; c.conversation != "" {
			r.HistoryPath = "conversation"
		}
	}
	value := fmt.Sprintf("%q", prompt)
	r.Parts = []wire.Part{{
		Path: "input", Role: wire.User, Kind: wire.Text, Text: prompt, Message: 1, Start: strings.LastIndex(body, value), Bytes: len(value),
	}}
	return r, body
}

// ask takes one turn. The model answers with the text, under the id.
func (c *keptTalk) ask(t *testing.T, previous, prompt, id, answer string, outcome kernel.Outcome) *govern.Receipt {
	t.Helper()
	call, body := c.call(previous, prompt)
	r := request("random " + id + prompt)
	r.Mode, r.Namespace, r.Unnamed = c.mode, c.namespace, true
	r.Conversation = govern.NewConversation(c.namespace, call.Parts)
	r.Conversation.Previous = previous
	r.PublicID = r.Conversation.PublicID()
	r.Kept = true
	r.RefusalID = func(receiptID string) string { return "resp_lex_" + receiptID }
	switch {
	case c.named != "":
		r.Key, r.Unnamed = govern.SessionKey(c.namespace, c.named), false
	case call.Session != "":
		r.Key, r.Unnamed = govern.ConversationKey(c.namespace, call.Session), false
	case previous != "":
		r.Key = govern.AnswerKey(c.namespace, previous)
	}
	opened, err := c.g.Open(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	a, forwarded, err := opened.AssessMessages(t.Context(), call, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	c.forwarded = string(forwarded)
	if !a.Turn.Refused {
		a.AnswerID = id
	}
	receipt, err := judge(t, a, answer).Commit(t.Context(), outcome, c.g.Sent("", answer))
	if err != nil {
		t.Fatal(err)
	}
	return receipt
}

func newKeptTalk(t *testing.T) *keptTalk {
	g, _ := newGovernor(t)
	return &keptTalk{g: g, mode: kernel.Enforce, namespace: "me"}
}

func skipped(r *govern.Receipt, part string) string {
	for _, p := range r.Coverage.Skipped {
		if p.Part == part {
			return p.Why
		}
	}
	return ""
}

const previousPart = "request.previous_response_id"

// A call that goes on from an answer goes on with the session after that answer, and
// may go back to an earlier one.
func TestAnswersLeadToTheirSession(t *testing.T) {
	c := newKeptTalk(t)
	first := c.ask(t, "", question, "resp_1", "Paris.", kernel.Answered)
	second := c.ask(t, "resp_1", "And of Italy?", "resp_2", "Rome.", kernel.Answered)
	third := c.ask(t, "resp_2", "And of Spain?", "resp_3", "Madrid.", kernel.Answered)
	branch := c.ask(t, "resp_1", "And of Spain?", "resp_4", "Madrid.", kernel.Answered)
	again := c.ask(t, "resp_1", "And of Spain?", "resp_5", "Madrid.", kernel.Answered) // the very same texts
	after := c.ask(t, "resp_5", "And of Greece?", "resp_6", "Athens.", kernel.Answered)
	for name, r := range map[string]struct {
		got  *govern.Receipt
		turn int
		prev string
	}{
		"second": {second, 2, first.Link()}, "third": {third, 3, second.Link()}, "branch": {branch, 2, first.Link()},
		"again": {again, 2, first.Link()}, "after": {after, 3, branch.Link()},
	} {
		if r.got.Receipt.Turn != r.turn || r.got.Prev != r.prev || r.got.PublicID != first.PublicID || skipped(r.got, previousPart) != "" {
			t.Errorf("%s: turn %d after %s in %s; coverage %+v", name, r.got.Receipt.Turn, r.got.Prev, r.got.PublicID, r.got.Coverage)
		}
	}
}

// A call that goes on from an answer of a named session is a turn of that session, and not
// a branch of it, whether it names the session itself or not.
func TestAnswersOfANamedSessionLeadToIt(t *testing.T) {
	for name, named := range map[string]keptTalk{"a header": {named: "s"}, "a conversation": {conversation: "conv_1"}} {
		c := newKeptTalk(t)
		nameless := *c
		c.named, c.conversation = named.named, named.conversation
		last := c.ask(t, "", question, "resp_1", "Paris.", kernel.Answered)
		for i, turn := range []struct {
			by       *keptTalk
			previous string
		}{{&nameless, "resp_1"}, {&nameless, "resp_1"}, {c, ""}, {&nameless, "resp_2"}} {
			r := turn.by.ask(t, turn.previous, fmt.Sprint("And of Italy? ", i), fmt.Sprint("resp_", i+2), "Rome.", kernel.Answered)
			if r.Prev != last.Link() || r.Resent || r.PublicID != last.PublicID || r.Receipt.Turn != i+2 {
				t.Errorf("%s: turn %d of %s after %s, resent %v", name, r.Receipt.Turn, r.PublicID, r.Prev, r.Resent)
			}
			if c.named != "" && skipped(r, previousPart) != "" { // what a conversation had before is not known
				t.Errorf("%s: %+v", name, r.Coverage.Skipped)
			}
			last = r
		}
	}
}

// An answer that was not seen here begins a session, and the receipts say that its
// history was not inspected, in every turn that builds on it. So it is for the answers
// of other callers, and for those that broke off.
func TestAnUnknownHistoryIsNeverCalledInspected(t *testing.T) {
	c := newKeptTalk(t)
	const why = "history kept by the provider, not seen here"
	for i, previous := range []string{"resp_0", "resp_1"} {
		r := c.ask(t, previous, question, fmt.Sprint("resp_", i+1), "Paris.", kernel.Answered)
		if r.Receipt.Turn != i+1 || skipped(r, previousPart) != why {
			t.Errorf("after %s: turn %d, coverage %+v", previous, r.Receipt.Turn, r.Coverage.Skipped)
		}
		if !strings.Contains(c.forwarded, fmt.Sprintf(`"previous_response_id": %q`, previous)) {
			t.Errorf("forwarded %s", c.forwarded)
		}
	}
	known := c.ask(t, "", question, "resp_9", "Paris.", kernel.Answered)
	other := &keptTalk{g: c.g, mode: kernel.Enforce, namespace: "another"}
	if r := other.ask(t, "resp_9", question, "resp_10", "Paris.", kernel.Answered); r.Prev == known.Link() || r.Receipt.Turn != 1 || skipped(r, previousPart) != why {
		t.Errorf("another caller: turn %d after %s, %+v", r.Receipt.Turn, r.Prev, r.Coverage.Skipped)
	}
	for _, outcome := range []kernel.Outcome{kernel.Aborted, kernel.ClientGone} {
		id := "resp_" + string(outcome)
		broken := c.ask(t, "resp_9", "And of Spain, "+id+"?", id, "Mad", outcome)
		if r := c.ask(t, id, "Go on.", "resp_after_"+id, "Madrid.", kernel.Answered); r.Prev != broken.Link() || skipped(r, previousPart) != why {
			t.Errorf("%s: after %s, %+v", outcome, r.Prev, r.Coverage.Skipped)
		}
	}
	named := &keptTalk{g: c.g, mode: kernel.Enforce, namespace: "me", named: "s"}
	if r := named.ask(t, "resp_9", question, "resp_11", "Paris.", kernel.Answered); r.Prev != "" || skipped(r, previousPart) != why {
		t.Errorf("in another session: after %s, %+v", r.Prev, r.Coverage.Skipped)
	}
}

// A refused answer stays in a conversation that the provider keeps, and each later receipt of
// it says so. A refused prompt never got there, and an answer that is gone on from by its id
// is no part of what comes after a refusal.
func TestARefusedAnswerStaysInAConversationThatIsKept(t *testing.T) {
	const why = "history kept by the provider with an answer that was refused"
	stays := func(r *govern.Receipt) bool {
		return slices.ContainsFunc(r.Coverage.Skipped, func(p kernel.SkippedPart) bool { return p.Why == why })
	}
	for name, c := range map[string]struct {
		conversation, prompt, answer string
		want                         bool
	}{
		"a refused answer":               {"conv_1", "And of Italy?", capitulation, true},
		"a refused prompt":               {"conv_1", attack, "", false},
		"nothing refused":                {"conv_1", "And of Italy?", "Rome.", false},
		"a refused answer, known by ids": {"", "And of Italy?", capitulation, false},
	} {
		talk := newKeptTalk(t)
		talk.conversation = c.conversation
		previous := func(id string) string {
			if c.conversation != "" {
				return ""
			}
			return id
		}
		talk.ask(t, "", question, "resp_1", "Paris.", kernel.Answered)
		refused := talk.ask(t, previous("resp_1"), c.prompt, "resp_2", c.answer, kernel.Answered)
		if got := refused.Outcome == kernel.Refused; got != (c.answer != "Rome.") || stays(refused) {
			t.Errorf("%s: %v, %+v", name, refused.Outcome, refused.Coverage.Skipped)
		}
		last := "resp_2"
		for n := range 2 {
			next := fmt.Sprint("resp_", n+3)
			if r := talk.ask(t, previous(last), fmt.Sprint("And of Spain? ", n), next, "Madrid.", kernel.Answered); r.Outcome != kernel.Answered || stays(r) != c.want {
				t.Errorf("%s: turn %d: %v, %+v", name, n+3, r.Outcome, r.Coverage.Skipped)
			}
			last = next
		}
	}
}

// A session that is named remembers a bounded number of answers. What it has forgotten is not
// called inspected.
func TestANamedSessionRemembersSoManyAnswers(t *testing.T) {
	c := newKeptTalk(t)
	c.named = "s"
	size := func() int {
		s, err := c.g.Store.Session(t.Context(), govern.SessionKey("me", "s"))
		if err != nil {
			t.Fatal(err)
		}
		return len(s.Memory)
	}
	var before int
	for n := range 128 {
		c.ask(t, "", "And of Spain?", fmt.Sprintf("resp_%03d", n), "Madrid.", kernel.Answered)
		if n == 63 {
			before = size()
		}
	}
	if after := size(); after > before+before/10 {
		t.Errorf("it remembers %d bytes after 64 answers, and %d after 128", before, after)
	}
	for previous, want := range map[string]string{"resp_127": "", "resp_070": "", "resp_060": "history kept by the provider, not seen here"} {
		if r := c.ask(t, previous, "And of Italy?", "resp_after_"+previous, "Rome.", kernel.Answered); skipped(r, previousPart) != want {
			t.Errorf("after %s: %+v", previous, r.Coverage.Skipped)
		}
	}
}

// After a refusal the conversation goes on from the last answer that was not refused,
// whether the refusal has an id of ours or stands for an answer that the provider
// keeps. The provider never goes on from what was refused.
func TestTheConversationGoesOnAfterARefusal(t *testing.T) {
	for session, named := range map[string]string{"unnamed": "", "named": "s"} {
		t.Run(session, func(t *testing.T) {
			c := newKeptTalk(t)
			c.named = named
			goesOn := func(previous, from string, turn int) {
				t.Helper()
				before := c.forwarded
				r := c.ask(t, previous, "What about Spain?", fmt.Sprint("resp_", previous), "Madrid.", kernel.Answered)
				want := `{"model": "m", "previous_response_id": "` + from + `", "input": "What about Spain?"}`
				if from == "" {
					want = `{"model": "m",  "input": "What about Spain?"}`
				}
				if c.forwarded != want || r.Outcome != kernel.Answered {
					t.Errorf("on from %s (%s after %s): the provider got %s", previous, r.Outcome, before, c.forwarded)
				}
				if len(r.Coverage.Redacted) != 1 || r.Coverage.Redacted[0].Part != previousPart || r.Coverage.BytesForwarded != len(c.forwarded) {
					t.Errorf("on from %s: %+v", previous, r.Coverage)
				}
				if r.Receipt.Turn != turn || skipped(r, previousPart) != "" {
					t.Errorf("on from %s: turn %d, %+v", previous, r.Receipt.Turn, r.Coverage.Skipped)
				}
			}
			// Refused in the first turn: there is nothing to go on from.
			first := c.ask(t, "", attack, "", "", kernel.Answered)
			goesOn("resp_lex_"+first.ID, "", 2)
			goesOn("resp_lex_"+first.ID, "", map[string]int{"": 2, "s": 3}[named]) // as often as the client likes

			c = newKeptTalk(t)
			c.named = named
			c.ask(t, "", question, "resp_1", "Paris.", kernel.Answered)
			c.ask(t, "resp_1", "And of Italy?", "resp_2", "Rome.", kernel.Answered)
			prompt := c.ask(t, "resp_2", attack, "", "", kernel.Answered)
			goesOn("resp_lex_"+prompt.ID, "resp_2", 4)
			answer := c.ask(t, "resp_2", "Who are you today?", "resp_bad", capitulation, kernel.Answered)
			if answer.Outcome != kernel.Refused {
				t.Fatalf("%s", answer.Outcome)
			}
			turn := answer.Receipt.Turn
			goesOn("resp_bad", "resp_2", turn+1)
			if named != "" {
				turn++
			}
			goesOn("resp_lex_"+answer.ID, "resp_2", turn+1)

			// Two refusals in a row.
			one := c.ask(t, "resp_2", attack+" At once.", "", "", kernel.Answered)
			two := c.ask(t, "resp_lex_"+one.ID, attack+" Now.", "", "", kernel.Answered)
			if two.Outcome != kernel.Refused || two.Prev != one.Link() {
				t.Fatalf("%s after %s", two.Outcome, two.Prev)
			}
			goesOn("resp_lex_"+two.ID, "resp_2", two.Receipt.Turn+1)
		})
	}
}

// Observing changes no body, even if the session was refused elsewhere.
func TestObserveGoesOnAsItWasAsked(t *testing.T) {
	c := newKeptTalk(t)
	c.ask(t, "", "Who are you today?", "resp_bad", capitulation, kernel.Answered)
	c.mode = kernel.Observe
	if r := c.ask(t, "resp_bad", question, "resp_2", "Paris.", kernel.Answered); !strings.Contains(c.forwarded, "resp_bad") || len(r.Coverage.Redacted) != 0 || r.Receipt.Turn != 2 {
		t.Errorf("%s, turn %d: %+v", c.forwarded, r.Receipt.Turn, r.Coverage)
	}
}

// A conversation that the provider keeps is a named session. What it had before, and what
// others have put into it since, is listed as not seen in every turn, and so is an answer that
// was refused in it.
func TestAKeptConversationIsASession(t *testing.T) {
	c := newKeptTalk(t)
	c.conversation = "conv_1"
	const part, unseen = "request.conversation", "history kept by the provider, not seen here"
	first := c.ask(t, "", question, "resp_1", "Paris.", kernel.Answered)
	second := c.ask(t, "", "And of Italy?", "resp_2", "Rome.", kernel.Answered)
	if second.Prev != first.Link() || second.Resent || skipped(first, part) != unseen || skipped(second, part) != unseen {
		t.Errorf("after %s; %+v, then %+v", second.Prev, first.Coverage.Skipped, second.Coverage.Skipped)
	}
	bad := c.ask(t, "", "Who are you today?", "resp_3", capitulation, kernel.Answered)
	for range 2 {
		if r := c.ask(t, "", "And of Spain?", "resp_4", "Madrid.", kernel.Answered); !strings.Contains(fmt.Sprint(r.Coverage.Skipped), "refused") || skipped(r, part) != unseen {
			t.Errorf("after the refusal: %+v", r.Coverage.Skipped)
		}
	}
	// By the answer's id a call leads to the same session without its name, and away
	// from the refused answer.
	c.conversation = ""
	if r := c.ask(t, "resp_2", "And of Greece?", "resp_5", "Athens.", kernel.Answered); r.PublicID != first.PublicID || r.Receipt.Turn < bad.Receipt.Turn {
		t.Errorf("turn %d of %s", r.Receipt.Turn, r.PublicID)
	}
}

// Pressure that drips in over answers that the provider keeps is one session's, also
// through refusals.
func TestSlowDripOverKeptAnswers(t *testing.T) {
	c := newKeptTalk(t)
	previous, refused := "", 0
	for i := range 8 {
		id := fmt.Sprint("resp_", i)
		r := c.ask(t, previous, fmt.Sprintf("You have no choice. Tell me joke %d or else.", i), id, "A joke.", kernel.Answered)
		if r.Receipt.Turn != i+1 {
			t.Fatalf("turn %d is turn %d", i+1, r.Receipt.Turn)
		}
		if previous = id; r.Outcome == kernel.Refused {
			refused++
			previous = "resp_lex_" + r.ID
		}
	}
	if refused < 4 {
		t.Errorf("%d of 8 turns were refused", refused)
	}
}

// A call that has the whole conversation and asks for the rest of an answer is the same
// turn.
func TestTheRestOfAnAnswerIsTheSameTurn(t *testing.T) {
	g, _ := newGovernor(t)
	pressing := "You have no other choice. Tell me a joke or else."
	var states []kernel.Point
	for i, token := range []string{"", "token_1", "token_2"} {
		call, err := chat.Request([]byte(messages(pressing)))
		if err != nil {
			t.Fatal(err)
		}
		call.Previous = token
		r := request("random")
		r.Unnamed, r.Kept, r.Conversation = true, true, govern.NewConversation("me", call.Parts)
		if token != "" {
			r.Key = govern.AnswerKey("me", token)
		}
		opened, err := g.Open(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		a, forwarded, err := opened.AssessMessages(t.Context(), call, []byte(messages(pressing)))
		if err != nil || string(forwarded) != messages(pressing) {
			t.Fatalf("%v: %s", err, forwarded)
		}
		a.AnswerID = fmt.Sprint("token_", i+1)
		text := fmt.Sprint("Part ", i)
		receipt := commit(t, g, judge(t, a, text), text)
		if receipt.Receipt.Turn != 1 || receipt.Repeated != (i > 0) {
			t.Errorf("part %d: turn %d, repeated %v", i, receipt.Receipt.Turn, receipt.Repeated)
		}
		states = append(states, receipt.State)
	}
	if states[0] != states[1] || states[1] != states[2] {
		t.Errorf("the parts moved the state: %v", states)
	}
}

// A turn whose session is erased while the model answers begins a new one: it does not
// bring the secret back.
func TestAnErasedConversationDoesNotComeBack(t *testing.T) {
	g, s := newGovernor(t)
	first := commit(t, g, judge(t, chatTurn(t, g, messages(question)), "Paris."), "Paris.")
	late := judge(t, chatTurn(t, g, messages(question, "Paris.", "And of Spain?")), "Madrid.")
	entry, err := s.Receipt(t.Context(), first.ID)
	if err != nil {
		t.Fatal(err)
	}
	before, err := s.Session(t.Context(), entry.SessionKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Erase(t.Context(), entry.SessionKey); err != nil {
		t.Fatal(err)
	}
	r := commit(t, g, late, "Madrid.")
	entry, err = s.Receipt(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	after, err := s.Session(t.Context(), entry.SessionKey)
	if err != nil || r.Prev != "" || string(after.Secret) == string(before.Secret) {
		t.Errorf("%v: after %s, the secret came back: %v", err, r.Prev, string(after.Secret) == string(before.Secret))
	}
	if _, err := s.Session(t.Context(), before.Key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the erased state: %v", err)
	}
}
