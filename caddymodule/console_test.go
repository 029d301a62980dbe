package caddymodule_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-lex/lex/caddymodule"
)

// The secrets of consoleSite.
const readSecret = "read-secret"

func consoleSite(t testing.TB, config string) *site {
	t.Helper()
	t.Setenv("LEX_TEST_ADMIN", password)
	return newSiteWith(t, config, map[string]any{"secrets": map[string]any{"admin": "{env.LEX_TEST_ADMIN}", "read": readSecret}}, answering("application/json", completion("Paris.")))
}

// lastHour is a span with all that a test makes.
func lastHour() string {
	now := time.Now()
	return fmt.Sprintf("from=%d&to=%d", now.Add(-time.Hour).UnixMilli(), now.Add(time.Minute).UnixMilli())
}

// untilListed asks until the window has so many rows: it looks at the store once a second.
// Each request is counted in the store, which paces it.
func untilListed(t *testing.T, s *site, show string, n int) {
	t.Helper()
	for t.Context().Err() == nil {
		if len(s.get("/lex/console/receipts?show=" + show)["receipts"].([]any)) >= n {
			return
		}
	}
	t.Fatal("the rows do not come")
}

// A console that is open to everybody has the limit of the read endpoints, counted by itself.
func TestOpenConsoleIsLimited(t *testing.T) {
	s := newSiteWith(t, `{"console":"open"}`, map[string]any{
		"limits": map[string]any{"read": map[string]any{"requests": 2, "window": 60e9}},
	}, answering("application/json", completion("Paris.")))
	for i := range 4 {
		want := map[bool]int{true: http.StatusOK, false: http.StatusTooManyRequests}[i < 2]
		if w := s.send(http.MethodGet, "/lex/console/about", ""); w.Code != want || (w.Header().Get("Retry-After") == "") != (want == http.StatusOK) {
			t.Errorf("request %d: %d %v", i+1, w.Code, w.Header())
		}
	}
	if w := s.send(http.MethodGet, "/stats", ""); w.Code != http.StatusOK {
		t.Errorf("the read endpoints: %d", w.Code)
	}
}

// What a site refused, let pass uninspected and answered is found at the console, and all
// its answers are as described.
func TestConsole(t *testing.T) {
	s := consoleSite(t, `{"console":"open"}`)
	s.post("/v1/chat/completions", chatQuestion)
	s.post("/v1/chat/completions", chatAttack)
	s.post("/v1/pictures", "\x89PNG\r\n\x1a\n", "Content-Type", "image/png")
	s.post("/lex/tools/check", destructiveCall)
	about := s.get("/lex/console/about")
	if about["store"] != "faulty" || about["open"] != true || about["policy"].(map[string]any)["constants"].(map[string]any)["refuse_at"] != 0.7 {
		t.Errorf("about: %v", about)
	}
	counts := s.get("/lex/console/counts?step=3600000&" + lastHour())
	sums := make(map[string]float64)
	for _, name := range []string{"turns", "refused", "gaps", "would_refuse", "corrected", "failed"} {
		for _, n := range counts[name].([]any) {
			sums[name] += n.(float64)
		}
	}
	if fmt.Sprint(sums) != "map[corrected:0 failed:0 gaps:1 refused:2 turns:4 would_refuse:0]" {
		t.Errorf("counts: %v", sums)
	}
	reasons := counts["reasons"].(map[string]any)
	if reasons["semantic_classifier"] != 1.0 || reasons["destructive_command"] != 1.0 || counts["attack_types"].(map[string]any)["identity"] == nil {
		t.Errorf("counts: %v", counts)
	}
	var verdicts []string
	for _, row := range s.get("/lex/console/receipts?show=notable&" + lastHour())["receipts"].([]any) {
		verdicts = append(verdicts, row.(map[string]any)["verdict"].(string))
	}
	if !slices.Equal(verdicts, []string{"blocked", "uninspected", "refused"}) {
		t.Errorf("verdicts: %v", verdicts)
	}
	all := s.get("/lex/console/receipts")["receipts"].([]any)
	if len(all) != 4 {
		t.Fatalf("%d rows", len(all))
	}
	for _, row := range all {
		chain := s.get("/lex/console/chains/" + row.(map[string]any)["id"].(string))
		if steps := chain["steps"].([]any); len(steps) != 1 || chain["head"] != steps[0].(map[string]any)["id"] {
			t.Errorf("chain: %v", chain)
		}
	}
	coverage := s.get("/lex/console/coverage?" + lastHour())
	if coverage["turns"] != 4.0 || coverage["gaps"] != 1.0 || coverage["whole"] != 1.0 {
		t.Errorf("coverage: %v", coverage)
	}
}

