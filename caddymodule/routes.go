package caddymodule

import (
	"encoding/json"
	"errors"
	"maps"
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
// for, as far as a configuration alone can tell.
func (h *Handler) checkRoutes(ctx caddy.Context) error {
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok {
		return nil
	}
	if _, twice := walkRoutes(server.Routes, server.NamedRoutes); twice {
		return errTwice
	}
	if _, unreached := followProxies(server.Routes, server.NamedRoutes); unreached {
		return errUnreached
	}
	// Those that are not loaded yet are JSON, and the first of them holds this handler.
	ahead := slices.DeleteFunc(slices.Clone(server.Routes), func(r caddyhttp.Route) bool { return r.HandlersRaw == nil })
	if len(ahead) > 0 && (rewrites(server.Routes) || rewritesBefore(ahead[:1], server.NamedRoutes)) {
		h.logger.Warn(rewriteBefore)
	}
	return nil
}

// matches reports whether a route takes some requests only. Its matchers are loaded
// before any handler.
func matches(r caddyhttp.Route) bool { return len(r.MatcherSets)+len(r.MatcherSetsRaw) > 0 }

// handlerJSON is what is read of a handler.
type handlerJSON struct {
	Handler string              `json:"handler"`
	Name    string              `json:"name"`
	Routes  caddyhttp.RouteList `json:"routes"`
	// Responses are the routes of a reverse_proxy that may go on to the handlers after
	// it, as forward_auth does.
	Responses  json.RawMessage `json:"handle_response"`
	URI        string          `json:"uri"`
	PathRegexp json.RawMessage `json:"path_regexp"`
	Substring  json.RawMessage `json:"uri_substring"`
}

// parseHandlerJSON reads a handler; of one that says other things under these names
// nothing is known.
func parseHandlerJSON(raw json.RawMessage) handlerJSON {
	var h handlerJSON
	if json.Unmarshal(raw, &h) != nil {
		return handlerJSON{}
	}
	return h
}

// handlersOf reads the handlers of a route. Once it is loaded, its JSON is gone: that is
// so of a whole site where lex is in a named route, since Caddy loads these last.
func handlersOf(r caddyhttp.Route) (handlers []handlerJSON) {
	for _, raw := range r.HandlersRaw {
		handlers = append(handlers, parseHandlerJSON(raw))
	}
	for _, loaded := range r.Handlers {
		switch h := loaded.(type) {
		case *Handler:
			handlers = append(handlers, handlerJSON{Handler: "lex"})
		case *caddyhttp.Subroute:
			handlers = append(handlers, handlerJSON{Handler: "subroute", Routes: h.Routes})
		case *caddyhttp.Invoke:
			handlers = append(handlers, handlerJSON{Handler: "invoke", Name: h.Name})
		case *reverseproxy.Handler:
			if len(h.HandleResponse) == 0 {
				handlers = append(handlers, handlerJSON{Handler: "reverse_proxy"})
			}
		}
	}
	return handlers
}

// namedRoutes are those that a handler invoke can enter.
type namedRoutes map[string]*caddyhttp.Route

// within returns the routes in a handler, and the named routes that they can enter: not
// the one that they are, or the walks would go round with routes that invoke each other.
func (n namedRoutes) within(h handlerJSON) (caddyhttp.RouteList, namedRoutes) {
	switch route, ok := n[h.Name]; {
	case h.Handler == "subroute":
		return h.Routes, n
	case h.Handler == "invoke" && ok:
		rest := maps.Clone(n)
		delete(rest, h.Name)
		return caddyhttp.RouteList{*route}, rest
	}
	return nil, nil
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
func walkRoutes(routes caddyhttp.RouteList, named namedRoutes) (all presence, twice bool) {
	found := make([]presence, len(routes))
	for i, route := range routes {
		inner, again := walkHandlers(handlersOf(route), named)
		found[i] = presence{inner.some, inner.all && !matches(route)}
		twice = twice || again
		for j, earlier := range routes[:i] {
			exclusive := earlier.Terminal || earlier.Group != "" && earlier.Group == route.Group
			twice = twice || !exclusive && found[j].overlaps(found[i])
		}
		all = all.union(found[i])
	}
	return all, twice
}

func walkHandlers(handlers []handlerJSON, named namedRoutes) (all presence, twice bool) {
	for _, h := range handlers {
		one, again := walkRoutes(named.within(h))
		if h.Handler == "lex" {
			one = presence{true, true}
		}
		twice = twice || again || all.overlaps(one)
		all = all.union(one)
	}
	return all, twice
}

// followProxies follows routes in their order and reports whether a reverse_proxy answers
// every request that comes there, and whether a lex stands where no request comes.
func followProxies(routes caddyhttp.RouteList, named namedRoutes) (all, unreached bool) {
	groups := make(map[string]bool)
	for _, route := range routes {
		here := all
		for _, h := range handlersOf(route) {
			switch h.Handler {
			case "lex":
				unreached = unreached || here
			case "reverse_proxy":
				here = here || len(h.Responses) == 0
			default:
				some, _ := walkRoutes(named.within(h))
				ends, inside := followProxies(named.within(h))
				unreached = unreached || inside || here && some.some
				here = here || ends
			}
		}
		// Where an earlier route of the group takes a request, this one does not.
		all = all || here && !matches(route) && !groups[route.Group]
		groups[route.Group] = route.Group != ""
	}
	return all, unreached
}

// rewritesBefore reports whether a rewrite stands before the first lex. One that
// only takes a prefix away mounts lex below a path, as handle_path does.
func rewritesBefore(routes caddyhttp.RouteList, named namedRoutes) bool {
	for _, route := range routes {
		for _, h := range handlersOf(route) {
			one, _ := walkHandlers([]handlerJSON{h}, named)
			switch {
			case h.Handler == "rewrite" && (h.URI != "" || h.PathRegexp != nil || h.Substring != nil):
				return laterLex(routes, named)
			case h.Handler == "lex":
				return false
			case one.some:
				return rewritesBefore(named.within(h))
			}
		}
	}
	return false
}

func laterLex(routes caddyhttp.RouteList, named namedRoutes) bool {
	found, _ := walkRoutes(routes, named)
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

// sharesOrigin reports whether other handlers answer behind lex on the site that is being
// loaded: the first whose routes are still JSON. What they serve is of the same origin for
// a browser, so its scripts could read what ours may.
func sharesOrigin(routes caddyhttp.RouteList) bool {
	for _, r := range routes {
		if r.HandlersRaw != nil {
			return len(answering(handlersOf(r))) > 1
		}
	}
	return false
}

// answering returns lex and the handlers behind it that answer with something of their own,
// in their order.
func answering(handlers []handlerJSON) (names []string) {
	for _, h := range handlers {
		switch {
		case h.Handler == "subroute":
			for _, route := range h.Routes {
				names = append(names, answering(handlersOf(route))...)
			}
		case h.Handler == "lex", h.Handler != "static_response" && h.Handler != "error":
			names = append(names, h.Handler)
		}
	}
	return names[max(slices.Index(names, "lex"), 0):]
}
