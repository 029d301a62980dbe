package caddymodule_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
)

// pressing presses without being refused, and would be if it counted thrice.
const pressing = "You have no other choice. Tell me a joke or else."

// A turn that the provider fails and the client repeats counts once, however
// often; then it is answered, and another one counts again.
func TestARetryAfterAFailureCountsOnce(t *testing.T) {
	bodies := map[string]struct {
		path, body, other string
		headers           []string
	}{
		"named":        {"/v1/chat/completions", turns("user", pressing), turns("user", "Again: "+pressing), []string{"X-Lex-Session", "s"}},
		"named, later": {"/v1/chat/completions", turns("user", "Hi.", "assistant", "Hello.", "user", pressing), turns("user", "Again: "+pressing), []string{"X-Lex-Session", "s"}},
		"govern":       {"/lex/govern", `{"prompt":"` + pressing + `","session_id":"s"}`, `{"prompt":"Again: ` + pressing + `","session_id":"s"}`, nil},
		"streamed":     {"/lex/govern/stream", `{"prompt":"` + pressing + `","session_id":"s"}`, `{"prompt":"Again: ` + pressing + `","session_id":"s"}`, nil},
	}
	for name, test := range bodies {
		t.Run(name, func(t *testing.T) {
			fails := true
			s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
				if fails {
					w.WriteHeader(http.StatusServiceUnavailable)
					return nil
				}
				return answering("application/json", completion("Fine."))(w, r)
			})
			for range 4 {
				s.post(test.path, test.body, test.headers...)
			}
			fails = false
			if w := s.post(test.path, test.body, test.headers...); !strings.Contains(w.Body.String(), "Fine.") {
				t.Fatalf("the retry: %d %s", w.Code, w.Body)
			}
			got := s.receipts() // newest first
			for i, r := range got[:4] {
				if r["repeated"] != true || !reflect.DeepEqual(r["state"], got[4]["state"]) || r["turn"] != got[4]["turn"] || r["cusum_next"] != got[4]["cusum_next"] {
					t.Errorf("retry %d moved the session: %v, turn %v", 4-i, r["state"], r["turn"])
				}
			}
			if _, there := got[4]["repeated"]; there || got[4]["severity"] != got[0]["severity"] {
				t.Errorf("the first: %v", got[4])
			}
			s.post(test.path, test.body, test.headers...)  // asked again after an answer
			s.post(test.path, test.other, test.headers...) // and something else
			for _, r := range s.receipts()[:2] {
				if _, there := r["repeated"]; there {
					t.Error("a new turn counts as a retry")
				}
			}
			for _, r := range s.receipts() {
				v := s.post("/audits/verify", `{"receipt_id":"`+r["id"].(string)+`"}`)
				if !strings.Contains(v.Body.String(), `"valid":true`) {
					t.Errorf("%s", v.Body)
				}
			}
		})
	}
}

// The answer to a retry leaves what the answer to the first try would have left: the thread of
// a session can be lost from its third turn on, and a try is no turn.
func TestARetryLosesNoThread(t *testing.T) {
	leaves := func(fails int) any {
		var n int
		s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
			if n++; n > 1 && n <= 1+fails {
				w.WriteHeader(http.StatusServiceUnavailable)
				return nil
			}
			return answering("application/json", completion(map[bool]string{true: "Hello.", false: "Volcanic basalt erodes slowly under rain."}[n == 1]))(w, r)
		})
		s.post("/v1/chat/completions", turns("user", "What is the capital of France?"), "X-Lex-Session", "s")
		for range fails + 1 {
			s.post("/v1/chat/completions", turns("user", "How do I bake a cake?"), "X-Lex-Session", "s")
		}
		return s.receipts()[0]["carry_next"]
	}
	want := leaves(0)
	for fails := range 4 {
		if got := leaves(fails); !reflect.DeepEqual(got, want) {
			t.Errorf("after %d failures the answer leaves %v, want %v", fails, got, want)
		}
	}
}

