package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write docs/sdks.md from what the SDKs saw")

// An sdk is a program that makes the calls of the plan with one version of an SDK.
type sdk struct {
	name     string // the column of the table
	program  string
	packages []string
	signed   bool // with credentials of AWS in place of an API key
}

var sdks = []sdk{
	{name: "openai 7", program: "openai.mjs", packages: []string{"openai"}},
	{name: "openai 6", program: "openai.mjs", packages: []string{"openai-6"}},
	{name: "@anthropic-ai/sdk 1", program: "anthropic.mjs", packages: []string{"@anthropic-ai/sdk"}},
	{name: "@anthropic-ai/sdk 0", program: "anthropic.mjs", packages: []string{"@anthropic-ai/sdk-0"}},
	{name: "@google/genai 3", program: "genai.mjs", packages: []string{"@google/genai"}},
	{name: "@google/genai 2", program: "genai.mjs", packages: []string{"@google/genai-2"}},
	{name: "ollama 0.6", program: "ollama.mjs", packages: []string{"ollama"}},
	{name: "AWS SDK 3", program: "bedrock.mjs", packages: []string{"@aws-sdk/client-bedrock-runtime", "@smithy/fetch-http-handler"}},
	{name: "@anthropic-ai/bedrock-sdk 1", program: "bedrock_invoke.mjs", packages: []string{"@anthropic-ai/bedrock-sdk"}},
	{name: "ai 7", program: "aisdk.mjs", packages: []string{"ai", "@ai-sdk/openai", "@ai-sdk/anthropic", "@ai-sdk/google", "@ai-sdk/amazon-bedrock"}},
	{name: "ai 6", program: "aisdk.mjs", packages: []string{"ai-6", "@ai-sdk/openai-3", "@ai-sdk/anthropic-3", "@ai-sdk/google-3", "@ai-sdk/amazon-bedrock-4"}},
	{name: "@modelcontextprotocol/client 2", program: "mcp.mjs", packages: []string{"@modelcontextprotocol/client"}},
	{name: "@modelcontextprotocol/sdk 1", program: "mcp.mjs", packages: []string{"@modelcontextprotocol/sdk"}},
	{name: "Go SDKs"},
}

// A call is a row of the table: an action of the SDK programs in a situation.
type call struct {
	name    string
	expect  expectation
	action  string // the name of the call, unless another action is repeated
	manner  manner // of the upstream
	through string // the site that it goes through: "", "status" or "http2"
}

// An expectation is what must be true of every SDK. What differs between SDKs is in
// the table.
type expectation string

const (
	answered    expectation = "the answer"
	called      expectation = "the tool call"
	blocked     expectation = "the note in place of the tool call"
	refused     expectation = "the refusal"
	gaveIn      expectation = "the refusal in place of the answer"
	stopped     expectation = "what was released, then the refusal"
	rejected    expectation = "the error class for 403"
	interrupted expectation = "no end that looks clean"
	unended     expectation = "the answer where only [DONE] or the usage is missing, else no end that looks clean"
	unavailable expectation = "the error class for a failure of the server"
	watched     expectation = "the answer, and a receipt of what would have been refused"
)

