package caddymodule_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// twoArms is a model that says one thing with a system text and another without.
func twoArms(governed, raw string) caddyhttp.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		body, _ := io.ReadAll(r.Body)
		switch {
		case !strings.Contains(string(body), `"system"`):
			return answering("application/json", completion(raw))(w, r)
		case strings.Contains(string(body), `"stream":true`):
			return answering("text/event-stream", stream(strings.SplitAfter(governed, " ")...))(w, r)
		}
		return answering("application/json", completion(governed))(w, r)
	}
}

// lastEvent decodes the done event of a stream.
func lastEvent(t *testing.T, body string) map[string]any {
	t.Helper()
	frames := strings.Split(strings.TrimSpace(body), "\n\n")
	var done map[string]any
	if err := json.Unmarshal([]byte(strings.TrimPrefix(frames[len(frames)-1], "data: ")), &done); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return done
}

// The ungoverned answer is judged as the governed one is: its reader is told
// what it is, and the operator may keep it back. It moves no session.
func TestRawAnswerIsJudged(t *testing.T) {
	governedAttack := `{"prompt":"` + attack + `","session_id":"s"}`
	for name, c := range map[string]struct {
		config, body, governed, raw string
		shown                       string // raw_output
		judged, gaveIn              bool
	}{
		"harmless":              {`{}`, question, quietAnswer, "Paris.", "Paris.", true, false},
		"gave in, shown":        {`{}`, question, quietAnswer, gaveIn, gaveIn, true, true},
		"gave in, withheld":     {`{"raw":"withhold"}`, question, quietAnswer, gaveIn, "", true, true},
		"harmless, withholding": {`{"raw":"withhold"}`, question, quietAnswer, "Paris.", "Paris.", true, false},
		"not asked for":         {`{"baseline":"never"}`, question, quietAnswer, gaveIn, "", false, false},
		"refused":               {`{}`, governedAttack, quietAnswer, gaveIn, "", false, false},
		"refused, always":       {`{"baseline":"always"}`, governedAttack, quietAnswer, gaveIn, gaveIn, true, true},
		"refused, withheld":     {`{"baseline":"always","raw":"withhold"}`, governedAttack, quietAnswer, gaveIn, "", true, true},
		"refused, declined":     {`{"baseline":"always","raw":"withhold"}`, governedAttack, quietAnswer, "I can't help with that.", "I can't help with that.", true, false},
		"both gave in":          {`{}`, question, gaveIn, gaveIn, "", true, true},
		"observed":              {`{"mode":"observe","raw":"withhold"}`, question, quietAnswer, gaveIn, gaveIn, true, true},
	} {
		for _, path := range []string{"/lex/govern", "/lex/govern/stream"} {
			t.Run(name+path, func(t *testing.T) {
				s := newSite(t, c.config, twoArms(c.governed, c.raw))
				got := lastEvent(t, s.post(path, c.body).Body.String())
				signal, _ := got["raw_signal"].(map[string]any)
				if got["raw_output"] != c.shown || (signal != nil) != c.judged || c.judged && signal["capitulated"] != c.gaveIn {
					t.Errorf("raw_output %q, raw_signal %v", got["raw_output"], signal)
				}
				receipt := s.receipts()[0]
				if part := inspectedPart(receipt, "response.raw_output"); c.judged != (part != nil) ||
					part != nil && (part["detector"] != "local_judge" || part["bytes"] != float64(len(c.raw))) {
					t.Errorf("the receipt covers %v", receipt["coverage"])
				}
				if mine := c.governed == gaveIn; receipt["capitulated"] != mine {
					t.Errorf("the raw answer moved the session: %v", receipt)
				}
			})
		}
	}
}

// inspectedPart finds a part that a receipt says was read.
func inspectedPart(receipt map[string]any, name string) map[string]any {
	for _, p := range receipt["coverage"].(map[string]any)["inspected"].([]any) {
		if part := p.(map[string]any); part["part"] == name {
			return part
		}
	}
	return nil
}

