package caddymodule_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/caddy-lex/lex/caddymodule"
	"github.com/caddy-lex/lex/kernel"
)

// described is the service's own description, as it serves it.
var described = sync.OnceValues(func() (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromData(caddymodule.OpenAPIDocument)
	if err != nil {
		return nil, err
	}
	return doc, doc.Validate(openapi3.NewLoader().Context, openapi3.IsOpenAPI31OrLater())
})

func init() { // bodies that are texts
	for _, media := range []string{"text/event-stream", "text/html", "application/x-ndjson"} {
		openapi3filter.RegisterBodyDecoder(media, func(body io.Reader, _ http.Header, _ *openapi3.SchemaRef, _ openapi3filter.EncodingFn) (any, error) {
			text, err := io.ReadAll(body)
			return string(text), err
		})
	}
}

var router = sync.OnceValues(func() (routers.Router, error) {
	doc, err := described()
	if err != nil {
		return nil, err
	}
	return gorillamux.NewRouter(doc)
})

// checkDescribed holds an answer against the description. Every answer of every
// test of this package comes by here.
func checkDescribed(t testing.TB, r *http.Request, w *httptest.ResponseRecorder) {
	t.Helper()
	rt, err := router()
	if err != nil {
		t.Fatal(err)
	}
	route, params, err := rt.FindRoute(r)
	if err != nil {
		return // not an endpoint of ours, or not a method of it
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route},
		Status:                 w.Code, Header: w.Header(),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	}
	if err := openapi3filter.ValidateResponse(t.Context(), input.SetBodyBytes(w.Body.Bytes())); err != nil {
		t.Errorf("%s %s: the answer is not as described: %v", r.Method, r.URL.Path, err)
	}
	if w.Code == http.StatusOK && r.URL.Path == "/lex/govern/stream" {
		checkEvents(t, w.Body.String())
	}
	if w.Code == http.StatusOK && r.URL.Path == "/audits/log" {
		checkLogEntries(t, w.Body.String())
	}
}

// checkLogEntries holds the lines of the log against their schema.
func checkLogEntries(t testing.TB, body string) {
	t.Helper()
	doc, err := described()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(body) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if err := doc.Components.Schemas["LogEntry"].Value.VisitJSON(entry, openapi3.EnableJSONSchema2020()); err != nil {
			t.Errorf("a line of the log is not as described: %v", err)
		}
	}
}

// checkEvents holds the events of a stream against their schemas.
func checkEvents(t testing.TB, body string) {
	t.Helper()
	doc, err := described()
	if err != nil {
		t.Fatal(err)
	}
	for frame := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		data, ok := strings.CutPrefix(frame, "data: ")
		if !ok {
			continue // a comment
		}
		var event map[string]any
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		schema := "TokenEvent"
		if event["done"] != nil {
			schema = "DoneEvent"
		}
		if err := doc.Components.Schemas[schema].Value.VisitJSON(event, openapi3.EnableJSONSchema2020()); err != nil {
			t.Errorf("%s is not as described: %v", schema, err)
		}
	}
}

// The description has every endpoint and method that there is, and no other.
func TestDescriptionHasEveryEndpoint(t *testing.T) {
	doc, err := described()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string][]string)
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			got[path] = append(got[path], method)
		}
		slices.Sort(got[path])
	}
	served := caddymodule.Endpoints()
	for path, methods := range got {
		if want := served[path]; !slices.Equal(methods, want) {
			t.Errorf("%s is described with %v and served with %v", path, methods, want)
		}
	}
	if len(got) != len(served) {
		t.Errorf("described are %v, served %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(served)))
	}
}

