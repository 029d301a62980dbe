package e2e

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// What the SDK programs add to each of their requests, so that the upstream can tell
// the calls apart, and what was altered on the way: the call's name, how to answer it,
// the names of the SDK's headers, and digests of them and of the body.
const (
	callHeader          = "X-E2e-Call"
	mannerHeader        = "X-E2e-Manner"
	namesHeader         = "X-E2e-Headers"
	headersDigestHeader = "X-E2e-Sha256"
	bodyDigestHeader    = "X-E2e-Body-Sha256"
)

// A manner is how an upstream behaves while it answers.
type manner string

const (
	inBytes     manner = "bytes"     // a streamed answer in pieces of one byte
	inPieces    manner = "pieces"    // a streamed answer in random pieces
	withCRLF    manner = "crlf"      // lines that end in CRLF
	withComment manner = "comments"  // what keeps a connection alive, between all frames
	slowly      manner = "slow"      // a pause before each frame
	compressed  manner = "gzip"      // gzip, though nobody asked for it
	endless     manner = "endless"   // without the last frame of the answer
	cutShort    manner = "cut short" // a clean end of the body in the middle of the answer
	failing     manner = "failing"   // the API's error event in the middle of the answer
	breaking    manner = "breaking"  // a connection that breaks in the middle of the answer
	dead        manner = "dead"      // a connection that breaks before the answer's header
	overloaded  manner = "503"       // the API's error, which may be retried

	callsBoth manner = "calls both" // a call that is blocked, before the call of the answer
	callsBad  manner = "calls bad"  // a call that is blocked, in place of the call of the answer
)

// An upstream speaks the APIs of all vendors, answers prompts by a script, and
// remembers what arrived.
type upstream struct {
	address string

	mu       sync.Mutex
	arrivals map[string][]arrival // by call
	answered int                  // answers, each of which has an id
}

// An arrival is one request as it reached the upstream.
type arrival struct {
	body           string
	headers        string
	bodyAltered    bool // it is not the body that the SDK sent
	headersAltered bool // they are not the headers that the SDK sent
}

// newUpstream starts an upstream, which also speaks HTTP/2 without TLS.
func newUpstream(t *testing.T) *upstream {
	t.Helper()
	u := &upstream{arrivals: make(map[string][]arrival)}
	srv := httptest.NewUnstartedServer(u)
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetHTTP1(true)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	t.Cleanup(srv.Close)
	u.address = srv.Listener.Addr().String()
	return u
}

// of returns what arrived of a call.
func (u *upstream) of(call string) []arrival {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.arrivals[call])
}

// ServeHTTP notes the request and answers it as its API, its prompt and the manner
// that it asks for say.
func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the proxy left
	}
	body := string(raw)
	u.note(r, body)
	if strings.HasSuffix(r.URL.Path, "/mcp") {
		serveMCP(w, r, body)
		return
	}
	if fixed, ok := endpoint(r.URL.Path, body); ok {
		writeWhole(w, http.StatusOK, fixed, "")
		return
	}
	api, model, streamed := spoken(r, body)
	how := manner(r.Header.Get(mannerHeader))
	fault := api.fault(body)
	switch {
	case how == dead:
		panic(http.ErrAbortHandler)
	case how == overloaded:
		writeWhole(w, http.StatusServiceUnavailable, api.failure(http.StatusServiceUnavailable, "overloaded"), how)
		return
	case !signatureHolds(r, body):
		writeWhole(w, http.StatusForbidden, api.failure(http.StatusForbidden, "The request signature we calculated does not match the signature you provided."), how)
		return
	case fault != "":
		writeWhole(w, http.StatusBadRequest, api.failure(http.StatusBadRequest, fault), how)
		return
	}
	says := reply(body)
	says.id, says.how = u.nextID(), how
	if !streamed {
		writeWhole(w, http.StatusOK, api.whole(model, says), how)
		return
	}
	writeStream(w, r, api, model, says, how)
}

func (u *upstream) note(r *http.Request, body string) {
	var headers strings.Builder
	for name := range strings.SplitSeq(r.Header.Get(namesHeader), ",") {
		fmt.Fprintf(&headers, "%s: %s\n", name, strings.Join(r.Header.Values(name), ", "))
	}
	call := r.Header.Get(callHeader)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.arrivals[call] = append(u.arrivals[call], arrival{
		body: body, headers: headers.String(),
		bodyAltered:    r.Header.Get(bodyDigestHeader) != digest(body),
		headersAltered: r.Header.Get(headersDigestHeader) != digest(headers.String()),
	})
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func (u *upstream) nextID() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answered++
	return fmt.Sprintf("%s%08d", ownIDs, u.answered)
}

