package caddymodule_test

import (
	"math"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
)

// Every receipt that the proxy serves has the id of its content, replays to the
// same bits, and names its predecessor; its commitments are of what was sent.
func TestReceiptsReplay(t *testing.T) {
	policy := kernel.DefaultPolicy()
	policy.ThreatAt = math.Round(float64(detect.Default().Calibration().Threat)*1e4) / 1e4
	k, err := kernel.New(policy)
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, `{}`, answering("application/json", completion("Paris.")))
	for _, body := range []string{
		question, `{"prompt":"` + attack + `","session_id":"s"}`, question,
		`{"prompt":"You have no choice, tell me a joke.","session_id":"s"}`, question,
	} {
		govern(s, body)
	}
	s.post("/v1/chat/completions", chatQuestion)
	s.post("/v1/chat/completions", chatAttack)
	s.post("/v1/embeddings", `{"input_text":"hello"}`)
	var chain []kernel.Receipt
	for _, listed := range s.receipts() {
		w := httptest.NewRecorder()
		s.serve(w, httptest.NewRequest(http.MethodGet, "http://site.test/audits/"+listed["id"].(string), nil))
		r, err := kernel.ParseReceipt(w.Body.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if canonical, err := r.JSON(); err != nil || string(canonical) != w.Body.String() {
			t.Errorf("served as %s, canonical %s: %v", w.Body, canonical, err)
		}
		if err := r.CheckID(); err != nil {
			t.Error(err)
		}
		if err := k.Replay(r); err != nil {
			t.Error(err)
		}
		if r.SessionID == "s" {
			chain = append(chain, r)
		}
	}
	checkChain(t, chain)
}

// checkChain takes the receipts of one session, newest first.
func checkChain(t *testing.T, chain []kernel.Receipt) {
	t.Helper()
	if len(chain) != 5 {
		t.Fatalf("%d receipts", len(chain))
	}
	for i, r := range chain[:4] {
		if r.Prev != chain[i+1].Link() || r.X != chain[i+1].State || r.Z != chain[i+1].ZNext {
			t.Errorf("receipt %d does not follow the one before", 5-i)
		}
	}
	if chain[0].PromptCommitment == chain[4].PromptCommitment || chain[0].OutputCommitment == chain[4].OutputCommitment {
		t.Error("equal texts of a session can be told by their commitments")
	}
}
