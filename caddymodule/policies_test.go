package caddymodule_test

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store/storetest"
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

// What a named policy does not set is as in the unnamed one.
func TestANamedPolicyInherits(t *testing.T) {
	t.Setenv("LEX_TEST_ADMIN", password)
	options := map[string]any{
		"policy": map[string]any{
			"refusal_text": "Not here.", "identity_modes": []string{"full", "minimal"}, "memory": 0,
			"limits": map[string]any{"anonymous": map[string]any{"requests": 4, "window": 3600e9}},
		},
		"policies": map[string]any{"strict": map[string]any{"refuse_at": 0.6}},
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
	if w := s.post("/lex/govern", `{"session_id":"s4","prompt":"Hello."}`); w.Code != http.StatusTooManyRequests {
		t.Errorf("the fifth request: %d", w.Code)
	}
}

// The thresholds of the options are those of the policy that receipts name.
func TestThresholds(t *testing.T) {
	t.Setenv("LEX_TEST_ADMIN", password)
	options := map[string]any{
		"policy":   map[string]any{"severe_at": 0.6, "threat_at": 0.4, "cusum_h": 1.5, "cusum_slow_h": 2},
		"policies": map[string]any{"strict": map[string]any{"threat_severity": 0.45, "cusum_h": 0.7}},
	}
	s := newSiteWith(t, `{"policy":"strict","baseline":"never"}`, options, answering("application/json", completion("Paris.")))
	s.post("/lex/govern", `{"session_id":"s","prompt":"Hello."}`)
	hash, _ := s.receipts()[0]["policy"].(string)
	got, err := kernel.ParsePolicy(s.send(http.MethodGet, "/lex/policies/"+hash, "").Body.Bytes())
	if err != nil || got.SevereAt != 0.6 || got.ThreatAt != 0.4 || got.ThreatSeverity != 0.45 || got.CUSUMH != 0.7 || got.CUSUMSlowH != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A policy that does not exist is an error at load that says which do.
func TestUnknownPolicies(t *testing.T) {
	for _, c := range []struct{ options, site, want string }{
		{"lex", "lex {\n policy strict\n}", `there is no policy "strict"; the option lex defines policies by name`},
		{"lex {\n policy a {\n}\n policy b {\n}\n}", "lex {\n policy strict\n}", `there is no policy "strict"; give one of a, b`},
		{"lex {\n limits {\n plan p 1/1m strict\n}\n}", "lex", `limits plan p: there is no policy "strict"`},
		{"lex {\n policy a {\n refuse_at 0.2\n}\n}", "lex", "policy a: "},
		{"lex {\n policy a {\n template /nowhere/t\n}\n}", "lex", "policy a: reading a template: open /nowhere/t"},
		{"lex {\n policy a {\n template /dev/null\n}\n}", "lex", "policy a: policy template /dev/null: it has no word beside its places"},
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

// Policies that JSON gives no name, no content or a strange name are errors at load.
func TestPoliciesThatMakeNoSense(t *testing.T) {
	for policies, want := range map[string]string{
		`{"":{}}`:                                `policy "": give a name`,
		`{"a b":{}}`:                             `policy "a b": give a name`,
		`{"a@b":{}}`:                             `policy "a@b": give a name`,
		`{"` + strings.Repeat("a", 65) + `":{}}`: "give a name of at most 64",
		`{"strict":null}`:                        "policy strict: give an object",
		`{"strict":{"memory":51}}`:               "policy strict: memory: 51",
		`{"strict":{"limits":{"anonymous":{"requests":1}}}}`: "policy strict: limits anonymous",
		`{"strict":{"judge":{"provider":"nobody"}}}`:         "policy strict: loading the judge",
	} {
		err := validate([]byte(`{"admin":{"disabled":true},"apps":{"lex":{"policies":` + policies + `}}}`))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", policies, err)
		}
	}
}

// Validating a configuration opens no store, whatever its policies hold.
func TestValidatingOpensNoStore(t *testing.T) {
	p := &proxy{t: t, url: "http://127.0.0.1:0", log: filepath.Join(t.TempDir(), "log"), data: filepath.Join(t.TempDir(), "lex.db")}
	config, err := p.adapt(policyOptions, strings.ReplaceAll(policySite, "${model}", "127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate(config); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(p.data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the store was opened: %v", err)
	}
}

// The judge and the embedder of a policy count for it alone, and so does their
// failure.
func TestAPolicyHasDetectorsOfItsOwn(t *testing.T) {
	dead := map[string]any{"provider": "openai", "base_url": "http://127.0.0.1:1/v1", "model": "m"}
	strict := map[string]any{"provider": "openai", "base_url": "http://127.0.0.1:1/v1", "model": "m", "fail": "refuse"}
	local := map[string]any{"provider": "local"}
	for name, c := range map[string]struct {
		app, policy map[string]any
		refused     map[string]bool // by the site's policy
		detectors   map[string]string
	}{
		"a local judge below a remote one": {
			map[string]any{"judge": strict},
			map[string]any{"judge": local},
			map[string]bool{"": true, "own": false},
			map[string]string{"": "local echo local_judge openai_judge", "own": "local echo local_judge"},
		},
		"a remote judge above a local one": {
			map[string]any{},
			map[string]any{"judge": strict},
			map[string]bool{"": false, "own": true},
			map[string]string{"": "local echo local_judge", "own": "local echo local_judge openai_judge"},
		},
		"a judge that is inherited": {
			map[string]any{"judge": strict},
			map[string]any{"tau": 0.09},
			map[string]bool{"": true, "own": true},
			map[string]string{"": "local echo local_judge openai_judge", "own": "local echo local_judge openai_judge"},
		},
		"an embedder": {
			map[string]any{},
			map[string]any{"embedder": dead},
			map[string]bool{"": false, "own": false},
			map[string]string{"": "local echo local_judge", "own": "openai_embedder local echo local_judge"},
		},
	} {
		c.app["policies"] = map[string]any{"own": c.policy}
		for _, policy := range []string{"", "own"} {
			s := newSiteWith(t, `{"policy":"`+policy+`","baseline":"never"}`, c.app, answering("application/json", completion("Paris.")))
			var got struct {
				Refused  bool `json:"refused"`
				Degraded bool `json:"detection_degraded"`
				Coverage struct {
					Detectors []struct{ Name string }
				}
			}
			if err := json.Unmarshal(s.post("/lex/govern", question).Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			var detectors []string
			for _, d := range got.Coverage.Detectors {
				detectors = append(detectors, d.Name)
			}
			if got.Refused != c.refused[policy] || strings.Join(detectors, " ") != c.detectors[policy] || got.Degraded != strings.Contains(c.detectors[policy], "embedder") {
				t.Errorf("%s: the policy %q: %+v", name, policy, got)
			}
		}
	}
}

// A stream goes on under the policy with which it began, though a reload took it
// away meanwhile; its receipt names that policy, and verifies.
func TestAPolicyIsRemovedWhileItsStreamRuns(t *testing.T) {
	asked, reloaded := make(chan struct{}), make(chan struct{})
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, chunk("", map[int]string{0: strings.Repeat("Paris is a city. ", 60)}))
		w.(http.Flusher).Flush()
		close(asked)
		<-reloaded
		_, _ = io.WriteString(w, stream(capitulation))
	}))
	t.Cleanup(model.Close)
	site := strings.ReplaceAll(policySite, "${model}", model.Listener.Addr().String())
	p := runCaddy(t, policyOptions, site)
	before := p.url
	r, err := http.NewRequest(http.MethodPost, before+"/v1/chat/completions", strings.NewReader(chatStreamed))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-App", "strict")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	<-asked
	without := strings.NewReplacer("policy strict {", "policy other {", "1000/1h strict", "1000/1h").Replace(policyOptions)
	if err := p.load(without, site); err == nil {
		t.Error("a site may choose a policy that is gone")
	}
	if err := p.load(without, strings.ReplaceAll(site, "policy strict", "policy other")); err != nil {
		t.Fatal(err)
	}
	close(reloaded)
	text, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(text), "Not there.") || strings.Contains(string(text), "DAN") {
		t.Errorf("%v: %.300s", err, text)
	}
	_, id, _ := strings.Cut(string(text), "x-lex-receipt-id: ")
	id, _, _ = strings.Cut(id, "\n")
	http.DefaultClient.CloseIdleConnections() // the server of the first configuration closes them
	if _, report := p.ask("/audits/verify", `{"receipt_id":"`+id+`"}`); report["valid"] != true {
		t.Errorf("%v", report)
	}
}

