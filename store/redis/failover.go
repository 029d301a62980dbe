package redis

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	client "github.com/redis/go-redis/v9"
)

// A primary is what an address leads to that may change its server: after a failover new
// connections lead to the new primary, and those of before to the old one, which may keep them
// open or end them all. The first that is told so keeps all of them from being used again;
// otherwise each would cost a request.
type primary struct {
	generation atomic.Uint64 // of connections; those of an earlier one are not used again
}

// isReplica is what a server that may not write says, to a script in some versions within a
// sentence.
func isReplica(reply string) bool { return strings.Contains(reply, "READONLY") }

// lost reports whether the server refused a command because it is a replica, or ended the
// connection under it. Either begins the next generation of connections.
func (p *primary) lost(err error) (refused, ended bool) {
	var reply client.Error
	refused, ended = errors.As(err, &reply) && isReplica(reply.Error()), closed(err)
	if refused || ended {
		p.generation.Add(1)
	}
	return refused, ended
}

// DialHook does nothing.
func (p *primary) DialHook(next client.DialHook) client.DialHook { return next }

// ProcessHook sends a command once more that a replica refused, because it did nothing, and one
// that only reads, if the server ended the connection under it, as it does at the end of a failover.
func (p *primary) ProcessHook(next client.ProcessHook) client.ProcessHook {
	return func(ctx context.Context, cmd client.Cmder) error {
		err := next(ctx, cmd)
		if refused, ended := p.lost(err); refused || ended && onlyRead(cmd) {
			cmd.SetErr(nil)
			err = next(ctx, cmd)
		}
		return err
	}
}

// ProcessPipelineHook does the same for a pipeline as a whole. Where the server became a replica
// half way, what ran before runs twice: all that is sent in pipelines may.
func (p *primary) ProcessPipelineHook(next client.ProcessPipelineHook) client.ProcessPipelineHook {
	return func(ctx context.Context, cmds []client.Cmder) error {
		err := next(ctx, cmds)
		refused, ended := p.lost(err)
		for _, cmd := range cmds { // err is that of the first that failed
			if !refused && !ended {
				refused, ended = p.lost(cmd.Err())
			}
		}
		if refused || ended && onlyRead(cmds...) {
			for _, cmd := range cmds {
				cmd.SetErr(nil)
			}
			err = next(ctx, cmds)
		}
		return err
	}
}

// readingCommands are those with which the store reads.
var readingCommands = strings.Fields("exists get hgetall hmget smembers xrange xrevrange")

func onlyRead(cmds ...client.Cmder) bool {
	return !slices.ContainsFunc(cmds, func(cmd client.Cmder) bool { return !slices.Contains(readingCommands, cmd.Name()) })
}

// A dialer opens a connection to the server.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

func (p *primary) dials(dial dialer) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		since := p.generation.Load()
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &primaryConn{Conn: conn, primary: p, since: since}, nil
	}
}

// A primaryConn is a connection to what was the primary when it was opened.
type primaryConn struct {
	net.Conn

	primary *primary
	since   uint64
	heard   bool // the server has said something
	noRoom  bool // and it was that
}

// Read fails if a server says first of all that it has no room for another client. It says so
// unasked and ends the connection, and the client would take it for an answer to its greeting, go on
// and find a connection that ended. Those that there are have nothing to do with it.
func (c *primaryConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.noRoom = c.noRoom || !c.heard && bytes.HasPrefix(p[:n], []byte("-ERR max number of clients"))
	if c.heard = true; c.noRoom {
		return 0, errNoRoom
	}
	return n, err //nolint:wrapcheck // an end has to stay io.EOF
}

// SyscallConn is called by the client when it takes the connection out of its pool, to look
// whether it has ended. A failure makes the client close it and take another.
func (c *primaryConn) SyscallConn() (syscall.RawConn, error) {
	socket, ok := c.Conn.(syscall.Conn)
	if !ok || c.primary.generation.Load() != c.since {
		return nil, net.ErrClosed
	}
	return socket.SyscallConn()
}

// Interface guards
var (
	_ client.Hook  = (*primary)(nil)
	_ syscall.Conn = (*primaryConn)(nil)
)