var calls = []call{
	{name: "question", expect: answered},
	{name: "question, streamed", expect: answered},
	{name: "question, stream helper", expect: answered},
	{name: "question, structured", expect: answered},
	{name: "question, structured and streamed", expect: answered},
	{name: "reasoning", expect: answered},
	{name: "reasoning, streamed", expect: answered},
	{name: "tool call", expect: called},
	{name: "tool call, streamed", expect: called},
	{name: "tool calls, one blocked", expect: called, action: "tool call", manner: callsBoth},
	{name: "tool calls, one blocked, streamed", expect: called, action: "tool call, streamed", manner: callsBoth},
	{name: "tool call, blocked", expect: blocked, action: "tool call", manner: callsBad},
	{name: "tool call, blocked, streamed", expect: blocked, action: "tool call, streamed", manner: callsBad},
	{name: "tool result", expect: answered},
	{name: "tool loop", expect: answered},
	{name: "tool loop, one blocked", expect: answered, action: "tool loop", manner: callsBoth},
	{name: "list of tools", expect: answered},
	{name: "role in the system prompt", expect: answered},
	{name: "after an answer", expect: answered},
	{name: "after an answer, by id", expect: answered},

	{name: "attack", expect: refused},
	{name: "attack, streamed", expect: refused},
	{name: "attack, stream helper", expect: refused},
	{name: "attack, structured", expect: refused},
	{name: "attack, structured and streamed", expect: refused},
	{name: "attack in a part", expect: refused},
	{name: "attack beside the messages", expect: refused},
	{name: "attack in a tool result", expect: refused},
	{name: "attack in a tool result, streamed", expect: refused},
	{name: "attack in a tool loop", expect: refused},
	{name: "after a refusal", expect: answered},
	{name: "after a refusal, streamed", expect: answered},
	{name: "after a refusal, structured", expect: answered},
	{name: "after a refusal, by id", expect: answered},
	{name: "after a refusal, by id and streamed", expect: answered},
	{name: "attack, refused with 403", expect: rejected, action: "attack", through: "status"},
	{name: "attack, streamed, refused with 403", expect: rejected, action: "attack, streamed", through: "status"},
	{name: "attack, structured, refused with 403", expect: rejected, action: "attack, structured", through: "status"},

	{name: "embedding", expect: answered},
	{name: "embedding of an attack", expect: rejected},
	{name: "count of tokens", expect: answered},
	{name: "count of tokens of an attack", expect: watched},

	{name: "answer that gives in", expect: gaveIn},
	{name: "answer that gives in, streamed", expect: stopped},
	{name: "answer that gives in, stream helper", expect: stopped},
	{name: "answer that gives in, gzip", expect: gaveIn, action: "answer that gives in", manner: compressed},
	{name: "answer that gives in, byte by byte", expect: stopped, action: "answer that gives in, streamed", manner: inBytes},

	{name: "question, gzip", expect: answered, action: "question", manner: compressed},
	{name: "question, streamed byte by byte", expect: answered, action: "question, streamed", manner: inBytes},
	{name: "question, streamed in random pieces", expect: answered, action: "question, streamed", manner: inPieces},
	{name: "question, streamed with CRLF", expect: answered, action: "question, streamed", manner: withCRLF},
	{name: "question, streamed with keep-alives", expect: answered, action: "question, streamed", manner: withComment},
	{name: "question, streamed slowly", expect: answered, action: "question, streamed", manner: slowly},
	{name: "question, streamed in gzip", expect: answered, action: "question, streamed", manner: compressed},
	{name: "question, streamed over HTTP/2", expect: answered, action: "question, streamed", through: "http2"},
	{name: "tool call, streamed byte by byte", expect: called, action: "tool call, streamed", manner: inBytes},
	{name: "reasoning, streamed in random pieces", expect: answered, action: "reasoning, streamed", manner: inPieces},

	{name: "stream without its last event", expect: unended, action: "question, streamed", manner: endless},
	{name: "stream that is cut short", expect: interrupted, action: "question, streamed", manner: cutShort},
	{name: "stream that breaks", expect: interrupted, action: "question, streamed", manner: breaking},
	{name: "stream with an error", expect: interrupted, action: "question, streamed", manner: failing},
	{name: "answer that breaks", expect: unavailable, action: "question", manner: breaking},
	{name: "upstream that is dead", expect: unavailable, action: "question", manner: dead},
	{name: "upstream that is dead, streamed", expect: unavailable, action: "question, streamed", manner: dead},
	{name: "upstream that is overloaded", expect: unavailable, action: "question", manner: overloaded},
}

// sdkCaddyfile governs three sites in front of one upstream: as most users have it,
// with refusals in the form of an error, and with HTTP/2 to the upstream. What is held
// back is never released by time, so that a busy machine sees what an idle one does.
const sdkCaddyfile = `{
	admin off
	lex {
		limits {
			anonymous 100000/1m
			read 100000/1m
		}
	}
}
:${site} {
	lex {
		hold_back 256B 10m
	}
	reverse_proxy %[1]s
}
:${demo} {
	lex {
		hold_back 256B 10m
		refuse_with status 403
	}
	reverse_proxy %[1]s
}
:${admin} {
	lex {
		hold_back 256B 10m
	}
	reverse_proxy h2c://%[1]s
}
`

