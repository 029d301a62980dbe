package toolcall_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/toolcall"
)

func rules(t *testing.T, s toolcall.RuleSet) *toolcall.Interceptor {
	t.Helper()
	r, err := toolcall.NewRules(s)
	if err != nil {
		t.Fatal(err)
	}
	return &toolcall.Interceptor{Rules: r}
}

func intercept(t *testing.T, i *toolcall.Interceptor, c toolcall.Call) toolcall.Decision {
	t.Helper()
	d, err := i.Decide(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// condition is a set of one rule.
func condition(expression string) toolcall.RuleSet {
	return toolcall.RuleSet{Rules: []toolcall.Rule{{Name: "no", Condition: expression}}}
}

// The zero interceptor, and one of an empty set, decide as Decide does.
func TestNoRulesAddNothing(t *testing.T) {
	t.Parallel()
	empty := rules(t, toolcall.RuleSet{})
	for _, s := range toolcall.Scenarios() {
		want := decide(s.Call)
		for _, i := range []*toolcall.Interceptor{empty, new(toolcall.Interceptor)} {
			if d := intercept(t, i, s.Call); d.Allowed != want.Allowed || d.Invariant != want.Invariant || d.Reason != want.Reason || d.Rule != "" {
				t.Errorf("%s: %+v, want %+v", s.Name, d, want)
			}
		}
	}
}

func TestDenyBlocksByName(t *testing.T) {
	t.Parallel()
	for glob, c := range map[string]struct{ yes, no string }{
		"delete_*":    {"delete_file", "undelete_file"},
		"*":           {"", "a"}, // of which "a" is denied too, see below
		"*delete*":    {"fs/un.delete/all", "drop"},
		"DB_?":        {"db_x", "db_xy"},
		"db.[rw]ead":  {"DB.READ", "db.lead"},
		"fs/*":        {"fs/a/b", "fs"},
		"[^a]b":       {"/b", "ab"},
		`a\*b`:        {"A*B", "axb"},
		"ÜBER_*":      {"über_weisung", "uber_weisung"},
		"exact":       {"Exact", "exact "},
		"server__*__": {"server__x/y.z__", "server__x"},
	} {
		i := rules(t, toolcall.RuleSet{Deny: []string{glob}})
		if d := intercept(t, i, call(c.yes, "")); d.Allowed || d.Invariant != toolcall.OperatorRule || d.Rule != glob || d.Reason != toolcall.OperatorRule.Reason() {
			t.Errorf("%s: %q: %+v", glob, c.yes, d)
		}
		if d := intercept(t, i, call(c.no, "")); d.Allowed == (glob == "*") {
			t.Errorf("%s: %q: %+v", glob, c.no, d)
		}
	}
}

// A glob that is a prefix and a star matches exactly the names with the prefix, in any
// case.
func TestGlobsMatchPrefixes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		prefix := rapid.StringMatching(`[a-zA-Z./_-]{0,4}`).Draw(t, "prefix")
		name := rapid.StringMatching(`[a-zA-Z./_-]{0,8}`).Draw(t, "name")
		r, err := toolcall.NewRules(toolcall.RuleSet{Deny: []string{prefix + "*"}})
		if err != nil {
			t.Fatal(err)
		}
		d, err := (&toolcall.Interceptor{Rules: r}).Decide(context.Background(), call(name, ""))
		if want := strings.HasPrefix(strings.ToLower(name), strings.ToLower(prefix)); err != nil || (d.Rule != "") != want {
			t.Errorf("%q and %q: %+v %v", prefix, name, d, err)
		}
	})
}

