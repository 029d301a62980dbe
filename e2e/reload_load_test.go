package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const reloadedCaddyfile = `{
	admin 127.0.0.1:${admin}
	lex {
		limits {
			anonymous 10000000/1m
			read 10000000/1m
		}
		policy {
			refuse_at ${refuse_at}
		}
	}
}
:${site} {
	bind 127.0.0.1
	lex {
		model ${model}
		dialect /tools mcp
	}
	reverse_proxy ${upstream}
}
`

// reloadTime is how long the reloads go on: LEX_RELOAD, such as 60s, or ten seconds.
func reloadTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("LEX_RELOAD")
	if text == "" {
		return 10 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("LEX_RELOAD: %v", err)
	}
	return d
}

// streamTime is how long the model takes for a streamed answer, longer than two reloads.
const streamTime = 2500 * time.Millisecond

// tale is what the model says in a stream, in this many frames.
const tale, taleFrames = "And the miller opened the gate of the old mill once more. ", 25

// patientModel takes streamTime for a stream and none for anything else. It keeps no
// connection, so that those which remain in the proxy are the proxy's fault.
func patientModel(t *testing.T) (address string) {
	t.Helper()
	model := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch text := string(body); {
		case r.URL.Path == "/tools":
			serveMCP(w, r, text)
		case strings.Contains(text, `"stream":true`):
			w.Header().Set("Content-Type", "text/event-stream")
			pace := time.NewTicker(streamTime / taleFrames)
			defer pace.Stop()
			for range taleFrames {
				<-pace.C
				_, _ = io.WriteString(w, chunk(tale, "null"))
				_ = http.NewResponseController(w).Flush()
			}
			_, _ = io.WriteString(w, chunk("", `"stop"`)+"data: [DONE]\n\n")
		case strings.Contains(text, "clean up"):
			writeWhole(w, http.StatusOK, `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"run_command","arguments":"{\"command\":\"rm -rf /\"}"}}]},"finish_reason":"tool_calls"}]}`, "")
		default:
			writeWhole(w, http.StatusOK, `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Good day."},"finish_reason":"stop"}]}`, "")
		}
	}))
	model.Config.SetKeepAlivesEnabled(false)
	model.Start()
	t.Cleanup(model.Close)
	return model.Listener.Addr().String()
}

// A reloadRequest is one thing that clients ask while the configuration changes. An answer
// has so many receipts, of which check returns one.
type reloadRequest struct {
	name, path, body string
	receipts         int
	check            func(header http.Header, body string) (receipt string, err error)
}

func reloadRequests(client int) []reloadRequest {
	session := fmt.Sprintf("reload-%d", client)
	chat := func(prompt string, members string) string {
		return `{"model":"m",` + members + `"messages":[{"role":"user","content":` + quote(prompt) + `}]}`
	}
	inHeader := func(want, not string) func(http.Header, string) (string, error) {
		return func(h http.Header, body string) (string, error) {
			if !strings.Contains(body, want) || not != "" && strings.Contains(body, not) {
				return "", fmt.Errorf("another answer: %.300s", body)
			}
			return h.Get("X-Lex-Receipt-Id"), nil
		}
	}
	inBody := func(want string) func(http.Header, string) (string, error) {
		return func(_ http.Header, body string) (string, error) {
			_, id, _ := strings.Cut(body, `"receipt_id":"`)
			id, _, _ = strings.Cut(id, `"`)
			if !strings.Contains(body, want) {
				return "", fmt.Errorf("another answer: %.300s", body)
			}
			return id, nil
		}
	}
	stream := func(_ http.Header, body string) (string, error) {
		data, comments := events(body)
		if strings.Count(body, "miller") != taleFrames || len(comments) != 1 || data[len(data)-1] != "[DONE]" {
			return "", fmt.Errorf("a stream was cut: %.300s … %s", body, body[max(0, len(body)-300):])
		}
		return strings.TrimPrefix(comments[0], ": x-lex-receipt-id: "), nil
	}
	mcp := func(name, arguments string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":` + arguments + `}}`
	}
	return []reloadRequest{
		{"a stream", "/v1/chat/completions", chat("Tell me a tale.", `"stream":true,`), 1, stream},
		{"a question", "/v1/chat/completions", chat("What is the capital of France?", ""), 1, inHeader("Good day.", "")},
		{"an attack", "/v1/chat/completions", chat(attack, ""), 1, inHeader("governance policy", "Good day.")},
		{"a turn", "/lex/govern", governBody("What is the capital of France?", session), 1, inBody(`"refused":false`)},
		{"a blocked call", "/v1/chat/completions", chat("Please clean up.", ""), 2, inHeader("blocked", "rm -rf")},
		{"a checked call", "/lex/tools/check", `{"session_id":"` + session + `","tool":{"name":"run_command","arguments":{"command":"rm -rf /"}}}`, 1, inBody(`"decision":"blocked"`)},
		{"an MCP call", "/tools", mcp("search", `{"query":"France"}`), 2, inHeader("city of Paris", "")},
		{"a blocked MCP call", "/tools", mcp("run_command", `{"command":"rm -rf /"}`), 2, inHeader("blocked", "city of Paris")},
	}
}

