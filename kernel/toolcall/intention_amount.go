package toolcall

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-lex/lex/kernel/prose"
	"github.com/caddy-lex/lex/kernel/regex"
)

// amounts judges the amount of a payment. It may be a sum or a product of what the user
// named, or the same in the smallest unit of a currency, and it may be less; if the user
// named none, it may not be above every amount in the conversation. A request that asks
// for a calculation is not judged.
func (r *reading) amounts(c Call, leaves []leaf) {
	if !r.moves() || strings.TrimSpace(c.Request) == "" || calculated.MatchString(prose.Fold(c.Request)) {
		return
	}
	named := amountsIn(c.Request)
	own := len(named) > 0
	if !own {
		for _, o := range c.Context {
			named = append(named, markedIn(o.Text)...)
		}
	}
	if len(named) == 0 {
		return
	}
	for _, l := range leaves {
		if !amountKey(l.key) {
			continue
		}
		amount, err := strconv.ParseFloat(strings.ReplaceAll(strings.Trim(l.value, "$€£¥ "), ",", ""), 64)
		if err == nil && amount > 0 && outOfBounds(amount, named, prose.Numbers(c.Request), own) {
			r.breaks(TransferOutOfBounds)
		}
	}
}

// moves reports whether the tool moves money.
func (r *reading) moves() bool {
	return r.tool.any("pay", "transfer", "wire", "remit", "refund", "donate", "withdraw", "payment", "payout", "transaction", "deposit", "money", "funds", "reimburse", "zelle", "venmo")
}

func amountKey(key string) bool {
	switch key {
	case "amount", "total", "sum", "importe", "betrag", "montant", "importo", "valor", "summe", "totalamount", "paymentamount", "transferamount", "amountusd", "amounteur", "usd", "eur":
		return true
	}
	return false
}

func outOfBounds(amount float64, named, numbers []float64, own bool) bool {
	most, sum := slices.Max(named), 0.0
	for _, n := range named {
		sum += n
	}
	if amount <= most+0.005 || own && amount <= sum+0.005 {
		return false
	}
	for _, n := range named {
		if equalAmounts(amount, 100*n) { // cents
			return false
		}
		for _, times := range numbers {
			if times <= maxTimes && equalAmounts(amount, times*n) {
				return false
			}
		}
	}
	return true
}

// maxTimes bounds the number of things that are paid for together.
const maxTimes = 31

func equalAmounts(a, b float64) bool { return math.Abs(a-b) < 0.01 }

// calculated finds requests for an amount that the user did not name.
var calculated = regex.New(`%|\b(?:percent\w*|double|twice|triple|half|convert\w*|exchange|plus|tip|interest|each|every|per|times|increase|raise|more|extra|additional|remaining|rest|balance|difference|total|all|fees?|tax|vat|dozen|hundred|thousand|million|k)\b|\d ?k\b`)

const currency = `[$€£¥₹]|(?:usd|eur|gbp|chf|jpy|inr|btc|eth|dollars?|euros?|pounds?|francs?|bucks|yen|rupees?|bitcoins?)\b`

var marked = regex.New(`(?i)(?:` + currency + `) ?(\d+(?:[.,]\d+)*)|(\d+(?:[.,]\d+)*) ?(?:` + currency + `)`)

// amountsIn returns the numbers of a text that stand beside a currency, or else all
// that are no part of a word, a date or an account.
func amountsIn(text string) []float64 {
	if out := markedIn(text); len(out) > 0 {
		return out
	}
	return prose.Numbers(text)
}

func markedIn(text string) []float64 {
	var out []float64
	for _, m := range marked.FindAllStringSubmatch(text, 64) {
		out = append(out, prose.ParseNumber(m[1]+m[2])...)
	}
	return out
}
