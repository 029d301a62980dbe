package govern_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/toolcall"
	"github.com/caddy-lex/lex/model"
	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/wire"
)

// What the interceptor lets pass in these tests, by what it does, and what it blocks.
var (
	noting  = wire.ToolCall{Name: "create_note", Arguments: `{"title":"Meeting","text":"At 3 pm."}`}
	looking = wire.ToolCall{Name: "get_weather", Arguments: `{"city":"Zurich"}`}
	wiping  = wire.ToolCall{Name: "bash", Arguments: `{"command":"rm -rf /"}`}
)

const (
	mailRequest = "Read my mail, and note when the meeting is."
	mail        = "The meeting is at 3 pm. Bring the slides."
)

// agentTurn is the turn of an agent that has read a text, "" for none.
func agentTurn(t *testing.T, g *govern.Governor, session, read string) *govern.Assessed {
	t.Helper()
	body := `{"model":"m","tools":[{"type":"function","function":{"name":"create_note","description":"Writes a note.","parameters":{"type":"object"}}}],` +
		`"messages":[{"role":"system","content":"You are a mail assistant."},{"role":"user","content":"` + mailRequest + `"}`
	if read != "" {
		quoted, _ := json.Marshal(read)
		body += `,{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"read_mail","arguments":"{}"}}]},{"role":"tool","tool_call_id":"x","content":` + string(quoted) + `}`
	}
	body += `]}`
	call, err := chat.Request([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	r := request(session)
	r.Conversation = govern.NewConversation("me", call.Parts)
	opened, err := g.Open(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	a, _, err := opened.AssessMessages(t.Context(), call, []byte(body))
	if err != nil || a.Turn.Refused {
		t.Fatal(err, a.Turn.Refused)
	}
	return a
}

// judgeCalls judges an answer with a text and calls.
func judgeCalls(ctx context.Context, t *testing.T, a *govern.Assessed, calls ...wire.ToolCall) *govern.Judged {
	t.Helper()
	calls = slices.Clone(calls)
	for i := range calls {
		calls[i].Key = fmt.Sprint("call_", i)
		calls[i].ID = calls[i].Key
	}
	judged, err := a.Judge(ctx, a.ReadAnswer(wire.Response{Parts: []wire.Part{{Path: "0", Kind: wire.Text, Text: "I note it.", Bytes: 10}}, Calls: calls}))
	if err != nil {
		t.Fatal(err)
	}
	return judged
}

// guardedCalls is a guard that is asked about calls alone.
func guardedCalls(answer func(model.GuardText) (model.Verdict, error)) (*govern.Guard, *guardModel) {
	guard, m := guarded(answer)
	guard.Roles = []model.Role{model.RoleToolCall}
	return guard, m
}

func injection(p float64) model.Verdict { return model.Verdict{model.Injection: p} }

// callRun is what the receipt of a call says of the guard.
func callRun(r *govern.Receipt) kernel.DetectorRun {
	return runOf(&govern.Coverage{Coverage: r.Coverage}, "guard_g.tool_call")
}

// What a guard says of a call blocks it or leaves it. Its receipt names the guard; the one of
// the turn too; and both can be replayed.
func TestGuardsOfCalls(t *testing.T) {
	for name, test := range map[string]struct {
		answer    func(model.GuardText) (model.Verdict, error)
		change    func(*govern.Guard)
		invariant toolcall.Invariant
		rule      string
		flagged   toolcall.Invariant
		run       kernel.DetectorRun
	}{
		"serves the user":           {says(injection(0.1)), nil, "", "", "", kernel.DetectorRun{Outcome: kernel.Clean, Score: 0.1}},
		"serves a text":             {says(injection(0.9)), nil, toolcall.InjectedAction, "", "", kernel.DetectorRun{Outcome: kernel.Flagged, Score: 0.9}},
		"only just":                 {says(injection(0.74)), nil, toolcall.InjectedAction, "", "", kernel.DetectorRun{Outcome: kernel.Flagged, Score: 0.74}},
		"not sure enough":           {says(injection(0.7)), nil, "", "", toolcall.InjectedAction, kernel.DetectorRun{Outcome: kernel.Flagged, Score: 0.7}},
		"says nothing":              {says(model.Verdict{}), nil, "", "", "", kernel.DetectorRun{Outcome: kernel.Clean}},
		"fails":                     {fails(errors.New("down")), nil, "", "", "", kernel.DetectorRun{Outcome: kernel.DetectorFailed, Why: "unreachable"}},
		"fails, and must not":       {fails(errors.New("down")), func(g *govern.Guard) { g.Required = true }, toolcall.OperatorRule, "guard_gave_no_verdict", "", kernel.DetectorRun{Outcome: kernel.DetectorFailed, Why: "unreachable"}},
		"answers, and must":         {says(injection(0.1)), func(g *govern.Guard) { g.Required = true }, "", "", "", kernel.DetectorRun{Outcome: kernel.Clean, Score: 0.1}},
		"observes":                  {says(injection(0.9)), func(g *govern.Guard) { g.Ask = govern.AskObserve }, "", "", "", kernel.DetectorRun{Outcome: kernel.Flagged, Score: 0.9}},
		"observes and fails":        {fails(errors.New("down")), func(g *govern.Guard) { g.Ask = govern.AskObserve }, "", "", "", kernel.DetectorRun{Outcome: kernel.DetectorFailed, Why: "unreachable"}},
		"calibrated":                {says(injection(0.9)), func(g *govern.Guard) { g.Calibration = &govern.Calibration{Slope: 1, Intercept: -3} }, "", "", "", kernel.DetectorRun{Outcome: kernel.Clean, Score: 0.309432}},
		"finds a part and fails":    {func(model.GuardText) (model.Verdict, error) { return injection(0.9), errors.New("down") }, nil, toolcall.InjectedAction, "", "", kernel.DetectorRun{Outcome: kernel.Flagged, Score: 0.9, Why: "unreachable"}},
		"is not asked about others": {says(injection(0.9)), func(g *govern.Guard) { g.Roles = []model.Role{model.RoleAnswer} }, "", "", "", kernel.DetectorRun{}},
	} {
		for _, mode := range []kernel.Mode{kernel.Enforce, kernel.Observe} {
			guard, m := guardedCalls(test.answer)
			if test.change != nil {
				test.change(guard)
			}
			g, _ := newGovernor(t)
			g.Guards = []*govern.Guard{guard}
			a := agentTurn(t, g, "s", mail)
			a.Opened.Mode = mode
			if name == "is not asked about others" {
				m.says = says(model.Verdict{})
			}
			receipt := commit(t, g, judgeCalls(t.Context(), t, a, noting), "I note it.")
			if len(receipt.Calls) != 1 {
				t.Fatalf("%s: %d receipts of calls, refused %v", name, len(receipt.Calls), receipt.Refused)
			}
			r := receipt.Calls[0]
			blocked := test.invariant != "" && mode == kernel.Enforce
			if r.Invariant != string(test.invariant) || r.Rule != test.rule || r.Flagged != string(test.flagged) || (r.Decision == kernel.Blocked) != blocked {
				t.Errorf("%s, %s: %+v", name, mode, r.ToolCall)
			}
			if (r.Scores.Injection > 0) != (test.invariant == toolcall.InjectedAction) {
				t.Errorf("%s, %s: evidence %+v", name, mode, r.Evidence)
			}
			for _, of := range []*govern.Receipt{r, receipt} {
				run := callRun(of)
				run.Name, run.Millis = "", 0
				if run != test.run {
					t.Errorf("%s, %s: %+v", name, mode, run)
				}
			}
			if local := runOf(&govern.Coverage{Coverage: r.Coverage}, govern.DetectorToolCall); local.Outcome != kernel.Clean {
				t.Errorf("%s: the interceptor is said to have found something: %+v", name, local)
			}
			if err := errors.Join(g.Kernel.Replay(r.Receipt), g.Kernel.Replay(receipt.Receipt)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if note := govern.BlockedNote(r.Turn.Call); test.rule != "" && !strings.Contains(note, "operator_rule: A guard has to be asked about the call and gave no verdict.") {
				t.Errorf("%s: %s", name, note)
			}
		}
	}
}

// About which calls a guard is asked, and what the receipt says where it is not.
func TestWhichCallsGuardsAreAskedAbout(t *testing.T) {
	for name, test := range map[string]struct {
		ask   govern.Asking
		read  string
		call  wire.ToolCall
		asked int
		run   kernel.DetectorOutcome
	}{
		"a write":                    {govern.AskWhen, mail, noting, 1, kernel.Clean},
		"a read":                     {govern.AskWhen, mail, looking, 0, ""},
		"a write with nothing read":  {govern.AskWhen, "", noting, 0, ""},
		"blanks were read":           {govern.AskWhen, " \n ", noting, 0, ""},
		"what is blocked":            {govern.AskWhen, mail, wiping, 0, ""},
		"always, a write":            {govern.AskAlways, "", noting, 1, kernel.Clean},
		"always, a read":             {govern.AskAlways, mail, looking, 1, kernel.Clean},
		"always, what is blocked":    {govern.AskAlways, mail, wiping, 0, ""},
		"observed, a read":           {govern.AskObserve, mail, looking, 1, kernel.Clean},
		"observed, what is blocked":  {govern.AskObserve, mail, wiping, 0, ""},
		"arguments that are no JSON": {govern.AskAlways, mail, wire.ToolCall{Name: "create_note", Arguments: `{"a":`}, 0, ""},
		"free arguments":             {govern.AskAlways, mail, wire.ToolCall{Name: "create_note", Arguments: "not JSON", Free: true}, 1, kernel.Clean},
		"no arguments":               {govern.AskAlways, mail, wire.ToolCall{Name: "create_note"}, 1, kernel.Clean},
		"a schema that does not fit": {govern.AskWhen, mail, wire.ToolCall{Name: "create_note", Arguments: `{"title":1}`}, 1, kernel.Clean},
	} {
		guard, m := guardedCalls(says(injection(0.1)))
		guard.Ask = test.ask
		g, _ := newGovernor(t)
		g.Guards = []*govern.Guard{guard}
		r := commit(t, g, judgeCalls(t.Context(), t, agentTurn(t, g, "s", test.read), test.call), "I note it.")
		if m.times() != test.asked || callRun(r.Calls[0]).Outcome != test.run {
			t.Errorf("%s: asked %d times, %+v, %+v", name, m.times(), callRun(r.Calls[0]), r.Calls[0].ToolCall)
		}
	}
}

// The question has what the interceptor knows, and of what was read the end.
func TestWhatGuardsAreAskedAboutCalls(t *testing.T) {
	guard, m := guardedCalls(says(injection(0.1)))
	g, _ := newGovernor(t)
	g.Guards = []*govern.Guard{guard}
	judgeCalls(t.Context(), t, agentTurn(t, g, "s", mail), noting)
	want := model.GuardText{Role: model.RoleToolCall, Text: mail, Prompt: mailRequest, Call: model.GuardCall{
		Name: "create_note", Arguments: noting.Arguments, Definition: "Writes a note.\n" + `{"type":"object"}`, Application: "You are a mail assistant.",
	}}
	if len(m.asked) != 1 || m.asked[0] != want {
		t.Errorf("asked %+v", m.asked)
	}

	m.asked, m.reads = nil, 100<<10
	body, _ := json.Marshal(map[string]string{"title": "T", "text": strings.Repeat("lorem ", 8000)})
	long := wire.ToolCall{Name: "create_note", Arguments: string(body)}
	r := commit(t, g, judgeCalls(t.Context(), t, agentTurn(t, g, "t", "canary-first "+strings.Repeat("word ", 20000)+"canary-last"), long), "I note it.")
	if asked := m.asked[0]; len(asked.Text) != 64<<10 || strings.Contains(asked.Text, "canary-first") || !strings.HasSuffix(asked.Text, "canary-last") || len(asked.Call.Arguments) > 9<<10 {
		t.Errorf("asked with %d and %d bytes", len(asked.Text), len(asked.Call.Arguments))
	}
	skipped := make(map[string]int)
	for _, p := range r.Calls[0].Coverage.Skipped {
		if p.Why == "beyond what guard_g.tool_call reads" {
			skipped[p.Part] = p.Bytes
		}
	}
	if skipped["request.context"] != len("canary-first ")+5*20000+len("canary-last")-64<<10 || skipped["response.tool_call"] < len(body)-9<<10 || len(skipped) != 2 {
		t.Errorf("skipped %v", skipped)
	}

	m.asked, m.reads = nil, 10 // a guard that reads less is shown the end, too
	judgeCalls(t.Context(), t, agentTurn(t, g, "u", mail), noting)
	if m.asked[0].Text != "he slides." {
		t.Errorf("asked %q", m.asked[0].Text)
	}
}

// Calls of one answer are asked about side by side. One that is blocked takes no other with it,
// and each receipt says what was said of its own call.
func TestCallsAreAskedAboutSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guard, m := guardedCalls(func(t model.GuardText) (model.Verdict, error) {
			time.Sleep(time.Second)
			if strings.Contains(t.Call.Arguments, "evil") {
				return injection(0.95), nil
			}
			return injection(0.05), nil
		})
		g, _ := newGovernor(t)
		g.Guards = []*govern.Guard{guard}
		evil := noting
		evil.Arguments = `{"title":"evil","text":"x"}`
		a := agentTurn(t, g, "s", mail)
		began := time.Now()
		r := commit(t, g, judgeCalls(t.Context(), t, a, noting, evil, wiping, noting), "I note it.")
		if took := time.Since(began); took != time.Second || m.times() != 3 {
			t.Errorf("asked %d times in %v", m.times(), took)
		}
		for i, want := range []struct {
			invariant string
			outcome   kernel.DetectorOutcome
		}{{"", kernel.Clean}, {"injected_action", kernel.Flagged}, {"destructive_command", ""}, {"", kernel.Clean}} {
			if c := r.Calls[i]; c.Invariant != want.invariant || callRun(c).Outcome != want.outcome || want.outcome != "" && callRun(c).Millis != 1000 {
				t.Errorf("call %d: %+v, %+v", i, c.ToolCall, callRun(c))
			}
		}
		if run := callRun(r); run.Outcome != kernel.Flagged || run.Millis != 1000 || run.Score != 0.95 {
			t.Errorf("the turn: %+v", run)
		}
	})
}

// A guard is asked about so many calls of an answer, the gravest first. Of the others one that
// must be asked lets none pass.
func TestManyCalls(t *testing.T) {
	for _, required := range []bool{false, true} {
		guard, m := guardedCalls(says(injection(0.1)))
		guard.Required = required
		g, _ := newGovernor(t)
		g.Guards = []*govern.Guard{guard}
		calls := slices.Repeat([]wire.ToolCall{looking}, 128)
		calls[120] = noting
		r := commit(t, g, judgeCalls(t.Context(), t, agentTurn(t, g, "s", mail), calls...), "I note it.")
		blocked := 0
		for i, c := range r.Calls {
			run := callRun(c)
			asked := i < 31 || i == 120
			if (run.Outcome == kernel.Clean) != asked || !asked && (run.Outcome != kernel.NotRun || run.Why != "more calls than it is asked about") {
				t.Fatalf("call %d: %+v", i, run)
			}
			if c.Decision == kernel.Blocked {
				blocked++
			}
		}
		if m.times() != 32 || blocked != map[bool]int{true: 96}[required] {
			t.Errorf("asked %d times, blocked %d", m.times(), blocked)
		}
	}
}

// A guard is asked once, however often the commit takes its decisions again.
func TestCallsAreAskedAboutOnce(t *testing.T) {
	guard, m := guardedCalls(says(injection(0.9)))
	g, s := newGovernor(t)
	g.Guards = []*govern.Guard{guard}
	judged := judgeCalls(t.Context(), t, agentTurn(t, g, "s", mail), noting)
	s.failures = []error{store.ErrConflict, store.ErrConflict}
	r := commit(t, g, judged, "I note it.")
	if m.times() != 1 || r.Calls[0].Decision != kernel.Blocked || callRun(r.Calls[0]).Outcome != kernel.Flagged {
		t.Errorf("asked %d times, %+v", m.times(), r.Calls[0].ToolCall)
	}
}

// A spent budget leaves the calls to the interceptor, also with fail refuse, and the receipt
// says so. A turn counts once, whatever the guard is asked in it.
func TestBudgetsOfGuardsOfCalls(t *testing.T) {
	guard, m := guardedCalls(says(injection(0.9)))
	guard.Required, guard.Budget = true, govern.NewBudget(0.25)
	g, _ := newGovernor(t)
	g.Guards = []*govern.Guard{guard}
	for i := range 5 {
		r := commit(t, g, judgeCalls(t.Context(), t, agentTurn(t, g, fmt.Sprint(i), mail), noting, noting), "I note it.")
		afforded := i == 0 || i == 3
		for _, c := range r.Calls {
			run := callRun(c)
			if (run.Outcome == kernel.Flagged) != afforded || (c.Decision == kernel.Blocked) != afforded || !afforded && (run.Outcome != kernel.NotRun || run.Why != "over its budget") {
				t.Errorf("turn %d: %+v, %+v", i, run, c.ToolCall)
			}
		}
	}
	if m.times() != 4 {
		t.Errorf("asked %d times", m.times())
	}
}

// An answer that is refused asks for nothing: the questions about its calls are taken back, and
// the receipt does not say that the guard found nothing.
func TestCallsOfARefusedAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calling, _ := guardedCalls(nil)
		calling.Model = waiting{}
		answering, _ := guarded(says(model.Verdict{model.HarmRequest: 0.98}))
		answering.Name, answering.Roles = "a", []model.Role{model.RoleAnswer}
		g, _ := newGovernor(t)
		g.Guards = []*govern.Guard{calling, answering}
		a := agentTurn(t, g, "s", mail)
		began := time.Now()
		r := commit(t, g, judgeCalls(t.Context(), t, a, noting), govern.DefaultRefusal)
		if run := callRun(r); !r.Refused || len(r.Calls) > 0 || time.Since(began) > 0 || run.Outcome != kernel.NotRun || run.Why != "the answer was refused" {
			t.Errorf("refused %v with %d calls after %v: %+v", r.Refused, len(r.Calls), time.Since(began), run)
		}
	})
}