// A plain turn of /lex/govern is no gap, with its baseline; neither is a refused one.
func TestPlainTurnsAreNoGaps(t *testing.T) {
	s := consoleSite(t, `{"console":"open","baseline":"always"}`)
	s.post("/lex/govern", question)
	s.post("/lex/govern", `{"prompt":"`+attack+`","session_id":"s2"}`)
	s.post("/lex/govern/stream", question)
	s.post("/v1/chat/completions", chatAttack)
	for _, row := range s.get("/lex/console/receipts")["receipts"].([]any) {
		if r := row.(map[string]any); r["gap"] != "none" || r["scored"] != true {
			t.Errorf("gap %v, scored %v: %v", r["gap"], r["scored"], r["gaps"])
		}
	}
}

// What `unknown block` refuses did not pass; what observe lets pass is a gap.
func TestBlockedTurnsAreNoGaps(t *testing.T) {
	for mode, want := range map[string]string{"enforce": "refused none false", "observe": "would_refuse whole false"} {
		s := consoleSite(t, `{"console":"open","unknown":"block","mode":"`+mode+`"}`)
		s.post("/v1/pictures", "\x89PNG\r\n\x1a\n", "Content-Type", "image/png")
		for _, row := range s.get("/lex/console/receipts")["receipts"].([]any) {
			r := row.(map[string]any)
			if got := fmt.Sprint(r["verdict"], " ", r["gap"], " ", r["scored"]); got != want || r["denied_by"] != "unknown_block" {
				t.Errorf("%s: %s, want %s: %v", mode, got, want, r)
			}
		}
	}
}

// consoleData are the paths of the data, each with what it needs.
var consoleData = []string{
	"/lex/console/about", "/lex/console/counts?from=0&to=1000&step=1000", "/lex/console/receipts", "/lex/console/events",
	"/lex/console/chains/KRN-00000000000000000000000000000000", "/lex/console/coverage?from=0&to=1000",
}

// The data needs the read or admin secret, which are tried ten times a minute. The page
// needs none.
func TestConsoleNeedsItsSecret(t *testing.T) {
	s := consoleSite(t, `{"console":"secret"}`)
	ask := func(path string, headers ...string) *httptest.ResponseRecorder {
		t.Helper()
		return s.send(http.MethodHead, path, "", headers...)
	}
	for _, path := range consoleData {
		if w := ask(path); w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") == "" {
			t.Errorf("%s without a secret: %d", path, w.Code)
		}
		for _, secret := range []string{readSecret, password} {
			if w := ask(path, "Authorization", "Bearer "+secret); w.Code == http.StatusUnauthorized || w.Code >= 500 {
				t.Errorf("%s with a secret: %d", path, w.Code)
			}
		}
	}
	if w := ask("/lex/console"); w.Code != http.StatusOK {
		t.Errorf("the page: %d", w.Code)
	}
	for _, headers := range [][]string{{"Authorization", "Basic " + readSecret}, {"X-Lex-Api-Key", readSecret}, {"Cookie", "key=" + readSecret}} {
		if w := ask("/lex/console/about", headers...); w.Code != http.StatusUnauthorized {
			t.Errorf("%v: %d", headers, w.Code)
		}
	}
	if w := ask("/lex/console/about?key=" + readSecret); w.Code != http.StatusUnauthorized {
		t.Errorf("a secret in the query: %d", w.Code)
	}
	for range 10 {
		if w := ask("/lex/console/about", "Authorization", "Bearer wrong"); w.Code != http.StatusUnauthorized {
			t.Fatalf("a wrong secret: %d", w.Code)
		}
	}
	if w := ask("/lex/console/about", "Authorization", "Bearer "+readSecret); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("after ten wrong ones: %d", w.Code)
	}
}

