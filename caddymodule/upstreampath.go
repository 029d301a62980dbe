package caddymodule

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"
)

var plainPath = regexp.MustCompile(`^(/[A-Za-z0-9._~@:-]+)+$`)

// checkUpstreamPath refuses what would not be a path once it stands before one.
func checkUpstreamPath(prefix string) error {
	if prefix != "" && (!plainPath.MatchString(prefix) || path.Clean(prefix) != prefix) {
		return fmt.Errorf("upstream_path %q: give a path such as /openai, without a slash at its end", prefix)
	}
	return nil
}

// governedKey marks in a context that lex has had the request.
type governedKey struct{}

func governed(ctx context.Context) bool { return ctx.Value(governedKey{}) != nil }

// outbound returns the caller's request as the next handlers get it, for the
// time of ctx: without what is addressed to Lex, and below the path of the
// upstream's API.
func (h *Handler) outbound(ctx context.Context, r *http.Request) *http.Request {
	out := withoutLexHeaders(r).WithContext(context.WithValue(ctx, governedKey{}, true))
	if h.UpstreamPath == "" || len(r.URL.Path) == 0 || r.URL.Path[0] != '/' { // OPTIONS *, CONNECT
		return out
	}
	out.URL = mounted(r.URL, h.UpstreamPath)
	out.RequestURI = out.URL.RequestURI()
	return out
}

// mounted returns an address with a prefix before its path, which is left as it
// was written. A path that begins with the prefix gets it once more: what the
// client asked for is a path of the API.
func mounted(address *url.URL, prefix string) *url.URL {
	out := *address
	out.Path = prefix + address.Path
	if address.RawPath != "" {
		out.RawPath = prefix + address.RawPath
	}
	return &out
}
