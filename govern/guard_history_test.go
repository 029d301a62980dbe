package govern_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/model"
	"github.com/caddy-lex/lex/wire"
)

// What only a guard finds in these tests. Both halves are harmless alone.
const (
	evil      = "Tell me about the blue lamp."
	firstHalf = "Let us speak of blue things."
	lastHalf  = "Which kinds of lamp are there?"
)

// lampGuard finds what speaks of blue and of lamps, and is asked about prompts.
func lampGuard() (*govern.Guard, *guardModel) {
	guard, m := guarded(func(t model.GuardText) (model.Verdict, error) {
		if strings.Contains(t.Text, "blue") && strings.Contains(t.Text, "lamp") {
			return model.Verdict{model.HarmRequest: 0.98}, nil
		}
		return model.Verdict{model.HarmRequest: 0.01}, nil
	})
	guard.Roles = []model.Role{model.RolePrompt}
	return guard, m
}

func redactedOf(c kernel.Coverage) (parts []string) {
	for _, p := range c.Redacted {
		parts = append(parts, p.Part+": "+p.Why)
	}
	return parts
}

func plain(*govern.Request) {}

// What a guard finds in the user's words before the newest turn, where nothing is known of
// the history, goes as what the detector finds does: the newest turn is judged by itself, and
// the model does not get that message in this turn nor in the next.
func TestGuardsCleanTheHistory(t *testing.T) {
	for kind, s := range bothStores(t) {
		guard, m := lampGuard()
		g, _ := newGovernor(t)
		g.Store, g.Guards = s, []*govern.Guard{guard}
		said := []string{"Hello.", "Hi.", evil, "A lamp.", "Good evening.", "Hi.", "Thank you."}
		a, forwarded := chatForwarded(t, g, messages(said...), plain)
		r := commit(t, g, judge(t, a, "Paris."), "Paris.")
		if r.Refused || r.Severity > 0.49 || strings.Contains(forwarded, evil) || strings.Count(forwarded, "was removed") != 1 {
			t.Fatalf("%s: refused %v (%v): %s", kind, r.Refused, r.Severity, forwarded)
		}
		if got := redactedOf(r.Coverage); !slices.Equal(got, []string{"request.messages.2.content: would be refused now"}) || !a.Opened.Coverage.Complete() || r.Coverage.BytesForwarded < len(forwarded) {
			t.Errorf("%s: %v, %+v", kind, got, r.Coverage)
		}
		if run := runOf(a.Opened.Coverage, "guard_g.prompt"); run.Outcome != kernel.Flagged || run.Score != 0.98 || runOf(a.Opened.Coverage, govern.DetectorLocal).Outcome != kernel.Clean {
			t.Errorf("%s: %+v", kind, a.Opened.Coverage.Detectors)
		}
		inspected := 0
		for _, p := range a.Opened.Coverage.Inspected {
			inspected += p.Bytes
			if strings.HasPrefix(p.Part, "request.messages.2.") {
				t.Errorf("%s: %+v", kind, p)
			}
		}
		if inspected != a.Opened.Coverage.BytesInspected {
			t.Errorf("%s: %d bytes are inspected, and %d are counted", kind, inspected, a.Opened.Coverage.BytesInspected)
		}
		if asked := m.texts(); len(asked) != len(slices.Compact(slices.Clone(asked))) {
			t.Errorf("%s: asked the same again: %q", kind, asked)
		}
		if err := g.Kernel.Replay(r.Receipt); err != nil {
			t.Errorf("%s: %v", kind, err)
		}

		m.asked = nil
		a, forwarded = chatForwarded(t, g, messages(append(said, "Paris.", question)...), plain)
		if got := redactedOf(a.Opened.Coverage.Coverage); a.Turn.Refused || strings.Contains(forwarded, evil) || !slices.Equal(got, []string{"request.messages.2.content: refused when it was new"}) {
			t.Errorf("%s: then refused %v: %v, %s", kind, a.Turn.Refused, got, forwarded)
		}
		if asked := m.texts(); !slices.Equal(asked, []string{question}) {
			t.Errorf("%s: then asked %q", kind, asked)
		}
	}
}

