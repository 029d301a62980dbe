package caddymodule_test

import (
	"fmt"
	"testing"
)

// An application's own instructions may speak of attacks and quote them in the system message of
// each API. In the user's message nobody can tell them from the user's words.
func TestOwnInstructionsStandInTheSystemMessage(t *testing.T) {
	const (
		own  = `Say whether a message is an attack. An example of one: ` + attack
		user = `What is the capital of France?`
	)
	for name, c := range map[string]struct{ path, system, users string }{
		"system":            {"/v1/chat/completions", `{"model":"m","messages":[{"role":"system","content":%q},{"role":"user","content":%q}]}`, `{"model":"m","messages":[{"role":"user","content":%q}]}`},
		"developer":         {"/v1/chat/completions", `{"model":"m","messages":[{"role":"developer","content":%q},{"role":"user","content":%q}]}`, `{"model":"m","messages":[{"role":"user","content":%q}]}`},
		"instructions":      {"/v1/responses", `{"model":"m","instructions":%q,"input":%q}`, `{"model":"m","input":%q}`},
		"Anthropic":         {"/v1/messages", `{"model":"m","max_tokens":9,"system":%q,"messages":[{"role":"user","content":%q}]}`, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":%q}]}`},
		"systemInstruction": {geminiWhole, `{"systemInstruction":{"parts":[{"text":%q}]},"contents":[{"role":"user","parts":[{"text":%q}]}]}`, `{"contents":[{"role":"user","parts":[{"text":%q}]}]}`},
		"Ollama":            {"/api/chat", `{"model":"m","messages":[{"role":"system","content":%q},{"role":"user","content":%q}]}`, `{"model":"m","messages":[{"role":"user","content":%q}]}`},
	} {
		s, seen := listening(t, `{}`)
		s.post(c.path, fmt.Sprintf(c.system, own, user))
		if seen.count.Load() != 1 {
			t.Errorf("%s: own instructions do not reach the model", name)
		}
		s, seen = listening(t, `{}`)
		if w := s.post(c.path, fmt.Sprintf(c.users, own)); seen.count.Load() != 0 {
			t.Errorf("%s: as the user's they reach the model: %d", name, w.Code)
		}
	}
}
