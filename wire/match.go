package wire

import (
	"bytes"
	"path"
	"strings"

	"github.com/tidwall/gjson"
)

// Match tells which dialect is spoken at a URL path. The path must be decoded,
// as net/http does. It is read as a lenient server would, cleaned and without
// regard to case, and by its end, since APIs are served under base paths:
// Azure has /openai/deployments/{name}/chat/completions.
func Match(urlPath string) (Dialect, bool) {
	p := strings.ToLower(path.Clean("/" + urlPath))
	switch {
	case strings.HasSuffix(p, "/chat/completions"):
		return chat{}, true
	case strings.HasSuffix(p, "/v1/completions"), isDeploymentCompletions(p):
		return completions{}, true
	}
	return nil, false
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
	switch name {
	case "openai", chat{}.Name():
		return chat{}, true
	case completions{}.Name():
		return completions{}, true
	}
	return nil, false
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
