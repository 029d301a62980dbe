package e2e

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddy-lex/lex/store/storetest"
)

// A forged X-Forwarded-For gains nothing unless the operator trusts who sends
// it; then it counts, an IPv6 client by its /64.
func TestForwardedAddresses(t *testing.T) {
	t.Parallel()
	body := `{"session_id":"s"}` // counts, and costs no model
	left := func(s *server, forwarded string) int {
		got := s.do(t, http.MethodPost, "/lex/tools/check", body, "X-Forwarded-For", forwarded)
		n, err := strconv.Atoi(got.Header.Get("X-RateLimit-Remaining"))
		if err != nil {
			t.Fatalf("%d %v", got.Status, got.Header)
		}
		return n
	}
	s := shipped(t)
	for i, forged := range []string{"198.51.100.1", "198.51.100.2", "2001:db8::1", "not an address", "127.0.0.1, 198.51.100.3", ""} {
		if n := left(s, forged); n != 19-i {
			t.Errorf("request %d, forged %q: %d left", i+1, forged, n)
		}
	}
	trusting := guarded(t)
	for _, c := range []struct {
		forwarded string
		want      int
	}{
		{"198.51.100.1", 19},
		{"198.51.100.2", 19},
		{"198.51.100.1", 18},
		{"2001:db8:0:1::1", 19},
		{"2001:db8:0:1:2:3:4:5", 18},
		{"2001:db8:0:2::1", 19},
		{"203.0.113.9, 198.51.100.1", 17}, // what a client wrote before the trusted hop
	} {
		if n := left(trusting, c.forwarded); n != c.want {
			t.Errorf("forwarded for %q: %d left, want %d", c.forwarded, n, c.want)
		}
	}
}

const replicaCaddyfile = `{
	admin 127.0.0.1:${admin}
	lex {
		store redis %s
		limits {
			plan small 7/30d
		}
		secrets {
			admin {env.ADMIN_PASSWORD}
		}
	}
}
:${site} {
	lex
	reverse_proxy 127.0.0.1:${demo}
}
:${demo} {
	bind 127.0.0.1
	lex_demo_model
}
`

// Replicas that share a store share rates, plans, keys and revocations, to the
// single request.
func TestReplicasShareLimitsAndKeys(t *testing.T) {
	t.Parallel()
	redis := storetest.StartRedis(t)
	var replicas [2]*server
	for i := range replicas {
		p := freePorts(t)
		replicas[i] = start(t, writeCaddyfile(t, p, strings.Replace(replicaCaddyfile, "%s", redis, 1)), "", p, "ADMIN_PASSWORD="+adminSecret)
	}
	admin := []string{"X-Lex-Admin-Password", adminSecret}
	var key struct{ ID, Key string }
	made := replicas[0].do(t, http.MethodPost, "/admin/keys", `{"name":"app","plan":"small"}`, admin...)
	if err := json.Unmarshal([]byte(made.Body), &key); err != nil || made.Status != http.StatusCreated {
		t.Fatalf("%d %v %s", made.Status, err, made.Body)
	}
	burst := func(n, want int, headers ...string) {
		t.Helper()
		var passed, refused atomic.Int32
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				got := replicas[i%2].do(t, http.MethodPost, "/lex/tools/check", `{"session_id":"s`+strconv.Itoa(i)+`","tool":{"name":"list_files"}}`, headers...)
				switch got.Status {
				case http.StatusOK:
					passed.Add(1)
				case http.StatusTooManyRequests:
					refused.Add(1)
				default:
					t.Errorf("%d %s", got.Status, got.Body)
				}
			})
		}
		wg.Wait()
		if int(passed.Load()) != want || int(refused.Load()) != n-want {
			t.Errorf("%d of %d requests passed, want %d", passed.Load(), n, want)
		}
	}
	burst(64, 20)
	burst(64, 7, "X-Lex-Api-Key", key.Key)
	if got := replicas[0].do(t, http.MethodDelete, "/admin/keys/"+key.ID, "", admin...); got.Status != http.StatusNoContent {
		t.Fatalf("revoking: %d %s", got.Status, got.Body)
	}
	if got := replicas[1].do(t, http.MethodPost, "/lex/tools/check", `{}`, "X-Lex-Api-Key", key.Key); got.Status != http.StatusUnauthorized {
		t.Errorf("the other replica takes a revoked key: %d %s", got.Status, got.Body)
	}
}
