package caddymodule

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"go.uber.org/zap"
)

func init() {
	caddy.RegisterModule(new(Webhook))
}

// Webhook sends events to an address, each as the JSON of a CloudEvent. Requests do not wait
// for it. An event is sent once: it is lost if the address does not take it within five
// seconds, or if 256 others wait already, so that a flood of attacks costs no more than that.
type Webhook struct {
	// The http or https address that gets a POST for each event. Placeholders such as
	// {env.HOOK_URL} are replaced when the configuration is loaded, which keeps a token in
	// the address out of it.
	URL string `json:"url"`

	address string
	client  *http.Client
	logger  *zap.Logger
	queue   chan caddy.Event
	stop    chan struct{} // closed in Cleanup
	stopped chan struct{} // closed when nothing is sent any more
	lost    atomic.Int64  // events, since one was last taken
	failing bool
}

const (
	webhookQueue = 256
	webhookTime  = 5 * time.Second
)

// CaddyModule returns the Caddy module information.
func (*Webhook) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "events.handlers.lex_webhook",
		New: func() caddy.Module { return new(Webhook) },
	}
}

// Provision checks the address and begins to send. It asks the address nothing.
func (h *Webhook) Provision(ctx caddy.Context) error {
	h.address = caddy.NewReplacer().ReplaceAll(h.URL, "")
	to, err := url.Parse(h.address)
	if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
		return errors.New("lex_webhook: give an http or https address such as https://hooks.example/lex")
	}
	h.logger = ctx.Logger()
	h.client = &http.Client{
		Timeout:       webhookTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	h.queue, h.stop, h.stopped = make(chan caddy.Event, webhookQueue), make(chan struct{}), make(chan struct{})
	go h.run()
	return nil
}

// Handle takes an event to be sent. It never waits.
func (h *Webhook) Handle(_ context.Context, e caddy.Event) error {
	select {
	case h.queue <- e:
	default:
		if h.lost.Add(1) == 1 {
			h.logger.Warn("the webhook is too slow: events are lost")
		}
	}
	return nil // Caddy would log an error for each event
}

// run sends events one after the other, and at the end those that wait.
func (h *Webhook) run() {
	defer close(h.stopped)
	for {
		select {
		case e := <-h.queue:
			h.deliver(context.Background(), e)
		case <-h.stop:
			h.drain()
			return
		}
	}
}

// drain sends the events that wait, in no more time than one of them may take.
func (h *Webhook) drain() {
	ctx, cancel := context.WithTimeout(context.Background(), webhookTime)
	defer cancel()
	for ctx.Err() == nil {
		select {
		case e := <-h.queue:
			h.deliver(ctx, e)
		default:
			h.client.CloseIdleConnections()
			return
		}
	}
}

// deliver sends an event, and logs when the address begins to fail and when it is back, and
// how many events were lost meanwhile.
func (h *Webhook) deliver(ctx context.Context, e caddy.Event) {
	err := h.send(ctx, e)
	switch failed := err != nil; {
	case failed && !h.failing:
		h.logger.Warn("the webhook is failing", zap.String("cause", err.Error()))
	case !failed && h.failing:
		h.logger.Warn("the webhook is back")
	}
	h.failing = err != nil
	if lost := h.lost.Swap(0); lost > 0 {
		h.logger.Warn("events for the webhook were lost", zap.Int64("events", lost))
	}
}

// send sends an event. Its errors do not name the address, which may hold a token.
func (h *Webhook) send(ctx context.Context, e caddy.Event) error {
	body, err := encodeJSON(e.CloudEvent())
	if err != nil {
		return fmt.Errorf("encoding the event: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.address, bytes.NewReader(body))
	if err != nil {
		return errors.New("the address is no URL")
	}
	r.Header.Set("Content-Type", "application/cloudevents+json")
	resp, err := h.client.Do(r)
	if err != nil {
		return errors.New(causeOf(err))
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	if resp.StatusCode >= http.StatusMultipleChoices {
		return errors.New("status " + strconv.Itoa(resp.StatusCode))
	}
	return nil
}

// Cleanup ends the sending. A process that exits waits for the events that wait.
func (h *Webhook) Cleanup() error {
	if h.stop == nil {
		return nil
	}
	close(h.stop)
	if caddy.Exiting() {
		<-h.stopped
	}
	return nil
}

// UnmarshalCaddyfile sets up the webhook from Caddyfile tokens. Syntax:
//
//	lex_webhook <url>
func (h *Webhook) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume module name
	if !d.NextArg() {
		return d.ArgErr()
	}
	h.URL = d.Val()
	return noMoreArguments(d)
}

// Interface guards
var (
	_ caddy.Provisioner     = (*Webhook)(nil)
	_ caddy.CleanerUpper    = (*Webhook)(nil)
	_ caddyfile.Unmarshaler = (*Webhook)(nil)
	_ caddyevents.Handler   = (*Webhook)(nil)
)
