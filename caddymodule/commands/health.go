package commands

import (
	"fmt"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
)

// healthTimeout is less than the time that container engines give a health check.
const healthTimeout = 5 * time.Second

func healthCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "health [--url <proxy>]",
		Short: "Asks a running proxy how it does",
		Long: `
Prints the answer of GET /lex/health of a running proxy. The exit status is 0 if the proxy
governs turns and 1 if it does not, or does not answer. It is for health checks in
containers without a shell.`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().String("url", "http://localhost:8080", "The base URL of the proxy")
	run(checkHealth, cmd)
	return cmd
}

func checkHealth(cmd *cobra.Command, fl caddycmd.Flags) error {
	p, err := newProxy("--url", fl.String("url"))
	if err != nil {
		return err
	}
	p.client.Timeout = healthTimeout
	var answer jsontext.Value
	if err := p.ask(cmd.Context(), reading("/lex/health"), &answer); err != nil {
		return err
	}
	var health struct {
		Status     string            `json:"status"`
		Components map[string]string `json:"components"`
	}
	if json.Unmarshal(answer, &health) != nil || health.Status == "" || health.Components["store"] == "" {
		return fmt.Errorf("the answer is not the health of a Lex proxy: %w", errNoLex)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", answer)
	return err
}
