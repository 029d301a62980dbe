package caddymodule_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	_ "github.com/caddy-lex/lex/caddymodule/demo"
)

// provision does with an app what `caddy validate` does.
func provision(t *testing.T, app map[string]any) (caddy.Context, error) {
	t.Helper()
	raw, err := json.Marshal(app)
	if err != nil {
		t.Fatal(err)
	}
	cfg := &caddy.Config{Admin: &caddy.AdminConfig{Disabled: true}, AppsRaw: caddy.ModuleMap{"lex": raw}}
	ctx, err := caddy.ProvisionContext(cfg)
	if err == nil {
		_, err = ctx.App("lex")
	}
	return ctx, err
}

// What is wrong with a remote model is said when the configuration is loaded,
// without the key, and without asking anybody.
func TestRemoteModelsAreValidated(t *testing.T) {
	t.Setenv("LEX_TEST_KEY", "canary-key")
	t.Setenv("LEX_TEST_BAD_KEY", "canary key")
	t.Setenv("LEX_TEST_EMPTY", "")
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("canary-key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a model was asked while the configuration was loaded")
	}))
	defer silent.Close()
	for _, test := range []struct {
		kind    string
		options map[string]any
		want    string // "" is no error
	}{
		{"embedder", map[string]any{"provider": "local"}, ""},
		{"embedder", map[string]any{"provider": "gemini", "api_key": "{env.LEX_TEST_KEY}", "base_url": silent.URL}, ""},
		{"embedder", map[string]any{"provider": "jina", "api_key": "{file." + file + "}"}, ""},
		{"embedder", map[string]any{"provider": "openai", "base_url": silent.URL}, ""},
		{"embedder", map[string]any{"provider": "gemini"}, "api_key is required"},
		{"embedder", map[string]any{"provider": "mistral"}, "api_key is required"},
		{"embedder", map[string]any{"provider": "jina"}, "api_key is required"},
		{"embedder", map[string]any{"provider": "openai"}, "api_key is required"},
		{"embedder", map[string]any{"provider": "gemini", "api_key": "{env.LEX_TEST_EMPTY}"}, "what it names is empty"},
		{"embedder", map[string]any{"provider": "gemini", "api_key": "sk-{env.LEX_TEST_EMPTY}"}, "what it names is empty"},
		{"embedder", map[string]any{"provider": "gemini", "api_key": "{env.LEX_TEST_BAD_KEY}"}, "no key has"},
		{"embedder", map[string]any{"provider": "gemini", "api_key": "{canary.key}"}, "placeholder that is not known"},
		{"embedder", map[string]any{"provider": "gemini", "api_key": "k", "base_url": "localhost:80"}, "base_url must be"},
		{"embedder", map[string]any{"provider": "openai", "base_url": "{env.LEX_TEST_EMPTY}"}, "base_url is set, but what it names is empty"},
		{"embedder", map[string]any{"provider": "openai", "base_url": "http://{canary.host}/v1"}, "base_url has a placeholder that is not known"},
		{"judge", map[string]any{"provider": "openai", "base_url": silent.URL, "model": "{env.LEX_TEST_EMPTY}"}, "model is set, but what it names is empty"},
		{"embedder", map[string]any{"provider": "gemini", "api_key": "k", "dimensions": -1}, "dimensions must be"},
		{"embedder", map[string]any{"provider": "gemini", "api_key": "k", "colour": "red"}, `unknown field "colour"`},
		{"embedder", map[string]any{"provider": "acme"}, "unknown module: lex.embedders.acme"},
		{"judge", map[string]any{"provider": "local"}, ""},
		{"judge", map[string]any{"provider": "openai", "model": "llama-guard3", "base_url": silent.URL}, ""},
		{"judge", map[string]any{"provider": "openai", "api_key": "{env.LEX_TEST_KEY}"}, "model is required"},
		{"judge", map[string]any{"provider": "openai", "model": "gpt"}, "api_key is required"},
		{"judge", map[string]any{"provider": "openai", "model": "gpt", "api_key": "{env.LEX_TEST_EMPTY}"}, "what it names is empty"},
		{"judge", map[string]any{"provider": "openai", "model": "llama-guard3", "base_url": silent.URL, "fail": "refuse"}, ""},
		{"judge", map[string]any{"provider": "openai", "model": "llama-guard3", "base_url": silent.URL, "fail": "open"}, "give local or refuse"},
		{"judge", map[string]any{"provider": "openai", "model": "gpt", "dimensions": 3}, `unknown field "dimensions"`},
	} {
		_, err := provision(t, map[string]any{test.kind: test.options})
		if (err == nil) != (test.want == "") || (err != nil && !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s %v: %v, want %q", test.kind, test.options, err, test.want)
		}
		if err != nil && (strings.Contains(err.Error(), "canary-key") || strings.Contains(err.Error(), "canary key")) {
			t.Errorf("%s %v: the error shows the key: %v", test.kind, test.options, err)
		}
	}
}

