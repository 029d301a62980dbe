package conformance

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// methodCases send every endpoint the methods that it has not.
func methodCases() []testCase {
	var cases []testCase
	allowed := map[string]string{
		governPath: "POST", streamPath: "POST", toolsPath: "POST", "/audits/verify": "POST",
		"/audits/recent": "GET, HEAD", "/audits/log": "GET, HEAD", "/audits/KRN-00000000000000000000000000000000": "GET, HEAD", "/stats": "GET, HEAD",
		"/benchmarks": "GET, HEAD", "/agentic-sim": "GET, HEAD", "/lex/health": "GET, HEAD", "/lex/openapi.json": "GET, HEAD", "/lex/docs": "GET, HEAD",
		"/admin/keys": "GET, POST", "/admin/keys/key_0": "DELETE", "/admin/benchmarks": "POST", "/admin/sessions/" + strings.Repeat("0", 64): "DELETE, GET",
	}
	for _, path := range slices.Sorted(maps.Keys(allowed)) {
		allow := allowed[path]
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, "PROPFIND"} {
			if strings.Contains(allow, method) {
				continue
			}
			cases = append(cases, testCase{
				Name: fmt.Sprintf("method: %s %s", method, path), Request: request{Method: method, Path: path},
				Status: http.StatusMethodNotAllowed, Header: map[string]string{"Allow": allow}, Body: refusesWith("method_not_allowed"),
			})
		}
	}
	for _, path := range []string{"/stats", "/benchmarks", "/audits/recent", "/agentic-sim", "/lex/health", "/lex/openapi.json", "/lex/docs"} {
		cases = append(cases, testCase{Name: "method: HEAD " + path, Request: request{Method: http.MethodHead, Path: path}, Status: http.StatusOK, Header: map[string]string{"Content-Type": "", "X-Content-Type-Options": "nosniff"}, Body: isEmpty})
	}
	return cases
}

func isEmpty(r response) error {
	if len(r.Body) != 0 {
		return fmt.Errorf("%d bytes where none belong", len(r.Body))
	}
	return nil
}
