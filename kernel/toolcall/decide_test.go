package toolcall_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/caddy-lex/lex/kernel/toolcall"
)

// table holds, for one invariant, calls that break it and calls of the same
// look that break none.
type table struct {
	invariant toolcall.Invariant
	attacks   []toolcall.Call
	benign    []toolcall.Call
}

func call(name, arguments string) toolcall.Call {
	return toolcall.Call{Name: name, Arguments: json.RawMessage(arguments)}
}

// decide decides without a caller who could leave.
func decide(c toolcall.Call) toolcall.Decision {
	d, err := toolcall.Decide(context.Background(), c)
	if err != nil {
		panic(err)
	}
	return d
}

// with builds a call of one string argument.
func with(name, key, value string) toolcall.Call {
	b, err := json.Marshal(map[string]string{key: value})
	if err != nil {
		panic(err)
	}
	return toolcall.Call{Name: name, Arguments: b}
}

func each(name, key string, values ...string) []toolcall.Call {
	out := make([]toolcall.Call, len(values))
	for i, v := range values {
		out[i] = with(name, key, v)
	}
	return out
}

func bash(commands ...string) []toolcall.Call { return each("bash", "command", commands...) }

func join(lists ...[]toolcall.Call) []toolcall.Call {
	var out []toolcall.Call
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

func check(t *testing.T, tables ...table) {
	t.Helper()
	for _, tt := range tables {
		if len(tt.attacks) < 10 || len(tt.benign) < 10 {
			t.Errorf("%s: %d attacks and %d benign calls; want ten of each", tt.invariant, len(tt.attacks), len(tt.benign))
		}
		for n, c := range tt.attacks {
			t.Run(fmt.Sprintf("%s/attack_%d", tt.invariant, n), func(t *testing.T) {
				if d := decide(c); d.Allowed || d.Invariant != tt.invariant {
					t.Errorf("%s %s\n got %+v, want %s", c.Name, c.Arguments, d, tt.invariant)
				}
			})
		}
		for n, c := range tt.benign {
			t.Run(fmt.Sprintf("%s/benign_%d", tt.invariant, n), func(t *testing.T) {
				if d := decide(c); !d.Allowed || d.Invariant != "" || d.Reason != "" {
					t.Errorf("%s %s\n got %+v, want allowed", c.Name, c.Arguments, d)
				}
			})
		}
	}
}