// One session on a site that observes and on one that enforces, under two policies
// and on two replicas: what it does on the one counts on the other, and every
// receipt verifies.
func TestOneSessionUnderTwoPolicies(t *testing.T) {
	redis := storetest.StartRedis(t)
	million := map[string]any{"anonymous": map[string]any{"requests": 1_000_000, "window": 60e9}, "read": map[string]any{"requests": 1_000_000, "window": 60e9}}
	replica := func(config string, policy map[string]any) *site {
		return newSiteWith(t, config, map[string]any{
			"store": map[string]any{"engine": "redis", "urls": []string{redis}}, "policies": map[string]any{"own": policy}, "limits": million,
		}, answering("application/json", completion("Paris.")))
	}
	sites := []*site{
		replica(`{"policy":"own","mode":"observe","baseline":"never"}`, map[string]any{"refuse_at": 0.9, "tau": 0.1}),
		replica(`{"policy":"own","baseline":"never"}`, map[string]any{"refuse_at": 0.6, "tau": 0.09}),
	}
	for i, prompt := range []string{"What is the capital of France?", attack, attack, "And of Spain?", "You are worthless.", attack} {
		for _, s := range sites {
			body, _ := json.Marshal(map[string]any{"session_id": "s", "prompt": prompt})
			for _, path := range []string{"/lex/govern", "/lex/govern/stream"} {
				if w := s.post(path, string(body)); w.Code != http.StatusOK {
					t.Fatalf("turn %d: %d %s", i, w.Code, w.Body)
				}
			}
		}
	}
	receipts := sites[0].receipts()
	if len(receipts) != 24 {
		t.Fatalf("%d receipts", len(receipts))
	}
	policies := make(map[any]int)
	for i, r := range receipts {
		policies[r["policy"]]++
		if i+1 < len(receipts) && predecessor(r) != receipts[i+1]["id"] {
			t.Errorf("receipt %d follows %v", i, r["prev"])
		}
		w := sites[i%2].post("/audits/verify", `{"receipt_id":"`+r["id"].(string)+`"}`)
		if !strings.Contains(w.Body.String(), `"valid":true`) {
			t.Errorf("%s", w.Body)
		}
	}
	if len(policies) != 2 {
		t.Errorf("the receipts name the policies %v", policies)
	}
}

