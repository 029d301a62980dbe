package commands_test

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store/storetest"
)

// A sessionCall is a call of a client. $1 in it is the id of the first answer of its client,
// and @ the client.
type sessionCall struct {
	header string // x-lex-session
	path   string // /v1/responses if it is ""
	body   string
}

// The ways in which a client can name a session and go on in it, mixed in each way that
// changes who names it: a header, a conversation, an answer, resent messages, or nobody.
func sessionCalls() map[string][]sessionCall {
	const first = `"input":"What is the capital of France?"`
	after := func(answer int, prompt string) string {
		return fmt.Sprintf(`"previous_response_id":"$%d","input":%q`, answer, prompt)
	}
	const govern, tool = `"session_id":"A@","prompt":"And of Greece?"`, `"session_id":"A@","tool":{"name":"run_command","arguments":{"command":"rm -rf /"}}`
	const chat = `"messages":[{"role":"user","content":"What is the capital of France?"}`
	const chatOn = chat + `,{"role":"assistant","content":"Paris."},{"role":"user","content":"And of Italy?"}]`
	return map[string][]sessionCall{
		"a header":                         {{"A@", "", first}, {"A@", "", after(1, "And of Italy?")}, {"A@", "", after(1, "And of Spain?")}},
		"a header, left out in between":    {{"A@", "", first}, {"", "", after(1, "And of Italy?")}, {"A@", "", after(2, "And of Spain?")}},
		"a header, and two ways on":        {{"A@", "", first}, {"", "", after(1, "And of Italy?")}, {"", "", after(1, "And of Spain?")}},
		"a header, the same said twice":    {{"A@", "", first}, {"", "", after(1, "And of Italy?")}, {"", "", after(1, "And of Italy?")}, {"A@", "", first}},
		"a header, and back":               {{"A@", "", first}, {"A@", "", after(1, "And of Italy?")}, {"", "", after(1, "And of Spain?")}, {"", "", after(2, "And of Malta?")}, {"A@", "", after(4, "Thank you.")}},
		"a header that comes later":        {{"", "", first}, {"A@", "", after(1, "And of Italy?")}, {"", "", after(2, "And of Spain?")}, {"", "", after(1, "And of Malta?")}, {"", "", after(1, "And of Chad?")}, {"A@", "", after(4, "Thank you.")}},
		"two headers":                      {{"A@", "", first}, {"B@", "", after(1, "And of Italy?")}, {"", "", after(1, "And of Spain?")}, {"", "", after(2, "And of Malta?")}, {"B@", "", after(1, "Thank you.")}},
		"a conversation":                   {{"", "", `"conversation":"X@",` + first}, {"", "", after(1, "And of Italy?")}, {"", "", `"conversation":"X@","input":"And of Spain?"`}, {"", "", after(1, "And of Malta?")}},
		"a conversation's name in headers": {{"", "", `"conversation":"X@",` + first}, {"conversation:X@", "", first}, {"", "", after(1, "And of Italy?")}, {"", "", after(2, "And of Spain?")}},
		"a session in the metadata":        {{"", "", `"metadata":{"session_id":"X@"},` + first}, {"", "", after(1, "And of Italy?")}, {"", "", `"metadata":{"session_id":"X@"},"input":"And of Spain?"`}},
		"the same in a chat":               {{"", "/v1/chat/completions", `"metadata":{"session_id":"X@"},` + chat + "]"}, {"", "", after(1, "And of Italy?")}, {"", "/v1/chat/completions", `"metadata":{"session_id":"X@"},` + chatOn}, {"", "", `"metadata":{"session_id":"X@"},"input":"And of Spain?"`}},
		"answers alone":                    {{"", "", first}, {"", "", after(1, "And of Italy?")}, {"", "", after(1, "And of Spain?")}, {"", "", after(1, "And of Spain?")}, {"", "", after(2, "Thank you.")}},
		"an answer's name in headers": {
			{"", "", first},
			{"answer:$1", "", first},
			{"", "", after(1, "And of Italy?")},
			{"", "/lex/govern", `"session_id":"answer:$1","prompt":"And of Greece?"`},
			{"answer:$1", "/v1/unheard", `"words":"What is the capital of Spain?"`},
			{"", "", after(1, "And of Spain?")},
			{"", "", after(1, "And of Malta?")},
		},
		"calls of tools":       {{"A@", "", `"input":"What is the weather?"`}, {"", "", after(1, "And what is the weather in Rome?")}, {"A@", "", after(2, "And in Madrid?")}, {"", "", after(1, "What is the weather in Malta?")}},
		"refusals":             {{"A@", "", first}, {"", "", after(1, attack)}, {"A@", "", after(2, attack)}, {"", "", after(2, "And of Spain?")}, {"A@", "", first}},
		"other endpoints":      {{"A@", "", first}, {"", "/lex/govern", govern}, {"", "", after(1, "And of Italy?")}, {"", "/lex/tools/check", tool}, {"", "", after(3, "And of Spain?")}, {"A@", "/v1/chat/completions", chatOn}, {"", "", after(1, "And of Malta?")}},
		"resent messages":      {{"", "/v1/chat/completions", chat + "]"}, {"", "/v1/chat/completions", chatOn}, {"A@", "/v1/chat/completions", chatOn}, {"", "/v1/chat/completions", chatOn}, {"", "/v1/chat/completions", strings.Replace(chatOn, "Italy", "Spain", 1)}},
		"resent to an answer":  {{"A@", "", first}, {"", "", `"input":[{"role":"user","content":"What is the capital of France?"},{"role":"assistant","content":"Paris."},{"role":"user","content":"And of Italy?"}]`}, {"", "", after(2, "And of Spain?")}, {"", "", after(1, "And of Malta?")}},
		"an answer of nobody":  {{"", "", `"previous_response_id":"resp_0",` + first}, {"A@", "", `"previous_response_id":"resp_0",` + first}, {"", "", after(1, "And of Italy?")}, {"", "", after(2, "And of Spain?")}, {"A@", "", after(3, "And of Malta?")}},
		"endpoints of no name": {{"A@", "/v1/unheard", `"words":"What is the capital of Spain?"`}, {"A@", "", first}, {"", "", after(2, "And of Italy?")}, {"A@", "/v1/unheard", `"words":"And of Greece?"`}},
	}
}

