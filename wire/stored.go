package wire

import (
	"net/url"
	"path"
	"strings"
)

// stored is a dialect whose answers come back from a provider's memory: the request
// asks for an answer by its id, and the answer is the one that a call once got.
type stored struct {
	Dialect
	id     string // of the answer, if a later call may go on from it
	stream bool
	rest   bool // only the end is asked for
}

// storedIn returns the dialect of the stored answer at an address. The query asks for
// a stream (https://platform.openai.com/docs/api-reference/responses/get).
func storedIn(d Dialect, address *url.URL) Dialect {
	query := address.Query()
	return stored{Dialect: d, id: answerAt(Paths(address)[0]), stream: query.Get("stream") == "true", rest: query.Has("starting_after")}
}

// callPaths are where the dialects whose answers a provider stores have their calls.
var callPaths = map[string]string{"openai_chat": "/v1/chat/completions", "openai_responses": "/v1/responses"}

// FindStored tells which endpoint of stored answers a request is for, and in which dialect these
// come back. The path of the dialect's calls is the operator's own, and below are the segments
// behind it.
func FindStored(d Dialect, method, below, query string, header Header) (Endpoint, Dialect, bool) {
	calls, ok := callPaths[d.Name()]
	if !ok {
		return Endpoint{}, nil, false
	}
	address := &url.URL{Path: calls + "/" + below, RawQuery: query}
	e, _ := FindEndpoint(method, address, header)
	answers, ok := e.Answer(address)
	return e, answers, ok
}

// answerAt returns the id in a path of a stored answer: /responses/{id},
// /responses/{id}/cancel or /chat/completions/{id}.
func answerAt(p string) string {
	p = path.Clean("/" + p)
	if dir, last := path.Split(p); last == "cancel" && !isAnswers(dir) {
		p = path.Clean(dir)
	}
	if dir, id := path.Split(p); isAnswers(dir) {
		return id
	}
	return ""
}

func isAnswers(dir string) bool {
	last := path.Base(dir)
	return strings.EqualFold(last, "responses") || strings.EqualFold(last, "completions")
}

// Request reads the body, which is usually empty. No member of it is part of the
// dialect's calls, so each is unknown. But a server may have calls of its own below the path
// of the dialect's, and a body that looks like a call is read as one.
func (s stored) Request(body []byte) (Request, error) {
	if d, ok := Resembles(body); ok && d.Name() == s.Name() {
		return s.Dialect.Request(body)
	}
	r := Request{Stream: s.stream, Choices: 1, Fetches: s.id, FetchesRest: s.rest}
	if len(body) == 0 {
		return r, nil
	}
	root, err := parse(body)
	if err != nil {
		return Request{}, err
	}
	w := walk{role: Other}
	object(members{"metadata": gathered(Text)})(&w, root)
	r.Parts = w.parts
	return r, w.err
}

// Answering implements [AnswerReader]: what is asked by a call is answered as one.
func (s stored) Answering(r Request) Dialect {
	if r.Fetches != "" {
		return s
	}
	if reader, ok := s.Dialect.(AnswerReader); ok {
		return reader.Answering(r)
	}
	return s.Dialect
}

// WithoutCalls implements [CallEditor]: a stored answer has the calls that the call once
// got.
func (s stored) WithoutCalls(body []byte, blocked []BlockedCall) ([]byte, error) {
	editor, ok := s.Dialect.(CallEditor)
	if !ok {
		return nil, cannotEdit("the dialect has no calls")
	}
	return editor.WithoutCalls(body, blocked)
}

// Interface guards
var (
	_ Dialect      = stored{}
	_ CallEditor   = stored{}
	_ AnswerReader = stored{}
)
