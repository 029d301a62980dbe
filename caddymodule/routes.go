package caddymodule

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/rewrite"
)

var errTwice = errors.New("a request would pass lex twice here: one lex governs it, records it and counts it; " +
	"put each lex into a handle block of its own, or give them matchers that exclude each other")

var errUnreached = errors.New("no request comes to lex here: a reverse_proxy before it answers all of them, and nothing governs them; " +
	"put lex before reverse_proxy, and take it out of the global option order")

const rewriteBefore = "a rewrite stands before lex: Caddy sorts it there, so the paths of Lex's own endpoints are rewritten too; " +
	"use the option upstream_path, or a route block with lex before rewrite"

// checkRoutes looks at the routes of the server that this handler is loaded
// for, as far as a configuration alone can tell. Those that are not loaded yet
// are JSON, and the others hold no lex that this one could follow: that one has
// seen to it.
func (h *Handler) checkRoutes(ctx caddy.Context) error {
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok {
		return nil
	}
	var ahead []routeJSON
	for _, r := range server.Routes {
		if r.HandlersRaw != nil {
			ahead = append(ahead, routeJSON{Group: r.Group, Match: matchers(r), Handle: r.HandlersRaw, Terminal: r.Terminal})
		}
	}
	if _, twice := walkRoutes(ahead); twice {
		return errTwice
	}
	if _, unreached := followProxies(ahead); unreached || len(ahead) > 0 && proxies(server.Routes) {
		return errUnreached
	}
	if len(ahead) > 0 && rewrites(server.Routes) || rewritesBefore(ahead[:min(1, len(ahead))]) {
		h.logger.Warn(rewriteBefore)
	}
	return nil
}

// matchers stand for those of a route, which are loaded before any handler.
func matchers(r caddyhttp.Route) []json.RawMessage {
	return make([]json.RawMessage, len(r.MatcherSets)+len(r.MatcherSetsRaw))
}

// routeJSON and handlerJSON are what is read of a configuration.
type (
	routeJSON struct {
		Group    string            `json:"group"`
		Match    []json.RawMessage `json:"match"`
		Handle   []json.RawMessage `json:"handle"`
		Terminal bool              `json:"terminal"`
	}
	handlerJSON struct {
		Handler string      `json:"handler"`
		Routes  []routeJSON `json:"routes"`
		// Responses are the routes of a reverse_proxy that may go on to the handlers after
		// it, as forward_auth does.
		Responses  json.RawMessage `json:"handle_response"`
		URI        string          `json:"uri"`
		PathRegexp json.RawMessage `json:"path_regexp"`
		Substring  json.RawMessage `json:"uri_substring"`
	}
)

// parseHandlerJSON reads a handler; of one that says other things under these names
// nothing is known.
func parseHandlerJSON(raw json.RawMessage) handlerJSON {
	var h handlerJSON
	if json.Unmarshal(raw, &h) != nil {
		return handlerJSON{}
	}
	return h
}

// A presence is whether lex stands on a way: for some requests, or for all that
// come there.
type presence struct{ some, all bool }

func (p presence) union(q presence) presence { return presence{p.some || q.some, p.all || q.all} }

// overlaps reports whether a request surely passes both, if it comes to the one that
// only some come to.
func (p presence) overlaps(q presence) bool { return p.some && q.some && (p.all || q.all) }

// walkRoutes follows routes in their order and reports whether a request would pass
// lex twice. Of two routes in a group, and of one after a terminal one that
// matches, a request takes one.
func walkRoutes(routes []routeJSON) (all presence, twice bool) {
	found := make([]presence, len(routes))
	for i, route := range routes {
		inner, again := walkHandlers(route.Handle)
		found[i] = presence{inner.some, inner.all && len(route.Match) == 0}
		twice = twice || again
		for j, earlier := range routes[:i] {
			exclusive := earlier.Terminal || earlier.Group != "" && earlier.Group == route.Group
			twice = twice || !exclusive && found[j].overlaps(found[i])
		}
		all = all.union(found[i])
	}
	return all, twice
}

