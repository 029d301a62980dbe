package caddymodule_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// Two sites over one store, one of them under a policy of its own.
const (
	policyOptions = `lex {
		store bolt ${store}
		policy {
			refusal_text "Not here."
		}
		policy strict {
			refuse_at 0.51
			refusal_text "Not there."
			memory off
			limits {
				anonymous 2/1h
				intercepted 3/1h
			}
		}
		limits {
			anonymous 1000/1m
			read 100000/1m
			plan careful 1000/1h strict
			plan usual 1000/1h
		}
		secrets {
			admin password-1234567890
		}
	}`
	policySite = `@strict header X-App strict
		handle @strict {
			lex {
				policy strict
			}
			reverse_proxy ${model}
		}
		handle {
			lex
			reverse_proxy ${model}
		}`
)

func runPolicies(t *testing.T) *proxy {
	t.Helper()
	model := httptest.NewServer(answeringHTTP("application/json", completion("Paris.")))
	t.Cleanup(model.Close)
	return runCaddy(t, policyOptions, strings.ReplaceAll(policySite, "${model}", model.Listener.Addr().String()))
}

// ask posts to the proxy and returns the status and the JSON of the answer.
func (p *proxy) ask(path, body string, headers ...string) (int, map[string]any) {
	p.t.Helper()
	r, err := http.NewRequest(http.MethodPost, p.url+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		p.t.Fatalf("%s: %v: %s", path, err, text)
	}
	return resp.StatusCode, m
}

// policyOf is the policy that a receipt names.
func (p *proxy) policyOf(id any) string {
	p.t.Helper()
	resp, err := http.Get(p.url + "/audits/" + id.(string))
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	var receipt struct{ Policy string }
	if err := json.NewDecoder(resp.Body).Decode(&receipt); err != nil || receipt.Policy == "" {
		p.t.Fatalf("%v %v", err, receipt)
	}
	return receipt.Policy
}

// Each site is governed under the policy that it chooses; the receipts name it by
// hash, the session goes on from one to the other, and its chain verifies.
func TestSitesChooseAPolicy(t *testing.T) {
	p := runPolicies(t)
	refused := `{"session_id":"s","prompt":"` + attack + `"}`
	_, usual := p.ask("/lex/govern", `{"session_id":"s","prompt":"What is the capital of France?"}`)
	_, strict := p.ask("/lex/govern", refused, "X-App", "strict")
	if strict["refused"] != true || strict["governed_output"] != "Not there." {
		t.Errorf("the strict site answers %v", strict["governed_output"])
	}
	if _, again := p.ask("/lex/govern", refused); again["governed_output"] != "Not here." {
		t.Errorf("the usual site answers %v", again["governed_output"])
	}
	if a, b := p.policyOf(usual["receipt_id"]), p.policyOf(strict["receipt_id"]); a == b {
		t.Errorf("both receipts name the policy %s", a)
	}
	if usual["version"] == strict["version"] {
		t.Errorf("both results have the version %v", usual["version"])
	}
	for _, result := range []map[string]any{usual, strict} {
		if _, report := p.ask("/audits/verify", `{"receipt_id":"`+result["receipt_id"].(string)+`"}`); report["valid"] != true {
			t.Errorf("%v", report)
		}
		policy, err := http.Get(p.url + "/lex/policies/" + p.policyOf(result["receipt_id"]))
		if err != nil || policy.StatusCode != http.StatusOK {
			t.Errorf("%v %v", err, policy)
		}
		policy.Body.Close()
	}
}

// On intercepted traffic the refusal is the policy's too, streamed or not.
func TestInterceptedTrafficHasAPolicy(t *testing.T) {
	p := runPolicies(t)
	for app, want := range map[string]string{"strict": "Not there.", "other": "Not here."} {
		_, answer := p.ask("/v1/chat/completions", chatAttack, "X-App", app)
		text, _ := json.Marshal(answer["choices"])
		if !strings.Contains(string(text), want) {
			t.Errorf("%s: %s", app, text)
		}
	}
}

