package conformance

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// fails expects the error body with a code: a sentence and a stable word, and
// nothing that belongs inside.
func fails(code string) func(Response) error {
	return func(r Response) error {
		m, err := r.object()
		if err != nil {
			return err
		}
		sentence, _ := m["error"].(string)
		if m["code"] != code || sentence == "" {
			return fmt.Errorf("code %v with error %q, want %s", m["code"], sentence, code)
		}
		if r.Header.Get("Content-Type") != "application/json" {
			return fmt.Errorf("Content-Type %q", r.Header.Get("Content-Type"))
		}
		for _, internal := range []string{"goroutine", "dial tcp", "127.0.0.1", ".go:", "/tmp/", "redis", "bolt"} {
			if strings.Contains(sentence, internal) {
				return fmt.Errorf("the error tells an internal detail (%s): %s", internal, sentence)
			}
		}
		return nil
	}
}

// a kind is what a member's value must be.
type kind func(v any) bool

func isText(v any) bool    { _, ok := v.(string); return ok }
func isNumber(v any) bool  { _, ok := v.(float64); return ok }
func isBool(v any) bool    { _, ok := v.(bool); return ok }
func isInteger(v any) bool { f, ok := v.(float64); return ok && f == math.Trunc(f) }

// number, list and object are values that a check has found to be of the kind.
func number(v any) float64        { f, _ := v.(float64); return f }
func list(v any) []any            { l, _ := v.([]any); return l }
func object(v any) map[string]any { m, _ := v.(map[string]any); return m }
func text(v any) string           { s, _ := v.(string); return s }

func orNull(k kind) kind { return func(v any) bool { return v == nil || k(v) } }

func oneOf(words ...string) kind {
	return func(v any) bool { s, ok := v.(string); return ok && slices.Contains(words, s) }
}

func listOf(k kind, length int) kind {
	return func(v any) bool {
		list, ok := v.([]any)
		if !ok || (length >= 0 && len(list) != length) {
			return false
		}
		return !slices.ContainsFunc(list, func(item any) bool { return !k(item) })
	}
}

func within(low, high float64) kind {
	return func(v any) bool { f, ok := v.(float64); return ok && f >= low && f <= high }
}

func matching(pattern string) kind {
	form := regexp.MustCompile(pattern)
	return func(v any) bool { s, ok := v.(string); return ok && form.MatchString(s) }
}

// members are the members that an object must have.
type members map[string]kind

func (want members) check(m map[string]any) error {
	var faults []error
	for name, is := range want {
		v, there := m[name]
		switch {
		case !there:
			faults = append(faults, fmt.Errorf("%s is missing", name))
		case !is(v):
			faults = append(faults, fmt.Errorf("%s is not what it should be: %v", name, v))
		}
	}
	return errors.Join(faults...)
}

// isObject is the kind of an object with members.
func (want members) isObject(v any) bool {
	m, ok := v.(map[string]any)
	return ok && want.check(m) == nil
}

// all expects every one of the checks.
func all(checks ...func(Response) error) func(Response) error {
	return func(r Response) error {
		for _, check := range checks {
			if err := check(r); err != nil {
				return err
			}
		}
		return nil
	}
}

// has expects an object with members.
func has(want members) func(Response) error {
	return func(r Response) error {
		m, err := r.object()
		if err != nil {
			return err
		}
		return want.check(m)
	}
}

// equals expects a member's value.
func equals(name string, want any) func(Response) error {
	return func(r Response) error {
		m, err := r.object()
		if err != nil {
			return err
		}
		if m[name] != want {
			return fmt.Errorf("%s is %v, want %v", name, m[name], want)
		}
		return nil
	}
}
