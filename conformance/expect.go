package conformance

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// refusesWith expects the error body with a code: a sentence and a stable word, and
// nothing internal.
func refusesWith(code string) func(response) error {
	return func(r response) error {
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

// A memberType checks the value of a member.
type memberType func(v any) bool

func isText(v any) bool    { _, ok := v.(string); return ok }
func isNumber(v any) bool  { _, ok := v.(float64); return ok }
func isBool(v any) bool    { _, ok := v.(bool); return ok }
func isInteger(v any) bool { f, ok := v.(float64); return ok && f == math.Trunc(f) }

// number, list and object are values that a check has found to be of the kind.
func number(v any) float64        { f, _ := v.(float64); return f }
func list(v any) []any            { l, _ := v.([]any); return l }
func object(v any) map[string]any { m, _ := v.(map[string]any); return m }
func text(v any) string           { s, _ := v.(string); return s }

func orNull(k memberType) memberType { return func(v any) bool { return v == nil || k(v) } }

func oneOf(words ...string) memberType {
	return func(v any) bool { s, ok := v.(string); return ok && slices.Contains(words, s) }
}

func listOf(k memberType, length int) memberType {
	return func(v any) bool {
		list, ok := v.([]any)
		if !ok || (length >= 0 && len(list) != length) {
			return false
		}
		return !slices.ContainsFunc(list, func(item any) bool { return !k(item) })
	}
}

func within(low, high float64) memberType {
	return func(v any) bool { f, ok := v.(float64); return ok && f >= low && f <= high }
}

func matching(pattern string) memberType {
	form := regexp.MustCompile(pattern)
	return func(v any) bool { s, ok := v.(string); return ok && form.MatchString(s) }
}

// members are the members that an object must have.
type members map[string]memberType

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

// isObject is the type of an object with these members.
func (want members) isObject(v any) bool {
	m, ok := v.(map[string]any)
	return ok && want.check(m) == nil
}

// allOf expects every one of the checks.
func allOf(checks ...func(response) error) func(response) error {
	return func(r response) error {
		for _, check := range checks {
			if err := check(r); err != nil {
				return err
			}
		}
		return nil
	}
}

// hasMembers expects an object with members.
func hasMembers(want members) func(response) error {
	return func(r response) error {
		m, err := r.object()
		if err != nil {
			return err
		}
		return want.check(m)
	}
}

// equals expects a member's value.
func equals(name string, want any) func(response) error {
	return func(r response) error {
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
