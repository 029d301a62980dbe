package commands

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/note"

	"github.com/caddy-lex/lex/audit"
	"github.com/caddy-lex/lex/store"
)

func headCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "head (--url <proxy> | --store <store> | <file>...) [--sign <key file>]",
		Short: "Prints the head of the log, which shows later that nothing was removed",
		Long: `
Reads the log of receipts from a source, as "caddy lex verify" does, and prints its
head: how many receipts it has, the root of their Merkle tree (RFC 6962), the hash of
the last one, and the time. It is an error if a receipt does not follow the one
before.

--sign signs the head, with a key file that --keygen made or with the key that a
placeholder such as {env.HEAD_KEY} gives. The output is a checkpoint in a signed
note (Ed25519). Keep it where whoever may write the store may not, and compare with
"caddy lex verify --since".

--keygen <name> makes the key file that --sign names, and prints the verifier key.
The name is the origin of the log, such as lex.example/log.`,
	}
	sourceFlags(cmd)
	cmd.Flags().String("sign", "", "Key file, or a placeholder of the key; {env.X} is replaced")
	cmd.Flags().String("keygen", "", "Make the key file of --sign with this name")
	run(printHead, cmd)
	return cmd
}

func printHead(cmd *cobra.Command, fl caddycmd.Flags) error {
	if name := fl.String("keygen"); name != "" {
		return makeKey(cmd, fl, name)
	}
	signer, err := openSigner(fl.String("sign"))
	if err != nil {
		return err
	}
	source, shut, err := openSource(cmd.Context(), fl)
	if err != nil {
		return err
	}
	head, err := readHead(cmd.Context(), source)
	if err := errors.Join(err, shut()); err != nil {
		return err
	}
	text := fmt.Appendf(nil, "size %d\nroot %s\nlast %s\ntime %s\n", head.Size, head.Root, head.Last, head.Time.Format(time.RFC3339))
	if signer != nil {
		if text, err = head.Sign(signer); err != nil {
			return err
		}
	}
	_, err = cmd.OutOrStdout().Write(text)
	return err
}

// readHead reads the whole log of a source.
func readHead(ctx context.Context, source audit.Source) (audit.Head, error) {
	reader := new(audit.HeadReader)
	err := source.Each(ctx, func(_ context.Context, where string, entry store.Receipt) error {
		if err := reader.Add(entry); err != nil {
			return fmt.Errorf("%s: %w; \"caddy lex verify\" names all faults", where, err)
		}
		return nil
	})
	return reader.Head(time.Now()), err
}

// privateKey begins the text of a key that signs.
const privateKey = "PRIVATE+KEY+"

// openSigner returns the signer of a key file or of a placeholder's key, nil of "".
func openSigner(place string) (note.Signer, error) {
	if place == "" {
		return nil, nil
	}
	if strings.HasPrefix(place, privateKey) {
		return nil, errors.New("--sign: every user of this machine can read a key in the list of processes; name its file, or a placeholder such as {env.HEAD_KEY}")
	}
	key := caddy.NewReplacer().ReplaceAll(place, "")
	if !strings.HasPrefix(key, privateKey) {
		text, err := os.ReadFile(key) //nolint:gosec // G304: the user of the command names the file
		if err != nil {
			return nil, fmt.Errorf("--sign: %w", err)
		}
		key = string(text)
	}
	signer, err := note.NewSigner(strings.TrimSpace(key))
	if err != nil {
		return nil, errors.New("--sign: it is not a key that --keygen made") // an error of the library could quote it
	}
	return signer, nil
}

// makeKey writes a new key to the file of --sign, which must not be there yet, and prints
// the key that verifies.
func makeKey(cmd *cobra.Command, fl caddycmd.Flags, name string) error {
	path := fl.String("sign")
	if path == "" || fl.String("url") != "" || fl.String("store") != "" || fl.NArg() > 0 {
		return errors.New("--keygen: name the new key file with --sign, and no source")
	}
	private, public, err := note.GenerateKey(rand.Reader, name)
	if err != nil {
		return fmt.Errorf("--keygen: %w", err)
	}
	if _, err := note.NewSigner(private); err != nil {
		return fmt.Errorf("--keygen: %q: a name has no spaces and no +, such as lex.example/log", name)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // G304: the user of the command names the file
	if err != nil {
		return fmt.Errorf("--keygen: %w", err)
	}
	_, err = fmt.Fprintln(file, private)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("--keygen: %w", err)
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), public)
	return err
}
