package commands

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-lex/lex/conformance"
)

func conformanceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "conformance --url <proxy> [--forwarded-for]",
		Short: "Checks a running proxy against the HTTP interface",
		Long: `
Checks a running proxy in some 290 cases, which send about 310 requests, or 490
with the secrets. It checks the status, headers and body of every answer, prints
a line for each case, and ends with status 1 if a case fails.

Environment variables:
  ADMIN_PASSWORD  the admin secret; without it the administration is not checked
  BENCH_SECRET    the bench secret; the admin secret can be used instead
  LEX_API_KEY     an API key for the governance requests

The command keeps to the rate limit. With the admin secret it creates a key for
the run. Without the admin secret and without a key it has to wait, and takes
several minutes. If the proxy trusts the client addresses that this machine
names, --forwarded-for avoids the wait by giving each case its own address.

The command leaves receipts of its own sessions behind and, with a secret, revoked
API keys and a benchmark row named lex-conformance.`,
	}
	cmd.Flags().String("url", "", "Base URL of a running proxy")
	cmd.Flags().Bool("forwarded-for", false, "Send each case with its own X-Forwarded-For address")
	run(checkConformance, cmd)
	return cmd
}

func checkConformance(cmd *cobra.Command, fl caddycmd.Flags) error {
	target := conformance.Target{
		URL: fl.String("url"), ForwardedFor: fl.Bool("forwarded-for"),
		Admin: os.Getenv(adminVariable), Bench: os.Getenv(benchVariable), Key: os.Getenv("LEX_API_KEY"),
		Wait: func(ctx context.Context, d time.Duration) error {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "waiting %v for the rate limit\n", d)
			return waitFor(ctx, d)
		},
	}
	passed, skipped := 0, 0
	failed, err := conformance.Run(cmd.Context(), target, func(r conformance.Result) {
		switch {
		case r.Skipped != "":
			skipped++
		case r.Err == nil:
			passed++
		}
		printResult(cmd.OutOrStdout(), r)
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if failed > 0 {
		return fmt.Errorf("%d cases failed", failed)
	}
	return err
}

// printResult writes one line. It ignores errors, because the caller writes one more
// line to the same output and reports the error of that.
func printResult(out io.Writer, r conformance.Result) {
	text := "ok    " + r.Name
	switch {
	case r.Skipped != "":
		text = "skip  " + r.Name + ": needs " + r.Skipped
	case r.Err != nil:
		text = "FAIL  " + r.Name + ": " + strings.Join(strings.Fields(r.Err.Error()), " ")
	}
	_, _ = fmt.Fprintln(out, text)
}

func waitFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
