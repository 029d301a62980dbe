// Package commands is the command line of Lex, "caddy lex …". Importing it
// registers the commands with Caddy.
//
// Each file holds one command, from its help text to its output. The commands that
// need the data of a running proxy ask it over HTTP (proxy.go); those that read
// receipts read them from a source (source.go); those that try a policy on prompts
// make a dry run (dryrun.go).
package commands

import (
	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "lex",
		Usage: "<command>",
		Short: "Audits and tries the governance of LLM traffic",
		Long: `
The commands of Lex. Those that need the data of a running proxy ask it over
HTTP: the embedded database is locked while Caddy runs.`,
		CobraFunc: func(cmd *cobra.Command) {
			cmd.AddCommand(verifyCommand(), exportCommand(), assessCommand(), benchCommand(), keysCommand(), conformanceCommand())
		},
	})
}

// run makes f the function of a command. An error of f ends the process with
// status 1.
func run(f func(cmd *cobra.Command, fl caddycmd.Flags) error, cmd *cobra.Command) {
	cmd.RunE = caddycmd.WrapCommandFuncForCobra(func(fl caddycmd.Flags) (int, error) {
		if err := f(cmd, fl); err != nil {
			return caddy.ExitCodeFailedStartup, err
		}
		return caddy.ExitCodeSuccess, nil
	})
}
