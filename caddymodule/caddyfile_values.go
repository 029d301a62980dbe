package caddymodule

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/dustin/go-humanize"
)

// options maps the name of a subdirective to its parser. Each may stand once.
type options map[string]func(d *caddyfile.Dispenser) error

// repeated are the options that may stand more than once: each time with another name as
// their first argument, or to add to a list.
var repeated = []string{"plan", "policy", "dialect", "allow", "deny", "reads", "writes", "sends", "high_risk", "rule", "guard", "template"}

// parseBlock reads a block of options at the dispenser's nesting.
func parseBlock(d *caddyfile.Dispenser, known options) error {
	seen := make(map[string]bool)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		name := d.Val()
		parse, ok := known[name]
		if !ok {
			return d.Errf("unrecognized option %q", name)
		}
		if seen[name] && !slices.Contains(repeated, name) {
			return d.Errf("%s is given twice", name)
		}
		seen[name] = true
		if err := parse(d); err != nil {
			return err
		}
	}
	return nil
}

// blockOption wraps the options of a nested block; it takes no arguments.
func blockOption(known options) func(d *caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		if d.NextArg() {
			return d.ArgErr()
		}
		return parseBlock(d, known)
	}
}

// missing is the error for an option that lacks a value. {$NAME} leaves nothing at all where
// the environment variable is not set, so to its author a value seems to be there.
func missing(d *caddyfile.Dispenser, option, value string) error {
	return d.Errf("%s needs %s; if {$NAME} stands there, that environment variable is not set", option, value)
}

// arguments reads the arguments of an option, from least to most of them, which are called
// values in the error for too few.
func arguments(d *caddyfile.Dispenser, least, most int, values string) ([]string, error) {
	option := d.Val()
	args := d.RemainingArgs()
	switch {
	case len(args) < least:
		return nil, missing(d, option, values)
	case len(args) > most:
		return nil, d.ArgErr()
	}
	return args, nil
}

// oneArgument reads exactly one argument.
func oneArgument(d *caddyfile.Dispenser) (string, error) {
	args, err := arguments(d, 1, 1, "a value")
	if err != nil {
		return "", err
	}
	return args[0], nil
}

// someArguments reads one argument or more.
func someArguments(d *caddyfile.Dispenser) ([]string, error) {
	return arguments(d, 1, math.MaxInt, "at least one value")
}

// stringOption sets a string.
func stringOption(to *string) func(d *caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) (err error) {
		if *to != "" {
			return d.Errf("%s is given twice", d.Val())
		}
		*to, err = oneArgument(d)
		return err
	}
}

// choiceOption sets a string that must be one of values.
func choiceOption(to *string, values ...string) func(d *caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		arg, err := oneArgument(d)
		if err != nil {
			return err
		}
		if !slices.Contains(values, arg) {
			return d.Errf("%q is not one of %s", arg, strings.Join(values, ", "))
		}
		*to = arg
		return nil
	}
}

// listOption adds words to a list.
func listOption(to *[]string) func(d *caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		args, err := someArguments(d)
		if err != nil {
			return err
		}
		*to = append(*to, args...)
		return nil
	}
}

// choiceListOption sets a list of at least one string, each of which must be one of
// values.
func choiceListOption(to *[]string, values ...string) func(d *caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		args, err := someArguments(d)
		if err != nil {
			return err
		}
		for _, arg := range args {
			if !slices.Contains(values, arg) {
				return d.Errf("%q is not one of %s", arg, strings.Join(values, ", "))
			}
		}
		*to = args
		return nil
	}
}

// parseNumber reads a finite float: JSON, into which the configuration is adapted, has no
// other.
func parseNumber(text string) (f float64, ok bool) {
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
}

// numberOption sets a float.
func numberOption(to **float64) func(d *caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		name := d.Val()
		arg, err := oneArgument(d)
		if err != nil {
			return err
		}
		f, ok := parseNumber(arg)
		if !ok {
			return d.Errf("%s: %q is not a number", name, arg)
		}
		*to = &f
		return nil
	}
}

// durationOption sets a duration such as 30s or 2m.
func durationOption(to *caddy.Duration) func(d *caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		arg, err := oneArgument(d)
		if err != nil {
			return err
		}
		return setDuration(d, arg, to)
	}
}

func setDuration(d *caddyfile.Dispenser, arg string, to *caddy.Duration) error {
	v, err := caddy.ParseDuration(arg)
	if err != nil || v <= 0 {
		return d.Errf("%q is not a positive duration", arg)
	}
	*to = caddy.Duration(v)
	return nil
}

// rateOption sets a rate such as 20/1m.
func rateOption(to *Rate) func(d *caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		arg, err := oneArgument(d)
		if err != nil {
			return err
		}
		return setRate(d, arg, to)
	}
}

func setRate(d *caddyfile.Dispenser, arg string, to *Rate) error {
	n, window, ok := strings.Cut(arg, "/")
	requests, err := strconv.Atoi(n) // the largest int there is, where that is too small
	switch {
	case !ok, err != nil && !errors.Is(err, strconv.ErrRange), requests < 1:
		return d.Errf("%q is not a rate such as 20/1m", arg)
	case err != nil, int64(requests) > maxRequests:
		return d.Errf("%q: %s", arg, tooManyRequests)
	}
	to.Requests = requests
	return setDuration(d, window, &to.Window)
}

// parsePlan adds a plan: its name, its runs in a window, and its policy.
func (l *Limits) parsePlan(d *caddyfile.Dispenser) error {
	args, err := arguments(d, 2, 3, "a name and a rate")
	if err != nil {
		return err
	}
	name, plan := args[0], Plan{}
	if _, known := l.Plans[name]; known {
		return d.Errf("plan %s is given twice", name)
	}
	if !validIdentifier(name) {
		return d.Errf("%q is not a plan's name: use letters, digits, dots, dashes and underscores", name)
	}
	if err := setRate(d, args[1], &plan.Rate); err != nil {
		return err
	}
	if len(args) == 3 {
		plan.Policy = args[2]
	}
	if l.Plans == nil {
		l.Plans = make(map[string]Plan)
	}
	l.Plans[name] = plan
	return nil
}

// sizeOption sets a number of bytes such as 32MiB.
func sizeOption(to *int64) func(d *caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		arg, err := oneArgument(d)
		if err != nil {
			return err
		}
		n, err := humanize.ParseBytes(arg)
		if err != nil || n < 1 || n > maxSize {
			return d.Errf("%q is not a size such as 32MiB", arg)
		}
		*to = int64(n)
		return nil
	}
}