// A description that fits everything describes nothing.
func TestDescriptionIsStrict(t *testing.T) {
	s := newSite(t, `{"baseline":"never"}`, answering("application/json", completion("Paris.")))
	doc, err := described()
	if err != nil {
		t.Fatal(err)
	}
	schema := doc.Components.Schemas["GovernanceResult"].Value
	for name, change := range map[string]func(map[string]any){
		"nothing":         func(map[string]any) {},
		"missing member":  func(m map[string]any) { delete(m, "M") },
		"surplus member":  func(m map[string]any) { m["mood"] = "good" },
		"another type":    func(m map[string]any) { m["refused"] = "no" },
		"another word":    func(m map[string]any) { m["health_band"] = "FINE" },
		"nested surplus":  func(m map[string]any) { m["state"].(map[string]any)["T"] = 1 },
		"another id":      func(m map[string]any) { m["receipt_id"] = "KRN-1" },
		"vector of four":  func(m map[string]any) { m["z_weights"] = []any{1.0, 1.0, 1.0, 1.0} },
		"null for number": func(m map[string]any) { m["C"] = nil },
	} {
		result := govern(s, question)
		change(result)
		if err := schema.VisitJSON(result, openapi3.EnableJSONSchema2020()); (err == nil) != (name == "nothing") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What the description says of requests is what is accepted.
func TestDescribedRequests(t *testing.T) {
	s := benchSite(t)
	rt, err := router()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, body string
		valid      bool
	}{
		{"/lex/govern", question, true},
		{"/lex/govern", `{"prompt":"a","session_id":"s","turn":null,"identity_mode":null,"mood":1}`, true},
		{"/lex/govern", `{"prompt":"` + strings.Repeat("界", 8000) + `","session_id":"s"}`, true},
		{"/lex/govern", `{"prompt":"` + strings.Repeat("界", 8001) + `","session_id":"s"}`, false},
		{"/lex/govern", `{"prompt":"a"}`, false},
		{"/lex/govern", `{"prompt":"a","session_id":"s","turn":0}`, false},
		{"/lex/govern", `{"prompt":"a","session_id":"s","turn":"1"}`, false},
		{"/lex/govern", `{"prompt":"a","session_id":"s","identity_mode":"loud"}`, false},
		{"/lex/govern/stream", question, true},
		{"/lex/tools/check", destructiveCall, true},
		{"/lex/tools/check", `{"session_id":"s","tool":{"name":"a"},"context":["x",{"tool":null,"text":"y"}]}`, true},
		{"/lex/tools/check", `{"session_id":"s","tool":{"name":"a"},"context":{"request":"x","observations":["y"]}}`, true},
		{"/lex/tools/check", `{"session_id":"s","tool":{"name":"a"},"context":7}`, false},
		{"/lex/tools/check", `{"session_id":"s","tool":"a"}`, false},
		{"/admin/benchmarks", row, true},
		{"/admin/benchmarks", "[" + row + "]", true},
		{"/admin/benchmarks", `[]`, false},
		{"/admin/keys", `{"name":"a","plan":null}`, true},
		{"/admin/keys", `{"name":7}`, false},
	} {
		r := httptest.NewRequest(http.MethodPost, "http://site.test"+c.path, strings.NewReader(c.body))
		r.Header.Set("Content-Type", "application/json")
		route, params, err := rt.FindRoute(r)
		if err != nil {
			t.Fatal(err)
		}
		err = openapi3filter.ValidateRequest(t.Context(), &openapi3filter.RequestValidationInput{
			Request: r, PathParams: params, Route: route, Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
		})
		w := s.send(http.MethodPost, c.path, c.body, asAdmin, password)
		if (err == nil) != c.valid || (w.Code < 300) != c.valid {
			t.Errorf("%s %.80s: described as valid: %v (%v), answered %d", c.path, c.body, err == nil, err, w.Code)
		}
	}
}

// The page needs nothing from anywhere, and may not be put into a frame.
func TestDocsPage(t *testing.T) {
	s := newSite(t, `{}`, answering("application/json", completion("Paris.")))
	w := s.send(http.MethodGet, "/lex/docs", "")
	page, err := io.ReadAll(w.Body)
	if err != nil || w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/html; charset=utf-8" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Fatalf("%d %v %v", w.Code, err, w.Header())
	}
	policy := w.Header().Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "frame-ancestors 'none'", "style-src 'sha256-", "base-uri 'none'", "form-action 'none'"} {
		if !strings.Contains(policy, part) {
			t.Errorf("no %s in %q", part, policy)
		}
	}
	style := regexp.MustCompile(`(?s)<style>(.*)</style>`).FindSubmatch(page)
	if style == nil || !strings.Contains(policy, "'sha256-"+digest(style[1])+"'") {
		t.Error("the policy does not allow the page's own style")
	}
	for _, bad := range []string{"<script", "http://", "https://", " src=", "style=", "onclick"} {
		if strings.Contains(string(page), bad) {
			t.Errorf("the page has %s", bad)
		}
	}
	doc, err := described()
	if err != nil {
		t.Fatal(err)
	}
	for path := range doc.Paths.Map() {
		if !strings.Contains(string(page), "<code>"+path+"</code>") {
			t.Errorf("%s is not on the page", path)
		}
	}
	for name := range doc.Components.Schemas {
		if !strings.Contains(string(page), `id="schema-`+name+`"`) {
			t.Errorf("schema %s is not on the page", name)
		}
	}
	for _, target := range regexp.MustCompile(`href="#([^"]+)"`).FindAllSubmatch(page, -1) {
		if !strings.Contains(string(page), `id="`+string(target[1])+`"`) {
			t.Errorf("a link leads to %s, which is not there", target[1])
		}
	}
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// The description lists every invariant that may block a call, and no other.
func TestEveryInvariantIsDescribed(t *testing.T) {
	doc, err := described()
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("../kernel/toolcall/invariant.go")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{kernel.SessionRisk}
	for _, m := range regexp.MustCompile(`Invariant = "(\w+)"`).FindAllSubmatch(source, -1) {
		want = append(want, string(m[1]))
	}
	var got []string
	for _, v := range doc.Components.Schemas["ToolCheckAnswer"].Value.Properties["invariant"].Value.Enum {
		if v != nil {
			got = append(got, fmt.Sprint(v))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) < 15 || !slices.Equal(got, want) {
		t.Errorf("described are %q, defined %q", got, want)
	}
}
