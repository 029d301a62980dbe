package caddymodule

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// connectionKey is where the context of a request has the connection that it came over.
type connectionKey struct{}

// keepConnections makes the server of a handler put it there.
func keepConnections(ctx caddy.Context) {
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok {
		return // in tests
	}
	server.RegisterConnContext(func(ctx context.Context, conn net.Conn) context.Context {
		if ctx.Value(connectionKey{}) != nil {
			return ctx // another handler of the server was first
		}
		return context.WithValue(ctx, connectionKey{}, conn)
	})
}

// An http2Writer bounds writes over HTTP/2 where the deadline of a stream does not. A write that
// missed it ends when the stream is reset, and the reset waits behind what the connection does not
// take: one to a client that is gone, or reads nothing at all, would never end.
type http2Writer struct {
	*caddyhttp.ResponseWriterWrapper

	conn  net.Conn
	stuck *time.Timer // ends the connection
}

// resetTime is how long after its deadline a write may wait for the reset of its stream.
const resetTime = 5 * time.Second

// boundConnection returns a writer whose deadlines also hold where a connection takes nothing. The
// caller calls done when nothing is written any more.
func boundConnection(w http.ResponseWriter, r *http.Request) (_ http.ResponseWriter, done func()) {
	conn, ok := r.Context().Value(connectionKey{}).(net.Conn)
	if !ok || r.ProtoMajor != 2 {
		return w, func() {}
	}
	bounded := &http2Writer{ResponseWriterWrapper: &caddyhttp.ResponseWriterWrapper{ResponseWriter: w}, conn: conn}
	bounded.stuck = time.AfterFunc(time.Hour, bounded.endConnection)
	bounded.stuck.Stop()
	return bounded, func() { bounded.stuck.Stop() }
}

// SetWriteDeadline bounds the writes to come; the zero time lets them take any time.
func (w *http2Writer) SetWriteDeadline(deadline time.Time) error {
	if w.stuck.Stop(); !deadline.IsZero() {
		w.stuck.Reset(time.Until(deadline) + resetTime)
	}
	return http.NewResponseController(w.ResponseWriter).SetWriteDeadline(deadline)
}

// endConnection ends what waits for the connection, streams of other requests included.
func (w *http2Writer) endConnection() { _ = w.conn.Close() }