// A reload that keeps the embedder keeps what it knows.
func TestReloadKeepsTheEmbeddersCache(t *testing.T) {
	e := newEmbeddings(t)
	t.Cleanup(func() { _ = caddy.Stop() })
	db := filepath.Join(t.TempDir(), "lex.db")
	for i, reload := range []struct {
		tau     float64
		timeout string
		asked   int
	}{{0.08, "2s", 1}, {0.09, "2s", 1}, {0.08, "2s", 1}, {0.08, "3s", 2}} {
		address := freeAddress(t) // one of its own: a listener that closes may reset who comes just then
		run(t, address, os.DevNull, map[string]any{
			"store":    map[string]any{"engine": "bolt", "path": db},
			"policy":   map[string]any{"tau": reload.tau},
			"embedder": map[string]any{"provider": "openai", "base_url": e.URL, "timeout": reload.timeout},
		})
		resp, err := http.Post("http://"+address+"/lex/govern", "application/json", strings.NewReader(question))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !bytes.Contains(body, []byte(`"prompt_threat_signal":-1,`)) || len(e.asked()) != reload.asked {
			t.Errorf("load %d: the provider was asked %d times, want %d: %s", i+1, len(e.asked()), reload.asked, body)
		}
	}
}

// run loads a configuration in place of the one that runs, and logs to a file.
func run(t *testing.T, address, log string, app map[string]any) {
	t.Helper()
	lex, err := json.Marshal(app)
	if err != nil {
		t.Fatal(err)
	}
	site := fmt.Sprintf(`{"servers":{"site":{"listen":[%q],"automatic_https":{"disable":true},"routes":[{"handle":[{"handler":"lex"},{"handler":"lex_demo_model"}]}]}}}`, address)
	storage, _ := json.Marshal(map[string]any{"module": "file_system", "root": t.TempDir()})
	writer, _ := json.Marshal(map[string]any{"output": "file", "filename": log, "roll": false})
	if err := caddy.Run(&caddy.Config{
		Logging:    &caddy.Logging{Logs: map[string]*caddy.CustomLog{"default": {BaseLog: caddy.BaseLog{WriterRaw: writer, Level: "DEBUG"}}}},
		Admin:      &caddy.AdminConfig{Disabled: true, Config: &caddy.ConfigSettings{Persist: new(bool)}},
		StorageRaw: storage, AppsRaw: caddy.ModuleMap{"lex": lex, "http": []byte(site)},
	}); err != nil {
		t.Fatal(err)
	}
}

// When remote models fail the log says so, once, and tells neither key nor text
// nor what the provider said.
func TestLogsOfRemoteModels(t *testing.T) {
	t.Setenv("LEX_TEST_KEY", "canary-key")
	e, j := newEmbeddings(t), newJudge(t, "")
	e.down.Store(true)
	t.Cleanup(func() { _ = caddy.Stop() })
	address, log := freeAddress(t), filepath.Join(t.TempDir(), "log")
	run(t, address, log, map[string]any{
		"store":    map[string]any{"engine": "bolt", "path": filepath.Join(t.TempDir(), "lex.db")},
		"embedder": map[string]any{"provider": "mistral", "base_url": e.URL, "api_key": "{env.LEX_TEST_KEY}"},
		"judge":    map[string]any{"provider": "openai", "model": "gpt", "base_url": j.URL, "api_key": "{env.LEX_TEST_KEY}"},
	})
	for range 8 {
		postGovern(t, address, "What is canary-text?")
	}
	said := stopAndRead(t, log)
	for _, detector := range []string{"mistral_embedder", "openai_judge"} {
		if n := strings.Count(said, `"detector":"`+detector+`","why":"server_error"`); n != 1 {
			t.Errorf("%s: %d lines", detector, n)
		}
	}
	if strings.Contains(said, "canary") {
		t.Errorf("the log tells too much:\n%s", said)
	}
}