// The newest turn is refused for what it says itself, whatever goes of the history, and both
// stay away from the model.
func TestGuardsFindBothTurns(t *testing.T) {
	guard, _ := lampGuard()
	g, _ := newGovernor(t)
	g.Guards = []*govern.Guard{guard}
	const again = "And of another blue lamp?"
	a, _ := chatForwarded(t, g, messages(evil, "Hi.", again), plain)
	r := commit(t, g, judge(t, a, ""), "")
	if !r.Refused || len(redactedOf(r.Coverage)) != 1 {
		t.Fatalf("%+v", r.Coverage)
	}
	a, forwarded := chatForwarded(t, g, messages(evil, "Hi.", again, g.RefusalText, question), plain)
	if a.Turn.Refused || strings.Contains(forwarded, "lamp") {
		t.Errorf("refused %v: %s", a.Turn.Refused, forwarded)
	}
}

// An attack that only the newest turn completes refuses that turn. Both halves never reach
// the model together, where the session is known and where it is not.
func TestGuardsOfSplitAttacks(t *testing.T) {
	guard, _ := lampGuard()
	g, _ := newGovernor(t)
	g.Guards = []*govern.Guard{guard}
	a, _ := chatForwarded(t, g, messages(firstHalf, "Hi.", lastHalf), plain)
	if r := commit(t, g, judge(t, a, ""), ""); !r.Refused || len(r.Coverage.Redacted) != 0 {
		t.Fatalf("%+v", r.Coverage)
	}
	resent := messages(firstHalf, "Hi.", lastHalf, g.RefusalText, question)
	a, forwarded := chatForwarded(t, g, resent, plain)
	if a.Turn.Refused || !strings.Contains(forwarded, firstHalf) || strings.Contains(forwarded, lastHalf) {
		t.Errorf("known: refused %v: %s", a.Turn.Refused, forwarded)
	}
	a, forwarded = chatForwarded(t, g, resent, func(r *govern.Request) { r.Key = govern.SessionKey("me", "lost") })
	if a.Turn.Refused || strings.Contains(forwarded, firstHalf) || strings.Contains(forwarded, lastHalf) {
		t.Errorf("lost: refused %v: %s", a.Turn.Refused, forwarded)
	}
}

// Each mode, each way to ask and each treatment does with such a message what it does with one
// that the detector finds.
func TestHowGuardsCleanTheHistory(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(*govern.Guard, *govern.Request)
		refused  bool
		replaced bool
	}{
		"asked always":          {func(*govern.Guard, *govern.Request) {}, false, true},
		"asked only to observe": {func(g *govern.Guard, _ *govern.Request) { g.Ask = govern.AskObserve }, false, false},
		"over the budget":       {func(g *govern.Guard, _ *govern.Request) { g.Budget = exhausted(t) }, false, false},
		"in the mode observe":   {func(_ *govern.Guard, r *govern.Request) { r.Mode = kernel.Observe }, false, false},
		"history refuse":        {func(_ *govern.Guard, r *govern.Request) { r.Reading.RefuseHistory = true }, true, false},
		"asked about nothing":   {func(g *govern.Guard, _ *govern.Request) { g.Ask, g.Low = govern.AskWhen, 0.9 }, false, false},
	} {
		guard, _ := lampGuard()
		g, _ := newGovernor(t)
		g.Guards = []*govern.Guard{guard}
		said := []string{evil, "Hi.", "Thank you."}
		for turn := range 2 {
			a, forwarded := chatForwarded(t, g, messages(said...), func(r *govern.Request) { test.change(guard, r) })
			if replaced := !strings.Contains(forwarded, evil); a.Turn.Refused != test.refused || len(a.Turn.Reasons) > 0 != test.refused || replaced != test.replaced {
				t.Errorf("%s, turn %d: refused %v: %v: %s", name, turn, a.Turn.Refused, a.Turn.Reasons, forwarded)
			}
			answer := "You are welcome."
			if a.Turn.Refused {
				answer = ""
			}
			commit(t, g, judge(t, a, answer), answer)
			if answer == "" {
				answer = g.RefusalText
			}
			said = append(said, answer, question)
		}
	}
}

// exhausted is a budget that was spent.
func exhausted(t *testing.T) *govern.Budget {
	t.Helper()
	guard, _ := lampGuard()
	guard.Budget = govern.NewBudget(1e-9)
	g, _ := newGovernor(t)
	g.Guards = []*govern.Guard{guard}
	ask(t, g, "s", question)
	return guard.Budget
}

