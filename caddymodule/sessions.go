package caddymodule

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// sessionsPrefix opens the path of one session, which is named by its private
// key: hex SHA-256 of namespace, 0 and id.
const sessionsPrefix = "/admin/sessions/"

var sessionKeyForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// shownSession is a session's state as administrators see it: nothing that was
// said in it, and not the secret that its commitments are made with.
type shownSession struct {
	SessionKey  string       `json:"session_key"`
	State       pillars      `json:"state"`
	M           float64      `json:"M"`
	ZWeights    kernel.Point `json:"z_weights"`
	CUSUM       float64      `json:"cusum"`
	Carry       pillars      `json:"carry"`
	Policy      string       `json:"policy"`
	Turns       int          `json:"turns"`
	HighestTurn int          `json:"highest_turn"`
	Eval        bool         `json:"eval"`
	MemoryTurns int          `json:"memory_turns"`
	Head        string       `json:"head"` // id of the last receipt
}

func showSession(s store.Session) shownSession {
	return shownSession{
		SessionKey: s.Key, State: asPillars(s.State.X), M: s.State.X.Min(), ZWeights: s.State.Z,
		CUSUM: s.State.CUSUM, Carry: asPillars(s.State.Carry), Policy: s.State.Policy,
		Turns: s.Turns, HighestTurn: s.HighestTurn, Eval: s.Eval,
		MemoryTurns: len(openMemory(s.Secret, s.Memory).Turns), Head: s.Head,
	}
}

// sessionOf reads the session key of a path; it has answered when there is none.
func sessionOf(w http.ResponseWriter, r *http.Request) (key string, ok bool) {
	key = strings.TrimPrefix(r.URL.Path, sessionsPrefix)
	if !sessionKeyForm.MatchString(key) {
		writeError(w, errNotFound)
		return "", false
	}
	return key, true
}

// session serves GET /admin/sessions/{session_key}.
func (g *request) session(w http.ResponseWriter, r *http.Request) {
	key, ok := sessionOf(w, r)
	if !ok {
		return
	}
	s, err := g.engine.store.Session(r.Context(), key)
	if err != nil {
		g.readFailed(w, err)
		return
	}
	_ = writeJSON(w, http.StatusOK, showSession(s))
}

// eraseSession serves DELETE /admin/sessions/{session_key}: the session's
// secret, state and memory are destroyed; its receipts stay and still verify.
// Erasing what is not there succeeds.
func (g *request) eraseSession(w http.ResponseWriter, r *http.Request) {
	key, ok := sessionOf(w, r)
	if !ok {
		return
	}
	if err := g.engine.store.Erase(r.Context(), key); err != nil {
		g.readFailed(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