// postGovern asks a running proxy, whatever it answers.
func postGovern(t *testing.T, address, prompt string) {
	t.Helper()
	resp, err := http.Post("http://"+address+"/lex/govern", "application/json", strings.NewReader(`{"prompt":"`+prompt+`","session_id":"s"}`))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

// stopAndRead stops Caddy and returns what it wrote to its log.
func stopAndRead(t *testing.T, log string) string {
	t.Helper()
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	said, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return string(said)
}

// That a model rejects what it is asked is said once, and that it no longer does.
func TestLogsOfRejections(t *testing.T) {
	g := newGuardServer(t, "chat", "rejects")
	t.Cleanup(func() { _ = caddy.Stop() })
	address, log := freeAddress(t), filepath.Join(t.TempDir(), "log")
	app := g.options(nil)
	app["store"] = map[string]any{"engine": "bolt", "path": filepath.Join(t.TempDir(), "lex.db")}
	run(t, address, log, app)
	for i := range 20 {
		g.says.Store("rejects")
		if i == 10 {
			g.says.Store("fine")
		}
		postGovern(t, address, fmt.Sprintf("What is canary-text %d?", i))
	}
	said := stopAndRead(t, log)
	if failing, back := strings.Count(said, "the remote model rejects what it is asked"), strings.Count(said, "the remote model no longer rejects what it is asked"); failing != 2 || back != 1 || strings.Contains(said, "canary") {
		t.Errorf("%d lines that it rejects, %d that it no longer does:\n%s", failing, back, said)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// gauged is the sum of a metric's values over the label sets that have all of
// want; of a histogram it is the number of observations.
func gauged(t *testing.T, registry prometheus.Gatherer, name string, want map[string]string) (sum float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && has(m, want) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

// metric is the sum of a metric's values over the label sets that have all of
// the given names and values.
func metric(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	ctx, err := provision(t, map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[string]string)
	for i := 0; i+1 < len(labels); i += 2 {
		want[labels[i]] = labels[i+1]
	}
	return gauged(t, ctx.GetMetricsRegistry(), name, want)
}

func has(m *dto.Metric, want map[string]string) bool {
	found := 0
	for _, l := range m.GetLabel() {
		if want[l.GetName()] == l.GetValue() {
			found++
		}
	}
	return found == len(want)
}

// What the remote models do is counted: requests, failures by kind, how long
// they took, what needed no request, and the breaker.
func TestRemoteModelMetrics(t *testing.T) {
	ctx, err := provision(t, map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	registry := ctx.GetMetricsRegistry()
	mine := map[string]string{"detector": "jina_embedder"}
	value := func(name string, more ...string) float64 {
		want := map[string]string{"detector": "jina_embedder"}
		for i := 0; i+1 < len(more); i += 2 {
			want[more[i]] = more[i+1]
		}
		return gauged(t, registry, name, want)
	}
	e := newEmbeddings(t)
	s := newSiteWith(t, `{"baseline":"never"}`, map[string]any{
		"embedder": map[string]any{"provider": "jina", "base_url": e.URL, "api_key": "k"},
	}, answering("application/json", completion("Paris.")))
	names := []string{"lex_model_requests_total", "lex_model_request_duration_seconds", "lex_model_cache_hits_total", "lex_model_failures_total"}
	before := make(map[string]float64)
	for _, n := range names {
		before[n] = gauged(t, registry, n, mine)
	}
	govern(s, question)
	govern(s, question)
	e.down.Store(true)
	for i := range 7 {
		govern(s, fmt.Sprintf(`{"prompt":"question %d","session_id":"s"}`, i))
	}
	for name, want := range map[string]float64{
		"lex_model_requests_total": 9, "lex_model_request_duration_seconds": 7, "lex_model_cache_hits_total": 1, "lex_model_failures_total": 7,
	} {
		if got := value(name) - before[name]; got != want {
			t.Errorf("%s rose by %v, want %v", name, got, want)
		}
	}
	if value("lex_model_failures_total", "kind", "server_error") < 5 || value("lex_model_failures_total", "kind", "breaker_open") < 2 || value("lex_model_breaker_open") != 1 {
		t.Errorf("5xx %v, kept back %v, open %v", value("lex_model_failures_total", "kind", "server_error"),
			value("lex_model_failures_total", "kind", "breaker_open"), value("lex_model_breaker_open"))
	}
	// A second model under the same name hides nothing of the first.
	well := newEmbeddings(t)
	newSiteWith(t, `{}`, map[string]any{
		"embedder": map[string]any{"provider": "jina", "base_url": well.URL, "api_key": "k"},
	}, answering("application/json", completion("Paris.")))
	if open := value("lex_model_breaker_open"); open != 1 {
		t.Errorf("%v breakers are open", open)
	}
}
