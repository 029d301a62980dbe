package caddymodule_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// maxReceipt bounds every receipt, whatever its request was.
const maxReceipt = 64 << 10

// hostileCanary stands in every place of a request that a caller can write into.
const hostileCanary = "CaNaRy words"

// hostileCalls are requests that are long or wordy in one place each.
func hostileCalls() map[string][2]string {
	wide := func(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	var names strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&names, `,"%s %d":%d`, hostileCanary, i, i)
	}
	chat := func(members string) [2]string {
		return [2]string{"/v1/chat/completions", `{"messages":[{"role":"user","content":"What is the capital of France?"}]` + members + `}`}
	}
	return map[string][2]string{
		"long model":      chat(`,"model":"` + strings.Repeat("m", 20<<20) + `"`),
		"wordy model":     chat(`,"model":"` + hostileCanary + `"`),
		"unknown members": chat(`,"model":"m"` + names.String()),
		"long name":       chat(`,"model":"m","` + strings.Repeat(hostileCanary, 1000) + `":1`),
		"nested members":  chat(`,"model":"m","a":{"` + hostileCanary + `":{"` + hostileCanary + `":1}}`),
		"many messages":   {"/v1/chat/completions", `{"model":"m","messages":[` + wide(5000, `{"role":"user","content":"Hello."}`) + `]}`},
		"many images":     {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":[` + wide(5000, `{"type":"image_url","image_url":{"url":"x","`+hostileCanary+`":1}}`) + `]}]}`},
		"many roles":      {"/v1/chat/completions", `{"model":"m","messages":[` + wide(900, `{"role":"`+hostileCanary+`","content":"Hello.","name":"`+hostileCanary+`","x":1}`) + `]}`},
		"removed history": {"/v1/chat/completions", `{"model":"m","x":1` + names.String() + `,"messages":[` + wide(400, `{"role":"user","content":[{"type":"text","text":"`+attack+`"},{"type":"image_url","image_url":{"url":"x"}}]},{"role":"assistant","content":"Yes."}`) + `,{"role":"user","content":"Hello."}]}`},
		"unknown path":    {"/v1/" + strings.Repeat("a", 5000), `{"text":"Hello."}`},
		"completions":     {"/v1/completions", `{"model":"` + hostileCanary + `","prompt":"Hello."` + names.String() + `}`},
		"tool":            {"/lex/tools/check", `{"session_id":"s","tool":{"name":"` + strings.Repeat("界", 256) + `","arguments":{"a":"` + strings.Repeat("b", 60000) + `"}}}`},
		"long session":    {"/lex/govern", `{"prompt":"Hello.","session_id":"` + strings.Repeat("界", 128) + `"}`},
	}
}

// No caller decides how long a receipt is, or what stands in it.
func TestReceiptsAreBounded(t *testing.T) {
	for name, call := range hostileCalls() {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, `{"baseline":"never"}`, answering("application/json", completion("Paris.")))
			r := httptest.NewRequest(http.MethodPost, "http://site.test"+call[0], strings.NewReader(call[1]))
			for _, header := range []string{"X-Lex-Session", "User-Agent", "Traceparent", "X-Lex-Turn", "Content-Type"} {
				r.Header.Set(header, hostileCanary)
			}
			s.serve(httptest.NewRecorder(), r)
			checkBounded(t, s)
		})
	}
}

// checkBounded holds the newest receipt against the bound.
func checkBounded(t *testing.T, s *site) {
	t.Helper()
	list := s.receipts()
	if len(list) == 0 {
		t.Fatal("no receipt")
	}
	record, err := json.Marshal(list[0])
	if err != nil {
		t.Fatal(err)
	}
	if len(record) > maxReceipt || strings.Contains(string(record), "CaNaRy") {
		t.Errorf("%d bytes: %.2000s", len(record), record)
	}
}

// A plain name stays readable.
func TestModelNamesInReceipts(t *testing.T) {
	s := newSite(t, `{}`, answering("application/json", completion("Paris.")))
	for name, plain := range map[string]bool{
		"gpt-4o-mini": true, "meta-llama/Llama-3.1-8B:free": true, "ft:gpt@2+x_1.0": true, strings.Repeat("m", 128): true,
		strings.Repeat("m", 129): false, "two words": false, "modèle": false, "a\nb": false, "<b>": false,
	} {
		model, _ := json.Marshal(name)
		s.post("/v1/chat/completions", `{"model":`+string(model)+`,"messages":[{"role":"user","content":"Hello."}]}`)
		got := s.receipts()[0]["model"].(string)
		if plain != (got == name) || !plain && (!strings.HasPrefix(got, "sha256:") || len(got) != 23) {
			t.Errorf("%q is %q", name, got)
		}
	}
}

// What is cut from a list is counted, and the bytes of all parts stay the same;
// nothing becomes complete by it.
func TestCutListsCountTheRest(t *testing.T) {
	s := newSite(t, `{"headers":"full"}`, answering("application/json", completion("Paris.")))
	for range 10 {
		images := 90 + rand.IntN(400)
		content := strings.TrimSuffix(strings.Repeat(`{"type":"image_url","image_url":{"url":"x"}},`, images), ",")
		w := s.post("/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"Hello."},`+content+`]}]}`)
		skipped := s.receipts()[0]["coverage"].(map[string]any)["skipped"].([]any)
		total := 0.0
		for _, p := range skipped {
			total += p.(map[string]any)["bytes"].(float64)
		}
		last := skipped[len(skipped)-1].(map[string]any)
		if total != float64(images*len(`{"url":"x"}`)) || len(skipped) > 100 || images > 100 && last["part"] != fmt.Sprintf("%d more", images-99) {
			t.Errorf("%d images: %d entries of %v bytes, the last %v", images, len(skipped), total, last)
		}
		if w.Header().Get("X-Lex-Coverage") != "partial" {
			t.Errorf("coverage %q", w.Header().Get("X-Lex-Coverage"))
		}
	}
}
