package commands

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

const keysPath = "/admin/keys"

// keyID is the form of a key's id. What has another form is no id, and in a path it could
// name another endpoint.
var keyID = regexp.MustCompile(`^key_[a-z2-7]{16}$`)

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
	revoke := &cobra.Command{Use: "revoke --url <proxy> <id>", Short: "Revokes a key, at once and on all replicas"}
	for _, sub := range []*cobra.Command{create, list, revoke} {
		sub.Flags().String("url", "", "Base URL of a running proxy")
	}
	run(createKey, create)
	run(listKeys, list)
	run(revokeKey, revoke)
	cmd.AddCommand(create, list, revoke)
	expectCommand(cmd)
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
	p, err := adminOf(fl)
	if err != nil {
		return err
	}
	if err := p.ask(cmd.Context(), call{http.MethodPost, keysPath, body, http.StatusCreated, mediaJSON}, &created); err != nil {
		return err
	}
	if !keyID.MatchString(created.ID) || created.Key == "" {
		return fmt.Errorf("the answer has no key: %w", errNoLex)
	}
	_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s (%s) is shown this once:\n", created.ID, created.Name)
	_, err = fmt.Fprintln(cmd.OutOrStdout(), created.Key)
	return err
}

func listKeys(cmd *cobra.Command, fl caddycmd.Flags) error {
	p, err := adminOf(fl)
	if err != nil {
		return err
	}
	keys, err := p.keys(cmd.Context())
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(out, "ID\tNAME\tPLAN\tCREATED\tLAST USED\tEXPIRES\tREVOKED")
	for _, k := range keys {
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
	if cmd.Flags().NArg() != 1 {
		return errors.New("name one key by its id; \"caddy lex keys list\" shows the ids")
	}
	id := cmd.Flags().Arg(0)
	if !keyID.MatchString(id) {
		return fmt.Errorf("%q is not the id of a key; \"caddy lex keys list\" shows the ids", id)
	}
	p, err := adminOf(fl)
	if err != nil {
		return err
	}
	if err := p.ask(cmd.Context(), call{http.MethodDelete, keysPath + "/" + id, nil, http.StatusNoContent, ""}, nil); err != nil {
		return err
	}
	keys, err := p.keys(cmd.Context()) // any server can answer 204, so the list has to show it
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(keys, func(k listedKey) bool { return k.ID == id && k.RevokedAt != nil }) {
		return fmt.Errorf("%s may still be valid: the list of keys does not show it as revoked", id)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is revoked\n", id)
	return err
}

// adminOf returns the proxy of --url, to ask with the admin secret.
func adminOf(fl caddycmd.Flags) (*proxy, error) {
	p, err := newProxy("--url", fl.String("url"))
	if err != nil {
		return nil, err
	}
	if !p.open(adminVariable, "X-Lex-Admin-Password") {
		return nil, errors.New("set the environment variable " + adminVariable + " to the admin secret of the proxy")
	}
	return p, nil
}

// keys lists all keys.
func (p *proxy) keys(ctx context.Context) ([]listedKey, error) {
	var list struct {
		Keys []listedKey `json:"keys"`
	}
	if err := p.ask(ctx, reading(keysPath), &list); err != nil {
		return nil, err
	}
	if list.Keys == nil {
		return nil, fmt.Errorf("the answer is no list of keys: %w", errNoLex)
	}
	return list.Keys, nil
}
