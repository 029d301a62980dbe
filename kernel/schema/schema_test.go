package schema_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-lex/lex/kernel/schema"
)

const weatherSchema = `{"type":"object","properties":{"city":{"type":"string","minLength":2},"days":{"type":"integer","minimum":1,"maximum":14},"units":{"enum":["C","F"]}},"required":["city"],"additionalProperties":false}`

// draft07 is a schema with a list, a condition and a pattern, of the draft 7.
const draft07 = `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"to":{"type":"array","items":{"$ref":"#/definitions/mailbox"},"uniqueItems":true},"urgent":{"type":"boolean"},"why":{"type":"string","format":"date"}},
	"if":{"properties":{"urgent":{"const":true}},"required":["urgent"]},"then":{"required":["why"]},"definitions":{"mailbox":{"type":"string","pattern":"^[^@]+@[^@]+$"}}}`

// tree is a schema that refers to itself.
const tree = `{"$id":"https://example.com/tree","$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["name"]}}}`

// trip is a schema as Google's SDKs write it, with members named like keywords.
const trip = `{"type":"OBJECT","required":["to"],"propertyOrdering":["to","seats"],"properties":{"to":{"type":"STRING"},"seats":{"type":"INTEGER","format":"int32"},"via":{"type":"ARRAY","items":{"type":"STRING"},"maxItems":"2"},"note":{"type":"STRING","nullable":true},"class":{"type":"STRING","format":"enum","enum":["FIRST","SECOND"],"nullable":true},"extra":{"type":"OBJECT","properties":{"nullable":{"type":"BOOLEAN"},"type":{"type":"STRING"}}}}}`

// object reads arguments; none are an empty object.
func object(t *testing.T, arguments string) map[string]any {
	t.Helper()
	out := make(map[string]any)
	if arguments == "" {
		return out
	}
	if err := schema.Read([]byte(arguments), &out); err != nil {
		t.Error(err)
	}
	return out
}

