package commands_test

import (
	"bytes"
	"crypto/sha256"
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
	"testing"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-lex/lex/audit"
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
	r.SessionID, r.Turn, r.Timestamp, r.Model = "s", 1, int64(n+1), p.model
	if _, err := r.Seal(); err != nil {
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
	w.Header().Set("Content-Type", "application/json")
	switch path := r.URL.Path; {
	case path == "/audits/log":
		w.Header().Set("Content-Type", "application/x-ndjson")
		after, _ := strconv.Atoi(r.FormValue("after"))
		_, _ = io.WriteString(w, p.page(after))
	case path == "/audits/verify":
		_, _ = io.WriteString(w, `{"valid":true,"checks":[{"name":"chain","ok":true,"detail":"fine"}],"fault":null}`)
	case strings.HasPrefix(path, "/lex/policies/"):
		text, _ := p.k.Policy().JSON()
		_, _ = w.Write(text)
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error":"There is nothing here.","code":"not_found"}`)
	}
}

// pageLength and pageBytes are the most that a page of the proxy's log has.
const (
	pageLength = 200
	pageBytes  = 2 << 20
)

// page returns a page of the log, as the bytes of its lines.
func (p *auditedProxy) page(after int) string {
	var page strings.Builder
	for n := after; n < min(after+pageLength, len(p.ids)) && page.Len() < pageBytes; n++ {
		page.WriteString(p.line(n))
	}
	return page.String()
}

// line is the line of a receipt in the log.
func (p *auditedProxy) line(n int) string {
	prev := ""
	if n > 0 {
		prev = fmt.Sprintf("%x", sha256.Sum256(p.record(n-1)))
	}
	return fmt.Sprintf("{\"seq\":%d,\"log_prev\":%q,\"receipt\":%s}\n", n+1, prev, p.record(n))
}

// A log that arrives whole is exported and verified, however many pages it has.
func TestExportIsWhole(t *testing.T) {
	for _, n := range []int{0, 1, 200, 401} {
		p := newAuditedProxy(t, n, "m")
		out, _, err := lexCommand("", "export", "--url", p.URL)
		if err != nil {
			t.Fatalf("%d: %v", n, err)
		}
		want := ""
		if n > 0 {
			policy, _ := p.k.Policy().JSON()
			want = fmt.Sprintf("{\"policy\":%s}\n", policy)
		}
		for i := range n {
			want += p.line(i)
		}
		if out != want {
			t.Errorf("%d receipts: got %d lines, or other ones", n, strings.Count(out, "\n"))
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
	const first, second = "/audits/log?after=0&limit=1000", "/audits/log?after=200&limit=1000"
	p := newAuditedProxy(t, 250, "m")
	page, record := p.page(0), string(p.record(100))
	victim := "place 101 of the log"
	lines := []string{"Content-Type", "application/x-ndjson"}
	changed := func(from, to string) http.HandlerFunc {
		return says(200, strings.Replace(page, from, to, 1), lines...)
	}
	instead := func(record string) http.HandlerFunc { return changed(string(p.record(100)), record) }
	started := "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nContent-Length: " + strconv.Itoa(len(page)) + "\r\n\r\n" + page[:5000]
	policy := "/lex/policies/" + p.k.PolicyHash()
	for name, c := range map[string]struct {
		path   string
		answer http.HandlerFunc
		want   []string
	}{
		"too long": {first, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, page)
			for range 33 {
				_, _ = w.Write(bytes.Repeat([]byte(" "), 1<<20))
			}
		}, []string{first, "over 32 MiB"}},
		"cut before its length": {first, hang(started, false), []string{first, "unexpected EOF"}},
		"cut within a chunk":    {first, hang("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFF\r\n"+page[:5000], false), []string{first, "unexpected EOF"}},
		"cut without a length":  {first, hang("HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nConnection: close\r\n\r\n"+page[:len(page)-7], false), []string{first, "last line is cut"}},
		"reset":                 {first, hang(started, true), []string{first}},
		"nothing":               {first, hang("", true), []string{first}},
		"no record":             {first, instead(""), []string{victim}},
		"null":                  {first, instead("null"), []string{victim}},
		"another one":           {first, instead(string(p.record(99))), []string{"the log"}},
		"changed":               {first, instead(strings.Replace(record, `"turn":1`, `"turn":2`, 1)), []string{victim, "id does not match"}},
		"in two lines":          {first, instead(strings.Replace(record, ",", ",\n", 1)), []string{first, "no page of a log"}},
		"page fails":            {second, says(500, `{"error":"Down.","code":"governor_unavailable"}`), []string{second, "500 governor_unavailable"}},
		"page is refused":       {second, says(429, `{"error":"Slow.","code":"rate_limited"}`), []string{second, "429 rate_limited"}},
		"page is missing":       {second, says(404, `{"error":"x","code":"not_found"}`), []string{second, "not found"}},
		"page is another's 404": {second, says(404, "not here"), []string{second, "404", noLexAsk}},
		"page is empty text":    {second, says(200, "", "Content-Type", "text/plain"), []string{second, noLexAsk}},
		"page has no type":      {second, says(200, ""), []string{second, noLexAsk}},
		"page is reset":         {second, hang("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{", true), []string{second}},
		"page is a login":       {first, says(200, "<html>\n"), []string{first, "text/html", noLexAsk}},
		"page redirects":        {first, says(302, "", "Location", "/login"), []string{first, "302"}},
		"page of something":     {first, says(200, "{}\n", lines...), []string{first, "no page of a log"}},
		"page of receipts":      {first, says(200, record+"\n", lines...), []string{first, "no page of a log"}},
		"no line":               {second, says(200, "\n", lines...), []string{second, "no page of a log"}},
		"the log is a cycle":    {second, says(200, page, lines...), []string{second, "goes back from place 200 to 1"}},
		"one twice":             {first, changed(p.line(100), p.line(100)+p.line(100)), []string{first, "goes back from place 101 to 101"}},
		"policy fails":          {policy, says(500, ""), []string{policy, "500"}},
		"policy is gone":        {policy, says(404, `{"error":"x","code":"not_found"}`), []string{p.k.PolicyHash()}},
		"policy is no answer":   {policy, says(200, ""), []string{policy, noLexAsk}},
		"policy is empty":       {policy, says(200, "", "Content-Type", "application/json"), []string{policy, noLexAsk}},
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

// An export of a log with a gap is not complete, and says once where the gap is.
func TestExportNamesAGap(t *testing.T) {
	const first = "/audits/log?after=0&limit=1000"
	p := newAuditedProxy(t, 250, "m")
	for name, c := range map[string]struct{ page, want string }{
		"one removed":   {strings.Replace(p.page(0), p.line(100), "", 1), "1 of 249 receipts are damaged, not in their place"},
		"first removed": {strings.Replace(p.page(0), p.line(0), "", 1), "place 2 of the log: receipt 1 of the log is missing before it"},
		"end of a page": {strings.Replace(p.page(0), p.line(199), "", 1), ""},
		"another link":  {strings.Replace(p.page(0), `"log_prev":"`, `"log_prev":"`+strings.Repeat("0", 64), 1), "place 1 of the log: it is the first receipt of the log, but names one before it"},
	} {
		p.only(first, says(200, c.page, "Content-Type", "application/x-ndjson"))
		out, _, err := lexCommand("", "export", "--url", p.URL)
		if c.want == "" { // the place is asked for again
			if err != nil || strings.Count(out, "\n") != 251 {
				t.Errorf("%s: %v, %d lines", name, err, strings.Count(out, "\n"))
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Count(out, "\n") < 250 {
			t.Errorf("%s: %v, %d lines", name, err, strings.Count(out, "\n"))
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
	lines := slices.Collect(strings.Lines(out)) // the policy and the setup, then the receipts
	for _, line := range lines[2:] {
		entry, known := audit.ParseLogLine([]byte(strings.TrimSuffix(line, "\n")))
		r, err := kernel.OpenReceipt(entry.JSON)
		if err != nil || !known || entry.Seq != uint64(len(ids)+1) {
			t.Fatal(err, line)
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
	if said, err := verify(slices.Delete(slices.Clone(lines), 4, 5)...); err == nil || !strings.Contains(said, "removed or moved") {
		t.Errorf("without the blocked call: %v: %s", err, said)
	}
	lines[4] = strings.Replace(lines[4], `"blocked"`, `"approved"`, 1)
	if said, err := verify(lines...); err == nil || !strings.Contains(said, "id does not match") {
		t.Errorf("with the blocked call approved: %v: %s", err, said)
	}
	if said, _, err := lexCommand("", "verify", "--url", proxy.URL); err != nil || !strings.Contains(said, "4 receipts in 1 chains, 0 faults") {
		t.Errorf("%v: %s", err, said)
	}
}
