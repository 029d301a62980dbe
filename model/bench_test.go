package model_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/caddy-lex/lex/model"
)

// BenchmarkThreat measures what a signal costs us beside the provider's time:
// vectors of 3072 numbers from a server on this machine, and from the cache.
func BenchmarkThreat(b *testing.B) {
	srv := httptest.NewServer(wide(b))
	defer srv.Close()
	e, err := model.NewEmbedder(model.Config{Provider: "gemini", BaseURL: srv.URL, Key: "k"}, nil)
	if err != nil {
		b.Fatal(err)
	}
	threat := func(b *testing.B, text string) {
		b.Helper()
		if _, err := e.Threat(context.Background(), "key:a", text); err != nil {
			b.Fatal(err)
		}
	}
	threat(b, "first")
	n := 0
	b.Run("asked", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			n++
			threat(b, "text "+strconv.Itoa(n))
		}
	})
	b.Run("cached", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			threat(b, "first")
		}
	})
}

// wide answers with vectors as long as Gemini's, written beforehand.
func wide(b *testing.B) http.HandlerFunc {
	b.Helper()
	vectors := make([]string, 2)
	for v := range vectors {
		values := make([]float64, 3072)
		for i := range values {
			values[i] = 0.0123456789 + float64((i+v)%2)/100
		}
		text, err := json.Marshal(values)
		if err != nil {
			b.Fatal(err)
		}
		vectors[v] = `{"values":` + string(text) + `}`
	}
	return func(w http.ResponseWriter, r *http.Request) {
		var ask struct{ Requests []struct{} }
		_ = json.NewDecoder(r.Body).Decode(&ask)
		_, _ = io.WriteString(w, `{"embeddings":[`)
		for i := range ask.Requests {
			if i > 0 {
				_, _ = io.WriteString(w, ",")
			}
			_, _ = io.WriteString(w, vectors[i*2/max(2, len(ask.Requests))])
		}
		_, _ = io.WriteString(w, "]}")
	}
}