// answersByID is a model whose answers have ids of their own.
func answersByID() func(http.ResponseWriter, *http.Request) error {
	n := 0
	return func(w http.ResponseWriter, r *http.Request) error {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		n++
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/v1/chat/completions" {
			_, err = fmt.Fprintf(w, `{"id":"c%d","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Paris."},"finish_reason":"stop"}]}`, n)
			return err
		}
		item := `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"Paris."}]}`
		if strings.Contains(string(body), "weather") {
			item += `,{"id":"fc_1","type":"function_call","status":"completed","call_id":"c1","name":"get_weather","arguments":"{}"}` +
				`,{"id":"fc_2","type":"function_call","status":"completed","call_id":"c2","name":"bash","arguments":"{\"command\":\"rm -rf /\"}"}`
		}
		_, err = fmt.Fprintf(w, `{"id":"resp_%d","object":"response","created_at":1,"model":"m","status":"completed","output":[%s]}`, n, item)
		return err
	}
}

// say makes the calls of one client.
func say(t *testing.T, url, client string, calls []sessionCall) {
	t.Helper()
	var ids []string
	for _, c := range calls {
		own := func(text string) string {
			text = strings.ReplaceAll(text, "@", client)
			return regexp.MustCompile(`\$\d`).ReplaceAllStringFunc(text, func(n string) string { return ids[n[1]-'1'] })
		}
		path := c.path
		if path == "" {
			path = "/v1/responses"
		}
		body := `{` + own(c.body) + `}`
		if !strings.HasPrefix(path, "/lex/") {
			body = `{"model":"m",` + body[1:]
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if c.header != "" {
			r.Header.Set("X-Lex-Session", own(c.header))
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s: %d %v %s", client, body, resp.StatusCode, err, answer)
		}
		ids = append(ids, gjson.GetBytes(answer, "id").Str)
	}
}

// However clients name their sessions and go on in them, what the proxy writes verifies:
// asked of the proxy, in its store, in an export, and by somebody who has only the
// specification.
func TestEveryWayToNameASessionVerifies(t *testing.T) {
	for name, kept := range map[string]map[string]any{
		"bolt":  storeOf(filepath.Join(t.TempDir(), "lex.db")),
		"redis": storeOf(storetest.StartRedis(t)),
	} {
		t.Run(name, func(t *testing.T) {
			var export string
			ways := sessionCalls()
			t.Run("online", func(t *testing.T) {
				p := startProxyWith(t, kept, `{"baseline":"never"}`, answersByID())
				for way, calls := range ways {
					say(t, p.URL, way, calls)
					if out, _, err := lexCommand("", "verify", "--url", p.URL); err != nil {
						t.Fatalf("%s: %v\n%s", way, err, out)
					}
				}
				export = must(t, "export", "--url", p.URL)
				for line := range strings.Lines(export) {
					if id := gjson.Get(line, "receipt.id").Str; id != "" {
						if got := askProxy(t, http.MethodPost, p.URL+"/audits/verify", `{"receipt_id":"`+id+`"}`); got["valid"] != true {
							t.Errorf("%v: %s", got, line)
						}
					}
				}
			})
			place, _ := kept["path"].(string)
			if urls, isRedis := kept["urls"].([]string); isRedis {
				place = urls[0]
			}
			must(t, "verify", "--store", place)
			must(t, "verify", file(t, export))
			if out, faulty := python(t, file(t, export)); faulty || !strings.Contains(out, ", 0 faults") {
				t.Error(out)
			}
			if name == "bolt" { // the exports are alike
				findsTampering(t, export)
			}
		})
	}
}

// findsTampering checks that what is removed from an honest export, or put in, shows in the
// chain alone: the places in the log are those that anybody can compute.
func findsTampering(t *testing.T, export string) {
	t.Helper()
	var documents string
	var rows []row
	followed := make(map[string]bool)
	for line := range strings.Lines(export) {
		record := gjson.Get(line, "receipt").Raw
		if record == "" {
			documents += line
			continue
		}
		rows = append(rows, row{id: gjson.Get(record, "id").Str, record: []byte(record)})
		followed[kernel.IDOf(gjson.Get(record, "prev").Str)] = true
	}
	verify := func(rows []row) (faults string) {
		lines := documents
		for _, r := range mended(rows) {
			lines += fmt.Sprintf("{\"seq\":%d,\"log_prev\":%q,\"receipt\":%s}\n", r.seq, r.prev, r.record)
		}
		out, _, err := lexCommand("", "verify", file(t, lines))
		if (err == nil) != !strings.Contains(out, "fault: ") {
			t.Errorf("%v: %s", err, out)
		}
		return out
	}
	if out := verify(slices.Clone(rows)); strings.Contains(out, "fault: ") {
		t.Fatal(out)
	}
	for i, r := range rows {
		receipt, err := kernel.ParseReceipt(r.record)
		if err != nil {
			t.Fatal(err)
		}
		if followed[r.id] && !strings.Contains(verify(without(slices.Clone(rows), i)), "chain: ") {
			t.Errorf("nothing shows that %s was removed", r.record)
		}
		if receipt.Prev == "" || receipt.Resent {
			continue // a session that was made up, and a branch of one that has no name
		}
		for _, resent := range []bool{false, true} {
			receipt.Resent, receipt.Model = resent, "another"
			if double := sealed(t, r, receipt); !strings.Contains(verify(slices.Insert(slices.Clone(rows), i+1, double)), "chain: ") {
				t.Errorf("nothing shows that a double was put in beside %s, resent %v", r.record, resent)
			}
		}
	}
}
