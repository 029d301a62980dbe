package caddymodule_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
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