// Without a secret the data is closed, and the read secret opens nothing else.
func TestConsoleSecretsOpenNothingElse(t *testing.T) {
	s := newSiteWith(t, `{"console":"secret"}`, map[string]any{"secrets": map[string]any{}}, answering("application/json", completion("Paris.")))
	for _, path := range consoleData {
		if w := s.send(http.MethodGet, path, "", "Authorization", "Bearer x"); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "not_configured") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	s = consoleSite(t, `{"console":"secret","read":"admin"}`)
	for _, path := range []string{"/admin/keys", "/audits/recent"} {
		if w := s.send(http.MethodGet, path, "", "Authorization", "Bearer "+readSecret); w.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	// Where the admin alone may read, the page's other calls would count as wrong secrets.
	if w := s.send(http.MethodGet, "/lex/console/about", "", "Authorization", "Bearer "+readSecret); w.Code != http.StatusUnauthorized {
		t.Errorf("the console where read is admin: %d", w.Code)
	}
	s = consoleSite(t, `{"read":"keyed"}`)
	if w := s.send(http.MethodGet, "/audits/recent", "", "Authorization", "Bearer "+readSecret); w.Code != http.StatusOK {
		t.Errorf("where reading is keyed: %d", w.Code)
	}
}

// Without the option there is nothing at these paths, whatever else is served.
func TestConsoleIsAnOption(t *testing.T) {
	for config, want := range map[string]int{
		`{}`: http.StatusTeapot, `{"endpoints":"read"}`: http.StatusTeapot, `{"console":"open","endpoints":"read"}`: http.StatusOK, `{"console":"open"}`: http.StatusOK,
	} {
		s := newSite(t, config, func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(http.StatusTeapot)
			return nil
		})
		for _, path := range []string{"/lex/console", "/lex/console/about"} {
			w := httptest.NewRecorder() // the model's answer is not as ours are described
			r := caddyhttp.PrepareRequest(httptest.NewRequest(http.MethodGet, path, nil), caddy.NewReplacer(), w, new(caddyhttp.Server))
			if err := s.handler.ServeHTTP(w, r, s.model); err != nil || w.Code != want {
				t.Errorf("%s %s: %d %v", config, path, w.Code, err)
			}
		}
	}
	for _, config := range []string{`{"console":"yes"}`, `{"console":"open","read":"keyed"}`, `{"console":"open","read":"admin"}`, `{"console":"open","endpoints":"govern"}`, `{"console":"open","endpoints":"off"}`} {
		if err := validate([]byte(`{"apps":{"http":{"servers":{"s":{"listen":["127.0.0.1:0"],"routes":[{"handle":[` + strings.Replace(config, "{", `{"handler":"lex",`, 1) + `]}]}}}}}`)); err == nil || !strings.Contains(err.Error(), "console") {
			t.Errorf("%s: %v", config, err)
		}
	}
}

