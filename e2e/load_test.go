package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const crowdCaddyfile = `{
	admin 127.0.0.1:${admin}
	lex {
		limits {
			anonymous 10000000/1m
			read 10000000/1m
			keyed 10000000/1m
		}
		secrets {
			admin {env.ADMIN_PASSWORD}
		}
	}
}
:${site} {
	lex {
		cors *
	}
	reverse_proxy 127.0.0.1:${demo}
}
:${demo} {
	bind 127.0.0.1
	lex_demo_model
}
`

// loadTime is how long the load lasts: LEX_LOAD, such as 60s, or three seconds.
func loadTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("LEX_LOAD")
	if text == "" {
		return 3 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("LEX_LOAD: %v", err)
	}
	return d
}

// Sixty-four clients use every endpoint at once, under the race detector: no
// answer is not as expected, and neither memory nor goroutines pile up.
func TestLoad(t *testing.T) {
	p := freePorts(t)
	s := start(t, writeCaddyfile(t, p, crowdCaddyfile), "", p, "ADMIN_PASSWORD="+adminSecret)
	s.admin = "http://127.0.0.1:" + p.admin
	duration := loadTime(t)
	s.loaded(t, duration/3) // warms caches, pools and the database
	heap, goroutines := s.heap(t), s.goroutines(t)
	answers := s.loaded(t, duration)
	t.Logf("%d answers in %v", answers, duration)
	if after := s.heap(t); after > heap+heap/2+16<<20 {
		t.Errorf("the heap grew from %d to %d MiB", heap>>20, after>>20)
	}
	// Each client may have caused one more connection to the model, of two goroutines, which is kept.
	eventually(t, 20*time.Second, func() bool { return s.goroutines(t) <= goroutines+2*loadClients }, func() string {
		return fmt.Sprintf("%d goroutines, %d before the load", s.goroutines(t), goroutines)
	})
	if answers < 100 {
		t.Errorf("only %d answers", answers)
	}
}

// loadClients is how many there are at once.
const loadClients = 64

// loaded runs the clients and returns how many answers they got.
func (s *server) loaded(t *testing.T, d time.Duration) int64 {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: loadClients}, Timeout: 5 * time.Minute} // a slow machine is no fault
	defer client.CloseIdleConnections()
	until := time.Now().Add(d)
	var answers, faults atomic.Int64
	var wg sync.WaitGroup
	for n := range loadClients {
		wg.Go(func() {
			u := &loadClient{server: s, client: client, name: fmt.Sprintf("load-%d", n), chance: n}
			for time.Now().Before(until) && faults.Load() < 10 {
				if err := u.step(); err != nil {
					faults.Add(1)
					t.Error(err)
				}
				answers.Add(1)
			}
		})
	}
	wg.Wait()
	return answers.Load()
}

// A loadClient is one user, who knows what the last answers said.
type loadClient struct {
	server  *server
	client  *http.Client
	name    string
	chance  int
	receipt string
	key     string
	turn    int
}

// request is one thing to ask, and what must come of it.
type loadRequest struct {
	method, path, body string
	headers            []string
	status             int
	then               func(body string) error
}

func (u *loadClient) step() error {
	steps := u.steps()
	u.chance = (u.chance*1103515245 + 12345) & 0x7fffffff // the same walk every time
	q := steps[(u.chance>>8)%len(steps)]
	r, err := http.NewRequest(q.method, u.server.URL+q.path, strings.NewReader(q.body))
	if err != nil {
		return err
	}
	for i := 0; i+1 < len(q.headers); i += 2 {
		r.Header.Set(q.headers[i], q.headers[i+1])
	}
	resp, err := u.client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != q.status {
		err = fmt.Errorf("status %d, want %d: %.300s", resp.StatusCode, q.status, body)
	}
	if err == nil && q.then != nil {
		err = q.then(string(body))
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", q.method, q.path, err)
	}
	return nil
}