func TestRulesBlock(t *testing.T) {
	t.Parallel()
	const yes, no = true, false
	for _, c := range []struct {
		expression, tool, arguments string
		blocked                     bool
	}{
		{`tool.startsWith("db_") && args.query.matches("(?i)^drop")`, "db_run", `{"query":"DROP the mic"}`, yes},
		{`tool.startsWith("db_") && args.query.matches("(?i)^drop")`, "db_run", `{"query":"select 1"}`, no},
		{`tool.startsWith("db_") && args.query.matches("(?i)^drop")`, "weather", `{}`, no}, // false && a failure is false
		{`args.amount > 1000`, "pay", `{"amount":1000}`, no},
		{`args.amount > 1000`, "pay", `{"amount":1000.5}`, yes},
		{`args.amount > 1000`, "pay", `{"amount":1e4}`, yes},
		{`args.amount > 1000`, "pay", `{"amount":99999999999999999999}`, yes},
		{`args.amount > 1000`, "pay", `{"amount":1e999}`, yes},
		{`args.amount > 1000.5`, "pay", `{"amount":1000}`, no},
		{`args.amount > 1000`, "pay", `{"amount":"1001"}`, yes}, // does not compare
		{`args.amount > 1000`, "pay", `{}`, yes},                // is not there
		{`args.amount > 1000`, "pay", ``, yes},
		{`has(args.amount) && args.amount > 1000`, "pay", `{}`, no},
		{`string(args.account).startsWith("12")`, "pay", `{"account":12345678}`, yes},
		{`string(args.account).startsWith("12")`, "pay", `{"account":12345678.0}`, yes},
		{`string(args.account).startsWith("12")`, "pay", `{"account":1.2345678e7}`, yes},
		{`args.account == 9007199254740993`, "pay", `{"account":9007199254740993}`, yes},
		{`args.account == 9007199254740993`, "pay", `{"account":9007199254740992}`, no},
		{`args.n % 2 == 1`, "a", `{"n":3.0}`, yes},
		{`args.to.matches("(?i)@evil\\.example$")`, "note", `{"to":"Bob@EVIL.example"}`, yes},
		{`args.list.exists(x, x.kind == "b")`, "a", `{"list":[{"kind":"a"},{"kind":"b"}]}`, yes},
		{`args.list.exists(x, x.kind == "b")`, "a", `{"list":[{"kind":"a"}]}`, no},
		{`args.to.exists(a, !a.matches("(?i)@example\\.com$"))`, "a", `{"to":["a@Example.com","b@example.com"]}`, no},
		{`args.to.exists(a, !a.matches("(?i)@example\\.com$"))`, "a", `{"to":["a@example.com","b@example.com.evil.example"]}`, yes},
		{`double(args.amount) * 1.2 > 1000.0`, "a", `{"amount":900}`, yes},
		{`double(args.amount) * 1.2 > 1000.0`, "a", `{"amount":800.5}`, no},
		{`args.amount * 1.2 > 1000.0`, "a", `{"amount":1}`, yes}, // an int times a double fails
		{`args.t.matches("(?i)secret_token")`, "note", `{"t":"` + strings.Repeat("a", 245_000) + `"}`, no},
		{`args.t.matches("(?i)secret_token")`, "note", `{"t":"` + strings.Repeat("a", 255_000) + `"}`, yes}, // costs too much
		{`"a.b" in args`, "a", `{"a.b":null}`, yes},
		{`args.x == null`, "a", `{"x":null}`, yes},
		{`args.size() > 2`, "a", `{"a":1,"b":true}`, no},
		{`session == "s" && key == "k" && dialect == "lex"`, "a", ``, yes},
		{`effect == "send"`, "a", ``, no},
		{`high_risk`, "a", ``, no},
		{`provenance != ""`, "a", ``, no},
	} {
		i := rules(t, condition(c.expression))
		asked := call(c.tool, c.arguments)
		asked.Session, asked.Key, asked.Dialect = "s", "k", "lex"
		d := intercept(t, i, asked)
		if d.Allowed == c.blocked || (d.Rule == "no") != c.blocked || (d.Invariant == toolcall.OperatorRule) != c.blocked {
			t.Errorf("%s on %s: %+v", c.expression, c.arguments, d)
		}
	}
}

// The first condition that applies is named, and globs come before conditions.
func TestTheFirstRuleIsNamed(t *testing.T) {
	t.Parallel()
	i := rules(t, toolcall.RuleSet{
		Deny: []string{"x*", "*y"},
		Rules: []toolcall.Rule{
			{Name: "a", Condition: `args.n > 1`}, {Name: "b", Condition: `has(args.n)`}, {Name: "c", Condition: `true`},
		},
	})
	for _, c := range []struct{ tool, arguments, rule string }{
		{"xy", `{"n":2}`, "x*"}, {"y", `{"n":2}`, "*y"}, {"z", `{"n":2}`, "a"}, {"z", `{"n":1}`, "b"}, {"z", `{"n":"1"}`, "a"},
	} {
		if d := intercept(t, i, call(c.tool, c.arguments)); d.Rule != c.rule {
			t.Errorf("%v: %+v", c, d)
		}
	}
}

