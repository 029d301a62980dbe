package commands_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
	"github.com/caddy-lex/lex/store/bolt"
)

// An auditedProxy answers as a running proxy does, except where a test replaces an
// answer. It keeps the ids of its receipts and makes each record when it is asked
// for, so that it holds no records.
type auditedProxy struct {
	*httptest.Server
	k     *kernel.Kernel
	ids   []string // oldest first
	model string   // of every receipt

	mu        sync.Mutex
	otherwise map[string]http.HandlerFunc
}

// only replaces the answer at one path, and at no other.
func (p *auditedProxy) only(path string, answer http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.otherwise = map[string]http.HandlerFunc{path: answer}
}

func (p *auditedProxy) instead(path string) http.HandlerFunc {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.otherwise[path]
}

func newAuditedProxy(t testing.TB, receipts int, model string) *auditedProxy {
	t.Helper()
	k, err := kernel.New(kernel.DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	p := &auditedProxy{k: k, model: model}
	for i := range receipts {
		p.ids = append(p.ids, p.receipt(i).ID)
	}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// receipt is the first and only one of its session.
func (p *auditedProxy) receipt(n int) kernel.Receipt {
	turn, err := p.k.Assess(p.k.NewSession(), kernel.Evidence{}, kernel.Enforce)
	if err != nil {
		panic(err)
	}
	r := p.k.Receipt(turn)
	r.SessionID, r.Turn, r.Timestamp, r.Model = "s", 1, int64(n), p.model
	if err := r.Seal(); err != nil {
		panic(err)
	}
	return r
}

func (p *auditedProxy) record(n int) []byte {
	text, err := p.receipt(n).JSON()
	if err != nil {
		panic(err)
	}
	return text
}

func (p *auditedProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if answer := p.instead(r.URL.RequestURI()); answer != nil {
		answer(w, r)
		return
	}
	switch path := r.URL.Path; {
	case path == "/audits/recent":
		p.list(w, r)
	case path == "/audits/verify":
		_, _ = io.WriteString(w, `{"valid":true,"checks":[{"name":"chain","ok":true,"detail":"fine"}],"fault":null}`)
	case strings.HasPrefix(path, "/lex/policies/"):
		text, _ := p.k.Policy().JSON()
		_, _ = w.Write(text)
	default:
		for n, id := range p.ids {
			if path == "/audits/"+id {
				_, _ = w.Write(p.record(n))
				return
			}
		}
		w.WriteHeader(http.StatusNotFound)
	}
}

// list has cursors that are numbers of receipts.
func (p *auditedProxy) list(w http.ResponseWriter, r *http.Request) {
	limit, _ := strconv.Atoi(r.FormValue("limit"))
	end := len(p.ids)
	if before := r.FormValue("before"); before != "" {
		end, _ = strconv.Atoi(before)
	}
	begin := max(0, end-limit)
	page := []map[string]string{}
	for n := end - 1; n >= begin; n-- {
		page = append(page, map[string]string{"id": p.ids[n]})
	}
	if len(page) == limit {
		w.Header().Add("Link", `</style.css>; rel="preload"`)
		w.Header().Add("Link", fmt.Sprintf(`</audits/recent?before=%d&limit=%d>; rel="next"`, begin, limit))
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"receipts": page})
}

// A list that arrives whole is exported and verified, however many pages it has.
func TestExportIsWhole(t *testing.T) {
	for _, n := range []int{0, 1, 200, 401} {
		p := newAuditedProxy(t, n, "m")
		out, _, err := lexCommand("", "export", "--url", p.URL)
		if err != nil {
			t.Fatalf("%d: %v", n, err)
		}
		var ids []string
		for line := range strings.Lines(out) {
			if r, err := kernel.OpenReceipt([]byte(strings.TrimSuffix(line, "\n"))); err == nil {
				ids = append(ids, r.ID)
			}
		}
		if strings.Join(ids, " ") != strings.Join(p.ids, " ") {
			t.Errorf("%d receipts: got %d, or in another order", n, len(ids))
		}
		said, _, err := lexCommand("", "verify", "--url", p.URL)
		if err != nil || !strings.Contains(said, fmt.Sprintf("%d receipts in %d chains, 0 faults", n, n)) {
			t.Errorf("%d: %v: %s", n, err, said)
		}
		file := filepath.Join(t.TempDir(), "receipts.jsonl")
		if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
			t.Fatal(err)
		}
		said, _, err = lexCommand("", "verify", file)
		if err != nil || !strings.Contains(said, fmt.Sprintf("%d receipts in %d chains, 0 faults", n, n)) {
			t.Errorf("%d in a file: %v: %s", n, err, said)
		}
	}
}

// hang sends the start of an answer and closes the connection, or resets it.
func hang(raw string, reset bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, raw)
		if reset {
			_ = conn.(*net.TCPConn).SetLinger(0)
		}
		_ = conn.Close()
	}
}