// sighting is what an application that uses the SDK saw of one call.
type sighting struct {
	SDK       string   `json:"-"`
	API       string   `json:"api"`
	Name      string   `json:"name"` // of the call
	Requests  int      `json:"requests"`
	Turns     []string `json:"turns"`  // the ids of the turns, by which receipts are found
	Before    []string `json:"before"` // those of the conversation that the call goes on
	Exception string   `json:"exception"`
	Status    int      `json:"status"` // of the exception
	Message   string   `json:"message"`
	Text      string   `json:"text"`
	Refusal   string   `json:"refusal"` // where the API has a place for it
	Reasoning string   `json:"reasoning"`
	Calls     string   `json:"calls"`
	Finish    string   `json:"finish"`
	Pieces    int      `json:"pieces"`
}

// With only the base URL changed, the official SDKs get answers and refusals as
// docs/sdks.md says, and every call leaves a receipt.
func TestSDKs(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	p := freePorts(t)
	s := start(t, writeCaddyfile(t, p, fmt.Sprintf(sdkCaddyfile, u.address)), "", p)
	origins := map[string]string{"": s.URL, "status": "http://127.0.0.1:" + p.demo, "http2": "http://127.0.0.1:" + p.admin}

	var mu sync.Mutex
	var seen []sighting
	t.Run("programs", func(t *testing.T) {
		for _, of := range sdks {
			t.Run(of.name, func(t *testing.T) {
				t.Parallel()
				sightings := of.drive(t, calls, origins)
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, sightings...)
			})
		}
	})
	if t.Failed() {
		return
	}
	for _, saw := range seen {
		t.Run(saw.id(), func(t *testing.T) { saw.check(t, s, u) })
	}
	for _, secret := range []string{"e2e-not-a-real-key", attack, storyBegins} {
		if logs := s.logs.String(); strings.Contains(logs, secret) {
			t.Errorf("%q is in the log: %s", secret, around(logs, secret))
		}
	}
	compareTables(t, seen)
}

// id names a call of an SDK; the SDK programs tell it to the upstream.
func (saw sighting) id() string { return saw.SDK + "/" + saw.API + "/" + saw.Name }

// Requests to Amazon Bedrock that are signed with credentials of AWS arrive with a signature that
// holds. It covers the body, so it does not once a refused turn was taken out of the conversation.
func TestSignedRequests(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	p := freePorts(t)
	s := start(t, writeCaddyfile(t, p, "{\n\tadmin off\n}\n:${site} {\n\tlex\n\treverse_proxy "+u.address+"\n}\n"), "", p)
	asked := slices.DeleteFunc(slices.Clone(calls), func(c call) bool {
		return !slices.Contains([]string{"question", "question, streamed", "tool call, blocked", "tool loop", "after an answer", "attack", "attack, streamed", "after a refusal"}, c.name)
	})
	seen := make(map[string]int)
	for _, saw := range (sdk{name: "signed", signed: true}).drive(t, asked, map[string]string{"": s.URL}) {
		if !strings.HasPrefix(saw.API, "bedrock") {
			continue
		}
		seen[saw.API]++
		if saw.Name == "after a refusal" {
			if saw.Status != http.StatusForbidden || saw.Requests != 1 || !strings.Contains(saw.Message, "signature") {
				t.Errorf("%+v", saw)
			}
			continue
		}
		saw.check(t, s, u)
	}
	if seen["bedrock"] != len(asked) || seen["bedrock invoke"] != len(asked)-1 { // which has no tool loop
		t.Errorf("made %v", seen)
	}
}

