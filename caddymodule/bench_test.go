package caddymodule_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// BenchmarkRequest compares a call through lex with the same call without it,
// in one run: what governance costs besides the model. The store is real, so
// every governed call waits for its fsync; with 64 callers they share them.
func BenchmarkRequest(b *testing.B) {
	chat := strings.Replace(chatQuestion, "What is", prose+"What is", 1)
	for name, model := range map[string]caddyhttp.HandlerFunc{
		"whole":    answering("application/json", completion("Paris is the capital of France.")),
		"streamed": answering("text/event-stream", stream(strings.SplitAfter(strings.Repeat("Paris is the capital. ", 20), " ")...)),
	} {
		request := chat
		if name == "streamed" {
			request = strings.Replace(chat, "{", `{"stream":true,`, 1)
		}
		b.Run(name+"/bare", func(b *testing.B) { benchmark(b, request, model.ServeHTTP) })
		b.Run(name+"/lex", func(b *testing.B) {
			s := newSite(b, `{}`, model)
			benchmark(b, request, func(w http.ResponseWriter, r *http.Request) error { s.serve(w, r); return nil })
		})
	}
}

// BenchmarkAgent is a turn of an agent: it sends its instructions, the definitions of its tools
// and 250 KB of their results again, of which the last result is new.
func BenchmarkAgent(b *testing.B) {
	var tools, history []string
	for i := range 30 {
		tools = append(tools, fmt.Sprintf(`{"type":"function","function":{"name":"tool_%d","description":%q,"parameters":{"type":"object","properties":{"path":{"type":"string","description":"The path of the file."}}}}}`, i, prose[i:]))
	}
	for i := range 60 {
		history = append(history, fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"tool_1","arguments":"{\"path\":\"a/%d\"}"}}]}`, i, i),
			fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":%q}`, i, fmt.Sprint(i)+strings.Repeat(prose, 4)))
	}
	model := answering("application/json", completion("Paris is the capital of France."))
	var turn atomic.Int64
	ask := func(serve func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
		return func(w http.ResponseWriter, r *http.Request) error {
			body := fmt.Sprintf(`{"model":"m","tools":[%s],"messages":[{"role":"system","content":%q},{"role":"user","content":"Please read the files."},%s,{"role":"assistant","content":null,`+
				`"tool_calls":[{"id":"n","type":"function","function":{"name":"tool_2","arguments":"{}"}}]},{"role":"tool","tool_call_id":"n","content":"Line %d of the file."}]}`,
				strings.Join(tools, ","), strings.Repeat(prose, 8), strings.Join(history, ","), turn.Add(1))
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
			return serve(w, r)
		}
	}
	b.Run("bare", func(b *testing.B) { benchmark(b, "{}", ask(model.ServeHTTP)) })
	b.Run("lex", func(b *testing.B) {
		s := newSite(b, `{}`, model)
		benchmark(b, "{}", ask(func(w http.ResponseWriter, r *http.Request) error { s.serve(w, r); return nil }))
	})
}

// prose makes a prompt of 1 KB.
const prose = "The quarterly report covers sales, costs and staff in every region. We compared the figures with last year and found that " +
	"travel costs fell while rents rose. The new office opened in May, and most of the team moved there during the summer. Customers " +
	"asked for longer opening hours, so the shop now closes at eight. Deliveries were late twice because of the strike at the harbour. " +
	"The warehouse was painted, the roof was repaired, and the old machines were sold to a school. Next year we want to train more " +
	"people, write better manuals, and answer letters within a week. Please read the draft and tell me which part should be shorter, " +
	"which table is hard to follow, and whether the summary says what matters. The meeting is on Tuesday at ten in the large room on " +
	"the second floor; coffee and cake will be there, and whoever cannot come may call. Bring the plans for the garden and the list " +
	"of books for the library, please. "

func benchmark(b *testing.B, body string, serve func(http.ResponseWriter, *http.Request) error) {
	b.Helper()
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r := httptest.NewRequest(http.MethodPost, "http://site.test/v1/chat/completions", strings.NewReader(body))
			w := httptest.NewRecorder()
			if err := serve(w, r); err != nil || !strings.Contains(w.Body.String(), "Paris") { // a refusal is another call
				b.Errorf("%d %v %s", w.Code, err, w.Body)
			}
		}
	})
}
