package toolcall

import "github.com/caddy-lex/lex/kernel/regex"

// Money moves by calls that no request needs to name. One payment to one payee, a refund of an
// order and an invoice are everyday. Checks that are skipped, payments to or from everybody at
// once, parts that each stay below a limit, and bank details that change in silence are how it
// is stolen.

var (
	moneyWords = words("pay payment payments transfer transfers wire wires refund refunds payout payouts credit credits payee payees vendor vendors supplier payroll invoice invoices disbursement reimbursement ach sepa stripe adyen paypal wise bank banking adjustments withdrawal remit settlement wallet treasury crypto überweisung zahlung gutschrift lieferant virement paiement fournisseur pago pagos transferencia proveedor bonifico pagamento fornitore betaling")
	givenBack  = words("refund refunds payout payouts credit")

	bankDetail = regex.New(`iban|bankaccount|^bank$|accountnumber|routing|sortcode|payoutaccount|walletaddress|^bic$`)
	orderLines = words("items item rows cells ranges keys list records") // of one order
	partKey    = regex.New(`^(?:splits?|parts?|tranches?|amounts?|net|value)$`)

	// burned is a wallet that nobody has the key of.
	burned   = regex.New(`(?i)^0x0{30,}(?:dead|0000)$|^1{20,}|^1BitcoinEaterAddressDontSendf59kuE$|^1nc1nerator1{30,}$`)
	splitKey = regex.New(`^(?:split|tranche)`)
)

// money judges how a call moves money.
func (d *dealing) money() {
	if !d.any(moneyWords) {
		return
	}
	var sums []float64
	all, split, bank, silent := d.has["all"] && d.any(givenBack), false, false, false
	for _, l := range d.leaves {
		switch {
		case l.above.headers:
		case l.unchecked():
			d.breaks(TransferOutOfBounds)
		case l.text && l.everything() && !orderLines[l.key]:
			all = true
		case bankDetail.MatchString(l.key):
			bank = true
		case l.unheard():
			silent = true
		case l.text && burned.MatchString(l.value), approverKeys[l.key] && ownName(l.value):
			d.breaks(TransferOutOfBounds)
		case partKey.MatchString(l.key):
			sums, split = append(sums, amountOf(l)), split || splitKey.MatchString(l.key)
		}
	}
	if bank && silent || structured(sums, split) || all && !d.meantAll() {
		d.breaks(TransferOutOfBounds)
	}
}

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