// No rule relaxes an invariant; a call that a rule denies too names both.
func TestInvariantsComeBeforeRules(t *testing.T) {
	t.Parallel()
	permissive := rules(t, toolcall.RuleSet{BlockUnknown: true, Allow: []string{"*"}, Reads: []string{"*"}, Rules: []toolcall.Rule{{Name: "never", Condition: `false`}}})
	strict := rules(t, toolcall.RuleSet{BlockUnknown: true, Rules: []toolcall.Rule{{Name: "always", Condition: `true`}}})
	deny := rules(t, toolcall.RuleSet{Deny: []string{"*"}})
	for _, s := range toolcall.Scenarios() {
		if !s.Blocked {
			continue
		}
		want := decide(s.Call).Invariant
		unread := want == toolcall.MalformedArguments || want == toolcall.UnreadableCall
		if d := intercept(t, permissive, s.Call); d.Invariant != want || d.Rule != "" {
			t.Errorf("%s: %+v", s.Name, d)
		}
		if d := intercept(t, strict, s.Call); d.Invariant != want || d.Reason != want.Reason() || (d.Rule == "always") == unread {
			t.Errorf("%s: %+v", s.Name, d)
		}
		if d := intercept(t, deny, s.Call); d.Invariant != want || d.Rule != "*" {
			t.Errorf("%s: %+v", s.Name, d)
		}
	}
}

