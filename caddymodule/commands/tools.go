package commands

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/caddy-lex/lex/audit"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/toolcall"
)

func toolsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tools [--config <file> [--adapter <name>]] < calls.jsonl > decisions.jsonl",
		Short: "Decides tool calls from standard input as the proxy would",
		Long: `
Reads JSON lines, {"id", "tool": {"name", "arguments"}, "context": [{"role",
"content"}, ...]} or {"id", "tool_call": {"name", "arguments", "context": {"user",
"tool_output"}}}, and writes one line with the decision for each, in the same order.
Other members of the input are ignored. Nothing is stored.

With --config the rules on tools of that Caddyfile (or JSON) hold too. Nothing else of
it is touched.

A line that cannot be read gets {"id", "error"}, and the exit status is then 1.`,
	}
	configFlags(cmd, "Configuration file whose rules on tools hold")
	run(decideTools, cmd)
	return cmd
}

func decideTools(cmd *cobra.Command, fl caddycmd.Flags) error {
	if len(fl.Args()) > 0 {
		return fmt.Errorf("unexpected argument %q: calls come from standard input", fl.Arg(0))
	}
	app, err := dryRunApp(fl.String("config"), fl.String("adapter"), "tools")
	if err != nil {
		return err
	}
	bad := 0
	err = inOrder(cmd.Context(), cmd.InOrStdin(), func(ctx context.Context, line []byte) toolDecision {
		return decideTool(ctx, app.Interceptor(), line)
	}, func(d toolDecision) error {
		if d.Error != "" {
			bad++
		}
		text, err := encodeJSON(d)
		if err == nil {
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", text)
		}
		return err
	})
	if err == nil && bad > 0 {
		err = fmt.Errorf("%d lines could not be decided", bad)
	}
	return err
}

// inOrder decides lines side by side and hands the decisions over in the order of the
// lines, each as soon as it can be. It reads as many lines ahead as there are processors.
func inOrder[D any](ctx context.Context, in io.Reader, decide func(context.Context, []byte) D, take func(D) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	decisions, read := make(chan chan D, runtime.GOMAXPROCS(0)), make(chan error, 1)
	go func() {
		defer close(decisions)
		read <- audit.EachLine(in, func(_ int, line []byte) error {
			decision := make(chan D, 1)
			select {
			case decisions <- decision:
			case <-ctx.Done():
				return ctx.Err()
			}
			line = slices.Clone(line)
			go func() { decision <- decide(ctx, line) }()
			return nil
		})
	}()
	for decision := range decisions {
		if err := take(<-decision); err != nil {
			return err
		}
	}
	return <-read
}

// A toolDecision is what the command writes for one line: a decision or an error.
type toolDecision struct {
	ID jsontext.Value `json:"id"`
	*decidedTool
	Error string `json:"error,omitzero"`
}

// decidedTool is a decision. Invariant, Reason and Provenance are null where there is
// nothing to say; Rule is absent.
type decidedTool struct {
	Decision   string              `json:"decision"`
	Invariant  *toolcall.Invariant `json:"invariant"`
	Reason     *string             `json:"reason"`
	Rule       string              `json:"rule,omitzero"`
	Provenance *kernel.Provenance  `json:"provenance"`
}

func decideTool(ctx context.Context, i *toolcall.Interceptor, line []byte) toolDecision {
	id, call, err := readToolLine(line)
	if err != nil {
		return toolDecision{ID: id, Error: err.Error()}
	}
	d, err := i.Decide(ctx, call)
	if err != nil {
		return toolDecision{ID: id, Error: err.Error()}
	}
	out := &decidedTool{Decision: "approve", Rule: d.Rule}
	if d.Provenance != "" {
		out.Provenance = &d.Provenance
	}
	if !d.Allowed {
		out.Decision, out.Invariant, out.Reason = "block", &d.Invariant, &d.Reason
	}
	return toolDecision{ID: id, decidedTool: out}
}
