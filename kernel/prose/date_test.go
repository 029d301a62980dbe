package prose_test

import (
	"slices"
	"testing"

	"github.com/caddy-lex/lex/kernel/prose"
)

func TestDates(t *testing.T) {
	for text, want := range map[string][]string{
		"in my calendar, 18 december":  {"0-12-18"},
		"on 14 Jan 2027, please":       {"2027-1-14"},
		"December 18th, 2026":          {"2026-12-18"},
		"until 31. Dezember 2026":      {"2026-12-31"},
		"el 3 de mayo de 2027":         {"2027-5-3"},
		"na 7 grudnia":                 {"0-12-7"},
		"2026-12-18T10:00":             {"2026-12-18"},
		"18.12.26":                     {"2026-12-18"},
		"on 3/4/2027":                  {"2027-4-3", "2027-3-4"},
		"from 12 to 15 June":           {"0-6-15", "0-6-12"},
		"13DEC":                        {"0-12-13"},
		"11월 28일":                      {"0-11-28"},
		"2026年12月1日":                   {"2026-12-1"},
		"3 lists of 5 maps, 2 seats":   nil,
		"version 18.99.26, 1 marathon": nil,
		"one may sit":                  {},
	} {
		got := prose.DatesIn(text)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestFigures(t *testing.T) {
	for text, want := range map[string][]float64{
		"1846.20":        {1846.2},
		"£1,846.20":      {1846.2},
		"1.240,00 zł":    {1240},
		"37.200 euro":    {37200, 37.2},
		"1'000'000":      {1000000},
		"4kg, 12 h":      {4, 12},
		"40으로 입력":        {40},
		"O-5174 A12 x86": nil,
		"0.05 ETH":       {0.05},
		"10:30":          nil,
		`{"n":30}`:       {30},
		"disable=1":      {1},
	} {
		if got := prose.Figures(text); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
