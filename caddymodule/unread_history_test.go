package caddymodule_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/store/storetest"
)

// What the receipts of these tests say of a text that was not read whole.
const (
	tooDeep     = "encoded more deeply than is opened"
	noLanguage  = "reads as no language"
	beyondLimit = "beyond inspect_limit"
	beyondJudge = "beyond what the judge reads"
)

// layeredAttack is the attack in seven layers of base64.
func layeredAttack() string {
	text := attack
	for range 7 {
		text = base64.StdEncoding.EncodeToString([]byte(text))
	}
	return text
}

// noise is a text of random letters and digits, in words of 60.
func noise(seed uint64, words int) string {
	random, out := rand.New(rand.NewPCG(seed, 1)), make([]string, words)
	for i := range out {
		word := make([]byte, 60)
		for j := range word {
			word[j] = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz0123456789"[random.IntN(59)]
		}
		out[i] = string(word)
	}
	return strings.Join(out, " ")
}

// weatherText has harmless text of at least so many bytes.
func weatherText(bytes int) string {
	const weather = "The weather in Paris is nice today. "
	return strings.Repeat(weather, bytes/len(weather)+1)
}

// skippedOf returns the entries of a receipt's skipped parts as "part: why", with their bytes.
func skippedOf(receipt map[string]any) map[string]int { return partsOf(receipt, "skipped", "why") }

// inspectedOf returns the inspected parts of a receipt as "part: detector", with their bytes.
func inspectedOf(receipt map[string]any) map[string]int {
	return partsOf(receipt, "inspected", "detector")
}

func partsOf(receipt map[string]any, list, by string) map[string]int {
	out := make(map[string]int)
	all, _ := receipt["coverage"].(map[string]any)[list].([]any)
	for _, p := range all {
		part := p.(map[string]any)
		out[fmt.Sprintf("%v: %v", part["part"], part[by])] += int(part["bytes"].(float64))
	}
	return out
}

// What was not read of a turn stays listed, or is read, in each turn that resends it.
func TestUnreadTextsStayListed(t *testing.T) {
	sunny := weatherText(2700) + attack
	for name, test := range map[string]struct {
		config, first, answer string
		part, why             string
	}{
		"encoded deeply":       {`{}`, layeredAttack(), "Paris.", "request.messages.0.content", tooDeep},
		"no language":          {`{}`, noise(1, 50), "Paris.", "request.messages.0.content", noLanguage},
		"beyond the limit":     {`{"inspect_limit":1024,"oversize":"pass"}`, sunny, "Paris.", "request.messages.0.content", beyondLimit},
		"beyond the judge":     {`{}`, "Write a long text.", weatherText(1<<20+1<<18) + capitulation, "request.messages.1.content", beyondJudge},
		"observed, encoded":    {`{"mode":"observe"}`, layeredAttack(), "Paris.", "request.messages.0.content", tooDeep},
		"observed, too long":   {`{"mode":"observe","inspect_limit":1024}`, weatherText(3000), "Paris.", "request.messages.0.content", beyondLimit},
		"observed, and a find": {`{"mode":"observe"}`, attack + " " + layeredAttack(), "Paris.", "request.messages.0.content", tooDeep},
	} {
		for session, headers := range map[string][]string{"resent": nil, "named": {"X-Lex-Session", "abc"}} {
			t.Run(name+"/"+session, func(t *testing.T) {
				model, _ := scripted(string(mustJSON(map[string]any{"role": "assistant", "content": test.answer})), `{"role":"assistant","content":"Rome."}`)
				s := newSite(t, test.config, model)
				messages := []string{"user", test.first}
				s.post("/v1/chat/completions", turns(messages...), headers...)
				first := s.receipts()[0]
				if s.receipts()[0]["outcome"] != "answered" {
					t.Fatalf("the first turn: %v", first)
				}
				part := strings.Replace(test.part, "request.messages.1", "response.choices.0.message", 1)
				listed, there := skippedOf(first)[part+": "+test.why]
				if !there {
					t.Fatalf("the first turn lists %v", skippedOf(first))
				}
				messages = append(messages, "assistant", test.answer, "user", "And what of Italy?")
				for turn := range 3 {
					s.post("/v1/chat/completions", turns(messages...), headers...)
					messages = append(messages, "assistant", "Rome.", "user", "Thank you. And of Spain?")
					r := s.receipts()[0]
					n, there := skippedOf(r)[test.part+": "+test.why]
					if !there || n < listed-2 { // a part of an answer is counted with its quotes
						t.Fatalf("turn %d lists %v; at first %d bytes", turn+2, skippedOf(r), listed)
					}
					whole := len(test.first)
					if test.why == beyondJudge {
						whole = len(test.answer)
					}
					read := inspectedOf(r)[test.part+": earlier_turn"] + inspectedOf(r)[test.part+": local"]
					if cut := test.why == beyondLimit || test.why == beyondJudge; cut && read+n > whole+2 {
						t.Errorf("turn %d: %d bytes inspected and %d not, of %d", turn+2, read, n, whole)
					}
				}
			})
		}
	}
}

