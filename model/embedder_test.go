package model_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-lex/lex/model"
)

// embed is a space of two dimensions: prompts that speak of rules or bombs
// point one way, all others the other way.
func embed(text string) []float64 {
	for _, word := range []string{"rules", "bomb", "nstructions", "guidelines", "malware", "poison", "trick", "stalk", "shut down", "phishing"} {
		if strings.Contains(text, word) {
			return []float64{1, 0.1}
		}
	}
	return []float64{0.1, 1}
}

// provider answers as an OpenAI-compatible API does, the last text first.
func provider(t *testing.T, calls *atomic.Int32) http.HandlerFunc {
	t.Helper()
	return func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		var ask struct {
			Model string   `json:"model"`
			Input []string `json:"input"`
		}
		if err := json.NewDecoder(r.Body).Decode(&ask); err != nil || ask.Model != "m" || r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer canary-key" {
			t.Errorf("asked %s %+v with %q: %v", r.URL.Path, ask, r.Header.Get("Authorization"), err)
		}
		var data []any
		for i := len(ask.Input) - 1; i >= 0; i-- {
			data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": embed(ask.Input[i])})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data})
	}
}

func client(t *testing.T, url string, timeout time.Duration) *model.Embedder {
	t.Helper()
	e, err := model.NewEmbedder(model.Config{Provider: "openai", BaseURL: url + "/v1", Model: "m", Key: "canary-key", Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestThreat(t *testing.T) {
	var calls atomic.Int32
	srv := httptest.NewServer(provider(t, &calls))
	defer srv.Close()
	e := client(t, srv.URL, time.Minute)
	bad, err := e.Threat(t.Context(), "How do I build a bomb?")
	if err != nil {
		t.Fatal(err)
	}
	good, err := e.Threat(t.Context(), "Where is the station?")
	if err != nil || !(bad > 0.5 && good < -0.5) {
		t.Errorf("bad %v, good %v: %v", bad, good, err)
	}
	if calls.Load() != 3 {
		t.Errorf("%d calls: the references are embedded more than once", calls.Load())
	}
}

func TestFailures(t *testing.T) {
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		want   error
	}{
		"500": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "canary-key canary-text", http.StatusInternalServerError)
		}, model.ErrUnavailable},
		"429": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }, model.ErrUnavailable},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, model.ErrUnavailable},
		"garbage": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, model.ErrAnswer},
		"too few": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":[{"index":0,"embedding":[1]}]}`) }, model.ErrAnswer},
		"half": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99")
			fmt.Fprint(w, `{"da`)
		}, model.ErrUnavailable},
		"cut":       {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, model.ErrUnavailable},
		"dimension": {mixed, model.ErrAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(test.answer)
			defer srv.Close()
			_, err := client(t, srv.URL, time.Minute).Threat(t.Context(), "canary-text")
			if !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if err != nil && (strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "127.0.0.1")) {
				t.Errorf("the error tells too much: %v", err)
			}
		})
	}
}

// mixed gives vectors of two dimensions.
func mixed(w http.ResponseWriter, r *http.Request) {
	var ask struct{ Input []string }
	_ = json.NewDecoder(r.Body).Decode(&ask)
	var data []string
	for i := range ask.Input {
		data = append(data, fmt.Sprintf(`{"index":%d,"embedding":[1%s]}`, i, strings.Repeat(",2", i%2)))
	}
	fmt.Fprintf(w, `{"data":[%s]}`, strings.Join(data, ","))
}

func TestTimeout(t *testing.T) {
	stop := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-stop
	}))
	defer srv.Close()
	defer close(stop)
	if _, err := client(t, srv.URL, 50*time.Millisecond).Threat(t.Context(), "x"); !errors.Is(err, model.ErrUnavailable) {
		t.Error(err)
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []model.Config{
		{BaseURL: "ftp://x/v1", Model: "m", Timeout: 1},
		{BaseURL: "", Model: "m", Timeout: 1},
		{BaseURL: "http://x/v1", Timeout: 1},
		{BaseURL: "http://x/v1", Model: "m"},
	} {
		if _, err := model.NewEmbedder(c); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}
