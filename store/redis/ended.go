//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd || solaris || illumos

package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
)

// showingTheirEnd lets the client find out before it uses a connection of its pool that the server
// has closed it meanwhile. The client looks at the socket, but only of connections without TLS, so
// that each one over TLS would cost a request after every restart of the server, and whenever
// nothing was asked for longer than the server, or what stands before it, keeps idle connections.
func showingTheirEnd(dial dialer) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if secure, ok := conn.(*tls.Conn); ok && err == nil {
			return tlsConn{secure}, nil
		}
		return conn, err
	}
}

// A tlsConn is a connection over TLS whose socket can be looked at.
type tlsConn struct{ *tls.Conn }

// SyscallConn makes it a [syscall.Conn], by which the client knows what it can look at.
func (c tlsConn) SyscallConn() (syscall.RawConn, error) {
	socket, ok := c.NetConn().(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	raw, err := socket.SyscallConn()
	return idleSocket{raw}, err
}

// An idleSocket is that of a connection on which no answer is due.
type idleSocket struct{ syscall.RawConn }

// Read fails if the connection has ended, or if something has come. That can only be the
// announcement of its end, or another message of TLS. The client's own look, which it hands over,
// would take it for an answer, and wait for the rest of that.
func (s idleSocket) Read(func(fd uintptr) bool) error {
	var ended error
	err := s.RawConn.Read(func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		if !errors.Is(err, syscall.EAGAIN) {
			ended = io.EOF
		}
		return true
	})
	return errors.Join(err, ended)
}