// Wrong parameters are refused: none of them shows more than was asked for.
func TestConsoleParameters(t *testing.T) {
	s := consoleSite(t, `{"console":"open"}`)
	s.post("/v1/chat/completions", chatQuestion)
	for query, code := range map[string]string{
		"counts": "invalid_range", "counts?from=1&to=2": "invalid_range", "counts?from=1&to=2&step=1": "invalid_range",
		"counts?from=2&to=2&step=1000": "invalid_range", "counts?from=-1&to=2&step=1000": "invalid_range", "counts?from=x&to=2&step=1000": "invalid_range",
		"counts?from=1e3&to=2000&step=1000": "invalid_range", "counts?from=0&to=9223372036854775807&step=1000": "invalid_range", "counts?from=0&to=501000&step=1000": "invalid_range",
		"counts?from=0&to=1000&step=-1000": "invalid_range", "counts?from=0&to=99999999999999999999&step=1000": "invalid_range", "counts?from=0&from=0&to=1000&step=1000": "invalid_filter",
		"counts?from=0&to=1000&step=1000&show=refused": "invalid_filter", "counts?from=0&to=9007199254740992&step=9223372036854775807": "invalid_range",
		"coverage": "invalid_range", "coverage?from=5&to=4": "invalid_range", "coverage?from=1&to=2&x=1": "invalid_filter",
		"receipts?show=everything": "invalid_filter", "receipts?show=": "invalid_filter", "receipts?shew=refused": "invalid_filter", "receipts?show=refused&show=all": "invalid_filter",
		"receipts?reason=Slow+Drip": "invalid_filter", "receipts?attack_type=%3Cb%3E": "invalid_filter", "receipts?mode=loud": "invalid_filter", "receipts?gap=some": "invalid_filter",
		"receipts?min_severity=2": "invalid_filter", "receipts?min_severity=-1": "invalid_filter", "receipts?min_severity=NaN": "invalid_filter", "receipts?min_severity=x": "invalid_filter",
		"receipts?min_severity=": "invalid_filter", "receipts?session_id=": "invalid_filter", "receipts?session_id=" + strings.Repeat("s", 1025): "invalid_filter",
		"receipts?endpoint=" + strings.Repeat("s", 8000): "invalid_filter", "receipts?%zz": "invalid_filter", "receipts?a;b": "invalid_filter",
		"receipts?from=3&to=3": "invalid_range", "receipts?from=": "invalid_range", "receipts?limit=0": "invalid_limit", "receipts?limit=x": "invalid_limit", "receipts?limit=": "invalid_limit",
		"receipts?before=nowhere": "invalid_cursor", "receipts?show=refused&before=nowhere": "invalid_cursor",
		"about?x": "invalid_filter", "events?show=some": "invalid_filter", "events?mode=enforce": "invalid_filter", "events?after=1&after=2": "invalid_filter",
		"chains/KRN-00000000000000000000000000000000": "not_found", "chains/krn": "not_found", "chains/%2e%2e": "not_found", "chains/": "not_found",
		"chains/KRN-00000000000000000000000000000000?limit=0": "invalid_limit", "chains/KRN-00000000000000000000000000000000?deep=1": "invalid_filter",
	} {
		w := s.send(http.MethodGet, "/lex/console/"+query, "")
		var e struct{ Code string }
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Code != code {
			t.Errorf("%.80s: %d %s, want %s", query, w.Code, w.Body, code)
		}
	}
	for _, query := range []string{"limit=1000", "limit=99999999999999999999", "session_id=" + url.QueryEscape("</script>'\"\x00\u202e"), "min_severity=0", "before=1", "from=0&to=1"} {
		if w := s.send(http.MethodGet, "/lex/console/receipts?"+query, ""); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
}

// The other methods are not allowed, and scripts of other origins may not read, whatever
// the option cors says.
func TestConsoleMethodsAndOrigins(t *testing.T) {
	s := consoleSite(t, `{"console":"open","cors":["*"]}`)
	for _, path := range append(consoleData, "/lex/console") {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, "PROPFIND"} {
			w := s.send(method, path, "{}", "Origin", "https://evil.example", "Access-Control-Request-Method", "GET")
			if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" || w.Header().Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s %s: %d %v", method, path, w.Code, w.Header())
			}
		}
		w := s.send(http.MethodHead, path, "", "Origin", "https://evil.example")
		if w.Header().Get("Access-Control-Allow-Origin") != "" || w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Code >= 500 {
			t.Errorf("HEAD %s: %d %v", path, w.Code, w.Header())
		}
	}
}

func TestConsolePage(t *testing.T) {
	s := consoleSite(t, `{"console":"secret"}`)
	w := s.send(http.MethodGet, "/lex/console", "")
	h := w.Header()
	if w.Code != http.StatusOK || h.Get("Content-Type") != "text/html; charset=utf-8" || h.Get("Cross-Origin-Opener-Policy") != "same-origin" ||
		h.Get("Referrer-Policy") != "no-referrer" || h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'; script-src") {
		t.Errorf("%d %v", w.Code, h)
	}
	if again := s.send(http.MethodGet, "/lex/console", "", "If-None-Match", h.Get("ETag")); again.Code != http.StatusNotModified || again.Body.Len() != 0 {
		t.Errorf("with its ETag: %d", again.Code)
	}
	counts := "/lex/console/counts?from=0&to=1000&step=1000"
	s = consoleSite(t, `{"console":"open"}`)
	old := etagOf(s, counts)
	if again := s.send(http.MethodGet, counts, "", "If-None-Match", old, "Range", "bytes=0-1"); old == "" || again.Code != http.StatusNotModified && etagOf(s, counts) == old {
		t.Errorf("counts with their ETag %s: %d", old, again.Code)
	}
}

