package caddymodule_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/caddy-lex/lex/caddymodule"
)

// selfTests returns the canaries of a scrape, "dialect canary stream", and whether they were
// treated as they must be.
func selfTests(families map[string]*dto.MetricFamily) map[string]float64 {
	found := make(map[string]float64)
	for _, m := range families["lex_selftest_ok"].GetMetric() {
		of := make(map[string]string)
		for _, l := range m.GetLabel() {
			of[l.GetName()] = l.GetValue()
		}
		found[fmt.Sprint(of["dialect"], " ", of["canary"], " ", of["stream"])] = m.GetGauge().GetValue()
	}
	return found
}

// The self-test of a proxy sends its canaries in every dialect and leaves nothing: no call to
// the upstream, no receipt, no session, no metric and no line. The first pass is over when
// the health says ok.
func TestSelfTestLeavesNothing(t *testing.T) {
	for _, site := range []string{"lex", "lex {\nmode observe\n}", "lex {\nrequire_key\n}", "lex {\nrefuse_with status 403\nheaders full\nhold_back 0 1s\nunknown block\n}", "lex {\nupstream_dialect anthropic\n}"} {
		srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a canary reached the upstream") }))
		p := runCaddy(t, "lex {\nstore bolt ${store}\n}", "handle /metrics {\nmetrics\n}\nhandle {\n"+site+"\nreverse_proxy "+srv.Listener.Addr().String()+"\n}")
		before := p.scrape()
		status, body := p.health()
		if status != http.StatusOK || !strings.Contains(body, `"self_test":"ok"`) {
			t.Errorf("%s: %d %s", site, status, body)
		}
		after := p.scrape()
		var want []string
		for _, dialect := range []string{"anthropic_messages", "bedrock_converse", "gemini_generate", "lex", "ollama_chat", "openai_chat", "openai_responses"} {
			for _, canary := range []string{"attack", "surrender", "harmless"} {
				want = append(want, fmt.Sprint(dialect, " ", canary, " false"), fmt.Sprint(dialect, " ", canary, " true"))
			}
		}
		for _, dialect := range []string{"anthropic_messages", "bedrock_converse", "gemini_generate", "ollama_chat", "openai_chat", "openai_responses"} {
			want = append(want, dialect+" tool_call false", dialect+" tool_call true")
		}
		want = append(want, "lex tool_call false", "mcp tool_call false")
		slices.Sort(want)
		tests := selfTests(after)
		if have := slices.Sorted(maps.Keys(tests)); !slices.Equal(have, want) {
			t.Errorf("%s: the canaries are %q, want %q", site, have, want)
		}
		for name, ok := range tests {
			if ok != 1 {
				t.Errorf("%s: %s failed", site, name)
			}
		}
		for _, name := range []string{"lex_requests_total", "lex_receipts_total", "lex_refusals_total", "lex_governance_seconds", "lex_tool_calls_total"} {
			if value(before, name, nil) != value(after, name, nil) {
				t.Errorf("%s: %s grew", site, name)
			}
		}
		if _, _, log := p.send(http.MethodGet, "/audits/log", "", nil); log != "" {
			t.Errorf("%s: the log has %s", site, log)
		}
		logged := p.stop()
		for _, message := range []string{"a turn was refused", "a turn was let through", "a tool call was blocked", "the self-test found that Lex does not do its work"} {
			if lines := logLines(t, logged, message); len(lines) > 0 {
				t.Errorf("%s: %v", site, lines)
			}
		}
		srv.Close()
	}
}

// Options that change what a caller gets, and nothing of what is refused, fail no canary.
func TestSelfTestOfLegalOptions(t *testing.T) {
	for name, c := range map[string]struct {
		site    string
		options map[string]any
	}{
		"a baseline of refused prompts":        {site: `{"baseline":"always"}`},
		"no baseline":                          {site: `{"baseline":"never"}`},
		"a refusal with the surrender's words": {`{}`, map[string]any{"policy": map[string]any{"refusal_text": "I can no longer follow this conversation, --no-preserve-root or not."}}},
		"bodies smaller than a canary":         {`{}`, map[string]any{"limits": map[string]any{"body": 20}}},
	} {
		s := newSiteWith(t, c.site, c.options, answering("application/json", completion("Paris.")))
		caddymodule.RunSelfTest(s.handler)
		if status, h := s.health(); status != http.StatusOK || h["status"] != "ok" {
			t.Errorf("%s: %d %v, %q failed", name, status, h, caddymodule.FailedCanaries(s.handler))
		}
	}
}

