package toolcall

import (
	"slices"
	"strconv"
	"strings"
)

// payments judges how a call moves money, which no request needs to name: with its checks
// skipped, to or from everybody at once, in parts that each stay below a limit, or with bank
// details that change in silence.
func (r *reading) payments(s subject, leaves []leaf) {
	if r.trial || r.tool.shell || r.tool.code || r.tool.sql {
		return
	}
	if !s.acts || !s.any(moneyWords...) {
		return
	}
	var sums []float64
	split, bank, silent := false, false, false
	for _, l := range leaves {
		value := strings.ToLower(strings.TrimSpace(l.value))
		on, off := value == "true" || value == "1" || value == "yes", slices.Contains(offValues, value)
		switch {
		case len(value) > maxKey*4 || l.above.headers:
		case on && (skipsCheck.MatchString(l.key) || l.above.approval && (l.key == "skip" || l.key == "bypass" || l.key == "override")),
			off && checks.MatchString(l.key), l.text && checks.MatchString(l.key) && skipped.MatchString(value):
			r.breaks(TransferOutOfBounds)
		case l.text && (everyKeys.MatchString(l.key) || l.key == "customers" || l.key == "payments") && everyValue.MatchString(value) && !r.asksWord("all", "every", "each", "everyone"):
			r.breaks(TransferOutOfBounds)
		case bankDetail.MatchString(l.key):
			bank = true
		case on && silenced.MatchString(l.key), off && notified.MatchString(l.key):
			silent = true
		}
		if partKey.MatchString(l.key) {
			if n, err := strconv.ParseFloat(value, 64); err == nil && len(sums) < maxRecipes {
				sums = append(sums, n)
				split = split || strings.HasPrefix(l.key, "split") || strings.HasPrefix(l.key, "tranche")
			}
		}
	}
	if bank && silent || structured(sums, split) || s.any("all", "bulk") && s.any("refund", "refunds", "payout", "payouts", "credit") && s.any("all") && !r.asksWord("all", "every", "each") {
		r.breaks(TransferOutOfBounds)
	}
}

var (
	moneyWords = strings.Fields("pay payment payments transfer transfers wire wires refund refunds payout payouts credit credits payee payees vendor vendors supplier payroll invoice invoices disbursement reimbursement ach sepa stripe adyen paypal wise bank banking adjustments withdrawal remit settlement")
	offValues  = []string{"false", "0", "no", "off", "none", "disabled"}

	skipsCheck = newExpression(`^(?:skip|bypass|override|ignore|disable|no|without|waive|force)(?:all)?(?:dual|secondary|manager|fraud|aml|kyc|sanctions?|risk|limit|velocity)?(?:approvals?|limits?|checks?|verification|review|callback|screening|control|confirmation|hold|2fa|mfa)$`)
	checks     = newExpression(`^(?:(?:require[sd]?|needs|enforce)?(?:dual|manager|secondary)?approvals?(?:required|mode|policy|flow|needed)?|dualcontrol|twopersonrule|foureyes(?:principle)?|makerchecker|(?:payee)?verification(?:required|mode)?|(?:sanctions?|aml|fraud|kyc|risk)(?:screening|checks?)(?:enabled)?|callback(?:required|verification)?)$`)
	skipped    = newExpression(`^(?:skip(?:ped)?|bypass(?:ed)?|waived?|overrid(?:e|den)|self|auto)$`)
	bankDetail = newExpression(`iban|bankaccount|^bank$|accountnumber|routing|sortcode|payoutaccount|walletaddress|^bic$`)
	silenced   = newExpression(`^(?:suppress|skip|disable|mute|hide)(?:all)?(?:notifications?|emails?|alerts?|notify)$|^silent$`)
	notified   = newExpression(`^(?:send|notify)(?:notifications?|vendor|employee|payee|customer|owner|email)?$`)
	partKey    = newExpression(`^(?:splits?|parts?|tranches?|amounts?|net|value)$`)
)

// structured reports whether sums stay just below a limit again and again.
func structured(sums []float64, split bool) bool {
	for _, limit := range []float64{5000, 10000, 15000, 50000} {
		below := 0
		for _, n := range sums {
			if n < limit && n >= 0.98*limit {
				below++
			}
		}
		if below > 2 || below > 1 && split {
			return true
		}
	}
	return false
}