// A reloadedSite is a running binary whose configuration changes, and its clients.
type reloadedSite struct {
	*server
	t        *testing.T
	p        ports
	upstream string
	client   *http.Client
	anew     *http.Client // which opens a connection for each request

	mu       sync.Mutex
	receipts []string // that clients were told of
	made     int      // receipts of all answers
	again    int      // requests that were sent again
	faults   []error
}

func startReloaded(t *testing.T) *reloadedSite {
	t.Helper()
	r := &reloadedSite{t: t, p: freePorts(t), upstream: patientModel(t)}
	r.client = &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	r.anew = &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	r.server = start(t, writeCaddyfile(t, r.p, r.config(0)), "", r.p)
	r.admin = "http://127.0.0.1:" + r.p.admin
	return r
}

// config is the nth configuration. Each differs from the one before.
func (r *reloadedSite) config(n int) string {
	return strings.NewReplacer("${upstream}", r.upstream, "${site}", r.p.site, "${admin}", r.p.admin,
		"${model}", fmt.Sprintf("model-%d", n), "${refuse_at}", fmt.Sprintf("0.7%d", n%3)).Replace(reloadedCaddyfile)
}

// load loads a configuration as `caddy reload` does.
func (r *reloadedSite) load(text string) (status int, answer string) {
	r.t.Helper()
	resp, err := r.server.client.Post(r.admin+"/load", "text/caddyfile", strings.NewReader(text))
	if err != nil {
		r.t.Fatalf("loading a configuration: %v\n%s", err, r.logs)
	}
	defer resp.Body.Close()
	out, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(out)
}

// ask sends one request and keeps the receipt of its answer. A connection that ends without
// a byte of an answer is no answer, and the request is sent again on a new one, as all official
// SDKs do: a server that ends closes idle connections, and resets those that it has not
// accepted yet.
func (r *reloadedSite) ask(q reloadRequest) {
	id, err := r.answer(r.client, q)
	tries := 1
	for ; errors.Is(err, errNoAnswer) && tries < 3; tries++ {
		id, err = r.answer(r.anew, q)
	}
	if err == nil && !strings.HasPrefix(id, "KRN-") && !strings.HasPrefix(id, "TCR-") {
		err = fmt.Errorf("no receipt: %q", id)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.again += tries - 1
	if err != nil {
		r.faults = append(r.faults, fmt.Errorf("%s: %w", q.name, err))
		return
	}
	r.receipts = append(r.receipts, id)
	r.made += q.receipts
}

var errNoAnswer = errors.New("the connection ended without an answer")

func (r *reloadedSite) answer(client *http.Client, q reloadRequest) (receipt string, err error) {
	resp, err := client.Post(r.URL+q.path, "application/json", strings.NewReader(q.body))
	if err != nil && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || strings.Contains(err.Error(), "server closed idle connection")) {
		err = errors.Join(errNoAnswer, err)
	}
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %.300s", resp.StatusCode, body)
	}
	if err != nil {
		return "", fmt.Errorf("in the answer: %w", err)
	}
	return q.check(resp.Header, string(body))
}

