package caddymodule_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-lex/lex/caddymodule"
	"github.com/caddy-lex/lex/wire"
)

// ollamaModel speaks Ollama's chat API, in the framing that it is asked for.
func ollamaModel(seen *recorder, pieces ...string) func(w http.ResponseWriter, r *http.Request) error {
	api := ollamaAPIs[0]
	return func(w http.ResponseWriter, r *http.Request) error {
		seen.record(r)
		var asked struct{ Stream *bool }
		if err := json.Unmarshal(seen.last().body, &asked); err != nil {
			return err
		}
		if asked.Stream == nil || *asked.Stream {
			return answering(ndjson, api.stream(pieces...))(w, r)
		}
		return answering("application/json", api.line(strings.Join(pieces, ""), `"done":true,"done_reason":"stop"`))(w, r)
	}
}

// Both arms are asked in the configured dialect, on its path and with its key.
func TestUpstreamDialect(t *testing.T) {
	for _, path := range []string{"/lex/govern", "/lex/govern/stream"} {
		seen := new(recorder)
		s := newSite(t, `{"upstream_dialect":"ollama","model":"llama3","provider_key":"k","upstream_path":"/base"}`, ollamaModel(seen, "The capital ", "is Paris."))
		w := s.post(path, question)
		if body := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(body, `"governed_output":"The capital is Paris."`) || !strings.Contains(body, `"raw_output":"The capital is Paris."`) {
			t.Errorf("%s: %d %s", path, w.Code, body)
		}
		if streamed := strings.Contains(w.Body.String(), `{"token":`); streamed != (path == "/lex/govern/stream") {
			t.Errorf("%s: %s", path, w.Body)
		}
		for _, r := range seen.requests {
			call, err := dialectOf(t, "ollama").Request(r.body)
			if err != nil || r.path != "/base/api/chat" || r.header.Get("Authorization") != "Bearer k" || call.Model != "llama3" || call.Prompt() != "What is the capital of France?" {
				t.Errorf("%s: asked %s %v %s", path, r.path, r.header, r.body)
			}
		}
		if len(seen.requests) != 2 || s.receipts()[0]["outcome"] != "answered" {
			t.Errorf("%s: asked %d times, receipt %v", path, len(seen.requests), s.receipts()[0])
		}
	}
}

func dialectOf(t *testing.T, name string) wire.Dialect {
	t.Helper()
	d, ok := wire.Named(name)
	if !ok {
		t.Fatalf("no dialect %q", name)
	}
	return d
}

