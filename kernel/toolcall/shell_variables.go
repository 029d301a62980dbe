package toolcall

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
)

// maxValue bounds a variable, since a=$a$a doubles.
const maxValue = 1 << 10

// environment answers the expander from the assignments seen so far, and never
// from the machine it runs on.
type environment struct {
	*shell
	absent map[string]bool
}

func (e environment) Get(name string) expand.Variable {
	if to, refers := e.references[name]; refers && to != name {
		name = to
	}
	if v, known := e.vars[name]; known {
		if values, is := elements(v); is {
			return expand.Variable{Set: true, Kind: expand.Indexed, List: values}
		}
		return expand.Variable{Set: true, Kind: expand.String, Str: v}
	}
	if user, ok := strings.CutPrefix(name, "HOME "); ok {
		return expand.Variable{Set: true, Kind: expand.String, Str: "/home/" + user}
	}
	switch name {
	case "HOME":
		return expand.Variable{Set: true, Kind: expand.String, Str: "~"}
	case "IFS":
		return expand.Variable{Set: true, Kind: expand.String, Str: " \t\n"}
	case "SHELL", "BASH":
		return expand.Variable{Set: true, Kind: expand.String, Str: "/bin/bash"}
	case "0":
		return expand.Variable{Set: true, Kind: expand.String, Str: "bash"}
	case "PWD":
		return expand.Variable{Set: true, Kind: expand.String, Str: "."}
	case "@", "*", "#", "1", "2", "3", "4", "5", "6", "7", "8", "9":
		return expand.Variable{} // r$@m is rm
	}
	if e.absent[name] {
		return expand.Variable{}
	}
	return expand.Variable{Set: true, Kind: expand.String, Str: unknownText}
}

func (e environment) Each(func(string, expand.Variable) bool) {}

// Set is there because ${x:=y} assigns.
func (e environment) Set(name string, v expand.Variable) error {
	e.set(name, v.String())
	return nil
}

func (s *shell) set(name, value string) {
	if len(value) > maxValue {
		value = value[:maxValue]
	}
	old, known := s.vars[name]
	if known && old == value {
		return
	}
	if s.trials > 0 {
		s.made = append(s.made, change{name, old, known, value})
	}
	note(&s.vars, name, value)
	s.versions++
	s.version = s.versions
}

// change is an assignment that can be undone.
type change struct {
	name, old string
	known     bool // there was an old value
	value     string
}

// trial is an expansion without lasting effect, as the subshell of a substitution or a pipe
// has none.
type trial struct{ made, version int }

func (s *shell) tries() trial {
	s.trials++
	return trial{len(s.made), s.version}
}

// undo ends a trial and returns the assignments that were made.
func (s *shell) undo(t trial) []change {
	made := slices.Clone(s.made[t.made:])
	for _, c := range slices.Backward(made) {
		if c.known {
			s.vars[c.name] = c.old
		} else {
			delete(s.vars, c.name)
		}
	}
	s.trials, s.made, s.version = s.trials-1, s.made[:t.made], t.version
	return made
}