// underLoad runs f while clients ask, of which each always asks the same. Half of them
// stream, so that streams are in flight all the time.
func (r *reloadedSite) underLoad(f func()) {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for n := range 16 {
		requests := reloadRequests(n)
		q := requests[0]
		if n%2 == 1 {
			q = requests[1+n/2%(len(requests)-1)]
		}
		wg.Go(func() {
			pause := time.NewTicker(50 * time.Millisecond) // or the store only grows
			defer pause.Stop()
			for {
				r.ask(q)
				select {
				case <-stop:
					return
				case <-pause.C:
				}
			}
		})
	}
	f()
	close(stop)
	wg.Wait()
}

// held counts what a configuration that is not let go would hold on to.
type held struct{ goroutines, files, streams int }

func (r *reloadedSite) held() held {
	r.t.Helper()
	r.client.CloseIdleConnections()
	r.server.client.CloseIdleConnections()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", r.cmd.Process.Pid))
	if err != nil {
		r.t.Fatal(err)
	}
	return held{r.goroutines(r.t), len(open), r.profile(r.t, "/metrics", `(?m)^lex_inflight_streams (\d+)$`)}
}

// Clients ask questions, stream, attack and call tools while the configuration changes every
// second: no request fails, no stream is cut, every receipt that a client was given is there,
// and nothing of the old configurations remains.
func TestReloadsUnderLoad(t *testing.T) {
	r := startReloaded(t)
	r.underLoad(func() { r.reloads(1, 3*time.Second) }) // warms caches, pools and the database
	var before held
	eventually(t, 20*time.Second, func() bool { // once the last streams' connections are closed
		last := before
		before = r.held()
		return last == before
	}, func() string { return fmt.Sprintf("never at rest: %+v", before) })

	var count int
	r.underLoad(func() { count = r.reloads(100, reloadTime(t)) })
	for _, err := range r.faults[:min(len(r.faults), 10)] {
		t.Error(err)
	}
	t.Logf("%d reloads, %d answers, %d faults, %d requests sent again", count, len(r.receipts), len(r.faults), r.again)
	if len(r.faults) > 0 {
		t.Logf("the proxy's warnings and errors:\n%s", r.complaints())
	}
	if len(r.receipts) < 50*count {
		t.Errorf("only %d answers during %d reloads", len(r.receipts), count)
	}

	after := held{}
	eventually(t, 20*time.Second, func() bool {
		after = r.held()
		return after.goroutines <= before.goroutines+2 && after.files <= before.files && after.streams == 0
	}, func() string { return fmt.Sprintf("before the reloads %+v, after them %+v", before, after) })
	r.checkReceipts()
}

// complaints are the last warnings and errors that the proxy logged, without Caddy's two of each
// reload of a site that has no TLS.
func (r *reloadedSite) complaints() string {
	var lines []string
	for line := range strings.Lines(r.logs.String()) {
		if (strings.Contains(line, `"level":"warn"`) || strings.Contains(line, `"level":"error"`)) && !strings.Contains(line, "requires TLS") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-20):], "")
}

// reloads loads another configuration every second, or as fast as that goes.
func (r *reloadedSite) reloads(first int, d time.Duration) (count int) {
	r.t.Helper()
	pace := time.NewTicker(time.Second)
	defer pace.Stop()
	for until := time.Now().Add(d); time.Now().Before(until); count++ {
		<-pace.C
		if status, answer := r.load(r.config(first + count)); status != http.StatusOK {
			r.t.Fatalf("reload %d: %d %s", count, status, answer)
		}
	}
	return count
}

