// Package commands is the command line of Lex, "caddy lex …". Importing it
// registers the commands with Caddy.
//
// Each command has its own file, from its help text to its output. Commands that
// need the data of a running proxy ask it over HTTP (proxy.go). Commands that read
// receipts open a source (source.go). Commands that try a policy on prompts, or rules on
// calls of tools, make a dry run (dryrun.go).
package commands

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "lex",
		Usage: "<command>",
		Short: "Audits and tries the governance of LLM traffic",
		Long: `
The commands of Lex. Commands that need the data of a running proxy ask it over
HTTP, because the embedded database is locked while Caddy runs.`,
		CobraFunc: func(cmd *cobra.Command) {
			cmd.AddCommand(verifyCommand(), exportCommand(), headCommand(), reportCommand(), assessCommand(), calibrateCommand(), benchCommand(), toolsCommand(), keysCommand(), healthCommand(), conformanceCommand())
			expectCommand(cmd)
		},
	})
}

// expectCommand lets cmd, which only has commands, fail where it is given none that it has:
// Cobra shows the help and succeeds, which in a script passes for the command's success.
// Without anything it shows the help as before.
func expectCommand(cmd *cobra.Command) {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return unknownCommand(cmd, args[0])
	}
	cmd.SetFlagErrorFunc(func(of *cobra.Command, err error) error { // also of the commands below
		if of == cmd && cmd.Flags().NArg() > 0 {
			return unknownCommand(cmd, cmd.Flags().Arg(0)) // the flag is that of the command that was meant
		}
		return err
	})
}

func unknownCommand(cmd *cobra.Command, name string) error {
	text := fmt.Sprintf("unknown command %q for %q", name, cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2 // as for a root command
	if nearest := cmd.SuggestionsFor(name); len(nearest) > 0 {
		text += "; did you mean " + strings.Join(nearest, " or ") + "?"
	}
	return errors.New(text + fmt.Sprintf("; %q lists the commands", cmd.CommandPath()+" --help"))
}

// run makes f the function of cmd. If f returns an error, the process ends with
// status 1.
func run(f func(cmd *cobra.Command, fl caddycmd.Flags) error, cmd *cobra.Command) {
	cmd.RunE = caddycmd.WrapCommandFuncForCobra(func(fl caddycmd.Flags) (int, error) {
		if err := f(cmd, fl); err != nil {
			return caddy.ExitCodeFailedStartup, err
		}
		return caddy.ExitCodeSuccess, nil
	})
}

// encodeJSON encodes v with the options of the proxy's own answers: sorted members
// of maps, null for a nil slice, and no character that a browser could take for
// markup.
func encodeJSON(v any, more ...json.Options) ([]byte, error) {
	options := append([]json.Options{
		json.Deterministic(true), json.FormatNilSliceAsNull(true), json.FormatNilMapAsNull(true),
		jsontext.EscapeForHTML(true), jsontext.EscapeForJS(true), jsontext.PreserveRawStrings(true),
	}, more...)
	text, err := json.Marshal(v, options...)
	if err != nil {
		return nil, fmt.Errorf("encoding JSON: %w", err)
	}
	return text, nil
}

// printJSON writes v for people to read, with a line end.
func printJSON(out io.Writer, v any) error {
	text, err := encodeJSON(v, jsontext.WithIndent("  "))
	if err == nil {
		_, err = fmt.Fprintf(out, "%s\n", text)
	}
	return err
}