func etagOf(s *site, path string) string {
	return s.send(http.MethodGet, path, "").Header().Get("ETag")
}

// A store that stops is an error of the interface, and the window goes on when it is back.
func TestConsoleWithoutItsStore(t *testing.T) {
	s := consoleSite(t, `{"console":"open"}`)
	s.post("/v1/chat/completions", chatAttack)
	untilListed(t, s, "refused", 1)
	unreadable.Store(s.path, true)
	for _, path := range consoleData[:3] {
		for t.Context().Err() == nil {
			w := s.send(http.MethodGet, path, "")
			if w.Code == http.StatusInternalServerError && strings.Contains(w.Body.String(), "governor_unavailable") {
				break
			}
		}
	}
	unreadable.Delete(s.path)
	for t.Context().Err() == nil && s.send(http.MethodGet, "/lex/console/about", "").Code != http.StatusOK {
	}
	s.post("/v1/chat/completions", chatAttack)
	untilListed(t, s, "refused", 2)
}

// checkConsoleEvents holds the events of a stream against their schemas.
func checkConsoleEvents(t testing.TB, body string) (names []string) {
	t.Helper()
	for frame := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		fields := make(map[string]string)
		for line := range strings.SplitSeq(frame, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			fields[name] = value
		}
		schema := map[string]string{"receipt": "ConsoleRow", "health": "Health"}[fields["event"]]
		names = append(names, fields["event"])
		if schema == "" {
			continue
		}
		var data map[string]any
		if err := json.Unmarshal([]byte(fields["data"]), &data); err != nil {
			t.Fatalf("%v: %s", err, frame)
		}
		if err := schemaOf(t, schema).Validate(data); err != nil {
			t.Errorf("%s: %v", fields["event"], err)
		}
		if schema == "ConsoleRow" && fields["id"] != data["cursor"] {
			t.Errorf("the id of the event is %q", fields["id"])
		}
	}
	return names
}

// eventClient is a client of the events, whose context ends when it has what it waits for.
type eventClient struct {
	*httptest.ResponseRecorder
	enough func(body string) bool
	leave  context.CancelFunc

	bounded  int // writes
	deadline time.Time
}

func (l *eventClient) SetWriteDeadline(deadline time.Time) error {
	if l.deadline = deadline; !deadline.IsZero() {
		l.bounded++
	}
	return nil
}

func (l *eventClient) Write(p []byte) (int, error) {
	n, err := l.ResponseRecorder.Write(p)
	if l.enough(l.Body.String()) {
		l.leave()
	}
	return n, err
}

