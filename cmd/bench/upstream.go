package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// ending closes every answer of the upstream. An answer without it was refused or cut.
const ending = "That is all."

// answerSize is the size of a whole answer in bytes.
const answerSize = 900

// An upstream stands in for a model. It answers at once and always the same. It may be
// used by several goroutines.
type upstream struct {
	address string
	server  *http.Server

	mu   sync.Mutex
	held chan struct{} // closed when the streams of heldModel may go on
}

// The upstream's models: one that answers at once, and one that stops in the middle of
// a streamed answer from [upstream.hold] to [upstream.release].
const (
	quickModel = "m"
	heldModel  = "held"
)

// heldFrame is where such a stream stops. A governed one has released text by then: it
// holds back 256 bytes.
const heldFrame = frames * 3 / 4

var (
	models = []byte(`{"object":"list","data":[{"id":"m","object":"model","created":1,"owned_by":"` + ending + `"}]}`)
	answer = wholeAnswer()
	frame  = framesOf()
)

func wholeAnswer() []byte {
	before := `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"`
	after := ending + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":40,"completion_tokens":160,"total_tokens":200}}`
	text := strings.Repeat("The travel budget pays for the hotel, and the invoice is due at the end of the month. ", 10)
	return []byte(before + text[:answerSize-len(before)-len(after)-1] + " " + after)
}

// framesOf are the frames of a streamed answer: the text, word by word, and its end.
func framesOf() [][]byte {
	words := strings.Fields(strings.Repeat("The travel budget pays for the hotel, and the invoice is due at the end of the month. ", 6))[:frames-1]
	out := make([][]byte, 0, frames+2)
	chunk := func(delta, finish string) {
		out = append(out, fmt.Appendf(nil, "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\","+
			"\"choices\":[{\"index\":0,\"delta\":{%s},\"finish_reason\":%s}]}\n\n", delta, finish))
	}
	for _, word := range words {
		chunk(`"content":"`+word+` "`, "null")
	}
	chunk(`"content":"`+ending+`"`, "null")
	chunk("", `"stop"`)
	return append(out, []byte("data: [DONE]\n\n"))
}

// startUpstream listens on a free port of this machine.
func startUpstream() (*upstream, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // nothing waits here
	if err != nil {
		return nil, fmt.Errorf("starting the upstream: %w", err)
	}
	u := &upstream{address: listener.Addr().String()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) { whole(w, models) })
	mux.HandleFunc("POST /v1/chat/completions", u.chat)
	u.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() {
		if err := u.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			panic(err) // nothing can be measured any more
		}
	}()
	return u, nil
}

func (u *upstream) chat(w http.ResponseWriter, r *http.Request) {
	var head [64]byte // the members that matter come first
	n, _ := io.ReadFull(r.Body, head[:])
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return // the caller left
	}
	if !bytes.Contains(head[:n], []byte(`"stream":true`)) {
		whole(w, answer)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	for i, f := range frame {
		if i == heldFrame && bytes.Contains(head[:n], []byte(heldModel)) {
			u.wait(r)
		}
		if _, err := w.Write(f); err != nil {
			return
		}
		if err := flush.Flush(); err != nil {
			return
		}
	}
}

func whole(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // a caller that left is not counted
}

func (u *upstream) wait(r *http.Request) {
	u.mu.Lock()
	held := u.held
	u.mu.Unlock()
	select {
	case <-held:
	case <-r.Context().Done():
	}
}

// hold makes the streams of [heldModel] stop in the middle.
func (u *upstream) hold() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.held = make(chan struct{})
}

// release lets them go on, and those that come later too.
func (u *upstream) release() {
	u.mu.Lock()
	defer u.mu.Unlock()
	close(u.held)
}

func (u *upstream) close() error { return u.server.Close() }