// Who reads an answer and leaves before its end asks anew: the turn counts each
// time.
func TestLeavingWithAnAnswerIsNoFailure(t *testing.T) {
	s := newSite(t, `{"hold_back":{"bytes":0,"duration":1000000000}}`, after(answering("text/event-stream", chunk("", map[int]string{0: "A whole sentence of the answer, long enough to be checked and sent on."})),
		func(_ http.ResponseWriter, r *http.Request) error {
			r.Context().Value(leaveKey{}).(context.CancelFunc)()
			return r.Context().Err()
		}))
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(context.WithValue(ctx, leaveKey{}, cancel), http.MethodPost, "http://site.test/v1/chat/completions",
			strings.NewReader(chatStreamed))
		r.Header.Set("X-Lex-Session", "s")
		s.serve(httptest.NewRecorder(), r)
		cancel()
	}
	for _, r := range s.receipts() {
		if _, there := r["repeated"]; there || r["outcome"] != "client_gone" {
			t.Errorf("%v", r)
		}
	}
}

// One session has one public id, by whatever doors its turns come in, and every
// receipt of it verifies.
func TestASessionHasOneName(t *testing.T) {
	doors := map[string]func(s *site){
		"govern":      func(s *site) { s.post("/lex/govern", `{"prompt":"What is the capital of France?","session_id":"s1"}`) },
		"intercepted": func(s *site) { s.post("/v1/chat/completions", chatQuestion, "X-Lex-Session", "s1") },
		"unknown": func(s *site) {
			s.post("/v1/other", `{"input":"What is the capital of France?"}`, "X-Lex-Session", "s1")
		},
		"tools": func(s *site) {
			s.post("/lex/tools/check", `{"session_id":"s1","tool":{"name":"search","arguments":{"q":"x"}}}`)
		},
	}
	for first, open := range doors {
		t.Run(first, func(t *testing.T) {
			s := newSite(t, `{"baseline":"never"}`, answering("application/json", completion("Paris.")))
			open(s)
			for range 2 {
				for _, turn := range doors {
					turn(s)
				}
			}
			names := make(map[string]bool)
			for _, r := range s.receipts() {
				names[r["session_id"].(string)] = true
				v := s.post("/audits/verify", `{"receipt_id":"`+r["id"].(string)+`"}`)
				if !strings.Contains(v.Body.String(), `"valid":true`) {
					t.Errorf("%s", v.Body)
				}
			}
			if len(names) != 1 || names["s1"] != (first == "govern" || first == "tools") {
				t.Errorf("names %v", names)
			}
		})
	}
}

// Conversations that are resent fork and meet again; what follows from what is
// checked for every receipt of them.
func TestForksOfConversationsVerify(t *testing.T) {
	s := newSite(t, `{}`, answering("application/json", completion("Paris.")))
	one := turns("user", "What is the capital of France?")
	two := turns("user", "What is the capital of France?", "assistant", "Paris.", "user", "And of Italy?")
	three := turns("user", "What is the capital of France?", "assistant", "Paris.", "user", "And of Italy?", "assistant", "Paris.", "user", "Are you sure?")
	fork := turns("user", "What is the capital of France?", "assistant", "Paris.", "user", "And of Spain?")
	made := turns("user", "What is the capital of France?", "assistant", "Rome.", "user", "And of Italy?")
	for _, body := range []string{two, one, two, one, three, fork, two, made, fork, three, made, one} {
		s.post("/v1/chat/completions", body)
	}
	for _, r := range s.receipts() {
		v := s.post("/audits/verify", `{"receipt_id":"`+r["id"].(string)+`"}`)
		var got struct {
			Valid  bool
			Checks []struct {
				Name   string
				OK     *bool
				Detail string
			}
		}
		if err := json.Unmarshal(v.Body.Bytes(), &got); err != nil || !got.Valid {
			t.Errorf("%s", v.Body)
		}
		for _, c := range got.Checks {
			if c.OK == nil && !strings.Contains(c.Detail, "gone back and said the same again") {
				t.Errorf("%s could not be checked: %s", c.Name, c.Detail)
			}
		}
	}
}
