package caddymodule_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"go.etcd.io/bbolt"

	"github.com/caddy-lex/lex/store"
)

// A logLine is a line of GET /audits/log.
type logLine struct {
	Seq     uint64          `json:"seq"`
	LogPrev string          `json:"log_prev"`
	Receipt json.RawMessage `json:"receipt"`
}

func (s *site) log(query string) []logLine {
	s.t.Helper()
	w := s.send(http.MethodGet, "/audits/log"+query, "")
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/x-ndjson" {
		s.t.Fatalf("%s: %d %v %s", query, w.Code, w.Header(), w.Body)
	}
	var lines []logLine
	for text := range strings.Lines(w.Body.String()) {
		var line logLine
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			s.t.Fatalf("%v: %s", err, text)
		}
		lines = append(lines, line)
	}
	return lines
}

// The log has every receipt in the order in which they were written, those of tool calls
// too, and pages of any size make it up.
func TestLog(t *testing.T) {
	s := newSite(t, `{}`, answering("application/json", completion("Paris.")))
	if lines := s.log(""); len(lines) != 0 {
		t.Errorf("an empty log has %d lines", len(lines))
	}
	for range 3 {
		s.post("/v1/chat/completions", chatQuestion)
		checkTool(s, destructiveCall)
		s.post("/v1/chat/completions", chatAttack)
	}
	newestFirst := s.receipts()
	n := len(newestFirst)
	if n < 9 {
		t.Fatalf("%d receipts", n)
	}
	for limit := 1; limit <= n+1; limit++ {
		var log []logLine
		for after := 0; ; after = len(log) {
			page := s.log(fmt.Sprintf("?after=%d&limit=%d", after, limit))
			if len(page) == 0 {
				break
			}
			log = append(log, page...)
		}
		if len(log) != n {
			t.Fatalf("pages of %d: %d receipts, want %d", limit, len(log), n)
		}
		prev := ""
		for i, line := range log {
			id := newestFirst[n-1-i]["id"].(string)
			record := s.send(http.MethodGet, "/audits/"+id, "").Body.String()
			if line.Seq != uint64(i+1) || line.LogPrev != prev || string(line.Receipt) != record {
				t.Errorf("pages of %d: line %d is %d %q %.60s, want the link %q and %s", limit, i, line.Seq, line.LogPrev, line.Receipt, prev, id)
			}
			prev = fmt.Sprintf("%x", sha256.Sum256([]byte(record)))
		}
	}
}