// An answer that gives in is stopped in every dialect, and one that breaks off is no
// answer.
func TestUpstreamDialectIsJudged(t *testing.T) {
	config := `{"upstream_dialect":"ollama","baseline":"never"}`
	for _, path := range []string{"/lex/govern", "/lex/govern/stream"} {
		s := newSite(t, config, ollamaModel(new(recorder), strings.SplitAfter(capitulation, " ")...))
		if w := s.post(path, question); strings.Contains(w.Body.String(), "no longer") || !strings.Contains(w.Body.String(), refusalText) {
			t.Errorf("%s: %s", path, w.Body)
		}
	}
	api := ollamaAPIs[0]
	for name, body := range map[string]string{
		"no end":             api.line("Paris.", `"done":false`) + "\n",
		"an error":           `{"error":"out of memory"}` + "\n",
		"an error in it":     api.line("Paris.", `"done":false`) + "\n" + `{"error":"out of memory"}` + "\n",
		"another dialect's":  stream("Paris."),
		"no text":            api.stream(""),
		"a line of nonsense": "Paris.\n" + api.stream("Lyon."),
	} {
		s := newSite(t, config, answering(ndjson, body))
		if w := s.post("/lex/govern/stream", question); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "provider_exhausted") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	// A server that names no reason has ended its answer all the same, also without LF.
	s := newSite(t, config, answering(ndjson, api.line("Paris.", `"done":true`)))
	if w := s.post("/lex/govern/stream", question); !strings.Contains(w.Body.String(), `"governed_output":"Paris."`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// The dialect of the upstream changes no error on our endpoints and on paths without
// a dialect.
func TestUpstreamDialectAndErrors(t *testing.T) {
	s := newSite(t, `{"upstream_dialect":"ollama"}`, answering("application/json", `{}`))
	other := newSite(t, `{}`, answering("application/json", `{}`))
	for path, body := range map[string]string{"/lex/govern": `{"prompt":""}`, "/v2/other": `{"words":"` + attack + `"}`} {
		if got, want := s.post(path, body), other.post(path, body); got.Code != want.Code || got.Body.String() != want.Body.String() || got.Code < 400 {
			t.Errorf("%s: %d %s, else %d %s", path, got.Code, got.Body, want.Code, want.Body)
		}
	}
}

// Every dialect that can ask may be named, and no other.
func TestUpstreamDialectNames(t *testing.T) {
	known := wire.AskerNames()
	for _, name := range append(slices.Clone(known), "ollama_generate", "openai_completions", "OpenAI", "x") {
		adapted := adapt(t, ":80 {\n\tlex {\n\t\tupstream_dialect "+name+"\n\t}\n}\n")
		ctx, err := caddy.ProvisionContext(&caddy.Config{Admin: &caddy.AdminConfig{Disabled: true}, AppsRaw: caddy.ModuleMap{"lex": []byte(`{"store":{"engine":"faulty","path":"` + t.TempDir() + `/lex.db"}}`)}})
		if err != nil {
			t.Fatal(err)
		}
		failed := (&caddymodule.Handler{UpstreamDialect: name}).Provision(ctx)
		if slices.Contains(known, name) {
			if failed != nil || !strings.Contains(adapted, `"upstream_dialect": "`+name+`"`) {
				t.Errorf("%s: %v, %s", name, failed, adapted)
			}
			continue
		}
		if failed == nil || !strings.Contains(failed.Error(), strings.Join(known, ", ")) || !strings.Contains(adapted, "is not one of "+strings.Join(known, ", ")) {
			t.Errorf("%s: %v, %s", name, failed, adapted)
		}
	}
}

// Each dialect that can ask does, whole and streamed: the model gets a call of its API
// with the constitutional context, and its documented answers are the governed output.
func TestEveryUpstreamDialectIsAsked(t *testing.T) {
	for _, test := range []struct{ name, dialect, contentType, streamed, text string }{
		{"openai", "openai_chat", "text/event-stream", "streaming", "Hello"},
		{"openai_responses", "openai_responses", "text/event-stream", "streaming", "Hi there! How can I assist you today?"},
		{"anthropic", "anthropic_messages", "text/event-stream", "basic", "Hello!"},
		{"bedrock", "bedrock_converse", "application/vnd.amazon.eventstream", "simple", "Hello! How can I help you?"},
		{"gemini", "gemini_generate", "text/event-stream", "languages", "Here you go!\n\n1.  **English:** Hi\n**Italian:** Ciao"},
		{"ollama", "ollama_chat", "application/x-ndjson", "streaming", "The"},
	} {
		t.Run(test.name, func(t *testing.T) {
			answer, err := os.ReadFile("../wire/testdata/examples/" + test.dialect + "/" + test.streamed + ".stream")
			if err != nil {
				t.Fatal(err)
			}
			seen := new(recorder)
			s := newSite(t, `{"upstream_dialect":"`+test.name+`","baseline":"never"}`, func(w http.ResponseWriter, r *http.Request) error {
				seen.record(r)
				return answering(test.contentType, string(answer))(w, r)
			})
			done := lastEvent(t, s.post("/lex/govern/stream", question).Body.String())
			if done["governed_output"] != test.text || done["governed_source"] != "governed" || done["done"] != true {
				t.Errorf("%v", done)
			}
			asked := seen.last()
			d, ok := wire.Match(&url.URL{Path: asked.path, RawQuery: asked.query})
			if !ok || d.Name() != test.dialect {
				t.Fatalf("asked at %s", asked.path)
			}
			call, err := d.Request(asked.body)
			if err != nil || !call.Stream || call.Prompt() != "What is the capital of France?" || !strings.Contains(string(asked.body), "constitutional state") {
				t.Errorf("%v: asked %s", err, asked.body)
			}
		})
	}
}
