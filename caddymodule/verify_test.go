package caddymodule_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store/storetest"
)

type verified struct {
	Valid  bool
	Checks []struct {
		Name   string
		OK     *bool
		Detail string
	}
	Fault *string
}

// verify posts a body and returns the report.
func (s *site) verify(body string, headers ...string) verified {
	s.t.Helper()
	w := s.send(http.MethodPost, "/audits/verify", body, headers...)
	var v verified
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil || w.Code != http.StatusOK {
		s.t.Fatalf("%d %v %s", w.Code, err, w.Body)
	}
	if v.Valid != (v.Fault == nil) {
		s.t.Errorf("valid %v with the fault %v", v.Valid, v.Fault)
	}
	return v
}

// outcomes writes the checks as "name+", "name-" or "name?".
func (v verified) outcomes() string {
	var out []string
	for _, c := range v.Checks {
		sign := "?"
		if c.OK != nil {
			sign = map[bool]string{true: "+", false: "-"}[*c.OK]
		}
		out = append(out, c.Name+sign)
	}
	return strings.Join(out, " ")
}

// ids are the receipts' ids, oldest first.
func (s *site) ids() []string {
	var ids []string
	for _, r := range s.receipts() {
		ids = append(ids, r["id"].(string))
	}
	slices.Reverse(ids)
	return ids
}

func byID(id string) string { return `{"receipt_id":"` + id + `"}` }

func TestVerifyEveryReceipt(t *testing.T) {
	s := adminSite(t)
	for range 3 {
		govern(s, question)
	}
	govern(s, `{"prompt":"`+attack+`","session_id":"s"}`)
	s.post("/v1/chat/completions", chatQuestion)
	s.post("/v1/chat/completions", chatQuestion)
	s.post("/v1/chat/completions", chatAttack)
	s.post("/v1/embeddings", `{"input_text":"hello"}`)
	ids := s.ids()
	if len(ids) != 8 {
		t.Fatalf("%d receipts", len(ids))
	}
	for i, id := range ids {
		want := "form+ replay+ chain+ log+ setup+"
		if i == 5 { // the same question was asked again, and nothing links the two
			want = "form+ replay+ chain? log+ setup+"
		}
		record := s.send(http.MethodGet, "/audits/"+id, "").Body.String()
		if v := s.verify(byID(id)); !v.Valid || v.outcomes() != want {
			t.Errorf("%+v of %s", v, record)
		}
		var indented bytes.Buffer
		if err := json.Indent(&indented, []byte(record), "", "  "); err != nil {
			t.Fatal(err)
		}
		if v := s.verify(`{"receipt":` + indented.String() + `}`); !v.Valid || v.outcomes() != want+" stored+" {
			t.Errorf("held: %+v", v)
		}
	}
}

