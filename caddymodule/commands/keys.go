package commands

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"text/tabwriter"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

const keysPath = "/admin/keys"

// A listedKey is a key as GET /admin/keys lists it. A nil time means never.
type listedKey struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Plan       *string    `json:"plan"`
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  *time.Time `json:"expires_at"`
	LastUsedAt *time.Time `json:"last_used_at"`
	RevokedAt  *time.Time `json:"revoked_at"`
}

func keysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys <command>",
		Short: "Creates, lists and revokes API keys of a running proxy",
		Long: `
Creates, lists and revokes the API keys of a running proxy over HTTP. The admin
secret is read from the environment variable ADMIN_PASSWORD.`,
	}
	create := &cobra.Command{
		Use:   "create --url <proxy> --name <name> [--plan <plan>] [--expires-in <duration>]",
		Short: "Creates a key and prints it; it is never shown again",
		Args:  cobra.NoArgs,
	}
	create.Flags().String("name", "", "Name of the key's owner, for the list")
	create.Flags().String("plan", "", "A plan that the option limits configures")
	create.Flags().String("expires-in", "", "How long the key is valid, such as 90d")
	list := &cobra.Command{Use: "list --url <proxy>", Short: "Lists all keys, without the keys themselves", Args: cobra.NoArgs}
	revoke := &cobra.Command{Use: "revoke --url <proxy> <id>", Short: "Revokes a key, at once and on all replicas", Args: cobra.ExactArgs(1)}
	for _, sub := range []*cobra.Command{create, list, revoke} {
		sub.Flags().String("url", "", "Base URL of a running proxy")
	}
	run(createKey, create)
	run(listKeys, list)
	run(revokeKey, revoke)
	cmd.AddCommand(create, list, revoke)
	return cmd
}

func createKey(cmd *cobra.Command, fl caddycmd.Flags) error {
	body := map[string]any{"name": fl.String("name")}
	if plan := fl.String("plan"); plan != "" {
		body["plan"] = plan
	}
	if within := fl.String("expires-in"); within != "" {
		d, err := caddy.ParseDuration(within)
		if err != nil || d <= 0 {
			return fmt.Errorf("--expires-in %q is not a positive duration such as 90d", within)
		}
		body["expires_at"] = time.Now().Add(d).UTC().Format(time.RFC3339)
	}
	var created struct {
		ID   string `json:"id"`
		Name string `json:"name"`
		Key  string `json:"key"`
	}
	if err := callAdmin(cmd.Context(), fl, http.MethodPost, keysPath, body, &created); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s (%s) is shown this once:\n", created.ID, created.Name)
	_, err := fmt.Fprintln(cmd.OutOrStdout(), created.Key)
	return err
}

func listKeys(cmd *cobra.Command, fl caddycmd.Flags) error {
	var list struct {
		Keys []listedKey `json:"keys"`
	}
	if err := callAdmin(cmd.Context(), fl, http.MethodGet, keysPath, nil, &list); err != nil {
		return err
	}
	out := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(out, "ID\tNAME\tPLAN\tCREATED\tLAST USED\tEXPIRES\tREVOKED")
	for _, k := range list.Keys {
		plan := "-"
		if k.Plan != nil {
			plan = *k.Plan
		}
		_, _ = fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Name, plan, k.CreatedAt.Format(time.RFC3339), orDash(k.LastUsedAt), orDash(k.ExpiresAt), orDash(k.RevokedAt))
	}
	return out.Flush() // also reports an error of the lines before
}

func orDash(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.Format(time.RFC3339)
}

func revokeKey(cmd *cobra.Command, fl caddycmd.Flags) error {
	id := cmd.Flags().Arg(0)
	if err := callAdmin(cmd.Context(), fl, http.MethodDelete, keysPath+"/"+url.PathEscape(id), nil, nil); err != nil {
		return err
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is revoked\n", id)
	return err
}

// callAdmin asks the proxy of --url with the admin secret.
func callAdmin(ctx context.Context, fl caddycmd.Flags, method, path string, body, answer any) error {
	p, err := newProxy("--url", fl.String("url"))
	if err != nil {
		return err
	}
	if !p.open(adminVariable, "X-Lex-Admin-Password") {
		return errors.New("set the environment variable " + adminVariable + " to the admin secret of the proxy")
	}
	return p.ask(ctx, method, path, body, answer)
}