func (u *loadClient) steps() []loadRequest {
	u.turn++
	admin := []string{"X-Lex-Admin-Password", adminSecret}
	ask := governBody(fmt.Sprintf("What is %d + 2?", u.turn), u.name)
	chat := `{"model":"m","messages":[{"role":"user","content":"What is 2 + 2?"}]}`
	steps := []loadRequest{
		{"POST", "/lex/govern", ask, nil, 200, u.noteReceipt},
		{"POST", "/lex/govern", governBody(attack, u.name), nil, 200, u.noteReceipt},
		{"POST", "/lex/govern", `{"prompt":`, nil, 400, nil},
		{"POST", "/lex/govern", ask, []string{"X-Lex-Api-Key", "nobody"}, 401, nil},
		{"POST", "/lex/govern/stream", ask, nil, 200, endsWithDone},
		{"POST", "/lex/tools/check", `{"session_id":"` + u.name + `","tool":{"name":"run_command","arguments":{"command":"rm -rf /"}}}`, nil, 200, u.noteReceipt},
		{"POST", "/v1/chat/completions", chat, nil, 200, nil},
		{"POST", "/v1/chat/completions", strings.Replace(chat, "{", `{"stream":true,`, 1), nil, 200, nil},
		{"GET", "/audits/recent?limit=50", "", nil, 200, nil},
		{"GET", "/stats", "", nil, 200, nil},
		{"GET", "/benchmarks", "", nil, 200, nil},
		{"GET", "/agentic-sim", "", nil, 200, nil},
		{"GET", "/lex/health", "", nil, 200, nil},
		{"GET", "/lex/openapi.json", "", nil, 200, nil},
		{"GET", "/lex/docs", "", nil, 200, nil},
		{"HEAD", "/stats", "", nil, 200, nil},
		{"OPTIONS", "/lex/govern", "", []string{"Origin", "https://app.example", "Access-Control-Request-Method", "POST"}, 204, nil},
		{"GET", "/admin/keys", "", admin, 200, nil},
		{"POST", "/admin/benchmarks", `{"benchmark":"load","metric":"m","n_total":10,"bare_successes":5,"governed_successes":1}`, admin, 201, nil},
		{"GET", "/admin/sessions/" + strings.Repeat("0", 64), "", admin, 404, nil},
		{"DELETE", "/admin/sessions/" + strings.Repeat("0", 64), "", admin, 204, nil},
	}
	if u.receipt != "" {
		steps = append(steps,
			loadRequest{"GET", "/audits/" + u.receipt, "", nil, 200, nil},
			loadRequest{"POST", "/audits/verify", `{"receipt_id":"` + u.receipt + `"}`, nil, 200, isValid})
	}
	if u.key == "" {
		return append(steps, loadRequest{"POST", "/admin/keys", `{"name":"` + u.name + `"}`, admin, 201, u.noteKey})
	}
	return append(steps, loadRequest{"POST", "/lex/govern", ask, []string{"Authorization", "Bearer " + u.key}, 200, nil})
}

func (u *loadClient) noteReceipt(body string) error {
	var m struct {
		ID string `json:"receipt_id"`
	}
	err := json.Unmarshal([]byte(body), &m)
	u.receipt = m.ID
	return err
}

func (u *loadClient) noteKey(body string) error {
	var m struct{ Key string }
	err := json.Unmarshal([]byte(body), &m)
	u.key = m.Key
	return err
}

func endsWithDone(body string) error {
	data, _ := events(body)
	if len(data) == 0 || !strings.HasPrefix(data[len(data)-1], `{"done":true`) || strings.Contains(data[len(data)-1], `"code":`) {
		return fmt.Errorf("the stream ends otherwise: %.300s", body)
	}
	return nil
}

func isValid(body string) error {
	if !strings.Contains(body, `"valid":true`) {
		return fmt.Errorf("a receipt does not verify: %s", body)
	}
	return nil
}

// profile reads one number out of a profile of Caddy's admin endpoint.
func (s *server) profile(t *testing.T, path, pattern string) int {
	t.Helper()
	text := (&server{URL: s.admin, logs: s.logs}).do(t, http.MethodGet, path, "").Body
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("GET %s has no %s", path, pattern)
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// heap is how many bytes are in use after a garbage collection.
func (s *server) heap(t *testing.T) int {
	t.Helper()
	return s.profile(t, "/debug/pprof/heap?gc=1&debug=1", `(?m)^# HeapAlloc = (\d+)$`)
}

func (s *server) goroutines(t *testing.T) int {
	t.Helper()
	return s.profile(t, "/debug/pprof/goroutine?debug=1", `goroutine profile: total (\d+)`)
}
