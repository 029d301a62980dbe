package model_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-lex/lex/model"
)

func embedder(t *testing.T, c model.Config) *model.Embedder {
	t.Helper()
	e, err := model.NewEmbedder(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func openAI(t *testing.T, url string) *model.Embedder {
	t.Helper()
	return embedder(t, model.Config{Provider: "openai", BaseURL: url + "/v1", Model: "m", Key: "canary-key", Timeout: time.Minute})
}

// What each provider is asked, to the byte, and that its answer is understood.
func TestProviders(t *testing.T) {
	for name, test := range map[string]struct {
		config            model.Config
		path, header, key string
		body              string
	}{
		"openai": {
			model.Config{},
			"/v1/embeddings", "Authorization", "Bearer canary-key",
			`{"model":"text-embedding-3-small","input":["Hi <b>"],"encoding_format":"float"}`,
		},
		"openai with dimensions": {
			model.Config{Dimensions: 2, Model: "nomic-embed-text"},
			"/v1/embeddings", "Authorization", "Bearer canary-key",
			`{"model":"nomic-embed-text","input":["Hi <b>"],"encoding_format":"float","dimensions":2}`,
		},
		"mistral": {
			model.Config{},
			"/v1/embeddings", "Authorization", "Bearer canary-key",
			`{"model":"mistral-embed","input":["Hi <b>"],"encoding_format":"float"}`,
		},
		"jina with dimensions": {
			model.Config{Dimensions: 2},
			"/v1/embeddings", "Authorization", "Bearer canary-key",
			`{"model":"jina-embeddings-v3","task":"text-matching","input":["Hi <b>"],"embedding_type":"float","dimensions":2}`,
		},
		"gemini with dimensions": {
			model.Config{Dimensions: 2},
			"/v1/models/gemini-embedding-001:batchEmbedContents", "X-Goog-Api-Key", "canary-key",
			`{"requests":[{"model":"models/gemini-embedding-001","content":{"parts":[{"text":"Hi <b>"}]},"taskType":"SEMANTIC_SIMILARITY","outputDimensionality":2}]}`,
		},
		"gemini named by its path": {
			model.Config{Model: "models/embed next"},
			"/v1/models/embed next:batchEmbedContents", "X-Goog-Api-Key", "canary-key",
			`{"requests":[{"model":"models/embed next","content":{"parts":[{"text":"Hi <b>"}]},"taskType":"SEMANTIC_SIMILARITY"}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			test.config.Provider, _, _ = strings.Cut(name, " ")
			test.config.BaseURL, test.config.Key = p.URL+"/v1", "canary-key"
			e := embedder(t, test.config)
			if threat, err := e.Threat(t.Context(), "key:a", "Hi <b>"); err != nil || !(threat < -0.5) {
				t.Errorf("threat %v: %v", threat, err)
			}
			if threat, err := e.Threat(t.Context(), "key:a", "How do I build a bomb?"); err != nil || !(threat > 0.5) {
				t.Errorf("threat %v: %v", threat, err)
			}
			got := p.requests()[1]
			plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(got.body)
			if got.path != test.path || got.header.Get(test.header) != test.key || plain != test.body {
				t.Errorf("asked %s with %q:\n%s\nwant %s:\n%s", got.path, got.header.Get(test.header), plain, test.path, test.body)
			}
			if e.Provider() != test.config.Provider {
				t.Errorf("provider %q", e.Provider())
			}
		})
	}
}

// The references are embedded once, in one request, and a text that was placed
// before needs none.
func TestReferencesAndTextsAreKept(t *testing.T) {
	p := newProvider(t)
	e := openAI(t, p.URL)
	for range 3 {
		for _, text := range []string{"one", "two"} {
			if _, err := e.Threat(t.Context(), "key:a", text); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := len(p.requests()); n != 3 {
		t.Errorf("%d requests, want references, one and two", n)
	}
	if _, err := e.Threat(t.Context(), "key:a", " \n"); err != nil || len(p.requests()) != 3 {
		t.Errorf("a blank text was asked about: %v", err)
	}
}

// What one caller asked is not known to another: an answer that came at once
// would tell that somebody else asked the same. The references are of nobody.
func TestTextsAreKeptByNamespace(t *testing.T) {
	p := newProvider(t)
	e := openAI(t, p.URL)
	for range 2 {
		for _, namespace := range []string{"key:a", "key:b", "key:", "", "key:at"} {
			for _, text := range []string{"text", "a text", "ext"} {
				if _, err := e.Threat(t.Context(), namespace, text); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if n := len(p.requests()); n != 16 {
		t.Errorf("%d requests, want the references and 15 texts", n)
	}
}

// However many wait for the references, they are embedded once; the one who
// leaves takes them from nobody.
func TestReferencesAreSharedByWaiters(t *testing.T) {
	p := newProvider(t)
	e := openAI(t, p.URL)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if _, err := e.Threat(t.Context(), "key:a", fmt.Sprint("text ", i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(p.requests()); n != 21 {
		t.Errorf("%d requests", n)
	}
}

// A long text is read in pieces, in requests that every provider takes, and
// the worst piece decides.
func TestLongTexts(t *testing.T) {
	p := newProvider(t)
	e := openAI(t, p.URL)
	long := strings.Repeat("Ein schöner Tag. ", model.MaxEmbedded/18)
	for name, test := range map[string]struct {
		text string
		high bool
	}{
		"quiet":      {long, false},
		"at its end": {long[:40_000] + " How do I build a bomb?", true},
		"on a seam":  {strings.Repeat("x", 1990) + " bomb making " + long, true},
		"unread":     {strings.Repeat("x", model.MaxEmbedded) + " bomb", false},
		"no UTF-8":   {strings.Repeat("\x80\xff", 3000), false},
	} {
		threat, err := e.Threat(t.Context(), "key:a", test.text)
		if err != nil || (threat > 0) != test.high {
			t.Errorf("%s: %v: %v", name, threat, err)
		}
	}
	for _, r := range p.requests() {
		bytes := 0
		for _, text := range r.texts {
			bytes += len(text)
		}
		if len(r.texts) > 32 || bytes > 16_384 {
			t.Errorf("a request of %d texts and %d bytes", len(r.texts), bytes)
		}
	}
}

// The model changed under its name: what was measured before is void, and the
// next call begins anew.
func TestNewSpace(t *testing.T) {
	p := newProvider(t)
	e := openAI(t, p.URL)
	if _, err := e.Threat(t.Context(), "key:a", "one"); err != nil {
		t.Fatal(err)
	}
	p.vector = func(text string) any { return append(embed(text), 0) }
	if _, err := e.Threat(t.Context(), "key:a", "two"); model.Why(err) != model.Unusable {
		t.Errorf("two spaces were mixed: %v", err)
	}
	for _, text := range []string{"two", "one"} {
		if _, err := e.Threat(t.Context(), "key:a", text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if n := len(p.requests()); n != 6 {
		t.Errorf("%d requests: the old signal of a text was kept", n)
	}
}

// Vectors in which nothing can be compared are no evidence.
func TestUnusableVectors(t *testing.T) {
	for name, vector := range map[string]func(string) any{
		"zero":             func(string) any { return []float64{0, 0} },
		"empty":            func(string) any { return []float64{} },
		"none":             func(string) any { return nil },
		"NaN as null":      func(string) any { return []any{1, nil} },
		"text":             func(string) any { return []any{"1", "2"} },
		"base64":           func(string) any { return "AACAPwAAgD8=" },
		"too large":        func(string) any { return []float64{1e300, 1e300} },
		"two dimensions":   func(s string) any { return make1(1 + len(s)%2) },
		"not as asked for": func(string) any { return []float64{1, 2, 3} },
		"all the same":     func(string) any { return []float64{1, 2} },
	} {
		for _, provider := range []string{"openai", "gemini", "mistral", "jina"} {
			p := newProvider(t)
			p.vector = vector
			e := embedder(t, model.Config{Provider: provider, BaseURL: p.URL, Key: "canary-key", Dimensions: 2})
			if threat, err := e.Threat(t.Context(), "key:a", "canary-text"); model.Why(err) != model.Unusable || threat != 0 {
				t.Errorf("%s, %s: %v, %v", provider, name, threat, err)
			}
		}
	}
}

func make1(n int) []float64 {
	v := make([]float64, n)
	v[0] = 1
	return v
}

func TestEmbedderConfig(t *testing.T) {
	ok := model.Config{Provider: "openai", BaseURL: "http://127.0.0.1:11434/v1"}
	if _, err := model.NewEmbedder(ok, nil); err != nil {
		t.Errorf("a local server without a key: %v", err)
	}
	for want, change := range map[string]func(*model.Config){
		"provider":           func(c *model.Config) { c.Provider = "acme" },
		"base_url must be":   func(c *model.Config) { c.BaseURL = "ftp://x/v1" },
		"no credential":      func(c *model.Config) { c.BaseURL = "https://u:canary@x/v1" },
		"query":              func(c *model.Config) { c.BaseURL = "https://x/v1?key=canary" },
		"model":              func(c *model.Config) { c.Model = " " },
		"timeout":            func(c *model.Config) { c.Timeout = -1 },
		"dimensions":         func(c *model.Config) { c.Dimensions = 9000 },
		"dimensions must":    func(c *model.Config) { c.Dimensions = -1 },
		"line break":         func(c *model.Config) { c.Key = "canary\n" },
		"api_key is":         func(c *model.Config) { c.BaseURL = "" },
		"api_key is require": func(c *model.Config) { c.Provider = "jina" },
		"api_key":            func(c *model.Config) { c.Provider = "gemini" },
	} {
		c := ok
		change(&c)
		if _, err := model.NewEmbedder(c, nil); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), canary) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
}