// waiting is a guard that answers when its caller leaves.
type waiting struct{}

func (waiting) Model() string { return "m" }
func (waiting) Reads() int    { return 1 << 16 }
func (waiting) Ask(ctx context.Context, _ string, _ model.GuardText) (model.Verdict, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A client that leaves ends the question, which then has no answer.
func TestAClientThatLeavesWhileCallsAreAskedAbout(t *testing.T) {
	for _, required := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			guard, _ := guardedCalls(nil)
			guard.Model, guard.Required = waiting{}, required
			g, _ := newGovernor(t)
			g.Guards = []*govern.Guard{guard}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			r := commit(t, g, judgeCalls(ctx, t, agentTurn(t, g, "s", mail), noting), "I note it.")
			if c := r.Calls[0]; callRun(c).Outcome != kernel.DetectorFailed || (c.Decision == kernel.Blocked) != required {
				t.Errorf("%+v, %+v", callRun(c), c.ToolCall)
			}
		})
	}
}

// Of several guards the strictest counts, and what one has not answered is not made up for.
func TestSeveralGuardsOfCalls(t *testing.T) {
	mild, _ := guardedCalls(says(injection(0.05)))
	strict, _ := guardedCalls(says(injection(0.95)))
	strict.Name = "strict"
	broken, _ := guardedCalls(fails(errors.New("down")))
	broken.Name, broken.Required = "broken", true
	for name, test := range map[string]struct {
		guards    []*govern.Guard
		invariant toolcall.Invariant
	}{
		"one finds":                {[]*govern.Guard{mild, strict}, toolcall.InjectedAction},
		"one must answer":          {[]*govern.Guard{mild, broken}, toolcall.OperatorRule},
		"a finding is named first": {[]*govern.Guard{broken, strict}, toolcall.InjectedAction},
	} {
		g, _ := newGovernor(t)
		g.Guards = test.guards
		r := commit(t, g, judgeCalls(t.Context(), t, agentTurn(t, g, "s", mail), noting), "I note it.")
		if c := r.Calls[0]; c.Invariant != string(test.invariant) || len(c.Coverage.Detectors) != 3 {
			t.Errorf("%s: %+v, %+v", name, c.ToolCall, c.Coverage.Detectors)
		}
	}
}
