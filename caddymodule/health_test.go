package caddymodule_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-lex/lex/caddymodule"
)

// The health says so while a judge fails, and how its breaker stands. Turns go on, so it
// stays 200.
func TestHealth(t *testing.T) {
	j := newJudge(t, acquits)
	s := newSiteWith(t, `{}`, j.options("m"), answering("application/json", completion(quietAnswer)))
	check := func(status, judge, breaker string) {
		t.Helper()
		code, h := s.health()
		if code != http.StatusOK || h["status"] != status || h["components"].(map[string]any)["judge"] != judge || h["breakers"].(map[string]any)["judge"] != breaker {
			t.Errorf("%d %v, want %s, the judge %s with a breaker that is %s", code, h, status, judge, breaker)
		}
	}
	asked := 0
	ask := func(n int) {
		for range n {
			asked++
			s.post("/v1/chat/completions", strings.Replace(chatQuestion, "France", fmt.Sprint("France, for the time ", asked), 1))
		}
	}
	check("ok", "ok", "closed")
	ask(1)
	check("ok", "ok", "closed")
	j.says.Store("")
	ask(1)
	check("degraded", "degraded", "closed")
	ask(20)
	check("degraded", "degraded", "open")
	page, err := os.ReadFile("../docs/operations.md")
	if body := s.send(http.MethodGet, "/lex/health", "").Body.String(); err != nil || !strings.Contains(string(page), "```json\n"+body+"```") {
		t.Errorf("docs/operations.md shows another answer than %s", body)
	}
}

// One that answers again is well again.
func TestHealthComesBack(t *testing.T) {
	j := newJudge(t, "")
	s := newSiteWith(t, `{}`, j.options("m"), answering("application/json", completion(quietAnswer)))
	s.post("/v1/chat/completions", chatQuestion)
	if _, h := s.health(); h["status"] != "degraded" {
		t.Errorf("%v", h)
	}
	j.says.Store(acquits)
	s.post("/v1/chat/completions", strings.Replace(chatQuestion, "France", "Spain", 1))
	if _, h := s.health(); h["status"] != "ok" {
		t.Errorf("%v", h)
	}
}

// A guard that rejects what it is asked is not well until it has given evidence once. After
// that a rejection may be about one text, and five in a row are not.
func TestHealthOfRejections(t *testing.T) {
	g := newGuardServer(t, "chat", "rejects")
	s := newSiteWith(t, `{}`, g.options(map[string]any{"fail": "refuse"}), answering("application/json", completion(quietAnswer)))
	asked := 0
	ask := func(n int, says, want string) {
		t.Helper()
		g.says.Store(says)
		for range n {
			asked++
			s.post("/v1/chat/completions", strings.Replace(chatQuestion, "France", fmt.Sprint("France, for the time ", asked), 1))
		}
		if _, h := s.health(); h["components"].(map[string]any)["guard_g"] != want || h["breakers"].(map[string]any)["guard_g"] != "closed" {
			t.Errorf("%d times %q: %v, want %s", n, says, h, want)
		}
	}
	ask(1, "rejects", "degraded")
	ask(1, "fine", "ok")
	ask(4, "rejects", "ok")
	ask(1, "fine", "ok")
	ask(4, "rejects", "ok")
	ask(1, "rejects", "degraded")
	ask(20, "rejects", "degraded")
	ask(1, "fine", "ok")
	ask(1, "garbage", "degraded")
	ask(1, "rejects", "degraded") // which is no evidence either
}

// A store that hangs uses up the time of the health. What is known of the self-test is said then
// as well.
func TestHealthOfAStoreThatHangs(t *testing.T) {
	s := newSite(t, `{}`, answering("application/json", completion("Paris.")))
	<-caddymodule.FirstSelfTest(s.handler)
	hanging.Store(s.path, true)
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			w := s.send(http.MethodGet, "/lex/health", "")
			if body := w.Body.String(); w.Code != http.StatusServiceUnavailable || !strings.Contains(body, `"status":"degraded"`) || !strings.Contains(body, `"self_test":"ok"`) {
				t.Errorf("%d %s", w.Code, body)
			}
		})
	}
	wg.Wait()
}
