package caddymodule_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/santhosh-tekuri/jsonschema/v6"

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
		Options: &openapi3filter.Options{IncludeResponseStatus: true, ExcludeResponseBody: true},
	}
	if err := openapi3filter.ValidateResponse(t.Context(), input); err != nil {
		t.Errorf("%s %s: the answer is not as described: %v", r.Method, r.URL.Path, err)
		return
	}
	if r.Method != http.MethodHead {
		checkBody(t, route, w)
	}
	if w.Code == http.StatusOK && r.URL.Path == "/lex/govern/stream" {
		checkEvents(t, w.Body.String())
	}
	if w.Code == http.StatusOK && r.URL.Path == "/audits/log" {
		checkLogEntries(t, w.Body.String())
	}
}

// checkBody holds the body of an answer against the schema of its status and type.
func checkBody(t testing.TB, route *routers.Route, w *httptest.ResponseRecorder) {
	t.Helper()
	response := route.Operation.Responses.Status(w.Code)
	if len(response.Value.Content) == 0 {
		return
	}
	media, _, err := mime.ParseMediaType(w.Header().Get("Content-Type"))
	if err != nil || response.Value.Content[media] == nil {
		t.Errorf("%s %s: the type %q is not described for %d: %v", route.Method, route.Path, media, w.Code, err)
		return
	}
	place := []string{"paths", route.Path, strings.ToLower(route.Method), "responses", strconv.Itoa(w.Code)}
	if response.Ref != "" {
		place = strings.Split(strings.TrimPrefix(response.Ref, "#/"), "/")
	}
	var body any = w.Body.String()
	if media == "application/json" {
		if body, err = jsonschema.UnmarshalJSON(bytes.NewReader(w.Body.Bytes())); err != nil {
			t.Errorf("%s %s: %v: %s", route.Method, route.Path, err, w.Body)
			return
		}
	}
	if err := schemaAt(t, append(place, "content", media, "schema")...).Validate(body); err != nil {
		t.Errorf("%s %s: the answer is not as described: %v", route.Method, route.Path, err)
	}
}

// schemas are those of the description, each compiled when it is first asked for. The filter
// would compile them for every answer, which took half of the time of all tests.
var schemas struct {
	sync.Mutex
	*jsonschema.Compiler
}

// schemaAt gives the schema at a place of the description: a schema of OpenAPI 3.1 is a JSON
// Schema.
func schemaAt(t testing.TB, place ...string) *jsonschema.Schema {
	t.Helper()
	schemas.Lock()
	defer schemas.Unlock()
	if schemas.Compiler == nil {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(caddymodule.OpenAPIDocument))
		if err != nil {
			t.Fatal(err)
		}
		schemas.Compiler = jsonschema.NewCompiler()
		schemas.AssertFormat()
		if err := schemas.AddResource("openapi.json", doc); err != nil {
			t.Fatal(err)
		}
	}
	escape := strings.NewReplacer("~", "~0", "/", "~1") // RFC 6901
	var pointer strings.Builder
	for _, name := range place {
		pointer.WriteString("/" + url.PathEscape(escape.Replace(name)))
	}
	schema, err := schemas.Compile("openapi.json#" + pointer.String())
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// schemaOf gives a schema of the description by its name.
func schemaOf(t testing.TB, name string) *jsonschema.Schema {
	t.Helper()
	return schemaAt(t, "components", "schemas", name)
}

// checkLogEntries holds the lines of the log against their schema.
func checkLogEntries(t testing.TB, body string) {
	t.Helper()
	for line := range strings.Lines(body) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if err := schemaOf(t, "LogEntry").Validate(entry); err != nil {
			t.Errorf("a line of the log is not as described: %v", err)
		}
	}
}

// checkEvents holds the events of a stream against their schemas.
func checkEvents(t testing.TB, body string) {
	t.Helper()
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
		if err := schemaOf(t, schema).Validate(event); err != nil {
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
	schema := schemaOf(t, "GovernanceResult")
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
		if err := schema.Validate(result); (err == nil) != (name == "nothing") {
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
