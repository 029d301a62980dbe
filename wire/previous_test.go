package wire_test

import (
	"bytes"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/wire"
)

func TestWithPrevious(t *testing.T) {
	const path = "previous_response_id"
	for _, c := range []struct{ path, body, id, want string }{
		{path, `{"previous_response_id":"a","input":"x"}`, "b", `{"previous_response_id":"b","input":"x"}`},
		{path, `{ "input" : "x" , "previous_response_id" :  "a" }`, "b", `{ "input" : "x" , "previous_response_id" :  "b" }`},
		{path, `{"previous_response_id":"a","input":"x"}`, "", `{"input":"x"}`},
		{path, "{\n  \"previous_response_id\" : \"a\" ,\n  \"n\": 1.50}", "", "{\n  \n  \"n\": 1.50}"},
		{path, `{"input":"x" , "previous_response_id":"a" }`, "", `{"input":"x"  }`},
		{path, `{"a":1,"previous_response_id":"a","b":2}`, "", `{"a":1,"b":2}`},
		{path, `{"previous_response_id":"a"}`, "", `{}`},
		{path, `{"\u0070revious_response_id":"a","b":"\"previous_response_id\":\"a\""}`, "", `{"b":"\"previous_response_id\":\"a\""}`},
		{path, `{"input":{"previous_response_id":"inner"},"previous_response_id":"a"}`, "b", `{"input":{"previous_response_id":"inner"},"previous_response_id":"b"}`},
		{path, `{"input":"x"}`, "b", `{"input":"x"}`},
		{path, `{"input":"x"}`, "", `{"input":"x"}`},
		{path, `{"previous_response_id":"a"}`, "b\"\\</script>", `{"previous_response_id":"b\"\\\u003c/script\u003e"}`},
		{"thread.previous_message_id", `{"thread":{"type":"continue", "previous_message_id":"a"},"b":2}`, "c", `{"thread":{"type":"continue", "previous_message_id":"c"},"b":2}`},
		{"thread.previous_message_id", `{"thread":{"type":"continue", "previous_message_id":"a"},"b":2}`, "", `{"thread":{"type":"continue"},"b":2}`},
	} {
		body := []byte(c.body)
		if got := string(wire.WithPrevious(body, c.path, c.id)); got != c.want {
			t.Errorf("%s to %q:\n got %s\nwant %s", c.body, c.id, got, c.want)
		}
		if string(body) != c.body {
			t.Errorf("%s was changed itself", c.body)
		}
	}
}

// FuzzWithPrevious checks that nothing but the member changes, whatever the body.
func FuzzWithPrevious(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"previous_response_id":"x"}],"previous_response_id":"a","b":"\\"}`), "b")
	f.Add([]byte(`{ "previous_response_id" : "a" }`), "")
	f.Fuzz(func(t *testing.T, body []byte, id string) {
		const path = "previous_response_id"
		if wire.CheckJSON(body) != nil || !gjson.ParseBytes(body).IsObject() {
			return
		}
		before := gjson.ParseBytes(body)
		got := wire.WithPrevious(body, path, id)
		if err := wire.CheckJSON(got); err != nil {
			t.Fatalf("%s became %s: %v", body, got, err)
		}
		if !before.Get(path).Exists() {
			if !bytes.Equal(got, body) {
				t.Fatalf("%s became %s", body, got)
			}
			return
		}
		after := gjson.ParseBytes(got)
		if id == "" && after.Get(path).Exists() {
			t.Fatalf("%s still has it: %s", body, got)
		}
		if want := string(bytes.ToValidUTF8([]byte(id), []byte("\uFFFD"))); id != "" && len(after.Get(path).Str) == 0 && want != "" {
			t.Fatalf("%s does not have it: %s", body, got)
		}
		others := func(r gjson.Result) (raw []string) {
			r.ForEach(func(key, value gjson.Result) bool {
				if key.Str != path {
					raw = append(raw, key.Raw, value.Raw)
				}
				return true
			})
			return raw
		}
		was, is := others(before), others(after)
		if len(was) != len(is) {
			t.Fatalf("%s became %s", body, got)
		}
		for i := range was {
			if was[i] != is[i] {
				t.Fatalf("%s became %s", was[i], is[i])
			}
		}
	})
}