// A text that was beyond the limit is read when it comes back and there is room for it,
// whether it was new then or came with a history that was.
func TestWhatWasBeyondTheLimitIsReadLater(t *testing.T) {
	s, seen := listening(t, `{"inspect_limit":4096}`)
	messages := []string{"user", attack + " part", "assistant", "No.", "user", weatherText(5000)}
	s.post("/v1/chat/completions", turns(messages...))
	if r := s.receipts()[0]; r["denied_by"] != "oversize" {
		t.Fatalf("the first turn: %v", r)
	}
	messages = append(messages, "assistant", refusalText, "user", "And Italy?")
	for turn := range 2 {
		s.post("/v1/chat/completions", turns(messages...))
		messages = append(messages, "assistant", "Paris.", "user", "And Spain?")
		if len(seen.requests) != turn+1 || strings.Contains(string(seen.last().body), "revious instructions") {
			t.Fatalf("turn %d: the model saw %d requests, the last %s", turn+2, len(seen.requests), seen.last().body)
		}
	}
	if got := skippedOf(s.receipts()[0]); len(got) != 0 {
		t.Errorf("skipped %v", got)
	}
}

// A history that is too long stays refused when it is resent with the refusal.
func TestTooLongHistoriesStayRefused(t *testing.T) {
	s, seen := listening(t, `{"inspect_limit":4096}`)
	messages := []string{"user", weatherText(5000), "assistant", "Yes.", "user", "And Italy?"}
	for range 3 {
		s.post("/v1/chat/completions", turns(messages...))
		messages = append(messages, "assistant", refusalText, "user", "And Spain?")
		if r := s.receipts()[0]; seen.count.Load() != 0 || r["denied_by"] != "oversize" {
			t.Fatalf("forwarded %d times, denied by %v", seen.count.Load(), r["denied_by"])
		}
	}
}

// The receipt says how much of a text was read that was cut.
func TestInspectedIsWhatWasRead(t *testing.T) {
	long := weatherText(2700)
	for name, test := range map[string]struct{ path, body, part string }{
		"a message":    {"/v1/chat/completions", turns("user", long), "request.messages.0.content"},
		"instructions": {"/v1/chat/completions", turns("system", long, "user", "Hi."), "request.messages.0.content"},
		"a member":     {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Hello there, my friend."}],"other":{"a":"` + long + `"}}`, ""},
		"no dialect":   {"/v1/other", `{"input":"` + long + `"}`, "request"},
	} {
		for _, oversize := range []string{"pass", "refuse"} {
			t.Run(name+"/"+oversize, func(t *testing.T) {
				s, _ := listening(t, `{"inspect_limit":1024,"oversize":"`+oversize+`"}`)
				s.post(test.path, test.body)
				r := s.receipts()[0]
				read, cut := 0, 0
				for part, n := range inspectedOf(r) {
					if strings.HasPrefix(part, "request") {
						read += n
					}
				}
				for part, n := range skippedOf(r) {
					if strings.HasSuffix(part, beyondLimit) {
						cut += n
					}
				}
				if read > 1024+16 || read < 900 || cut < len(long)-1024 || cut > len(long) {
					t.Errorf("%d bytes inspected and %d not, of %d: %v", read, cut, len(long), r["coverage"])
				}
				if n, ok := inspectedOf(r)[test.part+": local"]; test.part != "" && (!ok || n > 1024) {
					t.Errorf("inspected %v", inspectedOf(r))
				}
			})
		}
	}
}

// A history that is new to the proxy is read like any other text, and what of it could not
// be is listed: then, and when it comes back.
func TestUnreadPartsOfAnUnknownHistory(t *testing.T) {
	call := `{"role":"assistant","content":"I look.","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":` + string(mustJSON(`{"q":"`+noise(3, 4)+`"}`)) + `}}]}`
	for name, test := range map[string]struct {
		messages  []string
		part, why string
	}{
		"of the user":      {[]string{userMessage(layeredAttack()), `{"role":"assistant","content":"No."}`}, "request.messages.0.content", tooDeep},
		"of the assistant": {[]string{userMessage("Hi."), `{"role":"assistant","content":"` + noise(4, 5) + `"}`}, "request.messages.1.content", noLanguage},
		"of a tool":        {[]string{userMessage("Hi."), toolCalling, `{"role":"tool","tool_call_id":"c","content":"` + noise(4, 5) + `"}`, `{"role":"assistant","content":"No."}`}, "request.messages.2.content", noLanguage},
		"hidden":           {[]string{userMessage("Hi."), call, `{"role":"tool","tool_call_id":"c","content":"done"}`, `{"role":"assistant","content":"No."}`}, "request.messages.1.tool_calls.0.function", noLanguage},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := listening(t, `{}`)
			c := &talk{site: s, messages: test.messages}
			for turn := range 4 {
				c.say(userMessage("What is the capital of France?"))
				c.messages = append(c.messages, `{"role":"assistant","content":"Paris."}`)
				found := false
				for part := range skippedOf(s.receipts()[0]) {
					found = found || strings.HasPrefix(part, test.part) && strings.HasSuffix(part, ": "+test.why)
				}
				if !found {
					t.Errorf("turn %d lists %v", turn+1, skippedOf(s.receipts()[0]))
				}
			}
		})
	}
}

