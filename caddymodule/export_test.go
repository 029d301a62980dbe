package caddymodule

import (
	"maps"
	"net/http"
	"slices"
)

// OpenAPIDocument is what GET /lex/openapi.json serves.
var OpenAPIDocument = openAPIDocument

// ReadBody reads a request's body and returns the status of its error, or 0.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, int) {
	body, apiErr := readBody(w, r, limit)
	if apiErr != nil {
		return nil, apiErr.Status
	}
	return body, 0
}

// SafeURI is an address as logs may show it.
var SafeURI = safeURI

// Endpoints returns the methods of our own endpoints by path, without HEAD,
// which comes with GET. A path that ends in a slash stands for those below it.
func Endpoints() map[string][]string {
	all := maps.Clone(endpoints)
	maps.Copy(all, below)
	found := make(map[string][]string)
	for path, e := range all {
		found[path] = slices.DeleteFunc(slices.Sorted(maps.Keys(e.methods)), func(m string) bool { return m == "HEAD" })
	}
	return found
}

// KeepAlive is what a stream does while the model is silent.
func KeepAlive(w http.ResponseWriter) (stop func()) {
	return (&tokenStream{w: w}).keepAlive(keepAlive)
}
