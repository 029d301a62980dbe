package caddymodule

import (
	"context"
	"errors"
	"net/http"
	"reflect"

	"github.com/caddy-lex/lex/console"
	"github.com/caddy-lex/lex/wire"
)

// maxConsoleStreams is how many streams of events a process serves at a time.
const maxConsoleStreams = 8

// consoleStreams has an entry for each of them.
var consoleStreams = make(chan struct{}, maxConsoleStreams)

// events serves GET /lex/console/events: rows as they come, until the client leaves, does
// not read for a minute, or the configuration ends.
func (a *consoleAPI) events(w http.ResponseWriter, r *http.Request) error {
	query, err := consoleQuery(r, "after", "show")
	if err != nil {
		return err
	}
	after := query.Get("after")
	query.Del("after")
	filter, err := filterOf(query)
	if err != nil {
		return err
	}
	select {
	case consoleStreams <- struct{}{}:
		defer func() { <-consoleStreams }()
	default:
		return errTooManyStreams
	}
	follower, err := a.window.Follow(r.Context(), after)
	if err != nil {
		return storeError(err)
	}
	defer follower.Close()

	s := &eventStream{w: w}
	if s.begin(); r.Method == http.MethodHead {
		return nil
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(a.handler.serving, cancel)() //nolint:contextcheck // the configuration's, which ends before it
	for ctx.Err() == nil {
		if err := a.tell(ctx, s, follower, filter); err != nil {
			return nil // the client left, or the store is being closed: the stream has begun
		}
	}
	return nil
}

// tell sends what is new, or that the connection lives if nothing is for a while. Health
// is looked at each time nothing is new, and when the store fails.
func (a *consoleAPI) tell(ctx context.Context, s *eventStream, f *console.Follower, filter console.Filter) error {
	if s.health == nil {
		return a.tellHealth(ctx, s)
	}
	idle, cancel := context.WithTimeout(ctx, keepAlive)
	defer cancel()
	news, err := f.Next(idle)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		s.comment("keep-alive")
		return errors.Join(s.send(), a.tellHealth(ctx, s))
	case err != nil:
		return err
	case news.Health:
		return a.tellHealth(ctx, s)
	case news.Resync:
		s.event("resync", map[string]*int{"missed": news.Missed})
	}
	for _, row := range news.Rows {
		if filter.Matches(&row) {
			s.row(row)
		}
	}
	return s.send()
}

// tellHealth sends the health, if it is not as it was.
func (a *consoleAPI) tellHealth(ctx context.Context, s *eventStream) error {
	_, health := a.health(ctx)
	if s.health != nil && reflect.DeepEqual(*s.health, health) {
		return nil
	}
	s.health = &health
	s.event("health", health)
	return s.send()
}

// An eventStream is a stream of server-sent events with names (HTML standard, 9.2).
type eventStream struct {
	w       http.ResponseWriter
	pending []byte
	health  *healthAnswer // as it was sent last
}

func (s *eventStream) begin() {
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	h.Set("X-Content-Type-Options", "nosniff")
	s.w.WriteHeader(http.StatusOK)
}

func (s *eventStream) comment(text string) { s.pending = wire.AppendComment(s.pending, text) }

func (s *eventStream) row(r console.Row) {
	s.pending = append(append(append(s.pending, "id: "...), r.Cursor...), '\n')
	s.event("receipt", r)
}

func (s *eventStream) event(name string, v any) {
	data, _ := encodeJSON(v) // rows, numbers and texts always encode
	s.pending = append(append(append(s.pending, "event: "...), name...), '\n')
	s.pending = wire.AppendEvent(s.pending, data)
}

// send writes what is pending. A client that does not read for writeTime is gone. Between the events
// there is no deadline: over HTTP/2 it would end the stream though nothing waits to be written.
func (s *eventStream) send() error {
	if len(s.pending) == 0 {
		return nil
	}
	err := sendNow(s.w, s.pending)
	s.pending = s.pending[:0]
	return err
}
