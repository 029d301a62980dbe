package prose

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/caddy-lex/lex/kernel/regex"
)

// units may follow a figure without a space.
var units = Set("k m g kg mg t l ml cl dl cm mm km h min s d x px gb mb tb eur usd gbp chf zl pln eth btc pct st nd rd th")

// Figures returns the numbers of a text in every way in which they may be read, at most a
// thousand: 37.200 is thirty-seven thousand to some and thirty-seven to others. Numbers
// within codes do not count, and those before units do.
func Figures(text string) (out []float64) {
	for i := 0; i < len(text) && len(out) < 1000; {
		if !isDigit(text[i]) {
			i++
			continue
		}
		end := i
		for end < len(text) && (isDigit(text[end]) || strings.IndexByte(".,'", text[end]) >= 0 && end+1 < len(text) && isDigit(text[end+1])) {
			end++
		}
		if before := around(text, i-1); (!joins(before) || before == '/' || before == ':' && !isDigit(around(text, i-2))) && unit(text[end:]) {
			out = append(out, readings(text[i:end])...)
		}
		i = end
	}
	return out
}

// unit reports whether a figure ends before a text: at a unit, or at no letter.
func unit(after string) bool {
	end := 0
	for end < len(after) && alphanumeric(after[end]) {
		end++
	}
	c, _ := utf8.DecodeRuneInString(after)
	return c != '_' && c != '-' && c != '/' && c != '#' && c != ':' && end == 0 || units[strings.ToLower(after[:end])]
}

var groups = strings.NewReplacer(".", "", ",", "", "'", "")

// readings of a figure whose dots and commas may group its digits or begin a fraction.
func readings(figure string) (out []float64) {
	last := strings.LastIndexAny(figure, ".,'")
	add := func(s string) {
		if n, err := strconv.ParseFloat(s, 64); err == nil {
			out = append(out, n)
		}
	}
	if last < 0 {
		add(figure)
		return out
	}
	if len(figure)-last-1 == 3 || strings.Count(figure, figure[last:last+1]) > 1 {
		add(groups.Replace(figure))
	}
	if strings.Count(figure, figure[last:last+1]) == 1 {
		add(groups.Replace(figure[:last]) + "." + figure[last+1:])
	}
	return out
}

// Numbers returns the numbers of a text, at most a thousand. Unlike [Figures] it leaves out parts
// of dates and accounts, numbers with a unit, and those that begin with a zero, as codes do.
func Numbers(text string) []float64 {
	var out []float64
	for i, n := 0, 0; i < len(text) && n < 1000; i++ {
		if !isDigit(text[i]) {
			continue
		}
		n++
		end := numberEnd(text, i)
		if before, after := around(text, i-1), around(text, end); !joins(before) && !joins(after) && (text[i] != '0' || end-i == 1 || text[i+1] == '.') {
			out = append(out, ParseNumber(text[i:end])...)
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

// ParseNumber returns what a number may mean: 3.200 is more than three in English, and three
// thousand and two hundred in German.
func ParseNumber(digits string) (out []float64) {
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

var spelledNumbers = map[string]float64{"one": 1, "a": 1, "an": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "couple": 2, "half": 0.5, "dozen": 12, "zwei": 2, "drei": 3, "deux": 2, "trois": 3, "dos": 2, "tres": 3, "due": 2, "tre": 3}

// Spelled returns the numbers that stand as words.
func (s *Sentence) Spelled() (out []float64) {
	for _, w := range s.Words {
		if n, is := spelledNumbers[w.Text]; is {
			out = append(out, n)
		}
	}
	return out
}

// Figures are the numbers that a sentence names.
func (s *Sentence) Figures() []float64 {
	if !s.counted {
		s.numbers, s.counted = append(Figures(s.Text), s.Spelled()...), true
	}
	return s.numbers
}