func listenTo(t *testing.T, s *site, path string, enough func(body string) bool) *httptest.ResponseRecorder {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	w := &eventClient{ResponseRecorder: httptest.NewRecorder(), enough: enough, leave: leave}
	s.serve(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://site.test"+path, nil))
	if w.bounded == 0 || !w.deadline.IsZero() { // one that is left ends a stream over HTTP/2 that has nothing to say
		t.Errorf("%s: %d writes are bounded, and the last deadline is %v", path, w.bounded, w.deadline)
	}
	return w.ResponseRecorder
}

// Events begin with the health and go on behind the cursor that the client has.
func TestConsoleEvents(t *testing.T) {
	s := consoleSite(t, `{"console":"open"}`)
	for range 3 {
		s.post("/v1/chat/completions", chatQuestion)
	}
	s.post("/v1/chat/completions", chatAttack)
	rows := s.get("/lex/console/receipts")["receipts"].([]any)
	first := rows[3].(map[string]any)["cursor"].(string)
	w := listenTo(t, s, "/lex/console/events?after="+first, func(body string) bool { return strings.Count(body, "event: receipt") == 3 })
	if names := checkConsoleEvents(t, w.Body.String()); !slices.Equal(names, []string{"health", "receipt", "receipt", "receipt"}) {
		t.Errorf("events %v", names)
	}
	h := w.Header()
	if h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-store" || h.Get("X-Accel-Buffering") != "no" || !w.Flushed {
		t.Errorf("header %v", h)
	}
	w = listenTo(t, s, "/lex/console/events?show=refused&after="+first, func(body string) bool { return strings.Contains(body, "event: receipt") })
	if names := checkConsoleEvents(t, w.Body.String()); !slices.Equal(names, []string{"health", "receipt"}) || !strings.Contains(w.Body.String(), `"verdict":"refused"`) {
		t.Errorf("events %v", names)
	}
	w = listenTo(t, s, "/lex/console/events?after=nowhere", func(body string) bool { return strings.Contains(body, "resync") })
	if !strings.HasSuffix(w.Body.String(), "event: resync\ndata: {\"missed\":null}\n\n") {
		t.Errorf("%s", w.Body)
	}
	w = listenTo(t, s, "/lex/console/events", func(body string) bool {
		if strings.Contains(body, "event: health") && !strings.Contains(body, "event: receipt") {
			go s.post("/v1/chat/completions", chatAttack)
		}
		return strings.Contains(body, "event: receipt")
	})
	if names := checkConsoleEvents(t, w.Body.String()); !slices.Equal(names, []string{"health", "receipt"}) {
		t.Errorf("events %v", names)
	}
}

// Eight streams are served; the ninth is told to come back.
func TestConsoleStreamsAreFew(t *testing.T) {
	s := consoleSite(t, `{"console":"open"}`)
	ctx, leave := context.WithCancel(t.Context())
	began, ended := make(chan struct{}, 100), make(chan struct{})
	for range 8 {
		go func() {
			w := &eventClient{ResponseRecorder: httptest.NewRecorder(), enough: func(string) bool { began <- struct{}{}; return false }, leave: leave}
			s.serve(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://site.test/lex/console/events", nil))
			ended <- struct{}{}
		}()
	}
	for range 8 {
		<-began
	}
	w := s.send(http.MethodGet, "/lex/console/events", "")
	if w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), "too_many_streams") || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	leave()
	for range 8 {
		<-ended
	}
	if w := listenTo(t, s, "/lex/console/events", func(string) bool { return true }); w.Code != http.StatusOK {
		t.Errorf("after they left: %d", w.Code)
	}
}

// deafClient is one whose connection takes nothing after the first write, within the time
// that a write may take.
type deafClient struct {
	*httptest.ResponseRecorder
	writes   int
	deadline time.Duration
}

func (d *deafClient) SetWriteDeadline(at time.Time) error {
	if !at.IsZero() {
		d.deadline = time.Until(at)
	}
	return nil
}

func (d *deafClient) Write(p []byte) (int, error) {
	if d.writes++; d.writes > 1 {
		return 0, os.ErrDeadlineExceeded
	}
	return d.ResponseRecorder.Write(p)
}

