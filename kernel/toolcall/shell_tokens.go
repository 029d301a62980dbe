package toolcall

import "github.com/caddy-lex/lex/kernel/regex"

// tokens judges a text that no shell would parse. It is suspicious only where
// one of the gravest commands is in it as such.
func (r *reading) tokens(text string) {
	if !r.spend(costScreen * len(text)) {
		return
	}
	found := tokenScreen.Matching(text, false)
	for i, t := range dangerousTokens {
		if found&(1<<i) != 0 {
			r.breaks(t.invariant)
		}
	}
}

var dangerousTokens = []struct {
	pattern   *regex.Expression
	invariant Invariant
}{
	{regex.New(`(?m)(?:^|[;&|(\x60'"])\s*(?:\S*/)?rm\s+(?:-\S+\s+)*-\S*[rR]\S*\s+(?:-\S+\s+)*['"]?(?:/|~|\$HOME)(?:[\s*;&|'")]|etc|usr|home|var|boot|$)`), DestructiveCommand},
	{regex.New(`(?m)(?:^|[;&|(\x60'"])\s*mkfs(?:\.\w+)?\s+\S*/dev/|\bdd\b[^\n;|&]*\bof=/dev/(?:sd|nvme|hd|vd|xvd|disk|mmc)`), DestructiveCommand},
	{regex.New(`\b(?:curl|wget)\b[^\n;]*\|\s*(?:sudo\s+)?(?:\S*/)?(?:ba|z|da|k|a)?sh\b`), RemoteCodeExecution},
	{regex.New(`\bbase64\s+(?:-d|-D|--decode)\b[^\n;]*\|\s*(?:\S*/)?(?:ba|z|da|k|a)?sh\b`), RemoteCodeExecution},
	{regex.New(`/dev/(?:tcp|udp)/[\w.]+/\d`), RemoteCodeExecution},
	{regex.New(`(?m)(?:^|[;&|(\x60])\s*sudo\s+\S`), PrivilegeEscalation},
	{regex.New(`(?m)(?:^|[;&|(\x60])\s*(?:cat|less|head|tail|cp|scp|base64)\s+[^\n;|&]*(?:/etc/shadow|\.ssh/id_|\.aws/credentials)`), CredentialAccess},
}

var tokenScreen = func() *regex.Screen {
	var patterns []*regex.Expression
	for _, t := range dangerousTokens {
		patterns = append(patterns, t.pattern)
	}
	return regex.NewScreen(patterns...)
}()