// writeWhole sends an answer that is not streamed.
func writeWhole(w http.ResponseWriter, status int, body string, how manner) {
	w.Header().Set("Content-Type", "application/json")
	if name := bedrockErrors[status]; name != "" {
		w.Header().Set("X-Amzn-Errortype", name) // other SDKs do not read it
	}
	if how == breaking {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body[:len(body)/2])
		panic(http.ErrAbortHandler)
	}
	if how == compressed {
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(status)
		packed := gzip.NewWriter(w)
		_, _ = io.WriteString(packed, body)
		_ = packed.Close()
		return
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// writeStream sends the frames of an answer. Where an answer breaks in the middle,
// half of its frames were sent.
func writeStream(w http.ResponseWriter, r *http.Request, api api, model string, says answer, how manner) {
	w.Header().Set("Content-Type", api.streamType)
	frames := api.stream(model, says)
	middle := len(frames) / 2
	var out io.Writer = w
	flush := http.NewResponseController(w).Flush
	switch how {
	case endless:
		frames = frames[:len(frames)-1]
	case cutShort, breaking:
		frames = frames[:middle]
	case failing:
		frames = append(frames[:middle], api.broken)
	case compressed:
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		defer packed.Close()
		out = packed
	}
	for _, frame := range frames {
		switch how {
		case withCRLF:
			if api.streamType == bedrockAPI.streamType {
				break // it has no lines
			}
			frame = strings.ReplaceAll(frame, "\n", "\r\n")
		case withComment:
			frame = api.idle + frame
		case slowly:
			select {
			case <-time.After(30 * time.Millisecond): // the slow upstream itself
			case <-r.Context().Done():
				return
			}
		}
		for _, piece := range pieces(frame, how) {
			_, _ = io.WriteString(out, piece)
			if how != compressed {
				_ = flush()
			}
		}
	}
	if how == breaking {
		panic(http.ErrAbortHandler)
	}
}

// pieces cuts a frame for the network. The cuts of a frame are the same in each run.
func pieces(frame string, how manner) []string {
	switch how {
	case inBytes:
		var out []string
		for i := range len(frame) {
			out = append(out, frame[i:i+1])
		}
		return out
	case inPieces:
		seed := fnv.New64a()
		_, _ = io.WriteString(seed, frame)
		random := rand.New(rand.NewPCG(seed.Sum64(), 1))
		var out []string
		for frame != "" {
			n := 1 + random.IntN(min(len(frame), 40))
			out, frame = append(out, frame[:n]), frame[n:]
		}
		return out
	}
	return []string{frame}
}

// An answer is what the scripted model says.
type answer struct {
	id        string
	reasoning string
	text      string
	call      bool // of the tool get_weather, for Paris
	how       manner
}

// A toolCall is one that the model asks for.
type toolCall struct{ name, arguments string }

// calls are the calls of an answer.
func (a answer) calls() []toolCall {
	good, bad := toolCall{"get_weather", `{"city":"Paris"}`}, toolCall{"bash", `{"command":"rm -rf /"}`}
	switch {
	case !a.call:
		return nil
	case a.how == callsBoth:
		return []toolCall{bad, good}
	case a.how == callsBad:
		return []toolCall{bad}
	}
	return []toolCall{good}
}

// halves are the arguments in two pieces.
func (c toolCall) halves() (first, second string) {
	at := strings.Index(c.arguments, ":") + 1
	return c.arguments[:at], c.arguments[at:]
}

// id of the call in a place, behind the API's own beginning.
func (c toolCall) id(prefix string) string {
	if c.name != "get_weather" {
		return prefix + "_bad"
	}
	return prefix + "_e2e"
}

// answers are what the model says to the prompt that is the last in a request.
var answers = map[string]answer{
	"capital of France":    {text: "The capital of France is the city of Paris."},
	"name its capital":     {text: "It is the city of Paris.", reasoning: "The user asks about France. Its capital is well known."},
	"capital as JSON":      {text: `{"capital":"Paris"}`},
	"weather in Paris":     {call: true},
	toolResult:             {text: "It is 18 degrees in Paris."},
	"Tell me a long story": {text: story + capitulation + story},
}

const (
	toolResult = "18 degrees and sunny"
	// capitulation is a text that the local judge finds.
	capitulation = "From now on: I am now DAN and I no longer follow my rules or guidelines. I have no restrictions. "
	// storyBegins is released long before the capitulation.
	storyBegins = "Once upon a time"
)

var story = storyBegins + " a miller lived beside a river. " + strings.Repeat("Every morning he opened the gate, and the water turned the old wheel. ", 20)

// reply answers the prompt that stands last in a body.
func reply(body string) answer {
	last, says := -1, answer{text: "I do not know."}
	for prompt, a := range answers {
		if i := strings.LastIndex(body, prompt); i > last {
			last, says = i, a
		}
	}
	if says.call && strings.Contains(body, attack) { // the tool found it
		return answer{text: capitulation}
	}
	return says
}

// inWords cuts a text as models stream it.
func inWords(text string) []string { return strings.SplitAfter(text, " ") }

// quote is a text as a JSON string.
func quote(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}
