package caddymodule_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// embeddings is a provider that places what speaks of horses near to harm, and
// fails when told to.
func embeddings(t *testing.T, down *atomic.Bool) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		var ask struct{ Input []string }
		_ = json.NewDecoder(r.Body).Decode(&ask)
		data := make([]any, len(ask.Input))
		for i, text := range ask.Input {
			v := []float64{0, 1}
			if strings.Contains(text, "horse") || (len(ask.Input) > 1 && i < len(ask.Input)/2) {
				v = []float64{1, 0}
			}
			data[i] = map[string]any{"index": i, "embedding": v}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestRemoteEmbedder(t *testing.T) {
	down := new(atomic.Bool)
	s := newSiteWith(t, `{"baseline":"never"}`, map[string]any{"embedder": map[string]any{
		"provider": "openai", "base_url": embeddings(t, down) + "/v1", "model": "m", "api_key": "{env.NONE}",
	}}, answering("application/json", completion("Paris.")))
	near := govern(s, `{"prompt":"What does a horse eat?","session_id":"s"}`)
	far := govern(s, question)
	if near["prompt_threat_signal"] != 1.0 || far["prompt_threat_signal"] != -1.0 || near["embed_provider"] != "openai" {
		t.Errorf("near %v, far %v, provider %v", near["prompt_threat_signal"], far["prompt_threat_signal"], near["embed_provider"])
	}
	if near["detection_degraded"] != false || near["refused"] != false {
		t.Errorf("degraded %v, refused %v: the signal alone must not refuse", near["detection_degraded"], near["refused"])
	}
	down.Store(true)
	got := govern(s, question)
	if got["detection_degraded"] != true || got["prompt_threat_signal"] != 0.0 || got["refused"] != false {
		t.Errorf("degraded %v, signal %v, refused %v", got["detection_degraded"], got["prompt_threat_signal"], got["refused"])
	}
	coverage, _ := json.Marshal(got["coverage"])
	if !strings.Contains(string(coverage), `"name":"openai_embedder","outcome":"failed"`) {
		t.Errorf("coverage %s", coverage)
	}
}