func says(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// An answer that is cut, too long, unreadable or missing fails the command, and the
// error names it. What was written before it are whole lines.
func TestExportFailsLoudly(t *testing.T) {
	const first, second = "/audits/recent?limit=200", "/audits/recent?before=50&limit=200"
	p := newAuditedProxy(t, 250, "m")
	whole := string(p.record(100))
	victim := "/audits/" + p.ids[100]
	list := func(ids ...string) string {
		return `{"receipts":[{"id":"` + strings.Join(ids, `"},{"id":"`) + `"}]}`
	}
	policy := "/lex/policies/" + p.k.PolicyHash()
	var listed atomic.Int32
	for name, c := range map[string]struct {
		path   string
		answer http.HandlerFunc
		want   []string
	}{
		"too long": {victim, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, whole[:len(whole)-1])
			for range 33 {
				_, _ = w.Write(bytes.Repeat([]byte(" "), 1<<20))
			}
			_, _ = io.WriteString(w, "}")
		}, []string{victim, "over 32 MiB"}},
		"cut before its length": {victim, hang("HTTP/1.1 200 OK\r\nContent-Length: "+strconv.Itoa(len(whole))+"\r\n\r\n"+whole[:500], false), []string{victim, "unexpected EOF"}},
		"cut within a chunk":    {victim, hang("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFF\r\n"+whole[:500], false), []string{victim, "unexpected EOF"}},
		"cut without a length":  {victim, hang("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"+whole[:500], false), []string{p.ids[100]}},
		"reset":                 {victim, hang("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"+whole[:500], true), []string{victim}},
		"nothing":               {victim, hang("", true), []string{victim}},
		"empty":                 {victim, says(200, ""), []string{p.ids[100]}},
		"missing":               {victim, says(404, `{"error":"x","code":"not_found"}`), []string{p.ids[100], "not there"}},
		"another one":           {victim, says(200, string(p.record(99))), []string{p.ids[100], "under the id of another"}},
		"changed":               {victim, says(200, strings.Replace(whole, `"turn":1`, `"turn":2`, 1)), []string{p.ids[100], "id does not match"}},
		"in two lines":          {victim, says(200, strings.Replace(whole, ",", ",\n", 1)), []string{p.ids[100]}},
		"page fails":            {second, says(500, `{"error":"Down.","code":"governor_unavailable"}`), []string{second, "500 governor_unavailable"}},
		"page is refused":       {second, says(429, `{"error":"Slow.","code":"rate_limited"}`), []string{second, "429 rate_limited"}},
		"page is reset":         {second, hang("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{", true), []string{second}},
		"page is cut":           {second, says(200, list(p.ids[0])[:20]), []string{second}},
		"page is a login":       {first, says(200, "<html>"), []string{first}},
		"page redirects":        {first, says(302, "", "Location", "/login"), []string{first, "302"}},
		"page of something":     {first, says(200, `{}`), []string{first, "no list of receipts"}},
		"page of null":          {first, says(200, `{"receipts":null}`), []string{first, "no list of receipts"}},
		"id of something":       {first, says(200, list("../../etc")), []string{first, "no list of receipts"}},
		"list breaks off":       {first, says(200, list(p.ids[:200]...)), []string{first, "breaks off"}},
		"link is garbled":       {first, says(200, list(p.ids[0]), "Link", `/audits/recent?before=50; rel="next"`), []string{first, "Link"}},
		"link leads away":       {first, says(200, list(p.ids[0]), "Link", `<@127.0.0.1:1/audits/recent?before=50>; rel="next"`), []string{first, "Link"}},
		"list is a cycle":       {second, says(200, list(p.ids[0]), "Link", `<`+second+`>; rel="next"`), []string{second, "cycle"}},
		"list changes": {second, func(w http.ResponseWriter, r *http.Request) {
			if listed.Add(1)%2 == 0 {
				says(200, list(p.ids[:49]...))(w, r)
				return
			}
			p.list(w, r)
		}, []string{second, "changed"}},
		"policy fails":   {policy, says(500, ""), []string{policy, "500"}},
		"policy is gone": {policy, says(404, ""), []string{p.k.PolicyHash()}},
	} {
		for _, command := range []string{"export", "verify"} {
			t.Run(name+"/"+command, func(t *testing.T) {
				p.only(c.path, c.answer)
				out, _, err := lexCommand("", command, "--url", p.URL)
				if err == nil {
					t.Fatalf("it succeeded, with %d bytes", len(out))
				}
				for _, want := range c.want {
					if !strings.Contains(err.Error(), want) && (command == "export" || !strings.Contains(out, want)) {
						t.Errorf("error %v, want %q", err, want)
					}
				}
				if command == "verify" {
					return
				}
				for line := range strings.Lines(out) {
					if !strings.HasSuffix(line, "}\n") || !json.Valid([]byte(line)) {
						t.Errorf("a broken line: %.80q", line)
					}
				}
			})
		}
	}
}

