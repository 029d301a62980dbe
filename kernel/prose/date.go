package prose

import (
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// A Day as a text names it. The year is 0 where it is left out.
type Day struct{ year, month, of int }

// same reports whether two texts may mean the same day.
func (d Day) same(e Day) bool {
	return d.month == e.month && d.of == e.of && (d.year == e.year || d.year == 0 || e.year == 0)
}

// dateForms are the ways to write a date: 2026-12-18, 18.12.2026, 12/18/2026, 18 December
// 2026, December 18th, 13DEC, 12月18日. Of a span such as "12 to 15 June" both days count.
var (
	yearFirst  = regex.New(`\b(\d{4})[-./](\d{1,2})[-./](\d{1,2})`)
	yearLast   = regex.New(`\b(\d{1,2})[./-](\d{1,2})[./-](\d{4}|\d{2})\b`)
	dayFirst   = regex.New(`(?:\b(\d{1,2})(?:st|nd|rd|th)?\.?(?: ?(?:to|and|until|till|bis|und|al|y|e|au|et|a|do|i|-|–) ?))?\b(\d{1,2})(?:st|nd|rd|th|er|º)?\.?(?: (?:of the|of|del|de) | ?)(\pL{3,})\.?,?(?: (?:de |del )?(\d{4}))?`)
	monthFirst = regex.New(`(\pL{3,})\.? (\d{1,2})(?:st|nd|rd|th)?\b(?:,? (\d{4})\b)?`)
	monthSigns = regex.New(`(?:(\d{4}) ?[年년] ?)?(\d{1,2}) ?[月월] ?(\d{1,2}) ?[日일]`)
)

// months lists the names and abbreviations of months: English, German, French, Spanish,
// Italian, Portuguese, Dutch, Polish, Russian and Turkish.
var months = func() map[string]int {
	out := make(map[string]int)
	for m, names := range []string{
		"january jan januar jänner janvier janv enero ene gennaio gen janeiro januari stycznia styczeń января янв ocak",
		"feb february februar février févr febrero febbraio fevereiro fev februari lutego luty февраля фев şubat",
		"march mar märz mrz mars marzo março maart marca marzec марта мар mart",
		"april apr avril avr abril abr aprile kwietnia kwiecień апреля апр nisan",
		"may mai mayo maggio mag maio mei maja maj мая mayıs",
		"june jun juni juin junio giugno giu junho czerwca czerwiec июня июн haziran",
		"july jul juli juillet juil julio luglio lug julho lipca lipiec июля июл temmuz",
		"august aug août agosto ago augustus sierpnia sierpień августа авг ağustos",
		"september sep sept septembre septiembre settembre setembro wrzesnia września wrzesień сентября сен eylül",
		"october oct oktober okt octobre octubre ottobre ott outubro out października październik октября окт ekim",
		"november nov novembre noviembre novembro listopada listopad ноября ноя kasım",
		"december dec dezember dez décembre déc diciembre dic dicembre dezembro grudnia grudzień декабря дек aralık",
	} {
		for name := range strings.FieldsSeq(names) {
			out[Fold(name)] = m + 1
		}
	}
	return out
}()

// maxDates bounds the dates of one form in a text.
const maxDates = 64

// Dates returns the dates of a text, at most maxDates of each form.
func Dates(text string) (out []Day) {
	if !strings.ContainsAny(text, "0123456789") {
		return nil
	}
	add := func(year, month, ofMonth string) {
		d := Day{of: number(ofMonth), year: number(year)}
		if d.month = months[Fold(month)]; d.month == 0 {
			d.month = number(month)
		}
		if d.year > 0 && d.year < 100 {
			d.year += 2000
		}
		if d.month > 0 && d.month < 13 && d.of > 0 && d.of < 32 && !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	for _, m := range yearFirst.FindAllStringSubmatch(text, maxDates) {
		add(m[1], m[2], m[3])
	}
	for _, m := range yearLast.FindAllStringSubmatch(text, maxDates) {
		add(m[3], m[2], m[1])
		add(m[3], m[1], m[2]) // as Americans do
	}
	for _, m := range dayFirst.FindAllStringSubmatch(text, maxDates) {
		if months[Fold(m[3])] > 0 {
			add(m[4], m[3], m[2])
			add(m[4], m[3], m[1])
		}
	}
	for _, m := range monthFirst.FindAllStringSubmatch(text, maxDates) {
		if months[Fold(m[1])] > 0 {
			add(m[3], m[1], m[2])
		}
	}
	for _, m := range monthSigns.FindAllStringSubmatch(text, maxDates) {
		add(m[1], m[2], m[3])
	}
	return out
}

// number is 0 for what is none.
func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

// ShareDay reports whether two lists have a day in common.
func ShareDay(a, b []Day) bool {
	return slices.ContainsFunc(a, func(d Day) bool { return slices.ContainsFunc(b, d.same) })
}

// NamesDay reports whether a text may name one of some days, because it has its number.
func NamesDay(text string, days []Day) bool {
	return slices.ContainsFunc(days, func(d Day) bool { return strings.Contains(text, strconv.Itoa(d.of)) })
}

// HasDate reports whether a text has a date that begins with the year.
func HasDate(text string) bool { return yearFirst.MatchString(text) }
