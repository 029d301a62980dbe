package commands_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The command succeeds for a proxy that governs, and for no other.
func TestHealth(t *testing.T) {
	srv := startProxy(t, "Paris.")
	out, _, err := lexCommand("", "health", "--url", srv.URL)
	if err != nil || !strings.HasPrefix(out, `{"status":"ok"`) {
		t.Errorf("%v %s", err, out)
	}
	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer failing.Close()
	srv.Close()
	for _, address := range []string{failing.URL, srv.URL, "localhost"} {
		if out, _, err := lexCommand("", "health", "--url", address); err == nil {
			t.Errorf("%s is well: %s", address, out)
		}
	}
}