// A chain that refuses what is harmless fails the health and the gauge, and leaves one
// line a canary.
func TestSelfTestFindsABrokenChain(t *testing.T) {
	p := runCaddy(t, "lex {\nstore bolt ${store}\n}", "handle /metrics {\nmetrics\n}\nhandle {\nlex {\ninspect_limit 5\n}\n}")
	status, body := p.health()
	if status != http.StatusServiceUnavailable || !strings.Contains(body, `"self_test":"degraded"`) || !strings.Contains(body, `"status":"degraded"`) {
		t.Errorf("%d %s", status, body)
	}
	tests := selfTests(p.scrape())
	if tests["openai_chat tool_call false"] != 0 || tests["openai_chat harmless true"] != 0 || tests["lex tool_call false"] != 1 {
		t.Errorf("%v", tests)
	}
	lines := logLines(t, p.stop(), "the self-test found that Lex does not do its work")
	if len(lines) != 25 || lines[0]["level"] != "warn" || lines[0]["problem"] == "" {
		t.Errorf("%d lines: %v", len(lines), lines)
	}
}

// A detector that no longer finds anything fails the health, until it does again.
func TestSelfTestFindsWhatIsInert(t *testing.T) {
	for _, mode := range []string{"enforce", "observe"} {
		s := newSite(t, `{"mode":"`+mode+`"}`, answering("application/json", completion("Paris.")))
		for _, want := range []string{"ok", "degraded", "ok"} {
			if want == "degraded" {
				caddymodule.BlindSelfTest(s.handler)
			}
			caddymodule.RunSelfTest(s.handler)
			if _, h := s.health(); h["components"].(map[string]any)["self_test"] != want || h["status"] != want {
				t.Errorf("%s: %v, want %s", mode, h, want)
			}
			caddymodule.OpenEyesOfSelfTest(s.handler)
		}
	}
}

// Where the interceptor finds nothing, every canary that calls a tool fails, and no other.
func TestSelfTestFindsThatCallsAreNotRead(t *testing.T) {
	s := newSite(t, `{}`, answering("application/json", completion("Paris.")))
	caddymodule.RunSelfTest(s.handler)
	before := caddymodule.FailedCanaries(s.handler)
	caddymodule.TameSelfTest(s.handler)
	caddymodule.RunSelfTest(s.handler)
	failed := caddymodule.FailedCanaries(s.handler)
	for _, name := range failed {
		if !strings.Contains(name, "tool_call") {
			t.Errorf("%s failed", name)
		}
	}
	if len(before) != 0 || len(failed) != 14 {
		t.Errorf("%q failed before, then %q", before, failed)
	}
}

// A path that the operator gave another dialect is tried in that one alone.
func TestSelfTestSpeaksTheSitesDialects(t *testing.T) {
	p := runCaddy(t, "lex {\nstore bolt ${store}\n}", "handle /metrics {\nmetrics\n}\nhandle {\nlex {\nendpoints off\ndialect /v1/messages openai\n}\n}")
	p.scrapeUntil(func(now map[string]*dto.MetricFamily) bool {
		tests := selfTests(now)
		_, anthropic := tests["anthropic_messages attack false"]
		_, own := tests["lex attack false"]
		return tests["openai_chat attack false"] == 1 && !anthropic && !own
	})
}

// Until the first pass is over the health is starting.
func TestHealthWaitsForTheSelfTest(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if state := caddymodule.StateOfSelfTestUnderWay(ctx); state != "starting" {
		t.Errorf("the state is %s", state)
	}
}

// A canary is well only if it is so on every route with its policy and mode.
func TestSelfTestOfSeveralRoutes(t *testing.T) {
	p := runCaddy(t, "lex {\nstore bolt ${store}\npolicy other {\nrefuse_at 0.9\n}\n}",
		"handle /metrics {\nmetrics\n}\nhandle /a/* {\nlex {\ninspect_limit 5\n}\n}\nhandle /b/* {\nlex {\npolicy other\n}\n}\nhandle {\nlex\n}")
	p.health()
	now := p.scrape()
	harmless := map[string]string{"dialect": "openai_chat", "canary": "harmless", "policy": ""}
	if n, broken := len(now["lex_selftest_ok"].GetMetric()), value(now, "lex_selftest_ok", harmless); n != 2*56 || broken != 0 {
		t.Errorf("%d canaries, and the ones that one route refuses are %v", n, broken)
	}
	harmless["policy"] = "other"
	if value(now, "lex_selftest_ok", harmless) != 2 {
		t.Error("the route with another policy fails too")
	}
}

// The remote models of a policy are not asked.
func TestSelfTestAsksNoRemoteModel(t *testing.T) {
	j := newJudge(t, convicts)
	s := newSiteWith(t, `{}`, j.options("m"), answering("application/json", completion("Paris.")))
	caddymodule.RunSelfTest(s.handler)
	if _, h := s.health(); h["status"] != "ok" || j.asked.Load() != 0 {
		t.Errorf("%v after %d questions", h, j.asked.Load())
	}
}

func BenchmarkSelfTest(b *testing.B) {
	s := newSite(b, `{}`, func(http.ResponseWriter, *http.Request) error { return io.EOF })
	for b.Loop() {
		caddymodule.RunSelfTest(s.handler)
	}
}