// checkReceipts finds the receipts that clients were told of, and verifies all that there
// are. There are no others: a request that was sent again had not been governed.
func (r *reloadedSite) checkReceipts() {
	r.t.Helper()
	stored := make(map[string]bool)
	for _, id := range r.server.receipts(r.t) {
		stored[id] = true
	}
	missing := 0
	for _, id := range r.receipts {
		if !stored[id] {
			missing++
		}
	}
	if missing > 0 || len(stored) != r.made {
		r.t.Errorf("%d of %d receipts are missing; %d are stored and %d were made", missing, len(r.receipts), len(stored), r.made)
	}
	if out, errs, err := r.lex(r.t, "verify", "--url", r.URL); err != nil || !strings.Contains(out, " 0 faults") {
		r.t.Errorf("%v %s\n%s", err, errs, out)
	}
}

// A configuration that cannot be loaded changes nothing: the one before goes on whole, and
// nothing of the other remains.
func TestBadReloads(t *testing.T) {
	t.Parallel()
	r := startReloaded(t)
	for _, q := range reloadRequests(0)[1:] {
		r.ask(q)
	}
	running := (&server{URL: r.admin, logs: r.logs}).do(t, http.MethodGet, "/config/", "").Body
	before, selfTested := r.held(), r.selfTestSeries()
	if selfTested == 0 {
		t.Error("the metrics have no self-test")
	}
	taken := listenAlone(t)
	good := r.config(1)
	for name, bad := range map[string]string{
		"syntax":              good + "}",
		"unknown option":      strings.Replace(good, "model model-1", "mood good", 1),
		"policy out of range": strings.Replace(good, "refuse_at 0.71", "tau 0.4", 1),
		"store without place": strings.Replace(good, "policy {", "store bolt /dev/null/lex.db\n\t\tpolicy {", 1),
		"redis not there":     strings.Replace(good, "policy {", "store redis redis://127.0.0.1:1\n\t\tpolicy {", 1),
		"port that is taken":  good + "http://127.0.0.1:" + taken + " {\n\tbind 127.0.0.1\n\tlex\n}\n",
		"unknown module":      strings.Replace(good, "reverse_proxy", "nowhere", 1),
	} {
		if status, answer := r.load(bad); status == http.StatusOK {
			t.Errorf("%s was loaded: %s", name, answer)
		}
		for _, q := range reloadRequests(0)[1:] {
			r.ask(q)
		}
		if now := (&server{URL: r.admin, logs: r.logs}).do(t, http.MethodGet, "/config/", "").Body; now != running {
			t.Errorf("%s: the configuration is now %s", name, now)
		}
		if now := r.selfTestSeries(); now != selfTested {
			t.Errorf("%s: the metrics have %d series of the self-test, before %d", name, now, selfTested)
		}
	}
	for _, err := range r.faults {
		t.Error(err)
	}
	after := held{}
	eventually(t, 20*time.Second, func() bool {
		after = r.held()
		return after.goroutines <= before.goroutines+2 && after.files <= before.files && after.streams == 0
	}, func() string { return fmt.Sprintf("before %+v, after %+v", before, after) })
	r.checkReceipts()
	if status, answer := r.load(good); status != http.StatusOK {
		t.Errorf("a good one after them: %d %s", status, answer)
	}
}

// selfTestSeries counts the canaries that the metrics say were treated as they must be.
func (r *reloadedSite) selfTestSeries() int {
	r.t.Helper()
	metrics := (&server{URL: r.admin, logs: r.logs}).do(r.t, http.MethodGet, "/metrics", "").Body
	return len(regexp.MustCompile(`(?m)^lex_selftest_ok\{.*\} 1$`).FindAllString(metrics, -1))
}

// listenAlone listens on a port that nobody can share.
func listenAlone(t *testing.T) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}
