package caddymodule_test

import (
	"bufio"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/caddyserver/caddy/v2/modules/metrics"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/caddy-lex/lex/caddymodule"
)

// scrape reads the metrics of lex from a running proxy, as Prometheus would.
func (p *proxy) scrape() map[string]*dto.MetricFamily {
	p.t.Helper()
	status, _, text := p.send(http.MethodGet, "/metrics", "", nil)
	if status != http.StatusOK {
		p.t.Fatalf("the scrape got %d", status)
	}
	return parseMetrics(p.t, text)
}

// scrapeUntil scrapes until the metrics are as they should be in the end.
func (p *proxy) scrapeUntil(asWanted func(map[string]*dto.MetricFamily) bool) map[string]*dto.MetricFamily {
	p.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		families := p.scrape()
		if asWanted(families) {
			return families
		}
		if time.Now().After(deadline) {
			p.t.Errorf("the metrics stay at %v", families)
			return families
		}
	}
}

func parseMetrics(t *testing.T, text string) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(families, func(name string, _ *dto.MetricFamily) bool {
		return !strings.HasPrefix(name, "lex_") && !strings.HasPrefix(name, "gen_ai_")
	})
	return families
}

// value sums up the series of a metric that have the labels: counts of histograms.
func value(families map[string]*dto.MetricFamily, name string, labels map[string]string) (sum float64) {
	for _, m := range families[name].GetMetric() {
		have := make(map[string]string)
		for _, l := range m.GetLabel() {
			have[l.GetName()] = l.GetValue()
		}
		matches := true
		for k, v := range labels {
			matches = matches && have[k] == v
		}
		if matches {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sum
}

// A busyUpstream answers chats with a question's answer, with a capitulation or with a
// tool call, as the prompt asks, whole or in a stream.
func busyUpstream(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body strings.Builder
		_, _ = bufio.NewReader(r.Body).WriteTo(&body)
		switch said := body.String(); {
		case strings.Contains(said, `"stream":true`):
			_ = answering("text/event-stream", stream("Par", "is."))(w, r)
		case strings.Contains(said, "river"):
			_ = answering("application/json", completion(capitulation))(w, r)
		case strings.Contains(said, "disk"):
			_ = answering("application/json", `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"run_command","arguments":"{\"command\":\"rm -rf / --no-preserve-root\"}"}}]}}],"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}}`)(w, r)
		default:
			_ = answering("application/json", strings.TrimSuffix(completion("Paris."), "}")+`,"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}}`)(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String()
}

// runBusy starts a proxy with a judge and an embedder that do not answer, and sends it
// what makes every kind of metric.
func runBusy(t *testing.T) *proxy {
	t.Helper()
	remote := "{\nbase_url http://127.0.0.1:1/v1\nmodel m\n}"
	p := runCaddy(t, "lex {\nstore bolt ${store}\nembedder openai "+remote+"\njudge openai "+remote+"\n}", "handle /metrics {\nmetrics\n}\nhandle {\nlex\nreverse_proxy "+busyUpstream(t)+"\n}")
	for _, r := range [][2]string{
		{"/v1/chat/completions", chatQuestion},
		{"/v1/chat/completions", chatStreamed},
		{"/v1/chat/completions", chatAttack},
		{"/v1/chat/completions", strings.Replace(chatQuestion, "the capital of France", "the longest river", 1)},
		{"/v1/chat/completions", strings.Replace(chatQuestion, "the capital of France", "on my disk", 1)},
		{"/v1/chat/completions", "{"},
		{"/lex/govern", question},
		{"/lex/govern/stream", question},
		{"/lex/tools/check", destructiveCall},
		{"/v1/other", `{"a":"b"}`},
	} {
		if status, _, body := p.send(http.MethodPost, r[0], r[1], http.Header{"X-Lex-Session": {"s1"}}); status == 0 || status == http.StatusNotFound {
			t.Fatalf("%s: %d %s", r[0], status, body)
		}
	}
	return p
}

// Every phase, store operation, detector and token shows in a scrape of the running proxy.
func TestMetrics(t *testing.T) {
	p := runBusy(t)
	before := p.scrapeUntil(func(now map[string]*dto.MetricFamily) bool { return value(now, "lex_inflight_streams", nil) == 0 })
	for range 3 {
		p.send(http.MethodPost, "/v1/chat/completions", chatQuestion, nil)
		p.send(http.MethodPost, "/v1/chat/completions", chatStreamed, nil)
	}
	after := p.scrapeUntil(func(now map[string]*dto.MetricFamily) bool { // tokens are counted behind the end of an answer
		const name = "gen_ai_client_token_usage"
		return value(now, "lex_inflight_streams", nil) == 0 && value(now, name, nil)-value(before, name, nil) == 12
	})
	for _, c := range []struct {
		name   string
		labels map[string]string
		more   float64
	}{
		{"lex_governance_seconds", map[string]string{"phase": "read"}, 6},
		{"lex_governance_seconds", map[string]string{"phase": "assess"}, 6},
		{"lex_governance_seconds", map[string]string{"phase": "decide"}, 6},
		{"lex_governance_seconds", map[string]string{"phase": "conclude"}, 6},
		{"lex_governance_seconds", map[string]string{"phase": "commit"}, 6},
		{"lex_margin", nil, 6},
		{"lex_detector_runs_total", map[string]string{"detector": "local", "outcome": "clean"}, 6},
		{"lex_detector_runs_total", map[string]string{"detector": "local_judge", "outcome": "clean"}, 6},
		{"lex_detector_runs_total", map[string]string{"detector": "openai_judge", "outcome": "failed"}, 6},
		{"lex_detector_runs_total", map[string]string{"detector": "openai_embedder", "outcome": "failed"}, 6},
		{"gen_ai_client_token_usage", map[string]string{"gen_ai_provider_name": "openai", "gen_ai_operation_name": "chat", "gen_ai_token_type": "input"}, 6},
		{"gen_ai_client_token_usage", map[string]string{"gen_ai_token_type": "output"}, 6},
		{"lex_inflight_streams", nil, 0},
		{"lex_held_bytes", nil, 0},
	} {
		if more := value(after, c.name, c.labels) - value(before, c.name, c.labels); more != c.more {
			t.Errorf("%s %v grew by %v, want %v", c.name, c.labels, more, c.more)
		}
	}
	for _, c := range []struct {
		name   string
		labels map[string]string
	}{
		{"lex_store_seconds", map[string]string{"operation": "session"}},
		{"lex_store_seconds", map[string]string{"operation": "commit"}},
		{"lex_store_seconds", map[string]string{"operation": "consume"}},
		{"lex_detector_runs_total", map[string]string{"detector": "local", "outcome": "flagged"}},
		{"lex_detector_runs_total", map[string]string{"detector": "local_judge", "outcome": "flagged"}},
		{"lex_detector_runs_total", map[string]string{"detector": "toolcall", "outcome": "flagged"}},
		{"lex_interventions_total", nil},
		{"lex_requests_total", map[string]string{"outcome": "rejected"}},
	} {
		if value(after, c.name, c.labels) == 0 {
			t.Errorf("%s %v is 0", c.name, c.labels)
		}
	}
	if held, streams := value(after, "lex_held_bytes", nil), value(after, "lex_inflight_streams", nil); held != 0 || streams != 0 {
		t.Errorf("%v bytes are held of %v streams, though nothing is under way", held, streams)
	}
}

// A stream under way is counted, and so is what it holds back.
func TestMetricsOfAStreamUnderWay(t *testing.T) {
	release, begun := make(chan struct{}), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		text := stream("Paris is the capital of France.")
		half := strings.Index(text, "\n\n") + 2
		half += strings.Index(text[half:], "\n\n") + 2
		_, _ = fmt.Fprint(w, text[:half])
		_ = http.NewResponseController(w).Flush()
		close(begun)
		<-release
		_, _ = fmt.Fprint(w, text[half:])
	}))
	defer srv.Close()
	p := runCaddy(t, "lex {\nstore bolt ${store}\n}", "handle /metrics {\nmetrics\n}\nhandle {\nlex {\nhold_back 256 1m\n}\nreverse_proxy "+srv.Listener.Addr().String()+"\n}")
	done := make(chan string)
	go func() {
		_, _, body := p.send(http.MethodPost, "/v1/chat/completions", chatStreamed, nil)
		done <- body
	}()
	<-begun
	p.scrapeUntil(func(now map[string]*dto.MetricFamily) bool {
		return value(now, "lex_inflight_streams", nil) == 1 && value(now, "lex_held_bytes", nil) > 0
	})
	close(release)
	if body := <-done; !strings.Contains(body, "[DONE]") {
		t.Errorf("the stream ended in %s", body)
	}
	p.scrapeUntil(func(now map[string]*dto.MetricFamily) bool {
		return value(now, "lex_inflight_streams", nil) == 0 && value(now, "lex_held_bytes", nil) == 0
	})
}

// The names keep to Prometheus' rules.
func TestMetricNames(t *testing.T) {
	p := runBusy(t)
	_, _, text := p.send(http.MethodGet, "/metrics", "", nil)
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		if strings.HasPrefix(problem.Metric, "lex_") || strings.HasPrefix(problem.Metric, "gen_ai_") {
			t.Errorf("%s: %s", problem.Metric, problem.Text)
		}
	}
}