func walkHandlers(handlers []json.RawMessage) (all presence, twice bool) {
	for _, raw := range handlers {
		var one presence
		h, again := parseHandlerJSON(raw), false
		switch h.Handler {
		case "lex":
			one = presence{true, true}
		case "subroute":
			one, again = walkRoutes(h.Routes)
		}
		twice = twice || again || all.overlaps(one)
		all = all.union(one)
	}
	return all, twice
}

// followProxies follows routes in their order and reports whether a reverse_proxy answers
// every request that comes there, and whether a lex stands where no request comes.
func followProxies(routes []routeJSON) (all, unreached bool) {
	groups := make(map[string]bool)
	for _, route := range routes {
		here := all
		for _, raw := range route.Handle {
			switch h := parseHandlerJSON(raw); h.Handler {
			case "lex":
				unreached = unreached || here
			case "reverse_proxy":
				here = here || len(h.Responses) == 0
			case "subroute":
				some, _ := walkRoutes(h.Routes)
				ends, within := followProxies(h.Routes)
				unreached = unreached || within || here && some.some
				here = here || ends
			}
		}
		// Where an earlier route of the group takes a request, this one does not.
		all = all || here && len(route.Match) == 0 && !groups[route.Group]
		groups[route.Group] = route.Group != ""
	}
	return all, unreached
}

// rewritesBefore reports whether a rewrite stands before the first lex. One that
// only takes a prefix away mounts lex below a path, as handle_path does.
func rewritesBefore(routes []routeJSON) bool {
	for _, route := range routes {
		for _, raw := range route.Handle {
			h := parseHandlerJSON(raw)
			one, _ := walkHandlers([]json.RawMessage{raw})
			switch {
			case h.Handler == "rewrite" && (h.URI != "" || h.PathRegexp != nil || h.Substring != nil):
				return laterLex(routes)
			case h.Handler == "subroute" && one.some:
				return rewritesBefore(h.Routes)
			case one.some:
				return false
			}
		}
	}
	return false
}

func laterLex(routes []routeJSON) bool {
	found, _ := walkRoutes(routes)
	return found.some
}

// rewrites reports whether routes that are loaded, and do not end there, rewrite.
func rewrites(routes caddyhttp.RouteList) bool {
	return slices.ContainsFunc(routes, func(r caddyhttp.Route) bool {
		return !r.Terminal && slices.ContainsFunc(r.Handlers, func(h caddyhttp.MiddlewareHandler) bool {
			w, ok := h.(*rewrite.Rewrite)
			return ok && (w.URI != "" || len(w.PathRegexp) > 0 || len(w.URISubstring) > 0)
		})
	})
}

// proxies reports whether a route that is loaded answers every request by a reverse_proxy.
func proxies(routes caddyhttp.RouteList) bool {
	return slices.ContainsFunc(routes, func(r caddyhttp.Route) bool {
		return len(matchers(r)) == 0 && r.Group == "" && slices.ContainsFunc(r.Handlers, func(h caddyhttp.MiddlewareHandler) bool {
			p, ok := h.(*reverseproxy.Handler)
			return ok && len(p.HandleResponse) == 0
		})
	})
}

// sharesOrigin reports whether other handlers answer behind lex on the site that is being
// loaded: the first whose routes are still JSON. What they serve is of the same origin for
// a browser, so its scripts could read what ours may.
func sharesOrigin(routes caddyhttp.RouteList) bool {
	for _, r := range routes {
		if r.HandlersRaw != nil {
			return len(answering(r.HandlersRaw)) > 1
		}
	}
	return false
}

// answering returns lex and the handlers behind it that answer with something of their own,
// in their order.
func answering(handlers []json.RawMessage) (names []string) {
	for _, raw := range handlers {
		switch h := parseHandlerJSON(raw); {
		case h.Handler == "subroute":
			for _, route := range h.Routes {
				names = append(names, answering(route.Handle)...)
			}
		case h.Handler == "lex", h.Handler != "static_response" && h.Handler != "error":
			names = append(names, h.Handler)
		}
	}
	return names[max(slices.Index(names, "lex"), 0):]
}