const toolCalling = `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`

// The client goes on from any choice of an answer, in whatever pieces it keeps it: what
// the judge did not read of this one is listed, and nothing of the others.
func TestUnreadChoicesStayListed(t *testing.T) {
	short, long := weatherText(1000)+"Yes.", weatherText(300<<10)+"No."
	message := func(text string) string {
		return string(mustJSON(map[string]any{"role": "assistant", "content": text}))
	}
	s := newSite(t, `{}`, answering("application/json", answerOf(message(short), message(long))))
	ask := func(answer ...string) map[string]int {
		t.Helper()
		messages := append([]string{userMessage("Write a text.")}, answer...)
		s.post("/v1/chat/completions", `{"model":"m","n":2,"messages":[`+strings.Join(append(messages, userMessage("Go on."))[:len(messages)+min(1, len(answer))], ",")+`]}`)
		return skippedOf(s.receipts()[0])
	}
	ask()
	half := len(long) / 2
	for name, test := range map[string]struct {
		answer []string
		listed bool
	}{
		"the first":            {[]string{message(short)}, false},
		"the second":           {[]string{message(long)}, true},
		"with space around it": {[]string{message("\n" + long + " ")}, true},
		"in two messages":      {[]string{message(long[:half]), message(long[half:])}, true},
	} {
		bytes := 0
		for part, n := range ask(test.answer...) {
			if strings.HasPrefix(part, "request.messages.") && strings.HasSuffix(part, beyondJudge) {
				bytes += n
			}
		}
		if want := len(short) + len(long) - 256<<10; test.listed && (bytes < want || bytes > want+2) || !test.listed && bytes != 0 {
			t.Errorf("%s: %d bytes are listed, of %d", name, bytes, want)
		}
	}
}

// A client that goes back to an earlier message finds there what was not read before, in
// either store and on another replica.
func TestUnreadTextsOnBranches(t *testing.T) {
	redis := map[string]any{"store": map[string]any{"engine": "redis", "urls": []string{storetest.StartRedis(t)}}}
	model := answering("application/json", completion("Paris."))
	one := newSite(t, `{}`, model)
	for name, replicas := range map[string][2]*site{
		"bolt":  {one, one},
		"redis": {newSiteWith(t, `{}`, redis, model), newSiteWith(t, `{}`, redis, model)},
	} {
		trunk := []string{"user", layeredAttack(), "assistant", "Paris."}
		replicas[0].post("/v1/chat/completions", turns(trunk[:2]...))
		for _, question := range []string{"And Italy?", "And Spain?"} {
			branch := append(slices.Clone(trunk), "user", question)
			for turn := range 2 {
				s := replicas[turn]
				s.post("/v1/chat/completions", turns(branch...))
				branch = append(branch, "assistant", "Paris.", "user", "Thanks.")
				r := s.receipts()[0]
				_, listed := skippedOf(r)["request.messages.0.content: "+tooDeep]
				if _, known := inspectedOf(r)["request.messages.0.content: earlier_turn"]; !listed || !known {
					t.Errorf("%s, %s: %v", name, question, r["coverage"])
				}
			}
		}
	}
}