var metricRow = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (counter|gauge|histogram) \\| ((?:`\\w+`(?:, )?)*) ?\\| ")

// docs/operations.md lists every metric with its type and labels, and no other. What a
// scrape has of them is compared too, so the list is not only that of the code.
func TestMetricsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	types, labels := make(map[string]string), make(map[string][]string)
	for _, row := range metricRow.FindAllStringSubmatch(string(page), -1) {
		types[row[1]] = row[2]
		labels[row[1]] = slices.Sorted(slices.Values(strings.FieldsFunc(row[3], func(r rune) bool { return strings.ContainsRune("`, ", r) })))
	}
	declared := caddymodule.MetricLabels()
	for name, want := range declared {
		if have, ok := labels[name]; !ok || !slices.Equal(have, want) {
			t.Errorf("%s has the labels %v, and the page says %v", name, want, have)
		}
	}
	for name := range labels {
		if _, ok := declared[name]; !ok {
			t.Errorf("the page lists %s, which there is not", name)
		}
	}
	families := runBusy(t).scrape()
	if len(families) < 15 {
		t.Errorf("only %d metrics in the scrape", len(families))
	}
	for name, family := range families {
		if kind := strings.ToLower(family.GetType().String()); types[name] != kind {
			t.Errorf("%s is a %s, and the page says %q", name, kind, types[name])
		}
		for _, m := range family.GetMetric() {
			var have []string
			for _, l := range m.GetLabel() {
				have = append(have, l.GetName())
			}
			if slices.Sort(have); !slices.Equal(have, labels[name]) {
				t.Errorf("the scrape has %s with %v, and the page says %v", name, have, labels[name])
			}
		}
	}
}

// Measuring a turn takes no memory.
func TestMeasuringAllocatesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, caddymodule.ObserveTiming); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
