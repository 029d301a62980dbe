package wire

import (
	"bytes"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// Match tells which dialect is spoken at an address. Its path is read as a lenient
// server would, decoded, cleaned and without regard to case, and by its end, since
// APIs are served under base paths: Azure has
// /openai/deployments/{name}/chat/completions.
func Match(address *url.URL) (Dialect, bool) {
	p := strings.ToLower(path.Clean("/" + address.Path))
	for _, match := range matchers {
		if d := match(p, address); d != nil {
			return d, true
		}
	}
	return nil, false
}

// matchers are asked in order. Each gets the path in lower case beside the address, and
// returns nil for one that it does not know.
var matchers = []func(path string, address *url.URL) Dialect{
	matchOpenAI,
}

func matchOpenAI(path string, _ *url.URL) Dialect {
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return chat{}
	case strings.HasSuffix(path, "/v1/completions"), isDeploymentCompletions(path):
		return completions{}
	}
	return nil
}

// isDeploymentCompletions reports whether a path ends in
// /deployments/{name}/completions (Azure) or /engines/{name}/completions (the
// oldest form). A bare /completions is too common to claim.
func isDeploymentCompletions(p string) bool {
	dir, last := path.Split(p)
	parent := path.Base(path.Dir(path.Clean(dir)))
	return last == "completions" && (parent == "deployments" || parent == "engines")
}

// Named finds a dialect by the name of its API in a configuration ("openai":
// chat completions) or by its own.
func Named(name string) (Dialect, bool) {
	d, ok := named[name]
	return d, ok
}

// Names returns the names that [Named] knows, in alphabetical order.
func Names() []string { return slices.Sorted(maps.Keys(named)) }

var named = map[string]Dialect{
	"openai":             chat{},
	"openai_chat":        chat{},
	"openai_completions": completions{},
}

// Resembles tells which dialect a body on an unknown path looks like. It reads
// as leniently as the most lenient server: whether the body is valid is for the
// dialect to decide.
func Resembles(body []byte) (Dialect, bool) {
	root := gjson.ParseBytes(bytes.TrimPrefix(body, byteOrderMark))
	if !root.IsObject() {
		return nil, false
	}
	var messages, prompt bool
	root.ForEach(func(key, value gjson.Result) bool {
		switch {
		case strings.EqualFold(key.Str, "messages"):
			messages = messages || isMessages(value)
		case strings.EqualFold(key.Str, "prompt"):
			prompt = prompt || value.Type == gjson.String || value.IsArray()
		}
		return !messages
	})
	switch {
	case messages:
		return chat{}, true
	case prompt:
		return completions{}, true
	}
	return nil, false
}

// isMessages reports whether a value is a list of objects that speak. Other
// services have members named messages too.
func isMessages(v gjson.Result) bool {
	if !v.IsArray() {
		return false
	}
	found := false
	v.ForEach(func(_, message gjson.Result) bool {
		message.ForEach(func(key, _ gjson.Result) bool {
			found = strings.EqualFold(key.Str, "role") || strings.EqualFold(key.Str, "content")
			return !found
		})
		return !found
	})
	return found
}