// A turn of an agent that names no session leads to the head of its conversation, with all
// of its calls, and so does a turn by which the client goes back and goes on another way. One
// that says the same again stands beside it.
func TestVerifyTurnsWithCallsOfNobodysSession(t *testing.T) {
	for engine, kept := range map[string]map[string]any{
		"bolt":  {"engine": "faulty", "path": filepath.Join(t.TempDir(), "lex.db")},
		"redis": {"engine": "redis", "urls": []string{storetest.StartRedis(t)}},
	} {
		t.Run(engine, func(t *testing.T) {
			t.Setenv("LEX_TEST_ADMIN", password)
			const wipes = `{"id":"d","type":"function","function":{"name":"bash","arguments":"{\"command\":\"rm -rf /\"}"}}`
			const another = `{"id":"e","type":"function","function":{"name":"lookup","arguments":"{\"city\":\"Rome\"}"}}`
			looks := `{"role":"assistant","content":"I look it up.","tool_calls":[` + toolCall + `,` + another + `]}`
			mixed := `{"role":"assistant","content":null,"tool_calls":[` + toolCall + `,` + wipes + `,` + another + `]}`
			const says = `{"role":"assistant","content":"Two million."}`
			model, _ := scripted(mixed, looks, says, looks, looks, looks)
			s := newSiteWith(t, `{"baseline":"never"}`, map[string]any{"store": kept}, model)
			asked := userMessage("How many inhabitants has Paris?")
			results := []string{looks, toolResult, strings.Replace(toolResult, `"c"`, `"e"`, 1)}
			chains := make(map[string]string) // what each receipt's check came to
			outcomes := func(id string) string { return "form+ replay+ " + chains[id] + " log+ setup+" }
			// check says something, and checks the receipts that it leaves and the texts of the turn.
			check := func(name, chain string, receipts int, texts map[string]string, messages ...string) {
				t.Helper()
				(&talk{site: s}).say(messages...)
				before := len(chains)
				for _, id := range s.ids()[before:] {
					chains[id] = chain
					if v := s.verify(byID(id)); !v.Valid || v.outcomes() != outcomes(id) {
						t.Errorf("%s: %+v", name, v)
					}
				}
				if n := len(chains) - before; n != receipts {
					t.Errorf("%s: %d receipts", name, n)
				}
				wrong := map[string]string{"chain+": "_commitment-", "chain?": "_commitment?"}[chain]
				for member, text := range texts {
					ask := func(text string) string {
						return s.verify(fmt.Sprintf(`{"receipt_id":%q,%q:%q}`, s.ids()[before], member, text), asAdmin, password).outcomes()
					}
					if got := ask(text); !strings.HasSuffix(got, member+"_commitment+") {
						t.Errorf("%s: the right %s: %s", name, member, got)
					}
					if got := ask("another"); !strings.HasSuffix(got, member+wrong) {
						t.Errorf("%s: another %s: %s", name, member, got)
					}
				}
			}
			prompt := map[string]string{"prompt": "How many inhabitants has Paris?"}
			check("calls, one of them blocked", "chain+", 4, prompt, asked)
			check("calls after calls", "chain+", 3, map[string]string{"output": "I look it up."}, append([]string{asked}, results...)...)
			check("the end", "chain+", 1, map[string]string{"output": "Two million."}, append(append([]string{asked}, results...), results...)...)
			check("back, and on another way", "chain+", 3, map[string]string{"prompt": "And in Rome?"}, append(append([]string{asked}, results...), userMessage("And in Rome?"))...)
			check("back to the beginning, and another answer", "chain+", 3, prompt, asked)
			check("the same again", "chain?", 3, prompt, asked)
			for id := range chains { // what came later changes nothing of it
				if v := s.verify(byID(id)); v.outcomes() != outcomes(id) {
					t.Errorf("%+v", v)
				}
			}
		})
	}
}

