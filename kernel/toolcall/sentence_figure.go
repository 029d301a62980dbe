package toolcall

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// units may follow a figure without a space.
var units = words("k m g kg mg t l ml cl dl cm mm km h min s d x px gb mb tb eur usd gbp chf zl pln eth btc pct st nd rd th")

// figuresIn returns the numbers of a text in every way in which they may be read, at most a
// thousand: 37.200 is thirty-seven thousand to some and thirty-seven to others. Numbers
// within codes do not count, and those before units do.
func figuresIn(text string) (out []float64) {
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