func TestLogPages(t *testing.T) {
	s := newSite(t, `{}`, answering("application/json", completion("Paris.")))
	for range 105 {
		s.post("/v1/chat/completions", chatQuestion)
	}
	for query, want := range map[string]struct{ first, lines int }{
		"": {1, 100}, "?limit=7": {1, 7}, "?limit=1000": {1, 105}, "?limit=99999999999999999999": {1, 105},
		"?after=0": {1, 100}, "?after=100": {101, 5}, "?after=104&limit=1": {105, 1}, "?after=105": {0, 0}, "?after=18446744073709551615": {0, 0},
	} {
		if lines := s.log(query); len(lines) != want.lines || want.lines > 0 && lines[0].Seq != uint64(want.first) {
			t.Errorf("%s: %d lines, want %d from %d", query, len(lines), want.lines, want.first)
		}
	}
	for query, code := range map[string]string{
		"?limit=0": "invalid_limit", "?limit=-1": "invalid_limit", "?limit=": "invalid_limit", "?limit=x": "invalid_limit",
		"?after=": "invalid_cursor", "?after=-1": "invalid_cursor", "?after=x": "invalid_cursor", "?after=1.0": "invalid_cursor", "?after=99999999999999999999": "invalid_cursor",
	} {
		if w := s.send(http.MethodGet, "/audits/log"+query, ""); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"`+code+`"`) {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
}

// A page is bounded by its size, too, but never so that the log cannot be read on. It
// is not held twice.
func TestLogOfLargeReceipts(t *testing.T) {
	s := newSite(t, `{}`, answering("application/json", completion("Paris.")))
	sizes := []int{1 << 20, 1 << 20, 6 << 20, 1 << 10, 3 << 20, 1 << 20}
	written := 0
	s.meddle(func(ctx context.Context, turn store.Change, commit func(context.Context, store.Change) error) error {
		turn.Receipt.JSON = append([]byte("{"+strings.Repeat(" ", sizes[written])), turn.Receipt.JSON[1:]...)
		written++
		return commit(ctx, turn)
	})
	for i := range sizes {
		s.post("/v1/chat/completions", strings.Replace(chatQuestion, `"content":"`, fmt.Sprintf(`"content":"Question %d. `, i), 1))
	}
	var pages []int
	for after := 0; ; {
		page := s.log(fmt.Sprintf("?limit=1000&after=%d", after))
		if len(page) == 0 {
			break
		}
		pages = append(pages, len(page))
		after += len(page)
		if page[len(page)-1].Seq != uint64(after) {
			t.Fatalf("pages %v end at %d", pages, page[len(page)-1].Seq)
		}
	}
	if fmt.Sprint(pages) != "[2 1 2 1]" {
		t.Errorf("pages of %v receipts", pages)
	}
}

// A damaged record is null in its place, and the log goes on.
func TestLogOfADamagedRecord(t *testing.T) {
	s := newSite(t, `{}`, answering("application/json", completion("Paris.")))
	for range 3 {
		s.post("/v1/chat/completions", chatQuestion)
	}
	id := s.receipts()[1]["id"].(string)
	defer tampered.Delete(id)
	for _, damage := range []string{"", "{", "{\n}", "null}"} {
		tampered.Store(id, []byte(damage))
		if lines := s.log(""); len(lines) != 3 || string(lines[1].Receipt) != "null" || lines[1].Seq != 2 || len(lines[2].Receipt) < 100 {
			t.Errorf("%q: %+v", damage, lines)
		}
	}
}

// A store that does not answer is an error and no end of the log.
func TestLogOfABrokenStore(t *testing.T) {
	s := newSite(t, `{}`, answering("application/json", completion("Paris.")))
	s.post("/v1/chat/completions", chatQuestion)
	s.breakStore()
	defer s.mendStore()
	if w := s.send(http.MethodGet, "/audits/log", ""); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "governor_unavailable") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A receipt that is damaged in the store's file is named by everybody who reads it, and hides
// no other.
func TestADamagedReceiptHidesNoOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lex.db")
	site := func() *proxy {
		return runCaddy(t, "lex {\nstore bolt "+path+"\nlimits {\nread 1000/1m\n}\n}", "lex {\nconsole open\n}\nlex_demo_model")
	}
	p := site()
	for range 3 {
		p.send(http.MethodPost, "/v1/chat/completions", chatQuestion, http.Header{"X-Lex-Session": {"s"}})
	}
	_, _, body := p.send(http.MethodGet, "/audits/recent", "", nil)
	id := gjson.Get(body, "receipts.1.id").Str
	p.stop()
	damage(t, path, 2)

	p = site()
	_, _, recent := p.send(http.MethodGet, "/audits/recent", "", nil)
	if entries := gjson.Get(recent, "receipts"); len(entries.Array()) != 3 || entries.Get("#(damaged==true)#|#").Int() != 1 || entries.Get("1.damaged").Bool() != true {
		t.Errorf("the list: %s", recent)
	}
	if status, _, one := p.send(http.MethodGet, "/audits/"+id, "", nil); status != http.StatusInternalServerError || !strings.Contains(one, `"receipt_damaged"`) {
		t.Errorf("the receipt alone: %d %s", status, one)
	}
	_, _, log := p.send(http.MethodGet, "/audits/log", "", nil)
	if lines := strings.Split(strings.TrimSpace(log), "\n"); len(lines) != 3 || !strings.Contains(lines[1], `"seq":2,`) || !strings.HasSuffix(lines[1], `"receipt":null}`) {
		t.Errorf("the log: %s", log)
	}
	_, _, rows := p.send(http.MethodGet, "/lex/console/receipts", "", nil)
	if shown := gjson.Get(rows, "receipts"); len(shown.Array()) != 3 || shown.Get("1.verdict").Str != "uninspected" || shown.Get("1.gaps.0.why").Str != "the record cannot be read" {
		t.Errorf("the console: %s", rows)
	}
	newest := gjson.Get(recent, "receipts.0.id").Str
	if status, _, chain := p.send(http.MethodGet, "/lex/console/chains/"+newest, "", nil); status != http.StatusOK || gjson.Get(chain, "steps.#").Int() != 1 || gjson.Get(chain, "steps.0.id").Str != newest {
		t.Errorf("the chain of the next: %d %s", status, chain)
	}
	if status, _, chain := p.send(http.MethodGet, "/lex/console/chains/"+id, "", nil); status != http.StatusInternalServerError || !strings.Contains(chain, `"receipt_damaged"`) {
		t.Errorf("its own chain: %d %s", status, chain)
	}
	if status, _, body := p.send(http.MethodPost, "/v1/chat/completions", chatQuestion, nil); status != http.StatusOK {
		t.Errorf("the next turn: %d %s", status, body)
	}
}

// A damaged page of the file is an error of what needs it, and is counted. The rest goes on.
func TestADamagedPageIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lex.db")
	site := func() *proxy {
		return runCaddy(t, "lex {\nstore bolt "+path+"\n}", "handle /metrics {\nmetrics\n}\nhandle {\nlex\nlex_demo_model\n}")
	}
	p := site()
	for range 3 {
		p.send(http.MethodPost, "/v1/chat/completions", chatQuestion, nil)
	}
	p.stop()
	damageReceipts(t, path)

	p = site()
	if status, _, log := p.send(http.MethodGet, "/audits/log", "", nil); status != http.StatusInternalServerError || !strings.Contains(log, `"receipt_damaged"`) {
		t.Errorf("the log: %d %s", status, log)
	}
	if status, _, stats := p.send(http.MethodGet, "/stats", "", nil); status != http.StatusOK || gjson.Get(stats, "total_receipts").Int() != 3 {
		t.Errorf("the statistics: %d %s", status, stats)
	}
	if status, _, body := p.send(http.MethodPost, "/v1/chat/completions", chatQuestion, nil); status != http.StatusServiceUnavailable {
		t.Errorf("a turn whose receipt cannot be written: %d %s", status, body)
	}
	_, _, metrics := p.send(http.MethodGet, "/metrics", "", nil)
	for _, want := range []string{`lex_internal_errors_total{kind="store_record",operation="read"} `, `lex_internal_errors_total{kind="store_record",operation="commit"} `} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s:\n%s", want, metrics)
		}
	}
}

// damageReceipts clears the page at which the receipts of a database begin.
func damageReceipts(t *testing.T, path string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	var page int64
	err = db.View(func(tx *bbolt.Tx) error {
		page = int64(tx.Bucket([]byte("receipts")).Root())
		return nil
	})
	size := db.Info().PageSize
	file, opening := os.OpenFile(path, os.O_WRONLY, 0)
	if err = errors.Join(err, db.Close(), opening); err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt(make([]byte, size), page*int64(size)); err != nil {
		t.Fatal(err)
	}
}

// damage makes the nth receipt of a database unreadable.
func damage(t *testing.T, path string, n uint64) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err == nil {
		err = db.Update(func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("receipts")).Put(binary.BigEndian.AppendUint64(nil, n), []byte("damaged"))
		})
	}
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}