// Whoever can write to the store can change, remove and add records.
func TestVerifyFindsTampering(t *testing.T) {
	s := adminSite(t)
	for range 4 {
		govern(s, question)
	}
	ids := s.ids()
	record := s.send(http.MethodGet, "/audits/"+ids[1], "").Body.Bytes()
	resealed := func(change func(*kernel.Receipt)) []byte {
		r, err := kernel.ParseReceipt(record)
		if err != nil {
			t.Fatal(err)
		}
		change(&r)
		if _, err := r.Seal(); err != nil {
			t.Fatal(err)
		}
		text, err := r.JSON()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for name, c := range map[string]struct {
		id     string
		record []byte
		ask    string
		want   string
	}{
		"a changed number":       {ids[1], bytes.Replace(record, []byte(`"turn":1`), []byte(`"turn":9`), 1), ids[1], "form-"},
		"another id":             {ids[1], resealed(func(r *kernel.Receipt) { r.Turn = 9 }), ids[1], "form-"},
		"no receipt at all":      {ids[1], []byte(`{}`), ids[1], "form-"},
		"the one before removed": {ids[0], nil, ids[1], "form+ replay+ chain- log- setup+"},
		"the one before changed": {ids[0], []byte(`{}`), ids[1], "form+ replay+ chain- log- setup+"},
		"the one after removed":  {ids[2], nil, ids[1], "form+ replay+ chain- log- setup+"},
		"the head removed":       {ids[3], nil, ids[1], "form+ replay+ chain- log+ setup+"},
	} {
		t.Run(name, func(t *testing.T) {
			tampered.Store(c.id, c.record)
			defer tampered.Delete(c.id)
			if v := s.verify(byID(c.ask)); v.Valid || v.outcomes() != c.want {
				t.Errorf("%s: %s", v.outcomes(), *v.Fault)
			}
		})
	}
	forged := resealed(func(r *kernel.Receipt) { r.Model = "another" })
	if v := s.verify(`{"receipt":` + string(forged) + `}`); v.Valid || v.outcomes() != "form+ replay+ chain? log? setup+ stored-" {
		t.Errorf("a record of one's own: %+v", v)
	}
	made := resealed(func(r *kernel.Receipt) { r.DeltaV = -1 })
	if v := s.verify(`{"receipt":` + string(made) + `}`); v.Valid || !strings.Contains(*v.Fault, "delta_V differs") {
		t.Errorf("a number that does not follow: %+v", v)
	}
	strange := resealed(func(r *kernel.Receipt) { r.Policy = strings.Repeat("0", 64) })
	if v := s.verify(`{"receipt":` + string(strange) + `}`); v.Valid || v.outcomes() != "form+ replay- chain? log? setup+ stored-" {
		t.Errorf("a policy that nobody knows: %+v", v)
	}
	if v := s.verify(`{"receipt":{"id":1,"canary":2}}`); v.Valid || v.outcomes() != "form-" || strings.Contains(*v.Fault, "canary") {
		t.Errorf("no receipt: %+v", v)
	}
}

// Comparing texts is for those who could read them: it answers guesses.
func TestVerifyComparesTexts(t *testing.T) {
	s := adminSite(t)
	var made struct{ Key string }
	if err := json.Unmarshal(s.send(http.MethodPost, "/admin/keys", `{"name":"app"}`, asAdmin, password).Body.Bytes(), &made); err != nil {
		t.Fatal(err)
	}
	s.send(http.MethodPost, "/lex/govern", question, "X-Lex-Api-Key", made.Key)
	ask := func(prompt, output string) string {
		return `{"receipt_id":"` + s.ids()[0] + `","prompt":"` + prompt + `","output":"` + output + `"}`
	}
	right, wrong := ask("What is the capital of France?", "Paris."), ask("What is the capital of France?", "Rome.")
	for _, who := range [][]string{{asAdmin, password}, {"X-Lex-Api-Key", made.Key}} {
		if v := s.verify(right, who...); !v.Valid || v.outcomes() != "form+ replay+ chain+ log+ setup+ prompt_commitment+ output_commitment+" {
			t.Errorf("as %s: %+v", who[0], v)
		}
		if v := s.verify(wrong, who...); v.Valid || !strings.HasSuffix(v.outcomes(), "prompt_commitment+ output_commitment-") {
			t.Errorf("as %s: %+v", who[0], v)
		}
	}
	var other struct{ Key string }
	if err := json.Unmarshal(s.send(http.MethodPost, "/admin/keys", `{"name":"other"}`, asAdmin, password).Body.Bytes(), &other); err != nil {
		t.Fatal(err)
	}
	for _, who := range [][]string{nil, {asAdmin, "wrong"}, {"X-Lex-Api-Key", other.Key}} {
		if w := s.send(http.MethodPost, "/audits/verify", right, who...); w.Code != http.StatusUnauthorized || strings.Contains(w.Body.String(), "commitment") {
			t.Errorf("as %v: %d %s", who, w.Code, w.Body)
		}
	}
}

func TestVerifyRequests(t *testing.T) {
	s := adminSite(t)
	govern(s, question)
	id := s.ids()[0]
	for body, want := range map[string]string{
		`{}`: "missing_receipt", `{"receipt_id":null}`: "missing_receipt", `{"receipt_id":"` + id + `","receipt":{}}`: "missing_receipt",
		`{"receipt_id":1}`: "invalid_type", `{"receipt":"x"}`: "invalid_type", `{"receipt_id":"` + id + `","prompt":1}`: "invalid_type",
		`{"receipt_id":"` + id + `","openings":"x"}`: "invalid_type", `{"receipt_id":"` + id + `","openings":{"prompt":1}}`: "invalid_type",
		`{"receipt_id":"` + id + `","openings":{"Prompt":"x"}}`: "invalid_json", `{"receipt_id":"` + id + `","arguments":{}}`: "invalid_type",
		`{"receipt_id":"KRN-1"}`: "not_found", `{"receipt_id":"KRN-00112233445566778899AABBCCDDEEFF"}`: "not_found",
		`[]`: "invalid_json", `{"receipt_id":"a","receipt_id":"b"}`: "invalid_json", `{"Receipt_ID":"a"}`: "invalid_json",
	} {
		if w := s.send(http.MethodPost, "/audits/verify", body); !strings.Contains(w.Body.String(), `"`+want+`"`) || w.Code < 400 || w.Code > 404 {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	if w := s.send(http.MethodGet, "/audits/verify", ""); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "POST" {
		t.Errorf("GET: %d, Allow %q", w.Code, w.Header().Get("Allow"))
	}
}

// The policy that a receipt names is served for as long as the receipt is.
func TestPoliciesAreServed(t *testing.T) {
	s := adminSite(t)
	govern(s, question)
	r, err := kernel.ParseReceipt(s.send(http.MethodGet, "/audits/"+s.ids()[0], "").Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	p, err := kernel.ParsePolicy(s.send(http.MethodGet, "/lex/policies/"+r.Policy, "").Body.Bytes())
	if err != nil || p.Hash() != r.Policy {
		t.Fatalf("%s: %v", p.Hash(), err)
	}
	k, err := kernel.New(p)
	if err != nil || k.Replay(r) != nil {
		t.Error(err, k.Replay(r))
	}
	for _, hash := range []string{"", "x", strings.Repeat("0", 64)} {
		if w := s.send(http.MethodGet, "/lex/policies/"+hash, ""); w.Code != http.StatusNotFound && hash != "" {
			t.Errorf("%q: %d", hash, w.Code)
		}
	}
}

// Erasing a session leaves its receipts, which verify as far as they can.
func TestVerifyAfterErasure(t *testing.T) {
	s := adminSite(t)
	govern(s, question)
	govern(s, question)
	old := s.ids()[1]
	sum := sha256.Sum256([]byte("ip:192.0.2.1\x00s"))
	if w := s.send(http.MethodDelete, "/admin/sessions/"+hex.EncodeToString(sum[:]), "", asAdmin, password); w.Code != http.StatusNoContent {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if v := s.verify(byID(old)); !v.Valid || v.outcomes() != "form+ replay+ chain? log+ setup+" {
		t.Errorf("erased: %+v", v)
	}
	ask := `{"receipt_id":"` + old + `","prompt":"What is the capital of France?"}`
	if v := s.verify(ask, asAdmin, password); !v.Valid || !strings.HasSuffix(v.outcomes(), "prompt_commitment?") {
		t.Errorf("the text of an erased session: %+v", v)
	}
	// The key of a session that begins again under the name is another one.
	govern(s, question)
	if v := s.verify(ask, asAdmin, password); !v.Valid || !strings.HasSuffix(v.outcomes(), "prompt_commitment?") {
		t.Errorf("the text of an erased session that has begun again: %+v", v)
	}
	ask = strings.Replace(ask, old, s.ids()[2], 1)
	if v := s.verify(ask, asAdmin, password); !v.Valid || !strings.HasSuffix(v.outcomes(), "prompt_commitment+") {
		t.Errorf("the text of the new session: %+v", v)
	}
	if v := s.verify(strings.Replace(ask, "France", "Spain", 1), asAdmin, password); v.Valid || !strings.HasSuffix(v.outcomes(), "prompt_commitment-") {
		t.Errorf("another text of the new session: %+v", v)
	}
}
