package caddymodule

import (
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/logging"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

func init() {
	caddy.RegisterModule(LogFilter{})
}

// LogFilter keeps credentials out of the requests that Caddy itself logs, such
// as in its access log: it is a filter for the fields `request` and `uri` of
// the filter encoder and knows every name that Lex takes for a credential's.
type LogFilter struct{}

// CaddyModule returns the Caddy module information.
func (LogFilter) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "caddy.logging.encoders.filter.lex",
		New: func() caddy.Module { return new(LogFilter) },
	}
}

// UnmarshalCaddyfile sets up the filter from Caddyfile tokens. Syntax:
//
//	request lex
//	uri lex
func (*LogFilter) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume filter name
	return noMoreArguments(d)
}

// Filter hides the credentials of a request or an address; every other field
// stays.
func (LogFilter) Filter(field zapcore.Field) zapcore.Field {
	if field.Type == zapcore.StringType {
		return zap.String(field.Key, safeURI(field.String))
	}
	r, ok := field.Interface.(caddyhttp.LoggableHTTPRequest)
	if !ok {
		return field
	}
	r.Request = safeToLog(r.Request)
	return zap.Object(field.Key, r)
}

// Interface guards
var (
	_ logging.LogFieldFilter = LogFilter{}
	_ caddyfile.Unmarshaler  = (*LogFilter)(nil)
)