// A guard is asked about the words before the newest turn where the detector leaves these
// undecided, although it leaves nothing undecided of the newest turn.
func TestGuardsOfUndecidedHistory(t *testing.T) {
	guard, m := guarded(says(model.Verdict{model.HarmRequest: 0.98}))
	guard.Roles, guard.Ask, guard.Low = []model.Role{model.RolePrompt}, govern.AskWhen, 0.3
	g, _ := newGovernor(t)
	g.Guards = []*govern.Guard{guard}
	doubt := undecided(t, g)
	a, forwarded := chatForwarded(t, g, messages(doubt, "Hi.", question), plain)
	if asked := m.texts(); a.Turn.Refused || strings.Contains(forwarded, doubt) || !slices.Equal(asked, []string{doubt}) {
		t.Errorf("refused %v, asked %q: %s", a.Turn.Refused, asked, forwarded)
	}
}

// Where a guard that must give a verdict gives none on the words before the newest turn, the
// turn is refused, and the next one asks about them again.
func TestGuardsThatFailOnTheHistory(t *testing.T) {
	for _, required := range []bool{false, true} {
		guard, m := lampGuard()
		guard.Required = required
		works := m.says
		m.says = func(t model.GuardText) (model.Verdict, error) {
			if strings.Contains(t.Text, "blue") {
				return nil, errors.New("down")
			}
			return works(t)
		}
		g, _ := newGovernor(t)
		g.Guards = []*govern.Guard{guard}
		a, _ := chatForwarded(t, g, messages(evil, "Hi.", "Thank you."), plain)
		if a.Turn.Refused != required || !a.Turn.Evidence.Degraded || runOf(a.Opened.Coverage, "guard_g.prompt").Outcome != kernel.DetectorFailed {
			t.Fatalf("%v: refused %v, %+v", required, a.Turn.Refused, a.Opened.Coverage.Detectors)
		}
		if !required {
			continue
		}
		commit(t, g, judge(t, a, ""), "")
		m.says = works
		a, forwarded := chatForwarded(t, g, messages(evil, "Hi.", "Thank you.", g.RefusalText, question), plain)
		if a.Turn.Refused || strings.Contains(forwarded, evil) {
			t.Errorf("refused %v: %s", a.Turn.Refused, forwarded)
		}
	}
}

// A guard that fails has failed in the turn, also where another one finds the text on which it
// did.
func TestAGuardFindsWhereAnotherFails(t *testing.T) {
	finds, _ := lampGuard()
	fails, _ := guarded(func(t model.GuardText) (model.Verdict, error) {
		if strings.Contains(t.Text, "blue") {
			return nil, errors.New("down")
		}
		return model.Verdict{}, nil
	})
	fails.Name, fails.Required = "broken", true
	g, _ := newGovernor(t)
	g.Guards = []*govern.Guard{finds, fails}
	a, _ := chatForwarded(t, g, messages(evil, "Hi.", "Thank you."), plain)
	if !a.Turn.Refused || a.Turn.Evidence.DeniedBy != "guard_gave_no_verdict" || len(a.Opened.Coverage.Redacted) != 1 {
		t.Errorf("refused %v by %q: %+v", a.Turn.Refused, a.Turn.Evidence.DeniedBy, a.Opened.Coverage)
	}
}

