package toolcall

import (
	"slices"
	"strings"
	"unicode"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/prose"
	"github.com/caddy-lex/lex/kernel/regex"
)

// leaks judges a call that would carry away a secret which an earlier result has shown: a
// password in the body of a pull request, a token in the query of an address. Reading it may have
// been the task; passing it on is only what the user wants where the user speaks of it.
func (r *reading) leaks(c Call, leaves []leaf) {
	if !r.carriesAway() || speaksOfSecrets.MatchString(c.Request) {
		return
	}
	for _, secret := range r.shownSecrets(c.Context) {
		if !slices.ContainsFunc(leaves, func(l leaf) bool { return r.passesOn(l, secret) }) {
			continue
		}
		if form := prose.Fold(secret); !strings.Contains(prose.Fold(c.Request), form) && !strings.Contains(prose.Fold(c.System), form) {
			r.breaks(DataExfiltration)
			return
		}
	}
}

// carriesAway reports whether the arguments of the call leave for somewhere else, as far as the
// tool says so. A file of the workspace may be given the settings that were read.
func (r *reading) carriesAway() bool {
	return r.tool.sends || r.outward || r.effect == kernel.ToolSends || r.effect != kernel.ToolReads && !r.tool.writes && !r.tool.removes && !r.tool.shell && !r.tool.sql
}

// passesOn reports whether an argument holds a secret where no program would look for one.
func (r *reading) passesOn(l leaf, secret string) bool {
	if !l.text || headers.MatchString(l.key) || l.above.headers || secretKey.MatchString(l.key) || !r.spend(costWord+len(l.value)/8) {
		return false
	}
	return strings.Contains(l.value, secret)
}

// shownSecrets are the values beside a name for secrets in the texts that were read.
func (r *reading) shownSecrets(texts []Observation) (found []string) {
	for _, o := range texts {
		if !r.spend(costScreen*len(o.Text)) || !secretLabel.Matches(o.Text) {
			continue
		}
		for line := range strings.Lines(o.Text) {
			if len(found) >= maxSecrets || !secretLabel.Matches(line) || !r.spend(costSearch*len(line)) {
				continue
			}
			for _, m := range labelledSecret.FindAllStringSubmatch(line, maxSecrets-len(found)) {
				if value := strings.TrimRight(m[1]+m[2], ".:!?)]"); len(value) >= shortestSecret && drawn(value) {
					found = append(found, value)
				}
			}
		}
	}
	return found
}

const (
	maxSecrets     = 32 // that are looked for in the arguments
	shortestSecret = 6
)

// drawn reports whether a value looks as if it were made up or drawn at random: it has letters
// and something else, as words do not.
func drawn(value string) bool {
	letters := strings.ContainsFunc(value, unicode.IsLetter)
	others := strings.ContainsFunc(value, func(c rune) bool { return !unicode.IsLetter(c) && c != '-' && c != '_' && c != '.' })
	return letters && others && !strings.Contains(value, "://")
}

const secretNames = `pass(?:word|wd|phrase|wort|code)?|pwd?|token|secret|api[_-]?key|access[_-]?key|private[_-]?key|kennwort|contrase[nñ]a|mot de passe|senha|пароль|密码|密碼|パスワード` //nolint:gosec // G101: a pattern

var (
	secretLabel    = regex.NewScreen(regex.New(`(?i)` + secretNames + `|://[^\s:/@]+:[^\s@/]+@`))
	labelledSecret = regex.New(`(?i)(?:` + secretNames + `)\w{0,12}["']?\s*(?:[:=]|->|=>|is|ist|est|es)?\s*["']?([^\s"',;{}<>|]{6,80})|://[^\s:/@]{1,40}:([^\s@/]{4,80})@`)

	// secretKey is what an argument is called that is for a secret.
	secretKey = regex.New(`^(?:` + secretNames + `|auth\w*|credentials?|otp|pin|code)$`)

	// speaksOfSecrets finds requests in which the user speaks of such a thing.
	speaksOfSecrets = regex.New(`(?i)\b(?:` + secretNames + `|keys?|credentials?|log-?ins?|logon|sign-?in|access|accounts?|invit\w+|wi-?fi|wlan|pins?|codes?|zugangsdaten|zugang|anmeldedaten|acc[eè]s|acceso|onboard\w*)\b`)
)