// A line that is too long is named by its file and number.
func TestVerifyNamesTheLineThatIsTooLong(t *testing.T) {
	p := newAuditedProxy(t, 1, "m")
	lines := string(p.record(0)) + "\n" + strings.Repeat(" ", 33<<20) + "\n"
	file := filepath.Join(t.TempDir(), "receipts.jsonl")
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"verify", "export"} {
		_, _, err := lexCommand("", command, file)
		if err == nil || !strings.Contains(err.Error(), file+": line 2 is over 32 MiB") {
			t.Errorf("%s: %v", command, err)
		}
	}
}

// heapWatch is a writer that measures how much memory is held while it is written to.
type heapWatch struct {
	written, looked, most int
}

func (h *heapWatch) Write(b []byte) (int, error) {
	if h.written += len(b); h.written-h.looked > 1<<20 {
		h.looked = h.written
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		h.most = max(h.most, int(m.HeapAlloc))
	}
	return len(b), nil
}

// An export holds a few receipts at a time, however many there are.
func TestExportStreams(t *testing.T) {
	const receipts, size = 64, 256 << 10
	p := newAuditedProxy(t, receipts, strings.Repeat("m", size))
	db := filepath.Join(t.TempDir(), "lex.db")
	s, err := bolt.Open(db, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	policy, _ := p.k.Policy().JSON()
	if err := s.PutDocument(t.Context(), p.k.PolicyHash(), policy); err != nil {
		t.Fatal(err)
	}
	for n := range receipts {
		if err := s.Append(t.Context(), store.Receipt{ID: p.ids[n], Kind: store.KindText, JSON: p.record(n)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for _, source := range [][]string{{"--url", p.URL}, {"--store", db}} {
		root := &cobra.Command{Use: "lex", SilenceErrors: true, SilenceUsage: true}
		caddycmd.Commands()["lex"].CobraFunc(root)
		watch := new(heapWatch)
		root.SetOut(watch)
		root.SetArgs(append([]string{"export"}, source...))
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		if watch.written < receipts*size {
			t.Errorf("%v: %d bytes", source, watch.written)
		}
		if held := watch.most - int(before.HeapAlloc); held > 8<<20 {
			t.Errorf("%v: %d MiB were held", source, held>>20)
		}
	}
}

// The receipts of tool calls stand in the chain between turns, and are exported and
// verified like them.
func TestVerifyAChainWithToolCalls(t *testing.T) {
	proxy := startProxy(t, "Paris.")
	var ids []string
	for _, step := range []struct{ path, body string }{
		{"/lex/govern", `{"session_id":"s","prompt":"What is the capital of France?","output":"Paris."}`},
		{"/lex/tools/check", `{"session_id":"s","tool":{"name":"read_file","arguments":{"path":"notes.txt"}}}`},
		{"/lex/tools/check", `{"session_id":"s","tool":{"name":"run_command","arguments":{"command":"rm -rf /"}}}`},
		{"/lex/govern", `{"session_id":"s","prompt":"And of Spain?","output":"Madrid."}`},
	} {
		askProxy(t, http.MethodPost, proxy.URL+step.path, step.body)
	}
	out, _, err := lexCommand("", "export", "--url", proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(strings.Lines(out)) // the policy, then the receipts
	for _, line := range lines[1:] {
		r, err := kernel.OpenReceipt([]byte(strings.TrimSuffix(line, "\n")))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID[:3])
	}
	if strings.Join(ids, " ") != "KRN TCR TCR KRN" {
		t.Fatalf("exported %v", ids)
	}
	verify := func(lines ...string) (string, error) {
		file := filepath.Join(t.TempDir(), "receipts.jsonl")
		if err := os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		said, faults, err := lexCommand("", "verify", file)
		return said + faults, err
	}
	if said, err := verify(lines...); err != nil || !strings.Contains(said, "4 receipts in 1 chains, 0 faults") {
		t.Errorf("%v: %s", err, said)
	}
	if said, err := verify(slices.Delete(slices.Clone(lines), 3, 4)...); err == nil || !strings.Contains(said, "removed or moved") {
		t.Errorf("without the blocked call: %v: %s", err, said)
	}
	lines[3] = strings.Replace(lines[3], `"blocked"`, `"approved"`, 1)
	if said, err := verify(lines...); err == nil || !strings.Contains(said, "id does not match") {
		t.Errorf("with the blocked call approved: %v: %s", err, said)
	}
	if said, _, err := lexCommand("", "verify", "--url", proxy.URL); err != nil || !strings.Contains(said, "4 receipts in 1 chains, 0 faults") {
		t.Errorf("%v: %s", err, said)
	}
}