// The policy of a key's plan counts on every site.
func TestAPlanChoosesThePolicy(t *testing.T) {
	p := runPolicies(t)
	keys := make(map[string]string)
	for _, plan := range []string{"careful", "usual"} {
		status, made := p.ask("/admin/keys", `{"name":"app","plan":"`+plan+`"}`, "X-Lex-Admin-Password", "password-1234567890")
		if status != http.StatusCreated {
			t.Fatal(status, made)
		}
		keys[plan] = made["key"].(string)
	}
	for _, c := range []struct{ plan, app, want string }{
		{"careful", "other", "Not there."},
		{"careful", "strict", "Not there."},
		{"usual", "other", "Not here."},
		{"usual", "strict", "Not there."},
	} {
		_, answer := p.ask("/v1/chat/completions", chatAttack, "X-App", c.app, "X-Lex-Api-Key", keys[c.plan])
		if text, _ := json.Marshal(answer["choices"]); !strings.Contains(string(text), c.want) {
			t.Errorf("plan %s on site %s: %s", c.plan, c.app, text)
		}
	}
}

// Rates of a policy are counted for it alone.
func TestAPolicyHasRatesOfItsOwn(t *testing.T) {
	p := runPolicies(t)
	for path, c := range map[string]struct {
		body  string
		limit int
	}{"/lex/govern": {question, 2}, "/v1/chat/completions": {chatQuestion, 3}} {
		for i := range c.limit + 2 {
			if status, _ := p.ask(path, c.body); status != http.StatusOK {
				t.Errorf("%s: request %d of the usual site: %d", path, i, status)
			}
			status, _ := p.ask(path, c.body, "X-App", "strict")
			if want := map[bool]int{true: http.StatusOK, false: http.StatusTooManyRequests}[i < c.limit]; status != want {
				t.Errorf("%s: request %d of the strict site: %d, not %d", path, i, status, want)
			}
		}
	}
}

// A named policy has a memory of its own, and what it does not say from the
// unnamed one.
func TestANamedPolicyInherits(t *testing.T) {
	t.Setenv("LEX_TEST_ADMIN", password)
	options := map[string]any{
		"policy":   map[string]any{"refusal_text": "Not here.", "identity_modes": []string{"full", "minimal"}},
		"policies": map[string]any{"strict": map[string]any{"refuse_at": 0.6, "memory": 0}},
	}
	s := newSiteWith(t, `{"policy":"strict","baseline":"never"}`, options, answering("application/json", completion("Paris.")))
	if w := s.post("/lex/govern", `{"session_id":"s","prompt":"`+attack+`"}`); !strings.Contains(w.Body.String(), "Not here.") {
		t.Errorf("%s", w.Body)
	}
	if w := s.post("/lex/govern", `{"session_id":"s2","prompt":"Hello.","identity_mode":"none"}`); w.Code != http.StatusBadRequest {
		t.Errorf("identity mode none: %d", w.Code)
	}
	for range 2 {
		if w := s.post("/lex/govern", `{"session_id":"s3","prompt":"Hello."}`); !strings.Contains(w.Body.String(), `"memory_injected":false`) {
			t.Errorf("%s", w.Body)
		}
	}
}

// A policy that does not exist is an error at load that says which do.
func TestUnknownPolicies(t *testing.T) {
	for _, c := range []struct{ options, site, want string }{
		{"lex", "lex {\n policy strict\n}", `there is no policy "strict"; the option lex defines policies by name`},
		{"lex {\n policy a {\n}\n policy b {\n}\n}", "lex {\n policy strict\n}", `there is no policy "strict"; give one of a, b`},
		{"lex {\n limits {\n plan p 1/1m strict\n}\n}", "lex", `limits plan p: there is no policy "strict"`},
		{"lex {\n policy a {\n refuse_at 0.2\n}\n}", "lex", "policy a: "},
		{"lex {\n policy a {\n identity none\n identity_modes full\n}\n}", "lex", "policy a: policy identity_modes"},
	} {
		p := &proxy{t: t, url: "http://127.0.0.1:0", log: filepath.Join(t.TempDir(), "log")}
		config, err := p.adapt(c.options, c.site)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v", c.options, c.site, err)
		}
	}
}
