package model_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-lex/lex/model"
)

// clients are all of them, asked about a text with the canary in it.
var clients = map[string]func(c model.Config, o model.Observer) func(context.Context) error{
	"openai":  embedding("openai"),
	"gemini":  embedding("gemini"),
	"mistral": embedding("mistral"),
	"jina":    embedding("jina"),
	"judge": func(c model.Config, o model.Observer) func(context.Context) error {
		c.Model = "canary-model"
		j, err := model.NewJudge(c, o)
		if err != nil {
			panic(err)
		}
		return func(ctx context.Context) error {
			judgement, err := j.Judge(ctx, "key:a", "canary-prompt", "canary-answer")
			if err != nil && judgement.Capitulated {
				return errors.New("a failure that is a judgement as well")
			}
			return err
		}
	},
	"tei":        guarding(model.NewClassifierGuard, model.ServerTEI, model.RolePrompt),
	"moderation": guarding(model.NewModerationGuard, "openai", model.RoleAnswer),
	"chat guard": guarding(model.NewChatGuard, "openai", model.RoleToolResult),
	"vllm":       guarding(model.NewClassifierGuard, model.ServerVLLM, model.RoleToolResult),
}

func guarding(build func(model.Config, model.Observer) (*model.Guard, error), provider string, role model.Role) func(c model.Config, o model.Observer) func(context.Context) error {
	return func(c model.Config, o model.Observer) func(context.Context) error {
		c.Model, c.Provider = "canary-model", provider
		g, err := build(c, o)
		if err != nil {
			panic(err)
		}
		return func(ctx context.Context) error {
			verdict, err := g.Ask(ctx, "key:a", model.GuardText{Role: role, Text: "canary-text", Prompt: "canary-prompt"})
			if err != nil && verdict != nil {
				return errors.New("a failure that is a verdict as well")
			}
			return err
		}
	}
}

func embedding(provider string) func(c model.Config, o model.Observer) func(context.Context) error {
	return func(c model.Config, o model.Observer) func(context.Context) error {
		c.Provider = provider
		e, err := model.NewEmbedder(c, o)
		if err != nil {
			panic(err)
		}
		return func(ctx context.Context) error {
			_, err := e.Threat(ctx, "key:a", "canary-text")
			return err
		}
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "canary-key canary-text", code)
	}
}

func body(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
}

var failures = map[string]struct {
	answer http.HandlerFunc
	want   model.Failure
}{
	"400": {status(400), model.Rejected},
	"401": {status(401), model.Unauthorized},
	"403": {status(403), model.Unauthorized},
	"404": {status(404), model.Unexpected},
	"402": {status(402), model.Unexpected},
	"413": {status(413), model.Rejected},
	"422": {status(422), model.Rejected},
	"429": {status(429), model.RateLimited},
	"500": {status(500), model.ServerError},
	"503": {status(503), model.ServerError},
	"204": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, model.Unexpected},
	"redirect": {func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}, model.Unexpected},
	"html":         {body("<html>canary</html>"), model.Unusable},
	"nothing":      {body(""), model.Unusable},
	"empty object": {body("{}"), model.Unusable},
	"null":         {body("null"), model.Unusable},
	"NaN":          {body(`{"data":[{"index":0,"embedding":[NaN]}],"embeddings":[{"values":[NaN]}]}`), model.Unusable},
	"too few":      {body(`{"data":[{"index":0,"embedding":[1]}],"embeddings":[{"values":[1]}]}`), model.Unusable},
	"error in 200": {body(`{"error":{"message":"canary-key is invalid"},"detail":"canary"}`), model.Unusable},
	"huge": {func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"data":"`+strings.Repeat("x", 9<<20)+`"}`)
	}, model.Unusable},
	"half": {func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "99")
		fmt.Fprint(w, `{"da`)
	}, model.Unreachable},
	"cut": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, model.Unreachable},
}

// Every way to fail has its kind, and no error tells a key, a text, what the
// provider said or where it is.
func TestFailures(t *testing.T) {
	for name, test := range failures {
		srv := httptest.NewServer(test.answer)
		t.Cleanup(srv.Close)
		for client, build := range clients {
			seen := new(observer)
			err := build(model.Config{BaseURL: srv.URL + "/canary", Key: "canary-key", Timeout: time.Minute}, seen)(t.Context())
			if model.Why(err) != test.want {
				t.Errorf("%s, %s: got %v, want %v", client, name, err, test.want)
			}
			if err != nil && (strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), "127.0.0.1")) {
				t.Errorf("%s, %s: the error tells too much: %v", client, name, err)
			}
			if got := seen.failures(); len(got) != 1 || got[0] != test.want {
				t.Errorf("%s, %s: observed %v", client, name, got)
			}
		}
	}
}

// A redirect would carry prompt and key to a host that nobody configured.
func TestRedirectsAreNotFollowed(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a redirect was followed")
	}))
	defer elsewhere.Close()
	for _, code := range []int{301, 302, 303, 307, 308} {
		srv := httptest.NewServer(http.RedirectHandler(elsewhere.URL, code))
		t.Cleanup(srv.Close)
		for client, build := range clients {
			if err := build(model.Config{BaseURL: srv.URL, Key: "canary-key"}, nil)(t.Context()); model.Why(err) != model.Unexpected {
				t.Errorf("%s, %d: %v", client, code, err)
			}
		}
	}
}

func TestTimeoutAndCancel(t *testing.T) {
	stop := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-stop
	}))
	defer srv.Close()
	defer close(stop)
	for client, build := range clients {
		ask := build(model.Config{BaseURL: srv.URL, Key: "canary-key", Timeout: 20 * time.Millisecond}, nil)
		if err := ask(t.Context()); model.Why(err) != model.Timeout {
			t.Errorf("%s: %v", client, err)
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		ask = build(model.Config{BaseURL: srv.URL, Key: "canary-key", Timeout: time.Minute}, nil)
		if err := ask(gone); model.Why(err) != model.Cancelled {
			t.Errorf("%s: %v", client, err)
		}
	}
}

func TestNobodyThere(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	for client, build := range clients {
		err := build(model.Config{BaseURL: srv.URL, Key: "canary-key"}, nil)(t.Context())
		if model.Why(err) != model.Unreachable || strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%s: %v", client, err)
		}
	}
}

func TestWhy(t *testing.T) {
	if model.Why(nil) != "" || model.Why(errors.New("x")) != model.Unreachable {
		t.Error("kinds are mixed up")
	}
}

// observer keeps what it is told.
type observer struct {
	mu       sync.Mutex
	asked    []model.Failure
	gathered []model.Failure
	cached   int
	breakers []bool
	why      model.Failure // of the last change
}

func (o *observer) Asked(_ time.Duration, why model.Failure) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked = append(o.asked, why)
}

func (o *observer) Gathered(why model.Failure) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gathered = append(o.gathered, why)
}

func (o *observer) Cached() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cached++
}

func (o *observer) Breaker(open bool, why model.Failure) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.breakers, o.why = append(o.breakers, open), why
}

// told returns what the observer was told of the breaker.
func (o *observer) told() []bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.breakers)
}

func (o *observer) failures() []model.Failure {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]model.Failure{}, o.asked...)
}
