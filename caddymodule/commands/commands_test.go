package commands_test

import (
	"strings"
	"testing"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

// A command that does not exist fails, and the error names it and those that are like it.
func TestUnknownCommands(t *testing.T) {
	for _, c := range []struct {
		args string
		want []string
	}{
		{"lex verfiy", []string{`"verfiy"`, "did you mean verify?"}},
		{"lex nope", []string{`"nope"`, `"caddy lex --help"`}},
		{"lex healht --url http://localhost:1", []string{`"healht"`, "did you mean health?"}},
		{"lex nope --sign head.key", []string{`"nope"`}},
		{"lex --sign head.key", []string{"--sign"}},
		{"lex keys list --nope", []string{"--nope"}},
		{"lex keys revok key_a", []string{`"revok"`, `"caddy lex keys"`, "did you mean revoke?"}},
		{"lex keys nope", []string{`"nope"`}},
		{"lex", nil},
		{"lex keys", nil},
		{"lex --help", nil},
	} {
		root, lex := &cobra.Command{Use: "caddy", SilenceErrors: true, SilenceUsage: true}, &cobra.Command{Use: "lex"}
		caddycmd.Commands()["lex"].CobraFunc(lex)
		root.AddCommand(lex)
		var out strings.Builder
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(strings.Fields(c.args))
		err := root.Execute()
		if (err != nil) != (len(c.want) > 0) || (err == nil) != strings.Contains(out.String(), "Available Commands") {
			t.Errorf("%s: %v\n%s", c.args, err, out.String())
		}
		for _, want := range c.want {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", c.args, err, want)
			}
		}
	}
}
