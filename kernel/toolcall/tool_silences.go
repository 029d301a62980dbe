package toolcall

import (
	"strconv"

	"github.com/caddy-lex/lex/kernel/regex"
)

// An alert that nobody hears is none. One monitor that is muted until tomorrow, and a silence
// for one service, are everyday; all of them, or one for years, hides what is done meanwhile.

var (
	silenceWords = words("silence silences downtime downtimes mute snooze inhibit unmonitor")
	matcherKeys  = words("value scope matchers matcher")
	everyAlert   = regex.New(`^(?:\.[+*]|\*|)$|^\{?\s*\w+\s*=~\s*["']\.[*+]["']\s*\}?$`)
	longWhile    = regex.New(`^(?:\d{4,}h|\d{3,}d|\d{2,}w|\d+y)$|(?i)^(?:forever|indefinite\w*|never)$`)
)

// silences judges what keeps alerts from being heard: of every kind, or for years.
func (d *dealing) silences() {
	if !d.any(silenceWords) {
		return
	}
	all, every, some, long := d.has["all"] || d.has["everything"], false, false, false
	start, end := 0, 0
	for _, l := range d.leaves {
		switch {
		case !l.text:
		case l.key == "startsat" || l.key == "start":
			start = yearOf(l.value)
		case l.key == "endsat" || l.key == "end":
			end = yearOf(l.value)
		case l.key == "duration":
			long = longWhile.MatchString(l.value)
		case matcherKeys[l.key] && everyAlert.MatchString(l.value):
			every = true
		case l.everything():
			all = true
		case matcherKeys[l.key]:
			some = true
		}
	}
	if all && !d.meantAll() || every && !some || long || start > 0 && end > start+1 {
		d.breaks(ConstraintTampering)
	}
}

// yearOf is the year that a date begins with, or 0.
func yearOf(date string) int {
	year, err := strconv.Atoi(date[:min(len(date), 4)])
	if err != nil {
		return 0
	}
	return year
}
