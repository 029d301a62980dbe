package caddymodule

import (
	"net/http"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel"
)

// placeholders are what later matchers and the access log can read of a turn.
// They exist with zero values from the moment lex runs, because an expression
// over a placeholder that is not set is an error.
type placeholders struct {
	receiptID  string
	band       kernel.Band
	margin     float64
	attackType kernel.AttackType
	severity   float64
	refused    bool
	session    string
}

func turnPlaceholders(o *govern.Opened, t kernel.Turn, receiptID string) placeholders {
	return placeholders{
		receiptID: receiptID, band: t.Band, margin: t.M, attackType: t.AttackType,
		severity: t.Severity, refused: t.Refused, session: o.PublicID,
	}
}

// setPlaceholders publishes {http.lex.*}. Before the model is asked they hold
// the input side's values.
func setPlaceholders(r *http.Request, p placeholders) {
	if p.attackType == "" {
		p.attackType = kernel.NoAttack
	}
	repl := replacer(r)
	repl.Set("http.lex.receipt_id", p.receiptID)
	repl.Set("http.lex.health_band", string(p.band))
	repl.Set("http.lex.margin", p.margin)
	repl.Set("http.lex.attack_type", string(p.attackType))
	repl.Set("http.lex.severity", p.severity)
	repl.Set("http.lex.refused", p.refused)
	repl.Set("http.lex.session", p.session)
}
