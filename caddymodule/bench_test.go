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
	body := strings.Repeat("word ", 200) // a prompt of 1 KB
	chat := strings.Replace(chatQuestion, "What is", body+"What is", 1)
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

func benchmark(b *testing.B, body string, serve func(http.ResponseWriter, *http.Request) error) {
	b.Helper()
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r := httptest.NewRequest(http.MethodPost, "http://site.test/v1/chat/completions", strings.NewReader(body))
			w := httptest.NewRecorder()
			if err := serve(w, r); err != nil || w.Code != http.StatusOK {
				b.Errorf("%d %v", w.Code, err)
			}
		}
	})
}