func TestUnknownTools(t *testing.T) {
	t.Parallel()
	defined := call("get_weather", `{}`)
	defined.Definition = new(toolcall.Definition)
	undefined := call("get_weather", `{}`)
	for name, c := range map[string]struct {
		set  toolcall.RuleSet
		call toolcall.Call
		want toolcall.Invariant
	}{
		"allowed as usual":      {toolcall.RuleSet{}, undefined, ""},
		"defined":               {toolcall.RuleSet{BlockUnknown: true}, defined, ""},
		"not defined":           {toolcall.RuleSet{BlockUnknown: true}, undefined, toolcall.UnknownTool},
		"named":                 {toolcall.RuleSet{BlockUnknown: true, Allow: []string{"pay", "Get_*"}}, undefined, ""},
		"defined and not named": {toolcall.RuleSet{BlockUnknown: true, Allow: []string{"pay"}}, defined, toolcall.UnknownTool},
		"named and denied":      {toolcall.RuleSet{BlockUnknown: true, Allow: []string{"get_*"}, Deny: []string{"*weather"}}, undefined, toolcall.OperatorRule},
		"denied and not named":  {toolcall.RuleSet{BlockUnknown: true, Allow: []string{"pay"}, Deny: []string{"*weather"}}, undefined, toolcall.OperatorRule},
	} {
		if d := intercept(t, rules(t, c.set), c.call); d.Invariant != c.want || d.Allowed != (c.want == "") || d.Reason != c.want.Reason() {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// A client may run the tool of a namespace by its bare name. So what an operator says
// against either name holds, and what is said in favour of the bare one does not.
func TestRulesKnowBareNames(t *testing.T) {
	t.Parallel()
	strict := &toolcall.Definition{Schema: []byte(`{"type":"object","required":["id"]}`)}
	for name, c := range map[string]struct {
		set  toolcall.RuleSet
		bare *toolcall.Definition
		want toolcall.Invariant
	}{
		"no rule":                    {toolcall.RuleSet{}, nil, ""},
		"denied by the bare name":    {toolcall.RuleSet{Deny: []string{"rm*"}}, nil, toolcall.OperatorRule},
		"denied by the whole name":   {toolcall.RuleSet{Deny: []string{"x.*"}}, nil, toolcall.OperatorRule},
		"a condition, bare name":     {condition(`tool == "rm_all"`), nil, toolcall.OperatorRule},
		"a condition, whole name":    {condition(`tool == "x.rm_all"`), nil, toolcall.OperatorRule},
		"allowed by the whole name":  {toolcall.RuleSet{BlockUnknown: true, Allow: []string{"x.rm*"}}, nil, ""},
		"allowed by the bare name":   {toolcall.RuleSet{BlockUnknown: true, Allow: []string{"rm*"}}, nil, toolcall.UnknownTool},
		"only the bare one is known": {toolcall.RuleSet{BlockUnknown: true}, new(toolcall.Definition), toolcall.UnknownTool},
		"the bare one's schema":      {toolcall.RuleSet{BlockInvalid: true}, strict, toolcall.InvalidArguments},
	} {
		asked := call("x.rm_all", `{}`)
		asked.Bare, asked.BareDefinition = "rm_all", c.bare
		if d := intercept(t, rules(t, c.set), asked); d.Invariant != c.want || d.Allowed != (c.want == "") {
			t.Errorf("%s: %+v", name, d)
		}
	}
	i := rules(t, toolcall.RuleSet{Reads: []string{"look"}, Sends: []string{"post"}, HighRisk: []string{"post"}})
	for bare, want := range map[string]kernel.ToolEffect{"look": kernel.ToolWrites, "post": kernel.ToolSends} {
		asked := call("x.create_"+bare, `{}`)
		asked.Bare = bare
		if d := intercept(t, i, asked); d.Effect != want || d.HighRisk != (bare == "post") {
			t.Errorf("%s: %+v", bare, d)
		}
	}
}

// The operator's word on an effect wins, the gravest word first, and conditions see it.
func TestTheOperatorSaysWhatToolsDo(t *testing.T) {
	t.Parallel()
	set := toolcall.RuleSet{Reads: []string{"*_a", "b"}, Writes: []string{"b", "c"}, Sends: []string{"c"}, HighRisk: []string{"c", "d", "*_a"}}
	i := rules(t, set)
	for tool, want := range map[string]struct {
		effect kernel.ToolEffect
		severe bool
	}{
		"x_a": {kernel.ToolReads, true}, "b": {kernel.ToolWrites, false}, "c": {kernel.ToolSends, true}, "d": {kernel.ToolOther, true},
	} {
		if d := intercept(t, i, call(tool, "")); !d.Allowed || d.Effect != want.effect || d.HighRisk != want.severe {
			t.Errorf("%s: %+v", tool, d)
		}
	}
	set.Rules = condition(`effect == "send" && high_risk && !args.to.endsWith("@example.com")`).Rules
	i = rules(t, set)
	for to, allowed := range map[string]bool{"a@example.com": true, "a@example.org": false} {
		if d := intercept(t, i, with("c", "to", to)); d.Allowed != allowed {
			t.Errorf("%s: %+v", to, d)
		}
	}
}

func TestRuleSetsAreChecked(t *testing.T) {
	t.Parallel()
	for want, set := range map[string]toolcall.RuleSet{
		`deny: "["`:                         {Deny: []string{"ok", "["}},
		`deny: "a\\"`:                       {Deny: []string{`a\`}},
		`sends: ""`:                         {Sends: []string{""}},
		`high_risk: "[a"`:                   {HighRisk: []string{"[a"}},
		`the glob "a[0-9z-a]" has a range`:  {Deny: []string{"a[0-9z-a]"}},
		`the glob "[^b-a]*" has a range`:    {Reads: []string{"[^b-a]*"}},
		`range that ends with a slash`:      {Sends: []string{"files[.-/]*"}},
		`the glob "[A-_]" has a range`:      {Writes: []string{"[A-_]"}}, // upper and lower case are the same
		"allow does nothing":                {Allow: []string{"a"}},
		"rule no: it has the type string":   condition(`tool`),
		"rule no: it has the type dyn":      condition(`args.flag`),
		"rule no: ERROR":                    condition(`tool ==`),
		"undeclared reference to 'request'": condition(`request.path == "/"`),
		"invalid matches argument":          condition(`tool.matches("(")`),
		"no matching overload":              condition(`tool > 3`),
		`"1a" is not the name`:              {Rules: []toolcall.Rule{{Name: "1a", Condition: "true"}}},
		`"" is not the name`:                {Rules: []toolcall.Rule{{Condition: "true"}}},
		"rule a is given twice":             {Rules: []toolcall.Rule{{Name: "a", Condition: "true"}, {Name: "a", Condition: "true"}}},
	} {
		if _, err := toolcall.NewRules(set); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	classes := []string{"[a-a]", `[\]-a]`, `[\--a]`, "[!-~]", "[^^]", "[a^-z]", `\[z-a]`, "[a[]z-a", "é[à-ÿ]", "[0-9A-F]*[a-zA-Z]", "a[/.]b", "[/-/]"}
	if _, err := toolcall.NewRules(toolcall.RuleSet{Deny: classes}); err != nil {
		t.Error(err)
	}
}

// A condition that asks for too much work fails, and so blocks, in bounded time.
func TestRulesAreBounded(t *testing.T) {
	t.Parallel()
	numbers := `{"l":[` + strings.TrimSuffix(strings.Repeat("1,", 20_000), ",") + `],"t":"` + strings.Repeat("a", 60_000/largeShare) + `"}`
	for _, expression := range []string{
		`args.l.exists(a, args.l.exists(b, a != b))`,
		`args.l.all(a, args.l.map(b, args.l.map(c, [a, b, c])).size() > 0)`,
		`args.l.exists(a, args.t.matches("^(a|b)*c$"))`,
		`args.l.exists(a, (args.t + args.t).contains(args.t + "b"))`,
	} {
		i := rules(t, condition(expression))
		started := time.Now()
		d := intercept(t, i, call("a", numbers))
		if took := time.Since(started); d.Rule != "no" || took > 10*largeShare*time.Second {
			t.Errorf("%s: %+v after %v", expression, d, took)
		} else {
			t.Logf("%v: %.60s", took, expression)
		}
	}
}

// A caller who leaves gets no decision.
func TestRulesEndWithTheCaller(t *testing.T) {
	t.Parallel()
	i := rules(t, condition(`args.l.exists(a, args.l.exists(b, a != b))`))
	ctx := &leaves{Context: context.Background(), after: 1}
	if _, err := i.Decide(ctx, call("a", `{"l":[1,1,1]}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// leaves is a context that ends once it was asked a number of times.
type leaves struct {
	context.Context
	after int
}

func (l *leaves) Err() error {
	if l.after--; l.after < 0 {
		return context.Canceled
	}
	return nil
}

// Rules never panic, whatever the arguments are, and a call that they let pass is one
// that Decide lets pass.
func FuzzRules(f *testing.F) {
	r, err := toolcall.NewRules(toolcall.RuleSet{
		Deny:  []string{"x[a-c]*"},
		Rules: []toolcall.Rule{{Name: "a", Condition: `has(args.a) && args.a > 3`}, {Name: "b", Condition: `args.exists(k, args[k] == "b")`}},
	})
	if err != nil {
		f.Fatal(err)
	}
	i := &toolcall.Interceptor{Rules: r}
	f.Add("xa", `{"a":1e400,"b":[null,-0,"b"]}`)
	f.Add("x/b", `{"a":{"a":"\ud800"}}`)
	f.Fuzz(func(t *testing.T, name, arguments string) {
		c := call(name, arguments)
		d := intercept(t, i, c)
		if want := decide(c); d.Allowed && !want.Allowed || !want.Allowed && d.Invariant != want.Invariant || d.Allowed != (d.Invariant == "") || d.Rule != "" && d.Allowed {
			t.Errorf("%+v, without rules %+v", d, want)
		}
	})
}

// A call of which only a result names the receiver is flagged, or blocked if the operator
// wants that. One that reads is left alone.
func TestUntrustedArgumentsCanBeBlocked(t *testing.T) {
	t.Parallel()
	c := toolcall.Call{
		Name: "book_hotel", Arguments: []byte(`{"hotel":"Hotel Alpenblick Zermatt","url":"https://alpenblick.example/rooms"}`),
		Request: "Book me a hotel in Zermatt.", Context: []toolcall.Observation{{Text: "Hotel Alpenblick Zermatt, https://alpenblick.example/rooms, 4 stars."}},
	}
	if d := intercept(t, new(toolcall.Interceptor), c); !d.Allowed || d.Flagged != toolcall.UntrustedDestination || d.Provenance != kernel.FromUntrusted {
		t.Errorf("without the option: %+v", d)
	}
	if d := intercept(t, rules(t, toolcall.RuleSet{BlockUntrusted: true}), c); d.Allowed || d.Invariant != toolcall.UntrustedDestination || d.Flagged != "" {
		t.Errorf("with the option: %+v", d)
	}
	if d := intercept(t, rules(t, toolcall.RuleSet{BlockUntrusted: true, Reads: []string{"book_*"}}), c); !d.Allowed {
		t.Errorf("a tool that reads: %+v", d)
	}
}
