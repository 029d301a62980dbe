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
// /openai/deployments/{name}/chat/completions. Of several [Paths] the first with a
// dialect counts.
func Match(address *url.URL) (Dialect, bool) {
	for _, p := range Paths(address) {
		read := *address
		read.Path, read.RawPath = p, ""
		for _, match := range matchers {
			if d := match(strings.ToLower(p), &read); d != nil {
				return d, true
			}
		}
	}
	return nil, false
}

// Paths returns the paths that servers read in an address, decoded and cleaned. There are
// several if segments have parameters (/mcp;v=1, RFC 3986, section 3.3): some servers drop
// these before they decode the path, some after, and the others find nothing at such a path.
func Paths(address *url.URL) []string {
	var all []string
	if strings.Contains(address.Path, ";") {
		if dropped, err := url.PathUnescape(withoutParameters(address.EscapedPath())); err == nil {
			all = append(all, dropped)
		}
		all = append(all, withoutParameters(address.Path))
	}
	all = append(all, address.Path)
	for i, p := range all {
		all[i] = path.Clean("/" + p)
	}
	return all
}

// withoutParameters returns a path without the parameters of its segments.
func withoutParameters(p string) string {
	segments := strings.Split(p, "/")
	for i, s := range segments {
		segments[i], _, _ = strings.Cut(s, ";")
	}
	return strings.Join(segments, "/")
}

// matchers are asked in order. Each gets the path in lower case beside the address, and
// returns nil for one that it does not know.
var matchers = []func(path string, address *url.URL) Dialect{
	matchOpenAI,
	matchAnthropic,
	matchGemini,
	matchOllama,
	matchBedrock,
	matchMCP,
}

func matchOpenAI(path string, _ *url.URL) Dialect {
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return chat{}
	case strings.HasSuffix(path, "/v1/completions"), isDeploymentCompletions(path):
		return completions{}
	case matchResponses(path):
		return responses{}
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
	"anthropic":          anthropic{},
	"anthropic_messages": anthropic{},
	"bedrock":            converse{},
	"bedrock_converse":   converse{},
	"gemini":             gemini{},
	"gemini_generate":    gemini{},
	"openai_responses":   responses{},
	"mcp":                mcp{},
	"ollama":             ollamaChat{},
	"ollama_chat":        ollamaChat{},
	"ollama_generate":    ollamaGenerate{},
}

// AskerNames are the names under which [Named] finds a dialect that is an [Asker].
func AskerNames() []string {
	var names []string
	for name, d := range named {
		if _, ok := d.(Asker); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Resembles tells which dialect a body on an unknown path looks like. It reads
// as leniently as the most lenient server: whether the body is valid is for the
// dialect to decide.
func Resembles(body []byte) (Dialect, bool) {
	root := gjson.ParseBytes(bytes.TrimPrefix(body, byteOrderMark))
	if resemblesMCP(root) {
		return mcp{}, true
	}
	if !root.IsObject() {
		return nil, false
	}
	has := make(map[string]bool)
	root.ForEach(func(key, value gjson.Result) bool {
		name := strings.ToLower(key.Str)
		tells := true
		switch name {
		case "messages":
			tells = isMessages(value)
		case "contents":
			tells = isContents(value)
		case "input":
			tells = isItems(value)
		case "prompt":
			tells = value.Type == gjson.String || value.IsArray()
		}
		has[name] = has[name] || tells
		return true
	})
	ollama := has["keep_alive"] // nobody else has it
	switch {
	case has["messages"] && ollama:
		return ollamaChat{}, true
	case has["messages"] && resemblesConverse(root):
		return converse{}, true
	case has["messages"] && resemblesAnthropic(root):
		return anthropic{}, true
	case has["messages"]:
		return chat{}, true
	case has["contents"]:
		return gemini{}, true
	case has["input"]:
		return responses{}, true
	case has["prompt"] && ollama:
		return ollamaGenerate{}, true
	case has["prompt"]:
		return completions{}, true
	}
	return nil, false
}

// isMessages reports whether a value is a list of objects that speak. Other
// services have members named messages too.
func isMessages(v gjson.Result) bool { return v.IsArray() && holds(v, "role", "content") }

// isContents reports whether a value is the conversation of Gemini's API, in which
// every message has parts.
func isContents(v gjson.Result) bool {
	return v.IsArray() && holds(v, "parts") || v.IsObject() && v.Get("parts").Exists()
}

// holds reports whether an object in a list has a member with one of some names.
func holds(list gjson.Result, names ...string) bool {
	found := false
	list.ForEach(func(_, object gjson.Result) bool {
		object.ForEach(func(key, _ gjson.Result) bool {
			found = slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(key.Str, name) })
			return !found
		})
		return !found
	})
	return found
}

// isItems reports whether a value is a list with an item of a conversation. The input of
// other services (embeddings, moderations) is a list as well.
func isItems(v gjson.Result) bool {
	if !v.IsArray() {
		return false
	}
	found := false
	v.ForEach(func(_, item gjson.Result) bool {
		item.ForEach(func(key, value gjson.Result) bool {
			_, known := responsesItems[value.Str]
			found = strings.EqualFold(key.Str, "role") || strings.EqualFold(key.Str, "type") && known
			return !found
		})
		return !found
	})
	return found
}
