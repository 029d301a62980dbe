package caddymodule

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/headers"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/intercept"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

func init() {
	caddy.RegisterModule(Transport{})
}

// Transport sends requests through another transport of reverse_proxy and
// leaves nothing in them that reverse_proxy must not log. The handler `lex`
// puts it around the transport of every reverse_proxy that its traffic can
// reach, so it needs no configuration.
//
// reverse_proxy logs the request that it gave to its transport, after the
// round trip: each line at debug level holds it, and the warning about an
// answer that broke off.
type Transport struct {
	// The transport that does the work. Default: http.
	TransportRaw json.RawMessage `json:"transport,omitempty" caddy:"namespace=http.reverse_proxy.transport inline_key=protocol"`

	inner http.RoundTripper
}

// CaddyModule returns the Caddy module information.
func (Transport) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.reverse_proxy.transport.lex",
		New: func() caddy.Module { return new(Transport) },
	}
}

// Provision loads the transport that does the work.
func (t *Transport) Provision(ctx caddy.Context) error {
	if t.TransportRaw == nil {
		t.TransportRaw = json.RawMessage(`{"protocol":"http"}`)
	}
	inner, err := ctx.LoadModule(t, "TransportRaw")
	if err != nil {
		return fmt.Errorf("loading the transport: %w", err)
	}
	var ok bool
	if t.inner, ok = inner.(http.RoundTripper); !ok {
		return fmt.Errorf("the module %T is no transport", inner)
	}
	return nil
}

// RoundTrip sends a copy of the request, which the inner transport may still
// read after its return, and then makes the one that it was given safe to log.
// reverse_proxy made that one for this round trip alone: a retry starts from
// its own, whole one.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.inner.RoundTrip(r.WithContext(r.Context()))
	makeSafeToLog(r)
	return response, err
}

// What reverse_proxy asks its transport for beyond the round trip, it asks the
// inner one.

// DefaultBufferSizes returns those of the inner transport.
func (t *Transport) DefaultBufferSizes() (request, response int64) {
	if inner, ok := t.inner.(reverseproxy.BufferedTransport); ok {
		return inner.DefaultBufferSizes()
	}
	return 0, 0
}

// RequestHeaderOps returns those of the inner transport.
func (t *Transport) RequestHeaderOps() *headers.HeaderOps {
	if inner, ok := t.inner.(reverseproxy.RequestHeaderOpsTransport); ok {
		return inner.RequestHeaderOps()
	}
	return nil
}

// ProxyProtocolEnabled answers for the inner transport.
func (t *Transport) ProxyProtocolEnabled() bool {
	inner, ok := t.inner.(reverseproxy.ProxyProtocolTransport)
	return ok && inner.ProxyProtocolEnabled()
}

// OverrideHealthCheckScheme lets the inner transport do so.
func (t *Transport) OverrideHealthCheckScheme(base *url.URL, port string) {
	if inner, ok := t.inner.(reverseproxy.HealthCheckSchemeOverriderTransport); ok {
		inner.OverrideHealthCheckScheme(base, port)
	}
}

// RequiresContentLength answers for the inner transport.
func (t *Transport) RequiresContentLength() bool {
	inner, ok := t.inner.(reverseproxy.ContentLengthRequiredTransport)
	return ok && inner.RequiresContentLength()
}

// wrapTransports puts [Transport] into every reverse_proxy that is loaded after
// this handler. Caddy loads the handlers of a server one after the other and
// keeps the JSON of those to come in the routes that hold them. This is the one
// moment when nothing uses the transports yet: health checks run from the end
// of reverse_proxy's Provision on. One that is not found there keeps its
// transport and works as ever; only its log lines show credentials.
func wrapTransports(ctx caddy.Context) {
	for _, m := range ctx.Modules() {
		switch m := m.(type) {
		case *caddyhttp.Subroute:
			wrapIn(m.Routes)
		case *reverseproxy.Handler: // such as a forward_auth that is written out
			wrapInResponses(m.HandleResponse)
		case *intercept.Intercept:
			wrapInResponses(m.HandleResponse)
		}
	}
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok {
		return
	}
	wrapIn(server.Routes)
	if server.Errors != nil {
		wrapIn(server.Errors.Routes)
	}
	for _, named := range server.NamedRoutes {
		wrapIn(caddyhttp.RouteList{*named})
	}
}

func wrapInResponses(responses []caddyhttp.ResponseHandler) {
	for _, response := range responses {
		wrapIn(response.Routes)
	}
}

func wrapIn(routes caddyhttp.RouteList) {
	for _, route := range routes {
		for i, raw := range route.HandlersRaw { // empty once the route is loaded
			route.HandlersRaw[i] = wrapped(raw)
		}
	}
}

// wrapped is the JSON of a handler with the transport in each reverse_proxy in
// it, at any depth.
func wrapped(raw json.RawMessage) json.RawMessage {
	var handler any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&handler) != nil || !wrapProxies(handler) {
		return raw // what is no JSON, Caddy says
	}
	out, err := json.Marshal(handler)
	if err != nil {
		return raw
	}
	return out
}

// wrapProxies reports whether there was something to wrap.
func wrapProxies(v any) (found bool) {
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			found = wrapProxies(element) || found
		}
	case map[string]any:
		for _, member := range v {
			found = wrapProxies(member) || found
		}
		inner, configured := v["transport"].(map[string]any)
		if v["handler"] != "reverse_proxy" || inner["protocol"] == "lex" {
			return found
		}
		outer := map[string]any{"protocol": "lex"}
		if configured {
			outer["transport"] = inner
		}
		v["transport"], found = outer, true
	}
	return found
}

// Interface guards
var (
	_ caddy.Provisioner                                = (*Transport)(nil)
	_ http.RoundTripper                                = (*Transport)(nil)
	_ reverseproxy.BufferedTransport                   = (*Transport)(nil)
	_ reverseproxy.RequestHeaderOpsTransport           = (*Transport)(nil)
	_ reverseproxy.ProxyProtocolTransport              = (*Transport)(nil)
	_ reverseproxy.HealthCheckSchemeOverriderTransport = (*Transport)(nil)
	_ reverseproxy.ContentLengthRequiredTransport      = (*Transport)(nil)
)
