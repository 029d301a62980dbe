package redis

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"syscall"

	client "github.com/redis/go-redis/v9"

	"github.com/caddy-lex/lex/store"
)

// failure turns an error of the client into a kind of the contract. The
// client's own text is left out: it names the address.
func failure(ctx context.Context, doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, client.Nil):
		return fmt.Errorf("%s: %w", doing, store.ErrNotFound)
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", doing, ctx.Err())
	}
	var reply client.Error
	switch {
	case client.HasErrorPrefix(err, "WRONGTYPE"):
		return fmt.Errorf("%s: %w: the server answered WRONGTYPE", doing, store.ErrInvalid)
	case errors.As(err, &reply):
		return fmt.Errorf("%s: %w: the server answered %s", doing, store.ErrRefused, code(reply.Error())+denied(reply.Error()))
	}
	return fmt.Errorf("%s: %w: %s", doing, store.ErrUnavailable, cause(err))
}

// errNoRoom is what a server with as many clients as it takes tells a new one.
var errNoRoom = errors.New("the server has no room for another client (maxclients)")

// cause names the failure of a connection in few and fixed words.
func cause(err error) string {
	var (
		network net.Error
		lookup  *net.DNSError
	)
	switch {
	case errors.As(err, &lookup) && !lookup.IsTimeout:
		return "the host name was not found"
	case errors.Is(err, errNoRoom):
		return errNoRoom.Error()
	case errors.Is(err, client.ErrClosed):
		return "closed"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "this process has too many files open"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, client.ErrPoolTimeout), errors.Is(err, context.DeadlineExceeded),
		errors.As(err, &network) && network.Timeout():
		return "timed out"
	case closed(err):
		return "the server closed the connection"
	}
	return cmp.Or(causeOfTLS(err), "connection failed")
}

// causeOfTLS names the failure of a handshake, or is "".
func causeOfTLS(err error) string {
	var (
		host    x509.HostnameError
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		cert    *tls.CertificateVerificationError
		alert   tls.AlertError
		remote  *net.OpError
		record  tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &host):
		return "the certificate of the server is for another host name"
	case errors.As(err, &unknown):
		return "the certificate of the server is from an authority that is not trusted here"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the certificate of the server has expired, or is not valid yet"
	case errors.As(err, &cert):
		return "the certificate of the server is not valid"
	case errors.As(err, &record):
		return "the server does not speak TLS"
	case errors.As(err, &alert), errors.As(err, &remote) && remote.Op == "remote error":
		return "the server refused the TLS handshake"
	}
	return ""
}

// closed reports whether the server ended the connection.
func closed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// denied names the command that a user may not run, or says that it is the keys that he may not
// have. The server puts both into a sentence, with nothing of a caller in it.
func denied(reply string) string {
	if m := deniedCommand.FindStringSubmatch(reply); m != nil {
		return " to " + strings.ToUpper(m[1])
	}
	if code(reply) == "NOPERM" && strings.Contains(reply, "key") {
		return " to a key that begins with lex:"
	}
	return ""
}

var deniedCommand = regexp.MustCompile(`no permissions to run the '([a-z|]+)' command`)

// code is the first word of an error reply, such as OOM or WRONGPASS, which is
// the only part that a server gives a fixed form. To a script some versions say
// NOPERM only in a sentence.
func code(reply string) string {
	if strings.Contains(reply, "can't run this command") {
		return "NOPERM"
	}
	word, _, _ := strings.Cut(reply, " ")
	for _, r := range word {
		if r < 'A' || r > 'Z' {
			return "an error"
		}
	}
	return word
}