// The AI SDK prints the text and the refusal of a chat message one after the other, so
// that an operator may choose one of them. A message of Responses says it in one of the
// two, wherever it is to stand. Either way nothing throws.
func TestRefusalPlaces(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	of := sdks[slices.IndexFunc(sdks, func(s sdk) bool { return s.name == "ai 7" })]
	asked := slices.DeleteFunc(slices.Clone(calls), func(c call) bool { return c.name != "attack" && c.name != "attack, streamed" })
	for place, times := range map[string]map[string]int{
		"message": {"chat": 2, "responses": 1}, "refusal": {"chat": 1, "responses": 1}, "content": {"chat": 1, "responses": 1},
	} {
		t.Run(place, func(t *testing.T) {
			p := freePorts(t)
			s := start(t, writeCaddyfile(t, p, "{\n\tadmin off\n}\n:${site} {\n\tlex {\n\t\trefuse_with "+place+"\n\t}\n\treverse_proxy "+u.address+"\n}\n"), "", p)
			seen := make(map[string]int)
			for _, saw := range of.drive(t, asked, map[string]string{"": s.URL}) {
				want, ok := times[saw.API]
				if !ok {
					continue
				}
				seen[saw.API]++
				if saw.Exception != "" || saw.Requests != 1 || saw.Finish == "" || strings.Count(saw.Text, refusalText) != want {
					t.Errorf("%+v", saw)
				}
			}
			for api := range times {
				if seen[api] != len(asked) {
					t.Errorf("%d calls of %s", seen[api], api)
				}
			}
		})
	}
}

// drive runs the SDK's program on calls.
func (of sdk) drive(t *testing.T, calls []call, origins map[string]string) []sighting {
	t.Helper()
	type planned struct {
		Name   string `json:"name"`
		Action string `json:"action"`
		Origin string `json:"origin"`
		Manner manner `json:"manner"`
	}
	plan := struct {
		SDK      string    `json:"sdk"`
		Packages []string  `json:"packages"`
		Attack   string    `json:"attack"`
		Signed   bool      `json:"signed"`
		Calls    []planned `json:"calls"`
	}{SDK: of.name, Packages: of.packages, Attack: attack, Signed: of.signed}
	for _, c := range calls {
		if c.action == "" {
			c.action = c.name
		}
		plan.Calls = append(plan.Calls, planned{c.name, c.action, origins[c.through], c.manner})
	}
	argument, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	var sightings []sighting
	if of.program == "" {
		sightings = look(t, goSDKs(t), string(argument))
	} else {
		sightings = node(t, of.program, string(argument))
	}
	for i := range sightings {
		sightings[i].SDK = of.name
	}
	return sightings
}

// node runs a script with the pinned Node and returns what it saw.
func node(t *testing.T, script string, args ...string) []sighting {
	t.Helper()
	return look(t, "node_modules/.bin/node", append([]string{script}, args...)...)
}

// look runs a program that prints what it saw.
func look(t *testing.T, program string, args ...string) []sighting {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v (`make deps` installs what the SDKs need)\n%s", err, stderr.String())
	}
	var seen []sighting
	for line := range bytes.Lines(out) {
		var saw sighting
		if err := json.Unmarshal(line, &saw); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		seen = append(seen, saw)
	}
	return seen
}

// goSDKs builds the program that drives the Go SDKs. It is a module of its own, so
// that the product does not depend on them.
var goSDKs = func() func(t *testing.T) string {
	build := sync.OnceValues(func() (string, error) {
		path := filepath.Join(filepath.Dir(binary), "gosdk")
		cmd := exec.Command("go", "build", "-o", path, ".")
		cmd.Dir = "gosdk"
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%w\n%s", err, out)
		}
		return path, nil
	})
	return func(t *testing.T) string {
		t.Helper()
		path, err := build()
		if err != nil {
			t.Fatalf("building the program for the Go SDKs: %v", err)
		}
		return path
	}
}()

const refusalText = "declined by the governance policy"

// blockedText is in the note that stands for a blocked call.
const blockedText = "A tool call was blocked by the governance policy"