func TestFit(t *testing.T) {
	t.Parallel()
	cache := new(schema.Cache)
	for _, c := range []struct {
		schema, arguments string
		fits              bool
	}{
		{weatherSchema, `{"city":"Paris"}`, true},
		{weatherSchema, `{"city":"Paris","days":14,"units":"F"}`, true},
		{weatherSchema, `{"city":"Paris","days":3.0}`, true},
		{weatherSchema, `{"city":"Paris","days":null,"units":null}`, true}, // left out, as models write it
		{weatherSchema, `{"city":null}`, false},
		{`{"properties":{"a":{"type":["string","null"]}},"required":["a"]}`, `{"a":null}`, true},
		{weatherSchema, `{"city":"P"}`, false},
		{weatherSchema, `{"city":7}`, false},
		{weatherSchema, `{"city":"Paris","days":3.5}`, false},
		{weatherSchema, `{"city":"Paris","days":15}`, false},
		{weatherSchema, `{"city":"Paris","days":1e400}`, false},
		{weatherSchema, `{"city":"Paris","units":"K"}`, false},
		{weatherSchema, `{"city":"Paris","admin":true}`, false},
		{weatherSchema, `{}`, false},
		{weatherSchema, ``, false},
		{draft07, `{"to":["a@b.example"]}`, true},
		{draft07, `{"to":["a@b.example","a@b.example"]}`, false},
		{draft07, `{"to":["nobody"]}`, false},
		{draft07, `{"urgent":true}`, false},
		{draft07, `{"urgent":true,"why":"no date"}`, true}, // formats are no assertions
		{tree, `{"name":"a","children":[{"name":"b","children":[]},{"name":"c"}]}`, true},
		{tree, `{"name":"a","children":[{"name":"b","children":[{}]}]}`, false},
		{`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"p":{"type":"array","prefixItems":[{"type":"number"},{"type":"string"}],"items":false}}}`, `{"p":[1,"a"]}`, true},
		{`{"type":"object","properties":{"p":{"type":"array","prefixItems":[{"type":"number"},{"type":"string"}],"items":false}}}`, `{"p":[1,"a",2]}`, false},
		{`{"allOf":[{"properties":{"a":{"type":"string"}}}],"unevaluatedProperties":false}`, `{"a":"x","b":1}`, false},
		{`{"anyOf":[{"required":["a"]},{"required":["b"]}],"patternProperties":{"^n_":{"type":"number"}}}`, `{"b":1,"n_x":2}`, true},
		{`{"anyOf":[{"required":["a"]},{"required":["b"]}],"patternProperties":{"^n_":{"type":"number"}}}`, `{"b":1,"n_x":"2"}`, false},
		{`{"dependentSchemas":{"a":{"required":["b"]}},"dependentRequired":{"c":["d"]},"propertyNames":{"maxLength":1}}`, `{"a":1,"b":1}`, true},
		{`{"dependentSchemas":{"a":{"required":["b"]}},"dependentRequired":{"c":["d"]},"propertyNames":{"maxLength":1}}`, `{"c":1}`, false},
		{`{"$id":"weather","$ref":"#/$defs/a","$defs":{"a":{"required":["a"]}}}`, `{}`, false},
		{`{"$schema":"http://json-schema.org/draft-07/schema","$id":"#weather","required":["a"]}`, `{}`, false},
		{trip, `{"to":"Oslo","seats":2,"via":["Hamar"],"note":null,"class":null}`, true},
		{trip, `{"to":"Oslo","note":"by the window","class":"SECOND","extra":{"nullable":true,"type":"TRAIN"}}`, true},
		{trip, `{"to":7}`, false},
		{trip, `{"to":null}`, false},
		{trip, `{"to":"Oslo","seats":1.5}`, false},
		{trip, `{"to":"Oslo","via":["a","b","c"]}`, false},
		{trip, `{"to":"Oslo","class":"THIRD"}`, false},
		{trip, `{"to":"Oslo","extra":{"nullable":"yes"}}`, false},
		{`{"type":"OBJECT","nullable":true,"properties":{"a":{"type":"TYPE_UNSPECIFIED"}}}`, `{"a":{}}`, true},
		{`{"properties":{"a":{"type":"TYPE_UNSPECIFIED","enum":["x"]}}}`, `{"a":"y"}`, false},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":{"properties":{"b":{"type":"STRING","nullable":true}}}}}`, `{"a":1,"b":2}`, false},
		{`{"properties":{"a":{"type":"string","nullable":true}},"required":["a"]}`, `{"a":null}`, true},
		{`{"properties":{"a":{"type":"string","nullable":true}},"required":["a"]}`, `{"a":1}`, false},
		{`{"properties":{"a":{"$ref":"#/definitions/b","nullable":true}},"definitions":{"b":{"type":"string"}},"required":["a"]}`, `{"a":null}`, true},
		{`{}`, `{"a":1}`, true},
		{`true`, ``, true},
		{`false`, ``, false},
	} {
		if fits, unread := cache.Fit([]byte(c.schema), object(t, c.arguments)); fits != c.fits || unread {
			t.Errorf("%s with %s: %v, unread %v", c.arguments, c.schema, fits, unread)
		}
	}
}

