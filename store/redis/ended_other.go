//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd || solaris || illumos)

package redis

import (
	"context"
	"net"
)

// A dialer opens a connection to the server.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// showingTheirEnd changes nothing: here the client looks at no connection either.
func showingTheirEnd(dial dialer) dialer { return dial }