// check compares what the SDK saw with what every SDK must see, and asks the proxy
// and the upstream for the rest of the story.
func (saw sighting) check(t *testing.T, s *server, u *upstream) {
	row := calls[slices.IndexFunc(calls, func(c call) bool { return c.name == saw.Name })]
	if row.expect == unended {
		row.expect = interrupted
		if saw.API == "chat" || saw.API == "completions" || saw.API == "bedrock" {
			row.expect = answered
		}
	}
	arrived := u.of(saw.id())
	switch row.expect {
	case answered, watched:
		saw.mustSucceed(t)
		if !saw.holdsAnswer() {
			t.Errorf("no answer in %q", saw.Text)
		}
		if saw.Name == "question, streamed" && saw.API != "mcp" && saw.Pieces < 5 {
			t.Errorf("streamed in %d pieces", saw.Pieces)
		}
	case called:
		saw.mustSucceed(t)
		if saw.Calls != `get_weather({"city":"Paris"})` {
			t.Errorf("called %s", saw.Calls)
		}
		if row.manner == callsBoth && !strings.Contains(saw.Text, blockedText) {
			t.Errorf("no note in %q", saw.Text)
		}
	case blocked:
		saw.mustSucceed(t)
		if saw.Calls != "" || !strings.Contains(saw.Text, blockedText) {
			t.Errorf("called %s, no note in %q", saw.Calls, saw.Text)
		}
	case refused, gaveIn:
		if saw.throwsOnRefusals() {
			break
		}
		saw.mustSucceed(t)
		if !saw.holdsRefusal() {
			t.Errorf("no refusal in %q, %q", saw.Text, saw.Refusal)
		}
	case stopped:
		saw.mustSucceed(t)
		if !saw.holdsRefusal() || !strings.HasPrefix(saw.Text, storyBegins) {
			t.Errorf("released %q, refused with %q", saw.Text, saw.Refusal)
		}
	case rejected:
		if saw.Exception == "" || saw.Status != 0 && saw.Status != http.StatusForbidden || saw.Requests != 1 {
			t.Errorf("%+v", saw)
		}
		if !strings.Contains(saw.Message, refusalText) {
			t.Errorf("the error says %q", saw.Message)
		}
	case interrupted:
		if saw.endsCleanly() {
			t.Errorf("a clean end: %+v", saw)
		}
	case unavailable:
		if saw.Exception == "" {
			t.Errorf("no exception: %+v", saw)
		}
	}
	for _, text := range []string{saw.Text, saw.Refusal, saw.Message, saw.Calls} {
		if strings.Contains(text, "DAN") {
			t.Errorf("what must not pass reached the application: %q", text)
		}
	}
	saw.checkArrivals(t, row, arrived)
	saw.checkReceipts(t, s, row)
}

// mustSucceed is what answers and refusals have in common.
func (saw sighting) mustSucceed(t *testing.T) {
	t.Helper()
	if saw.Exception != "" {
		t.Errorf("%s: %s", saw.Exception, saw.Message)
	}
	if want := saw.rounds(); saw.Requests != want {
		t.Errorf("%d requests, want %d", saw.Requests, want)
	}
	if saw.Finish == "" {
		t.Error("no reason for the end")
	}
}

// rounds is how many requests the call takes: one, or two where the SDK runs a tool.
func (saw sighting) rounds() int {
	if strings.Contains(saw.Name, "tool loop") {
		return 2
	}
	return 1
}

func (saw sighting) holdsAnswer() bool {
	switch saw.Name {
	case "list of tools":
		return saw.Text == "search,browse,lookup"
	case "embedding":
		return saw.Text == "0.5,-0.25"
	case "count of tokens", "count of tokens of an attack":
		return saw.Text == "12"
	}
	return strings.Contains(saw.Text, "Paris")
}

func (saw sighting) holdsRefusal() bool {
	return strings.Contains(saw.Text+saw.Refusal, refusalText)
}

// throwsOnRefusals reports whether the SDK can only throw: the AI SDK makes an object
// or an exception, which carries the text.
func (saw sighting) throwsOnRefusals() bool {
	return strings.HasPrefix(saw.SDK, "ai ") && strings.Contains(saw.Name, "structured") &&
		saw.Exception == "AI_NoObjectGeneratedError" && saw.Requests == 1
}

