package caddymodule_test

import (
	"context"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	pipeline "github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel/detect"
)

func init() {
	caddy.RegisterModule(brokenGuest{})
}

// brokenGuest loads a judge whose judgements the kernel does not accept. Its id is a
// level deeper than those that errors list.
type brokenGuest struct{}

func (brokenGuest) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "lex.judges.test.broken", New: func() caddy.Module { return new(brokenGuest) }}
}

func (brokenGuest) Judge() pipeline.Judge { return brokenJudge{} }
func (brokenGuest) Required() bool        { return false }

type brokenJudge struct{}

func (brokenJudge) Model() string { return "broken" }

func (brokenJudge) Judge(context.Context, string, string, string) (detect.Judgement, error) {
	return detect.Judgement{Capitulated: true, Confidence: math.NaN()}, nil
}

// A judgement that the kernel does not accept is a failure of ours. No answer
// leaves for it, and a stream that began ends with its error.
func TestAJudgementThatIsNotValid(t *testing.T) {
	model := func(w http.ResponseWriter, r *http.Request) error {
		var body strings.Builder
		_, _ = io.Copy(&body, r.Body)
		if strings.Contains(body.String(), `"stream":true`) {
			return answering("text/event-stream", stream("Paris is ", "the capital."))(w, r)
		}
		return answering("application/json", completion("Paris is the capital."))(w, r)
	}
	s := newSiteWith(t, `{"hold_back":{"bytes":0,"duration":1000000000},"baseline":"never"}`, map[string]any{"judge": map[string]any{"provider": "test.broken"}}, model)
	for _, c := range []struct {
		path, body string
		status     int
		want       []string
	}{
		{"/lex/govern", question, http.StatusInternalServerError, []string{"governor_unavailable"}},
		{"/lex/govern/stream", question, http.StatusOK, []string{`"done":true`, "governor_unavailable"}},
		{"/v1/chat/completions", chatQuestion, http.StatusServiceUnavailable, []string{"governor_unavailable"}},
		{"/v1/chat/completions", chatStreamed, http.StatusOK, []string{"governor_unavailable"}},
	} {
		w := s.post(c.path, c.body)
		for _, want := range c.want {
			if w.Code != c.status || !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: %d %s", c.path, w.Code, w.Body)
			}
		}
	}
	if n := len(s.receipts()); n != 0 {
		t.Errorf("%d receipts", n)
	}
}