// A client that does not read ends its stream and holds up nobody.
func TestConsoleClientThatDoesNotRead(t *testing.T) {
	s := consoleSite(t, `{"console":"open"}`)
	for range 3 {
		s.post("/v1/chat/completions", chatQuestion)
	}
	oldest := s.get("/lex/console/receipts")["receipts"].([]any)[2].(map[string]any)["cursor"].(string)
	for range 9 { // more than there are places
		d := &deafClient{ResponseRecorder: httptest.NewRecorder()}
		s.serve(d, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://site.test/lex/console/events?after="+oldest, nil))
		if d.Code != http.StatusOK || d.writes != 2 || d.deadline <= 0 || d.deadline > time.Minute {
			t.Errorf("%d, %d writes, a deadline in %v", d.Code, d.writes, d.deadline)
		}
	}
}

// What left no receipt is counted.
func TestWithoutReceipt(t *testing.T) {
	s := consoleSite(t, `{"console":"open","unknown":"pass"}`)
	count := func() map[string]any {
		return s.get("/lex/console/coverage?" + lastHour())["without_receipt"].(map[string]any)
	}
	gone := func() float64 { return metric(t, "lex_requests_total", "outcome", "client_gone") }
	before, goneBefore := count(), gone()
	s.send(http.MethodGet, "/v1/models", "")
	s.post("/v1/anything", `{"text":"hello"}`)
	s.post("/v1/chat/completions", `{`)
	left, leave := context.WithCancel(t.Context())
	leave()
	s.serve(nobodyReads{httptest.NewRecorder()}, httptest.NewRequest(http.MethodPost, "http://site.test/v1/chat/completions", strings.NewReader(chatQuestion)).WithContext(left))
	if receipts := s.receipts(); len(receipts) != 0 {
		t.Errorf("%v", receipts)
	}
	s.breakStore()
	s.post("/v1/chat/completions", chatQuestion)
	after := count()
	for _, name := range []string{"no_prompt", "unknown_pass", "rejected", "left", "failed"} {
		if after[name].(float64) != before[name].(float64)+1 {
			t.Errorf("%s was %v and is %v", name, before[name], after[name])
		}
	}
	if n := gone(); n != goneBefore {
		t.Errorf("%v turns ended with their client gone, and no receipt says so", n-goneBefore)
	}
	if after["since"] == 0.0 || after["since"] != before["since"] {
		t.Errorf("since %v", after["since"])
	}
}

// A site with other handlers behind lex shares its origin with them.
func TestSharedOrigin(t *testing.T) {
	for site, want := range map[string]string{
		"lex {\nconsole open\n}": "false",
		"encode gzip\nheader X-A b\nlex {\nconsole open\n}\nrespond 404":       "false",
		"lex {\nconsole open\n}\nreverse_proxy 127.0.0.1:1":                    "true",
		"handle /lex/* {\nlex {\nconsole open\n}\n}\nhandle {\nfile_server\n}": "true",
		"route {\nlex {\nconsole open\n}\nreverse_proxy 127.0.0.1:1\n}":        "true",
	} {
		p := runCaddy(t, "lex {\nstore bolt ${store}\n}", site)
		if status, _, body := p.send(http.MethodGet, "/lex/console/about", "", nil); status != http.StatusOK || !strings.Contains(body, `"shared_origin":`+want) || !strings.Contains(body, `"listen":"127.0.0.1:`) && !strings.Contains(body, `"listen":":`) {
			t.Errorf("%s: %d %s", site, status, body)
		}
		p.stop()
	}
}

// A reload ends the streams of the configuration that it replaces, waits for none of them,
// and the window goes on.
func TestReloadEndsConsoleStreams(t *testing.T) {
	const options, site = "lex {\nstore bolt ${store}\n}", "lex {\nconsole open\n}"
	p := runCaddy(t, options, site)
	for i := range 3 {
		response, err := http.Get(p.url + "/lex/console/events")
		if err != nil {
			t.Fatal(err)
		}
		some := make([]byte, 6)
		if _, err := response.Body.Read(some); err != nil || string(some) != "event:" {
			t.Fatal(err, string(some))
		}
		began := time.Now()
		if err := p.load(options+fmt.Sprintf("\ngrace_period %dm", i+1), site); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 30*time.Second { // the shortest grace is a minute
			t.Errorf("the reload took %v", took)
		}
		for err == nil {
			_, err = response.Body.Read(some)
		}
		response.Body.Close()
		if status, _, body := p.send(http.MethodGet, "/lex/console/receipts?show=notable", "", nil); status != http.StatusOK {
			t.Errorf("after the reload: %d %s", status, body)
		}
	}
	p.stop()
	if n := caddymodule.OpenStores("bolt:" + p.data); n != 0 {
		t.Errorf("%d users of the store", n)
	}
	stacks := make([]byte, 1<<20)
	if stacks = stacks[:runtime.Stack(stacks, true)]; bytes.Contains(stacks, []byte("console.(*Window).run(")) {
		t.Error("the window reads on")
	}
}
