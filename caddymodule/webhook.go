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

	"github.com/caddy-lex/lex/model"
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
	running context.Context // until the configuration ends
	stop    context.CancelFunc
	stopped chan struct{} // closed when nothing is sent any more
	lost    atomic.Int64  // events, since the log last told their number
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
	h.client = model.NewHTTPClient()
	h.client.Timeout = webhookTime
	h.queue, h.stopped = make(chan caddy.Event, webhookQueue), make(chan struct{})
	// Caddy cancels its context before it cleans up one module after the other, so all
	// webhooks stop side by side.
	h.running, h.stop = context.WithCancel(ctx)
	go h.run()
	return nil
}

// Handle takes an event to be sent, unless the configuration has ended. It never waits.
func (h *Webhook) Handle(_ context.Context, e caddy.Event) error {
	select {
	case <-h.running.Done():
		return nil
	default:
	}
	select {
	case h.queue <- e:
	default:
		if h.lost.Add(1) == 1 {
			h.logger.Warn("the webhook is too slow: events are lost")
		}
	}
	return nil // Caddy would log an error for each event
}

// run sends events one after the other, and at the end those that wait: all of them in no
// more time than one may take, the one on its way included.
func (h *Webhook) run() {
	defer close(h.stopped)
	sending, end := context.WithCancel(context.Background())
	defer end()
	context.AfterFunc(h.running, func() { time.AfterFunc(webhookTime, end) })
	for h.running.Err() == nil {
		select {
		case e := <-h.queue:
			h.deliver(sending, e)
		case <-h.running.Done():
		}
	}
	h.drain(sending)
	h.client.CloseIdleConnections()
}

// drain sends the events that wait, until sending ends, and tells how many are lost.
func (h *Webhook) drain(sending context.Context) {
	for len(h.queue) > 0 && sending.Err() == nil {
		h.deliver(sending, <-h.queue)
	}
	h.lost.Add(int64(len(h.queue)))
	h.tellLost()
}

// deliver sends an event, and logs when the address begins to fail and when it is back, and
// how many events were lost meanwhile.
func (h *Webhook) deliver(sending context.Context, e caddy.Event) {
	err := h.send(sending, e)
	failed := err != nil
	switch {
	case failed && !h.failing:
		h.logger.Warn("the webhook is failing", zap.String("cause", err.Error()))
	case !failed && h.failing:
		h.logger.Warn("the webhook is back")
	}
	h.failing = failed
	if failed {
		h.lost.Add(1)
		return
	}
	h.tellLost()
}

// tellLost logs how many events were lost since it last did.
func (h *Webhook) tellLost() {
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
		var failed *url.Error // what it says of the address tells nothing of the failure
		if errors.As(err, &failed) {
			err = failed.Err
		}
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
	h.stop()
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
		return missing(d, "lex_webhook", "an address")
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