// Nothing is checked against a schema that cannot be read, and the caller learns that.
func TestSchemasThatAreNotRead(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for n := range 1000 {
		fmt.Fprintf(&many, `,"(a{1,9}){1,9}%d":{}`, n)
	}
	cache := new(schema.Cache)
	for name, text := range map[string]string{
		"no JSON":            `{"type"`,
		"no schema":          `7`,
		"two schemas":        `{} {}`,
		"duplicates":         `{"type":"object","type":"array"}`,
		"an unknown type":    `{"type":"RECORD"}`,
		"numbers as strings": `{"properties":{"a":{"type":"INTEGER","enum":["1","2"]}}}`,
		"a limit in words":   `{"properties":{"a":{"minLength":"three"}}}`,
		"a wrong keyword":    `{"type":"object","required":"a"}`,
		"a file":             `{"$ref":"file:///etc/passwd"}`,
		"a relative file":    `{"$ref":"schema_test.go"}`,
		"an address":         `{"$ref":"https://example.com/schema.json"}`,
		"below its own id":   `{"$id":"https://example.com/a/","$ref":"b.json"}`,
		"an unknown draft":   `{"$schema":"https://example.com/draft"}`,
		"the draft itself":   `{"$ref":"http://json-schema.org/draft-07/schema#"}`,
		"nothing there":      `{"$ref":"#/$defs/a"}`,
		"itself":             `{"$ref":"#"}`,
		"a circle":           `{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"$ref":"#/$defs/a"}}}`,
		"a dynamic one":      `{"$dynamicRef":"#a","$defs":{"a":{"$dynamicAnchor":"a"}}}`,
		"a lookahead":        `{"properties":{"a":{"pattern":"^(?!x)"}}}`,
		"a large pattern":    `{"properties":{"a":{"pattern":"(a{1,30}){1,30}"}}}`,
		"deep":               strings.Repeat(`{"not":`, 70) + "{}" + strings.Repeat("}", 70),
		"many values":        `{"enum":[` + strings.Repeat("1,", 9000) + `1]}`,
		"many patterns":      `{"patternProperties":{"(a{1,9}){1,9}":{}` + many.String() + `}}`,
		"many parts":         `{"allOf":[` + strings.Repeat("{},", 2000) + `{}]}`,
		"long":               `{"description":"` + strings.Repeat("a", 65<<10) + `"}`,
		"ids that collide":   `{"$id":"a","$defs":{"x":{"$id":"a"}}}`,
	} {
		if fits, unread := cache.Fit([]byte(text), object(t, `{"a":1}`)); !fits || !unread {
			t.Errorf("%s: %v, unread %v", name, fits, unread)
		}
	}
}

// Small schemas that ask for much work are not read, and those that are read take bounded
// time.
func TestSchemasAreBounded(t *testing.T) {
	t.Parallel()
	var doubling strings.Builder
	for n := range 30 {
		fmt.Fprintf(&doubling, `"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, n, n+1, n+1)
	}
	nested := strings.Repeat("[", 28) + "1" + strings.Repeat("]", 28)
	large := `{"t":"` + strings.Repeat("a", 200<<10) + `"}`
	many := `{"l":[` + strings.TrimSuffix(strings.Repeat("1,", 20_000), ",") + `]}`
	for name, c := range map[string]struct {
		schema, arguments string
		read              bool
	}{
		"doubling":          {`{"$ref":"#/$defs/a0","$defs":{` + doubling.String() + `"a30":{"type":"number"}}}`, `{}`, false},
		"doubling in depth": {`{"not":{"properties":{"x":{"$ref":"#/$defs/x"}}},"$defs":{"x":{"items":{"$ref":"#/$defs/x"},"contains":{"$ref":"#/$defs/x"},"type":"array"}}}`, `{"x":` + nested + `}`, false},
		"the same, flat":    {`{"not":{"properties":{"x":{"$ref":"#/$defs/x"}}},"$defs":{"x":{"items":{"$ref":"#/$defs/x"},"contains":{"$ref":"#/$defs/x"},"type":"array"}}}`, `{"x":[[1]]}`, true},
		"a slow pattern":    {`{"properties":{"t":{"pattern":"(a{1,25}){1,15}b"}}}`, large, false},
		"a usual pattern":   {`{"properties":{"t":{"pattern":"^[ab]+$"}}}`, large, true},
		"many items":        {`{"properties":{"l":{"items":{"type":"integer"},"minItems":1}}}`, many, true},
		"many unlike items": {`{"properties":{"l":{"uniqueItems":true,"items":{"enum":[` + strings.Repeat("2,", 1000) + `1]}}}}`, many, false},
	} {
		arguments := object(t, c.arguments)
		started := time.Now()
		_, unread := new(schema.Cache).Fit([]byte(c.schema), arguments)
		if took := time.Since(started); unread == c.read || took > 5*time.Second {
			t.Errorf("%s: unread %v after %v", name, unread, took)
		}
	}
}

// A cache checks many schemas at once, more than it keeps.
func TestSchemasAreKeptApart(t *testing.T) {
	t.Parallel()
	cache := new(schema.Cache)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for n := range 300 {
				text := fmt.Appendf(nil, `{"properties":{"n":{"const":%d}}}`, n)
				for _, said := range []int{n, n + 1} {
					if fits, _ := cache.Fit(text, object(t, fmt.Sprintf(`{"n":%d}`, said))); fits != (said == n) {
						t.Errorf("%d of %d: %v", said, n, fits)
					}
				}
			}
		})
	}
	all.Wait()
}
