package toolcall

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// amounts judges the amount of a payment. It may be a sum or a product of what the user
// named, or the same in the smallest unit of a currency, and it may be less; if the user
// named none, it may not be above every amount in the conversation. A request that asks
// for a calculation is not judged.
func (r *reading) amounts(c Call, leaves []leaf) {
	if !r.moves() || strings.TrimSpace(c.Request) == "" || calculated.MatchString(foldText(c.Request)) {
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
		if err == nil && amount > 0 && outOfBounds(amount, named, numbersIn(c.Request), own) {
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
	return numbersIn(text)
}

func markedIn(text string) []float64 {
	var out []float64
	for _, m := range marked.FindAllStringSubmatch(text, 64) {
		out = append(out, parseNumbers(m[1]+m[2])...)
	}
	return out
}

// numbersIn returns the numbers of a text, at most a thousand.
func numbersIn(text string) []float64 {
	var out []float64
	for i, n := 0, 0; i < len(text) && n < 1000; i++ {
		if !isDigit(text[i]) {
			continue
		}
		n++
		end := numberEnd(text, i)
		if before, after := around(text, i-1), around(text, end); !joins(before) && !joins(after) && (text[i] != '0' || end-i == 1 || text[i+1] == '.') {
			out = append(out, parseNumbers(text[i:end])...)
		}
		i = end - 1
	}
	return out
}

// numberEnd returns where the number ends that begins at i: digits, and commas and points
// between them.
func numberEnd(text string, i int) int {
	for i < len(text) && (isDigit(text[i]) || i+1 < len(text) && (text[i] == ',' || text[i] == '.') && isDigit(text[i+1])) {
		i++
	}
	return i
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func around(text string, i int) byte {
	if i < 0 || i >= len(text) {
		return ' '
	}
	return text[i]
}

// joins reports whether a byte makes a number part of something else.
func joins(c byte) bool {
	return alphanumeric(c) || c == '-' || c == '/' || c == ':' || c == '_' || c == '#'
}

// parseNumbers returns what a number may mean: 3.200 is more than three in English, and three
// thousand and two hundred in German.
func parseNumbers(digits string) (out []float64) {
	if n, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimRight(digits, ",."), ",", ""), 64); err == nil {
		out = append(out, n)
	}
	if pointed.MatchString(digits) {
		if n, err := strconv.ParseFloat(strings.ReplaceAll(strings.ReplaceAll(digits, ".", ""), ",", "."), 64); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// pointed is a number as most of Europe writes it.
var pointed = regex.New(`^(?:\d{1,3}(?:\.\d{3})+(?:,\d{1,2})?|\d+,\d{1,2})$`)
