package caddymodule

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-lex/lex/wire"
)

// A DialectPath names the dialect that is spoken on paths.
type DialectPath struct {
	// The paths, as Caddy's path matcher takes them: /chat, /ai/*, */converse.
	Path string `json:"path"`

	// The name of the dialect.
	Dialect string `json:"dialect"`
}

func (d DialectPath) check() error {
	if _, known := wire.Named(d.Dialect); !known {
		return fmt.Errorf("dialect %s %q: give one of %s", d.Path, d.Dialect, strings.Join(wire.Names(), ", "))
	}
	if !strings.HasPrefix(d.Path, "/") && !strings.HasPrefix(d.Path, "*") || strings.HasSuffix(d.Path, "/") {
		return fmt.Errorf("dialect %q: give a path that begins with / or * and ends without a slash", d.Path)
	}
	if _, err := path.Match(d.Path, "/"); err != nil {
		return fmt.Errorf("dialect %q: give a path with balanced brackets", d.Path)
	}
	return nil
}

// dialect tells which dialect is spoken at a request's path: the one that the operator
// names for it, or the one that is known for it.
func (h *Handler) dialect(r *http.Request) (wire.Dialect, bool) {
	found, known := wire.Match(r.URL)
	for _, d := range h.Dialects {
		if !d.matches(r) {
			continue
		}
		named, ok := wire.Named(d.Dialect)
		if known && ok && found.Name() == named.Name() {
			return found, true // which has read in the address what its API says there
		}
		return named, ok
	}
	return found, known
}

// governs tells in which dialect the answer to a request is governed: that of the calls at its
// path, or of a stored answer below one.
func (h *Handler) governs(r *http.Request) (wire.Dialect, bool) {
	if d, ok := h.dialect(r); ok {
		return d, true
	}
	_, d, ok := h.stored(r)
	return d, ok
}

// stored tells which endpoint of a provider a request is for, and in which dialect its answer
// comes back, if that is one that the provider has stored. Below the paths that the operator names
// for calls these are stored as below the known ones.
func (h *Handler) stored(r *http.Request) (known wire.Endpoint, answers wire.Dialect, ok bool) {
	known, _ = wire.FindEndpoint(r.Method, r.URL, r.Header)
	if answers, ok = known.Answer(r.URL); ok {
		return known, answers, true
	}
	for _, named := range h.Dialects {
		if strings.HasSuffix(named.Path, "*") {
			continue // all below it are calls, or anything
		}
		d, _ := wire.Named(named.Dialect)
		calls, below := path.Clean(r.URL.Path), ""
		for range 2 { // {id}, {id}/cancel
			calls, below = path.Dir(calls), path.Join(path.Base(calls), below)
			at := r.WithContext(r.Context())
			at.URL = &url.URL{Path: calls}
			if !named.matches(at) {
				continue
			}
			if e, answers, ok := wire.FindStored(d, r.Method, below, r.URL.RawQuery, r.Header); ok {
				return e, answers, true
			}
		}
	}
	return known, nil, false
}

// matches reports whether a request has one of the paths. Its path is read as
// [wire.Match] reads it, as a lenient server would, so neither a slash at the end nor a
// parameter is a way around the dialect.
func (d DialectPath) matches(r *http.Request) bool {
	read := r.WithContext(r.Context())
	for _, p := range wire.Paths(r.URL) {
		read.URL = &url.URL{Path: p}
		if matches, err := (caddyhttp.MatchPath{strings.ToLower(d.Path)}).MatchWithError(read); err == nil && matches {
			return true
		}
	}
	return false
}

// checkNew refuses a path that has a dialect already: of two the first would hold alone. Upper
// and lower case are the same, as where paths are matched.
func (d DialectPath) checkNew(earlier []DialectPath) error {
	if slices.ContainsFunc(earlier, func(e DialectPath) bool { return strings.EqualFold(e.Path, d.Path) }) {
		return fmt.Errorf("the dialect of %s is given twice", d.Path)
	}
	return nil
}

// parseDialect sets up the dialect of a path.
func (h *Handler) parseDialect(d *caddyfile.Dispenser) error {
	args, err := arguments(d, 2, 2, "a path and a dialect")
	if err != nil {
		return err
	}
	one := DialectPath{Path: args[0], Dialect: args[1]}
	if err := one.check(); err != nil {
		return d.WrapErr(err)
	}
	if err := one.checkNew(h.Dialects); err != nil {
		return d.WrapErr(err)
	}
	h.Dialects = append(h.Dialects, one)
	return nil
}