// endsCleanly reports whether the application would take the answer for a whole one.
func (saw sighting) endsCleanly() bool {
	return saw.Exception == "" && !slices.Contains([]string{"", "error", "other", "unknown", "interrupted", "failed"}, saw.Finish)
}

// checkArrivals asserts that no attack reached the upstream, and that what did is what
// was sent, unless there was an attack in it.
func (saw sighting) checkArrivals(t *testing.T, row call, arrived []arrival) {
	t.Helper()
	mayHoldAttack := row.name == "role in the system prompt" || row.expect == watched
	for _, a := range arrived {
		if strings.Contains(a.body, attack) && !mayHoldAttack {
			t.Errorf("the attack reached the upstream: %s", a.body)
		}
		answersBlocked := row.manner == callsBoth && saw.API == "responses" // for the provider that waits for it
		if a.bodyAltered && !strings.HasPrefix(row.name, "after a refusal") && !answersBlocked {
			t.Errorf("the body was altered on its way: %s", a.body)
		}
		if a.headersAltered {
			t.Errorf("the headers were altered on their way:\n%s", a.headers)
		}
	}
	if row.expect != refused && row.expect != rejected && len(arrived) == 0 {
		t.Error("nothing reached the upstream")
	}
	if saw.API == "mcp" && len(arrived) > 0 {
		stateless := strings.Contains(arrived[len(arrived)-1].body, `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`)
		if stateless != strings.HasPrefix(saw.SDK, "@modelcontextprotocol/client") {
			t.Errorf("another generation of the protocol: %s", arrived[len(arrived)-1].body)
		}
	}
}

// checkReceipts asserts that each request left a receipt, and the right one, in the
// session of the conversation that it goes on.
func (saw sighting) checkReceipts(t *testing.T, s *server, row call) {
	t.Helper()
	if len(saw.Turns) != saw.Requests {
		t.Errorf("%d requests, %d turns", saw.Requests, len(saw.Turns))
	}
	sessions := make(map[any]bool)
	var last map[string]any
	for _, turn := range slices.Concat(saw.Before, saw.Turns) {
		got := s.do(t, http.MethodGet, "/audits/turn/"+turn, "")
		if got.Status != http.StatusOK {
			t.Errorf("no receipt of turn %s: %d %s", turn, got.Status, got.Body)
			continue
		}
		last = got.object(t)
		sessions[last["session_id"]] = true
	}
	goesOn := strings.HasPrefix(row.name, "after ")
	if goesOn && len(saw.Before) == 0 {
		t.Error("no conversation before")
	}
	if (goesOn || saw.rounds() > 1) && len(sessions) != 1 {
		t.Errorf("one conversation in %d sessions", len(sessions))
	}
	refusal := slices.Contains([]expectation{refused, gaveIn, stopped, rejected}, row.expect)
	if outcome := last["outcome"]; (outcome == "refused") != refusal {
		t.Errorf("the receipt says %v", outcome)
	}
	if row.expect == watched && last["would_refuse"] != true {
		t.Errorf("the receipt does not say what would have been refused: %v", last)
	}
}

const tablePath = "../docs/sdks.md"

// compareTables compares the tables of docs/sdks.md with what was seen, or writes them.
func compareTables(t *testing.T, seen []sighting) {
	t.Helper()
	written, err := os.ReadFile(tablePath)
	if err != nil {
		t.Fatal(err)
	}
	text := string(written)
	for _, api := range apis {
		heading := "\n### " + api.title + "\n"
		_, rest, found := strings.Cut(text, heading)
		if !found {
			t.Errorf("%s has no heading %q", tablePath, api.title)
			continue
		}
		old, _, _ := strings.Cut(rest, "\n### ")
		now := table(api.name, api.refusal, seen)
		text = strings.Replace(text, heading+old, heading+now, 1)
		if old != now && !*update {
			t.Errorf("%s differs from what the SDKs saw of %s (-update writes it, and shows the difference):\n%s", tablePath, api.title, now)
		}
	}
	if *update {
		if err := os.WriteFile(tablePath, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