// The policy of a key's plan holds for /lex/govern too, streamed or not, where a key
// is required; a key whose plan is gone is refused.
func TestAPlansPolicyBehindRequireKey(t *testing.T) {
	t.Setenv("LEX_TEST_ADMIN", password)
	million := map[string]any{"requests": 1_000_000, "window": 60e9}
	s := newSiteWith(t, `{"require_key":true,"baseline":"never"}`, map[string]any{
		"policies": map[string]any{"own": map[string]any{"refusal_text": "Not there."}},
		"limits": map[string]any{"keyed": million, "anonymous": million, "read": million, "plans": map[string]any{
			"careful": map[string]any{"requests": 100, "window": 60e9, "policy": "own"},
		}},
	}, answering("application/json", completion("Paris.")))
	key := newKey(s, `{"name":"app","plan":"careful"}`)
	refused := `{"session_id":"s","prompt":"` + attack + `"}`
	for path, body := range map[string]string{"/lex/govern": refused, "/lex/govern/stream": refused, "/v1/chat/completions": chatAttack, "/v2/other": chatAttack} {
		if w := s.post(path, body); w.Code != http.StatusUnauthorized {
			t.Errorf("%s without a key: %d", path, w.Code)
		}
		if w := s.post(path, body, "X-Lex-Api-Key", key); !strings.Contains(w.Body.String(), "Not there.") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
