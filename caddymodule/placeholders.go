package caddymodule

import (
	"net/http"

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

func (x *exchange) placeholders() placeholders {
	return placeholders{
		receiptID: x.receipt.ID, band: x.turn.Band, margin: x.turn.M, attackType: x.turn.AttackType,
		severity: x.turn.Severity, refused: x.turn.Refused, session: x.publicID,
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
