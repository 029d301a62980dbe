package govern_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/caddy-lex/lex/audit"
	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/toolcall"
	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/store/bolt"
	"github.com/caddy-lex/lex/store/redis"
	"github.com/caddy-lex/lex/store/storetest"
	"github.com/caddy-lex/lex/wire"
)

// bothStores are a new store of each kind.
func bothStores(t *testing.T) map[string]store.Store {
	t.Helper()
	file, err := bolt.Open(filepath.Join(t.TempDir(), "lex.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server, err := redis.Open(t.Context(), []string{storetest.StartRedis(t)}, redis.Options{Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(file.Close(), server.Close()); err != nil {
			t.Error(err)
		}
	})
	return map[string]store.Store{"bolt": file, "redis": server}
}

// twoCalls is an answer that asks for one tool twice with the same arguments.
const twoCalls = `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":"Paris.","tool_calls":[
	{"id":"a","type":"function","function":{"name":"look","arguments":"{\"city\":\"Paris\"}"}},
	{"id":"b","type":"function","function":{"name":"look","arguments":"{\"city\":\"Paris\"}"}}]}}]}`

// said is one committed text with its receipt.
type said struct {
	receipt *govern.Receipt
	of      kernel.Committed
	text    string
	opening string
}

func (s said) texts() audit.Texts {
	switch s.of {
	case kernel.CommittedPrompt:
		return audit.Texts{Prompt: &s.text}
	case kernel.CommittedOutput:
		return audit.Texts{Output: &s.text}
	}
	return audit.Texts{Arguments: &s.text}
}

func (s said) opened(by string) audit.Texts {
	t := s.texts()
	t.Openings = audit.Openings{Prompt: by, Output: by, Arguments: by}
	return t
}

func saidIn(r *govern.Receipt, prompt, output string) []said {
	return []said{{r, kernel.CommittedPrompt, prompt, r.Openings.Prompt}, {r, kernel.CommittedOutput, output, r.Openings.Output}}
}

// converse leaves the same words again and again: in two turns of a session, in the
// refusals of two attacks, in two calls of one answer, and in two calls that are asked
// about in one turn.
func converse(t *testing.T, g *govern.Governor) (all []said) {
	t.Helper()
	for range 2 {
		all = append(all, saidIn(commit(t, g, judge(t, ask(t, g, "s", question), "Paris."), "Paris."), question, "Paris.")...)
		all = append(all, saidIn(commit(t, g, judge(t, ask(t, g, "s", attack), ""), ""), attack, g.RefusalText)...)
	}
	a := chatTurn(t, g, messages(question))
	answer, err := chat.Response([]byte(twoCalls))
	if err != nil {
		t.Fatal(err)
	}
	judged, err := a.Judge(t.Context(), a.ReadAnswer(answer))
	if err != nil {
		t.Fatal(err)
	}
	r := commit(t, g, judged, "Paris.")
	if len(r.Calls) != 2 {
		t.Fatalf("%d calls", len(r.Calls))
	}
	all = append(all, saidIn(r, question, "Paris.")...)
	opened, err := g.Open(t.Context(), request("s"))
	if err != nil {
		t.Fatal(err)
	}
	calls := r.Calls
	for range 2 {
		judged, err := opened.RecordToolCall(govern.Call{
			ToolCall: wire.ToolCall{Name: "look", Arguments: `{"city":"Paris"}`}, Found: toolcall.Decision{Allowed: true}, Standalone: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, commit(t, g, judged, ""))
	}
	for _, c := range calls {
		all = append(all, said{c, kernel.CommittedArguments, `{"city":"Paris"}`, c.Openings.Arguments})
	}
	return all
}

func compare(t *testing.T, s store.Store, id string, texts audit.Texts) audit.Check {
	t.Helper()
	a := audit.NewAuditor(s)
	report, err := a.VerifyID(t.Context(), id)
	if err != nil || report.Fault != nil {
		t.Fatalf("%v: %+v", err, report)
	}
	made := len(report.Checks)
	if err := a.CompareTexts(t.Context(), report, texts); err != nil || len(report.Checks) != made+1 {
		t.Fatalf("%v: %+v", err, report)
	}
	return report.Checks[made]
}

// An opening opens one text of one receipt and no other, whatever was said elsewhere.
// When the session is erased nothing is opened any more but by the openings that the
// caller took.
func TestOpenings(t *testing.T) {
	g, _ := newGovernor(t)
	text, err := g.Kernel.Policy().JSON()
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range bothStores(t) {
		t.Run(name, func(t *testing.T) {
			g.Store = s
			if err := s.PutDocument(t.Context(), g.Kernel.PolicyHash(), text); err != nil {
				t.Fatal(err)
			}
			all := converse(t, g)
			for i, a := range all {
				if check := compare(t, s, a.receipt.ID, a.texts()); !check.Passed() {
					t.Errorf("%d by the session: %+v", i, check)
				}
				for j, b := range all {
					if check := compare(t, s, a.receipt.ID, a.opened(b.opening)); check.Passed() != (i == j) || !check.Passed() && !check.Failed() {
						t.Errorf("%d by the opening of %d: %+v", i, j, check)
					}
					if i != j && a.receipt.Commitment(a.of) == b.receipt.Commitment(b.of) {
						t.Errorf("%d and %d can be told to be the same", i, j)
					}
				}
			}
			for _, a := range all {
				entry, err := s.Receipt(t.Context(), a.receipt.ID)
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Erase(t.Context(), entry.SessionKey); err != nil {
					t.Fatal(err)
				}
			}
			for i, a := range all {
				if check := compare(t, s, a.receipt.ID, a.texts()); check.OK != nil {
					t.Errorf("%d after the erasure: %+v", i, check)
				}
				if check := compare(t, s, a.receipt.ID, a.opened(a.opening)); !check.Passed() {
					t.Errorf("%d by its opening after the erasure: %+v", i, check)
				}
			}
		})
	}
}