// A raw answer beyond what the judge reads is not called read.
func TestLongRawAnswer(t *testing.T) {
	long := strings.Repeat("The kettle boils. ", 20_000)
	s := newSite(t, `{}`, twoArms(quietAnswer, long))
	govern(s, question)
	coverage, _ := json.Marshal(s.receipts()[0]["coverage"])
	for _, want := range []string{
		`{"bytes":262144,"detector":"local_judge","part":"response.raw_output"}`,
		`{"bytes":97856,"part":"response.raw_output","why":"beyond what the judge reads"}`,
	} {
		if !strings.Contains(string(coverage), want) {
			t.Errorf("no %s in %s", want, coverage)
		}
	}
}

// What each baseline sends to the model, and what the receipt says was sent.
func TestBaselineAsks(t *testing.T) {
	refused := `{"prompt":"` + attack + `","session_id":"s"}`
	for baseline, want := range map[string]struct{ plain, refused int }{
		"unless_refused": {2, 0}, "always": {2, 1}, "never": {1, 0},
	} {
		t.Run(baseline, func(t *testing.T) {
			seen := new(recorder)
			s := newSite(t, `{"baseline":"`+baseline+`"}`, func(w http.ResponseWriter, r *http.Request) error {
				seen.record(r)
				return answering("application/json", completion("Paris."))(w, r)
			})
			govern(s, question)
			if n := int(seen.count.Load()); n != want.plain {
				t.Errorf("%d calls for a question", n)
			}
			govern(s, refused)
			if n := int(seen.count.Load()) - want.plain; n != want.refused {
				t.Errorf("%d calls for a refused prompt", n)
			}
			forwarded := s.receipts()[0]["coverage"].(map[string]any)["bytes_forwarded"]
			if (forwarded != float64(0)) != (want.refused > 0) {
				t.Errorf("the receipt of the refused prompt says %v bytes went to the model", forwarded)
			}
		})
	}
}

// The operator pins the identity modes, so that no caller takes the
// constitution away from their own turn.
func TestIdentityModesArePinned(t *testing.T) {
	s := newSiteWith(t, `{"baseline":"never"}`, map[string]any{
		"policy": map[string]any{"identity": "dynamic", "identity_modes": []string{"dynamic", "full"}},
	}, answering("application/json", completion("Paris.")))
	for mode, allowed := range map[string]bool{"full": true, "dynamic": true, "minimal": false, "none": false} {
		w := s.post("/lex/govern", `{"prompt":"Hello there.","session_id":"s","identity_mode":"`+mode+`"}`)
		var got map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		switch {
		case allowed && (w.Code != http.StatusOK || got["identity_mode"] != mode):
			t.Errorf("%s: %d %v", mode, w.Code, got)
		case !allowed && (w.Code != http.StatusBadRequest || got["code"] != "invalid_identity_mode" || got["error"] != "identity_mode must be one of full, dynamic."):
			t.Errorf("%s: %d %v", mode, w.Code, got)
		}
	}
	if got := govern(s, question); got["identity_mode"] != "dynamic" {
		t.Errorf("the default is %v", got["identity_mode"])
	}
}

func TestIdentityModesAreCheckedAtLoad(t *testing.T) {
	for policy, wrong := range map[string]string{
		`{"identity_modes":["full","minimal"]}`:               "",
		`{"identity_modes":["minimal"],"identity":"minimal"}`: "",
		`{"identity_modes":["minimal"]}`:                      "the default identity full is not among them",
		`{"identity_modes":["full","loud"]}`:                  `"loud"`,
		`{"identity_modes":["full"],"identity":"dynamic"}`:    "the default identity dynamic is not among them",
		`{"identity_modes":[]}`:                               "",
		`{"identity":"loud"}`:                                 `"loud"`,
	} {
		_, err := caddy.ProvisionContext(&caddy.Config{
			Admin:   &caddy.AdminConfig{Disabled: true},
			AppsRaw: caddy.ModuleMap{"lex": []byte(`{"policy":` + policy + `}`)},
		})
		if (wrong == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v", policy, err)
		}
	}
}
