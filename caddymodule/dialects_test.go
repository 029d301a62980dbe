package caddymodule_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/caddymodule"
)

// An operator names the dialect of a gateway's paths; a path is read as a lenient
// server would read it.
func TestDialectOption(t *testing.T) {
	const config = `{"dialects":[{"path":"/AI/*","dialect":"openai"},{"path":"*/write","dialect":"openai_completions"},{"path":"/one/*/chat","dialect":"openai_chat"},{"path":"/exact","dialect":"openai"}]}`
	s, seen := listening(t, config)
	prompt := `{"model":"m","prompt":"What is the capital of France?"}`
	for path, want := range map[string]struct{ body, endpoint string }{
		"/ai/converse":         {chatQuestion, "openai_chat"},
		"/Ai//x/../converse/":  {chatQuestion, "openai_chat"},
		"/a%69/converse":       {chatQuestion, "openai_chat"},
		"/ai/v1/completions":   {chatQuestion, "openai_chat"}, // before the paths that are known
		"/ai/write":            {chatQuestion, "openai_chat"}, // the first that fits
		"/some/write":          {prompt, "openai_completions"},
		"/one/two/chat":        {chatQuestion, "openai_chat"},
		"/one/two/three/chat":  {chatQuestion, "unknown"},
		"/exact":               {chatQuestion, "openai_chat"},
		"/exact/":              {chatQuestion, "openai_chat"},
		"/exact;v=1":           {chatQuestion, "openai_chat"},
		"/exactly":             {chatQuestion, "unknown"},
		"/v1/chat/completions": {chatQuestion, "openai_chat"},
		"/ai/v1/embeddings":    {chatQuestion, "openai_chat"},
	} {
		if w := s.post(path, want.body); w.Code != http.StatusOK || string(seen.last().body) != want.body {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
		if r := s.receipts()[0]; r["endpoint"] != want.endpoint {
			t.Errorf("%s is governed as %v", path, r["endpoint"])
		}
	}
	count := seen.count.Load()
	if w := s.post("/ai/converse", chatAttack); seen.count.Load() != count || !strings.Contains(w.Body.String(), `"refusal":"`) {
		t.Errorf("an attack: %d %s", w.Code, w.Body)
	}
	guilty := newSite(t, config, answering("application/json", completion(capitulation)))
	if w := guilty.post("/ai/converse", chatQuestion); strings.Contains(w.Body.String(), capitulation) {
		t.Errorf("an answer that gives in: %s", w.Body)
	}
	s.breakStore()
	if w := s.post("/ai/converse", chatQuestion); w.Code != http.StatusServiceUnavailable || !isShaped("openai", w.Body.String(), "") {
		t.Errorf("the store is down: %d %s", w.Code, w.Body)
	}
}

// No upgrade goes through on a path that has a dialect.
func TestDialectPathsAreNotUpgraded(t *testing.T) {
	s, seen := listening(t, `{"dialects":[{"path":"/ai/*","dialect":"openai"}]}`)
	s.send(http.MethodGet, "/ai/live", "", "Connection", "Upgrade", "Upgrade", "h2c")
	if seen.count.Load() != 1 || seen.last().header.Get("Upgrade") != "" {
		t.Errorf("%v", seen.requests)
	}
	if w := s.send(http.MethodGet, "/ai/live", "", "Connection", "Upgrade", "Upgrade", "websocket"); w.Code != http.StatusUpgradeRequired || seen.count.Load() != 1 {
		t.Errorf("%d %v", w.Code, seen.requests)
	}
}

func TestDialectOptionIsChecked(t *testing.T) {
	for _, test := range []struct{ path, name, want string }{
		{"/ai", "klingon", "openai, openai_chat, openai_completions"},
		{"/ai", "", "openai, openai_chat"},
		{"ai", "openai", "begins with / or *"},
		{"", "openai", "begins with / or *"},
		{"/ai/", "openai", "ends without a slash"},
		{"/[ai", "openai", "brackets"},
	} {
		h := &caddymodule.Handler{Dialects: []caddymodule.DialectPath{{Path: test.path, Dialect: test.name}}}
		ctx, err := provision(t, map[string]any{})
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(h.Provision(ctx), h.Validate())
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q %q: %v", test.path, test.name, err)
		}
	}
}

// What a Caddyfile refuses, JSON does not slip past, and nothing that is given is ignored.
func TestOptionsThatWouldBeIgnored(t *testing.T) {
	for config, want := range map[string]string{
		`{"inspect_limit":1099511627777}`:               "inspect_limit: give a size from 1 byte to 1TiB",
		`{"refuse_with":{"status":403}}`:                "the status 403 is only for as status",
		`{"refuse_with":{"as":"content","status":451}}`: "the status 451 is only for as status",
		`{"dialects":[{"path":"/ai","dialect":"openai"},{"path":"/x","dialect":"mcp"},{"path":"/AI","dialect":"mcp"}]}`: "the dialect of /AI is given twice",
	} {
		h := new(caddymodule.Handler)
		ctx, err := provision(t, map[string]any{})
		if err == nil {
			err = json.Unmarshal([]byte(config), h)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(h.Provision(ctx), h.Validate()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", config, err)
		}
	}
}

// An API that says in its address which model is asked, and whether the answer is
// streamed, says so below a named path too.
func TestDialectPathsKeepTheirAddress(t *testing.T) {
	s, _ := listening(t, `{"dialects":[{"path":"/gateway/*","dialect":"gemini"}]}`)
	for query, want := range map[string]string{"?alt=sse": "data: {", "": "["} {
		w := s.post("/gateway/v1beta/models/Model-X:streamGenerateContent"+query, geminiAttack)
		if w.Code != http.StatusOK || !strings.HasPrefix(w.Body.String(), want) {
			t.Errorf("%q: %d %s", query, w.Code, w.Body)
		}
		if model := s.receipts()[0]["model"]; model != "Model-X" {
			t.Errorf("%q: model %v", query, model)
		}
	}
}