// What the provider keeps of a conversation was not read later either.
func TestUnreadTextsThatTheProviderKeeps(t *testing.T) {
	image := `[{"role":"user","content":[{"type":"input_text","text":"What is this?"},{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo="}]}]`
	for name, test := range map[string]struct {
		input, answer string
		listed        bool
	}{
		"all was read": {`"What is the capital of France?"`, "Paris.", false},
		"no language":  {`"` + noise(5, 10) + `"`, "Paris.", true},
		"an image":     {image, "Paris.", true},
		"the answer":   {`"Write a long text."`, weatherText(300 << 10), true},
	} {
		for kept, names := range map[string][3]string{
			"previous":     {``, `"previous_response_id":"resp_1",`, `"previous_response_id":"resp_2",`},
			"conversation": {`"conversation":"conv_1",`, `"conversation":"conv_1",`, `"conversation":"conv_1",`},
		} {
			t.Run(name+"/"+kept, func(t *testing.T) {
				turn, text := 0, test.answer
				s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
					turn++
					answer := strings.Replace(reply(said("msg_1", text)), `"resp_1"`, fmt.Sprintf(`"resp_%d"`, turn), 1)
					text = "Rome."
					return answering("application/json", answer)(w, r)
				})
				s.post("/v1/responses", `{"model":"m",`+names[0]+`"input":`+test.input+`}`)
				for _, name := range names[1:] {
					s.post("/v1/responses", `{"model":"m",`+name+`"input":"And of Italy?"}`)
					listed := false
					for part := range skippedOf(s.receipts()[0]) {
						listed = listed || strings.Contains(part, "not all of it was inspected") || strings.Contains(part, "not seen here")
					}
					if listed != (test.listed || kept == "conversation") { // what is in a conversation is never known
						t.Errorf("turn %d lists %v", turn, skippedOf(s.receipts()[0]))
					}
				}
			})
		}
	}
}

// An answer that the provider gives later is known since it was fetched: what of it, or of its
// request, was not read stays listed by the turns that go on from it.
func TestUnreadTextsOfFetchedAnswers(t *testing.T) {
	image := `[{"role":"user","content":[{"type":"input_text","text":"What is this?"},{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo="}]}]`
	for name, test := range map[string]struct {
		input, answer string
		listed        bool
	}{
		"all was read": {`"What is the capital of France?"`, "Paris.", false},
		"an image":     {image, "Paris.", true},
		"the answer":   {`"Write a long text."`, weatherText(300 << 10), true},
	} {
		t.Run(name, func(t *testing.T) {
			turn := 0
			s := newSite(t, `{}`, func(w http.ResponseWriter, r *http.Request) error {
				answer := reply(said("msg_1", test.answer))
				if r.Method == http.MethodPost {
					if turn++; turn == 1 {
						answer = strings.Replace(reply(), "completed", "queued", 1)
					} else {
						answer = strings.Replace(reply(said("msg_2", "Rome.")), `"resp_1"`, fmt.Sprintf(`"resp_%d"`, turn), 1)
					}
				}
				return answering("application/json", answer)(w, r)
			})
			s.post("/v1/responses", `{"model":"m","background":true,"input":`+test.input+`}`)
			s.send(http.MethodGet, "/v1/responses/resp_1", "")
			if r := s.receipts()[0]; r["outcome"] != "answered" {
				t.Fatalf("fetching it: %v", r)
			}
			for previous := 1; previous <= 2; previous++ {
				s.post("/v1/responses", fmt.Sprintf(`{"model":"m","previous_response_id":"resp_%d","input":"And of Italy?"}`, previous))
				listed := skippedOf(s.receipts()[0])
				_, unread := listed["request.previous_response_id: history kept by the provider, not all of it was inspected"]
				if unread != test.listed || len(listed) > 0 != test.listed {
					t.Errorf("after resp_%d: %v", previous, listed)
				}
			}
		})
	}
}

// A remembered prompt that comes back as context is no better known than when it was new.
func TestUnreadPromptsThatAreRemembered(t *testing.T) {
	s := newSite(t, `{"baseline":"never"}`, answering("application/json", completion("Paris.")))
	govern(s, `{"prompt":"Please answer: `+noise(6, 2)+`","session_id":"s"}`)
	govern(s, `{"prompt":"And what is the capital of Italy?","session_id":"s"}`)
	if got := skippedOf(s.receipts()[0]); got["request.memory: "+noLanguage] == 0 {
		t.Errorf("skipped %v", got)
	}
}

// A session remembers a bounded number of texts that were not read. With more it reads all of
// them anew.
func TestMoreUnreadTextsThanAreRemembered(t *testing.T) {
	s, _ := listening(t, `{}`)
	c := &talk{site: s}
	for i := range 1100 {
		c.messages = append(c.messages, userMessage(noise(uint64(i), 1)), `{"role":"assistant","content":"Yes, `+fmt.Sprint(i)+`."}`)
	}
	for range 3 {
		c.say(userMessage("What is the capital of France?"))
		c.messages = append(c.messages, `{"role":"assistant","content":"Paris."}`)
		r, unread := s.receipts()[0], 0
		for _, n := range skippedOf(r) {
			unread += n
		}
		if r["outcome"] != "answered" || r["resent"] != true || unread < 1050*60 {
			t.Errorf("%v, resent %v: %d bytes are listed", r["outcome"], r["resent"], unread)
		}
	}
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
