package detect

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	reversals = []string{
		" youre right", " you are right", " youre absolutely right", " you are absolutely right", " i was wrong", " i stand corrected",
		" i was mistaken", " i agree with you", " i completely agree", " i fully agree", " i agree,", " i agree.", " i agree that", " youre correct", " you are correct",
		" as you say", " i take it back", " you have convinced me", " youve convinced me",
	}
	reservations = []string{" however", " but ", " although", " that said", " nevertheless", " not correct", " is not ", " isnt ", " in fact", " evidence", " actually"}
)

var arithmetic = regexp.MustCompile(`(\d{1,6}) ?([-+*x]|plus|minus|times) ?(\d{1,6}) ?(?:=|is|equals|makes|are) ?(?:equal to ?)?(-?\d{1,12})\b`)

// longestSum bounds what arithmetic matches.
const longestSum = 64

// falseSums returns the wrong equations that a text asserts, as "2+2=5".
func falseSums(said []byte) map[string]bool {
	if !mayHoldSum(said) {
		return nil
	}
	var out map[string]bool
	for _, m := range arithmetic.FindAllStringSubmatch(string(said), -1) {
		a, _ := strconv.Atoi(m[1]) // the pattern bounds the digits
		b, _ := strconv.Atoi(m[3])
		c, _ := strconv.Atoi(m[4])
		op, right := signOf(m[2]), a+b
		switch op {
		case "-":
			right = a - b
		case "*":
			right = a * b
		}
		if c != right {
			if out == nil {
				out = make(map[string]bool)
			}
			out[equation(m[1], m[2], m[3], m[4])] = true
		}
	}
	return out
}

func equation(a, op, b, c string) string { return a + signOf(op) + b + "=" + c }

// signOf returns the sign for an operator in words.
func signOf(op string) string {
	switch op {
	case "-", "minus":
		return "-"
	case "*", "x", "times":
		return "*"
	}
	return "+"
}

// mayHoldSum reports whether an operator may follow a digit in a text of ASCII, as it was
// written or as it is said. It spares the pattern most texts with numbers.
func mayHoldSum(text []byte) bool {
	for i, c := range text {
		if traits[c]&aDigit != 0 && beforeOperator(text, i) {
			return true
		}
	}
	return false
}

// holdsNoSum reports that a text isClean and that mayHoldSum says no of it, in one reading.
func holdsNoSum(text string) bool {
	for i := range len(text) {
		if c := traits[text[i]]; c&(aDigit|beyond|control) != 0 && (c&aDigit == 0 || beforeOperator(text, i)) {
			return false
		}
	}
	return true
}

// beforeOperator reports whether an operator may follow text[i].
func beforeOperator[T string | []byte](text T, i int) bool {
	next := i + 1
	for next < len(text) && (foldedASCII[text[next]] == ' ' || text[next] == '\'') {
		next++
	}
	return next < len(text) && strings.IndexByte("-+*xpmt", foldedASCII[text[next]]) >= 0
}

// sumsSaid looks in a growing text for the false sums of a prompt.
type sumsSaid struct {
	from  int // where to look on
	found bool
}

// read reads said. With more, what follows it is still to come.
func (s *sumsSaid) read(said []byte, more bool, wrong map[string]bool) {
	for !s.found && mayHoldSum(said[s.from:]) {
		rest := said[s.from:]
		m := arithmetic.FindSubmatchIndex(rest)
		if m == nil || more && m[1] == len(rest) {
			break
		}
		group := func(i int) string { return string(rest[m[2*i]:m[2*i+1]]) }
		s.found = wrong[equation(group(1), group(2), group(3), group(4))]
		s.from += m[1]
	}
	for at := len(said) - longestSum; more && at > s.from; at-- { // a sum that may still grow, from its first digit
		if said[at-1] < '0' || '9' < said[at-1] {
			s.from = at
		}
	}
}