// A turn that a client leaves while a guard is asked makes nothing known of what it brought.
func TestGuardsThatAreCutShort(t *testing.T) {
	for _, said := range [][]string{{evil}, {evil, "Hi.", "Thank you."}} {
		guard, m := lampGuard()
		works := m.says
		g, _ := newGovernor(t)
		g.Guards = []*govern.Guard{guard}
		call, err := chat.Request([]byte(messages(said...)))
		if err != nil {
			t.Fatal(err)
		}
		r := request("s")
		r.Unnamed, r.Conversation = true, govern.NewConversation("me", call.Parts)
		o, err := g.Open(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		m.says = func(model.GuardText) (model.Verdict, error) {
			leave()
			return nil, errors.New("cancelled")
		}
		a, _, err := o.AssessMessages(ctx, call, []byte(messages(said...)))
		if err != nil || a.Turn.Refused {
			t.Fatal(err, a)
		}
		sent := func(govern.Decisions) (govern.Sent, error) { return govern.Sent{}, nil }
		if _, err := a.NotJudged("no output text").Commit(t.Context(), kernel.ClientGone, sent); err != nil {
			t.Fatal(err)
		}
		m.says = works
		_, forwarded := chatForwarded(t, g, messages(append(said, "", question)...), plain)
		if strings.Contains(forwarded, evil) {
			t.Errorf("%q: %s", said, forwarded)
		}
	}
}

// However many messages of a history a guard finds, it is asked about the last few alone, and
// about no text twice.
func TestGuardsReadTheHistoryNoFurther(t *testing.T) {
	guard, m := lampGuard()
	g, _ := newGovernor(t)
	g.Guards = []*govern.Guard{guard}
	var said []string
	for _, colour := range []string{"deep", "light", "dark", "pale", "sky"} {
		said = append(said, "A "+colour+" blue lamp.", "Hi.")
	}
	a, forwarded := chatForwarded(t, g, messages(append(said, "Thank you.")...), plain)
	if a.Turn.Refused || strings.Count(forwarded, "lamp") != 2 || strings.Count(forwarded, "was removed") != 3 {
		t.Errorf("refused %v: %s", a.Turn.Refused, forwarded)
	}
	asked := m.texts()
	if len(asked) != 6 || len(slices.Compact(slices.Clone(asked))) != 6 {
		t.Errorf("asked %d times: %q", len(asked), asked)
	}
}

// A name that only a guard finds goes with its message, and another one stays.
func TestGuardsOfNamesInTheHistory(t *testing.T) {
	for name, stays := range map[string]bool{"bob": true, "the_blue_lamp": false} {
		guard, _ := lampGuard()
		g, _ := newGovernor(t)
		g.Guards = []*govern.Guard{guard}
		a, forwarded := chatForwarded(t, g, `{"model":"m","messages":[{"role":"user","name":"`+name+`","content":"`+evil+`"},{"role":"assistant","content":"Hi."},{"role":"user","content":"Thank you."}]}`, plain)
		if a.Turn.Refused || strings.Contains(forwarded, evil) || strings.Contains(forwarded, name) != stays {
			t.Errorf("%s: refused %v: %s", name, a.Turn.Refused, forwarded)
		}
	}
}

// So it is in a conversation in no API.
func TestGuardsCleanConversations(t *testing.T) {
	guard, _ := lampGuard()
	g, _ := newGovernor(t)
	g.Guards = []*govern.Guard{guard}
	o, err := g.Open(t.Context(), request("s"))
	if err != nil {
		t.Fatal(err)
	}
	a, forwarded, err := o.AssessConversation(t.Context(), []wire.Message{
		{Role: wire.User, Text: evil}, {Role: wire.Assistant, Text: "Hi."}, {Role: wire.User, Text: "Thank you."},
	})
	if err != nil || a.Turn.Refused || strings.Contains(forwarded[0].Text, "lamp") || forwarded[2].Text != "Thank you." {
		t.Errorf("%v, refused %v: %q", err, a.Turn.Refused, forwarded)
	}
}

// The receipt says how long the turn waited for a guard in all, also where the conversation is
// read again without what the guard found.
func TestGuardsThatCleanTheHistoryTakeTime(t *testing.T) {
	for _, said := range [][]string{
		{evil, "A lamp.", "Thank you."},
		{"Hello.", "Hi.", evil, "A lamp.", "Good evening.", "Hi.", "Thank you."},
		{"Hello.", "Hi.", "Thank you."}, // nothing is found
	} {
		synctest.Test(t, func(t *testing.T) {
			guard, m := lampGuard()
			found := m.says
			m.says = func(text model.GuardText) (model.Verdict, error) {
				time.Sleep(time.Second)
				return found(text)
			}
			g, _ := newGovernor(t)
			g.Guards = []*govern.Guard{guard}
			began := time.Now()
			a, _ := chatForwarded(t, g, messages(said...), plain)
			if run, waited := runOf(a.Opened.Coverage, "guard_g.prompt"), time.Since(began); waited < time.Second || run.Millis != int(waited.Milliseconds()) {
				t.Errorf("%q: waited %v, and the receipt says %d ms", said, waited, run.Millis)
			}
		})
	}
}
