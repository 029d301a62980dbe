package model_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// canary stands in every key and text that a test sends; it must show up in no
// error.
const canary = "canary"

// embed is a space of two dimensions: prompts that speak of rules or bombs
// point one way, all others the other way.
func embed(text string) []float64 {
	for _, word := range []string{"rules", "bomb", "nstructions", "guidelines", "malware", "poison", "trick", "stalk", "shut down unless", "phishing", "evil twin", "vaccines cause", "gun", "too afraid", "rumour"} {
		if strings.Contains(text, word) {
			return []float64{3, 0.3}
		}
	}
	return []float64{0.1, 1}
}

// asked is one request that a provider got.
type asked struct {
	path   string
	header http.Header
	body   string
	texts  []string
}

// fakeProvider speaks the embeddings APIs of all providers, the last text
// first where the API has an index.
type fakeProvider struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []asked
	vector func(text string) any
}

func newProvider(t *testing.T) *fakeProvider {
	t.Helper()
	p := &fakeProvider{vector: func(text string) any { return embed(text) }}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Close)
	return p
}

func (p *fakeProvider) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var ask struct {
		Input    []string
		Requests []struct {
			Content struct{ Parts []struct{ Text string } }
		}
	}
	_ = json.Unmarshal(body, &ask)
	texts := ask.Input
	for _, q := range ask.Requests {
		texts = append(texts, q.Content.Parts[0].Text)
	}
	p.mu.Lock()
	p.asked = append(p.asked, asked{r.URL.Path, r.Header.Clone(), string(body), texts})
	p.mu.Unlock()
	_ = json.NewEncoder(w).Encode(p.answer(r.URL.Path, texts))
}

func (p *fakeProvider) answer(path string, texts []string) any {
	var data, values []any
	for i, text := range texts {
		values = append(values, map[string]any{"values": p.vector(text)})
		j := len(texts) - 1 - i
		data = append(data, map[string]any{"object": "embedding", "index": j, "embedding": p.vector(texts[j])})
	}
	if strings.HasSuffix(path, ":batchEmbedContents") {
		return map[string]any{"embeddings": values}
	}
	return map[string]any{"object": "list", "data": data, "usage": map[string]any{"total_tokens": 7}}
}

func (p *fakeProvider) requests() []asked {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]asked{}, p.asked...)
}
