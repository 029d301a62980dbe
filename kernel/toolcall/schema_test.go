package toolcall_test

import (
	"testing"
	"time"

	"github.com/caddy-lex/lex/kernel/toolcall"
)

// defined is a call of a tool with a schema.
func defined(schema, arguments string) toolcall.Call {
	c := call("tool", arguments)
	c.Definition = &toolcall.Definition{Schema: []byte(schema)}
	return c
}

const weatherSchema = `{"type":"object","properties":{"city":{"type":"string","minLength":2},"days":{"type":"integer","minimum":1,"maximum":14},"units":{"enum":["C","F"]}},"required":["city"],"additionalProperties":false}`

// draft07 is a schema with a list, a condition and a pattern, of the draft 7.
const draft07 = `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"to":{"type":"array","items":{"$ref":"#/definitions/mailbox"},"uniqueItems":true},"urgent":{"type":"boolean"},"why":{"type":"string","format":"date"}},
	"if":{"properties":{"urgent":{"const":true}},"required":["urgent"]},"then":{"required":["why"]},"definitions":{"mailbox":{"type":"string","pattern":"^[^@]+@[^@]+$"}}}`

// tree is a schema that refers to itself.
const tree = `{"$id":"https://example.com/tree","$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["name"]}}}`

// trip is a schema as Google's SDKs write it, with members named like keywords.
const trip = `{"type":"OBJECT","required":["to"],"propertyOrdering":["to","seats"],"properties":{"to":{"type":"STRING"},"seats":{"type":"INTEGER","format":"int32"},"via":{"type":"ARRAY","items":{"type":"STRING"},"maxItems":"2"},"note":{"type":"STRING","nullable":true},"class":{"type":"STRING","format":"enum","enum":["FIRST","SECOND"],"nullable":true},"extra":{"type":"OBJECT","properties":{"nullable":{"type":"BOOLEAN"},"type":{"type":"STRING"}}}}}`

// What arguments do not fit is flagged or blocked, as the operator says.
func TestSchemasDecide(t *testing.T) {
	t.Parallel()
	flags, blocks := new(toolcall.Interceptor), rules(t, toolcall.RuleSet{BlockInvalid: true})
	for _, c := range []struct {
		schema, arguments string
		fits, unread      bool
	}{
		{weatherSchema, `{"city":"Paris","days":14}`, true, false},
		{weatherSchema, `{"city":"Paris","days":15}`, false, false},
		{weatherSchema, ``, false, false},
		{`{}`, `{"a":1}`, true, false},
		{`{"type"`, `{"a":1}`, true, true},
		{`{"$ref":"https://example.com/schema.json"}`, `{"a":1}`, true, true},
	} {
		d := intercept(t, blocks, defined(c.schema, c.arguments))
		if d.Allowed != c.fits || (d.Invariant == toolcall.InvalidArguments) == c.fits || d.SchemaUnread != c.unread || d.Reason != d.Invariant.Reason() {
			t.Errorf("%s with %s: %+v", c.arguments, c.schema, d)
		}
		d = intercept(t, flags, defined(c.schema, c.arguments))
		if !d.Allowed || (d.Flagged == toolcall.InvalidArguments) == c.fits || d.SchemaUnread != c.unread {
			t.Errorf("%s with %s, flagged: %+v", c.arguments, c.schema, d)
		}
	}
	free := defined(`{"type":"object","required":["a"]}`, `{}`)
	free.Free = true
	if d := intercept(t, flags, free); !d.Allowed || d.Flagged != "" || d.SchemaUnread {
		t.Errorf("any text: %+v", d)
	}
}

// What blocks a call before its arguments are compared is named.
func TestSchemasComeLast(t *testing.T) {
	t.Parallel()
	strict := rules(t, toolcall.RuleSet{BlockUnknown: true, Allow: []string{"known"}, Deny: []string{"no"}, BlockInvalid: true})
	for tool, want := range map[string]toolcall.Invariant{"no": toolcall.OperatorRule, "other": toolcall.UnknownTool, "known": toolcall.InvalidArguments} {
		c := defined(`false`, `{}`)
		c.Name = tool
		if d := intercept(t, strict, c); d.Invariant != want {
			t.Errorf("%s: %+v", tool, d)
		}
	}
	if d := intercept(t, strict, defined(`false`, `{"command":"rm -rf /"}`)); d.Invariant == toolcall.InvalidArguments {
		t.Errorf("%+v", d)
	}
}

// No schema breaks the interceptor or takes long, and none lets a call pass that Decide
// blocks.
func FuzzSchema(f *testing.F) {
	for _, s := range []string{weatherSchema, draft07, tree, trip, `true`, `{"$id":"#a","items":[{}],"$anchor":"b"}`, `{"$schema":"http://json-schema.org/draft-04/schema#","id":"x","dependencies":{"a":["b"]}}`} {
		f.Add(s, `{"a":[1,2.5,"x"],"city":"P"}`)
	}
	i := new(toolcall.Interceptor)
	f.Fuzz(func(t *testing.T, schema, arguments string) {
		started := time.Now()
		d := intercept(t, i, defined(schema, arguments))
		if want := decide(call("tool", arguments)); d.Allowed && !want.Allowed || !want.Allowed && d.Invariant != want.Invariant {
			t.Errorf("%+v, without a schema %+v", d, want)
		}
		if took := time.Since(started); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}
