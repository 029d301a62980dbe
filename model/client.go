package model

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxAnswer bounds an answer, in bytes. The largest honest one is a full batch
// of vectors: 32 of 3072 numbers, some 2 MiB.
const maxAnswer = 8 << 20

// Config says which remote model to ask. It is comparable, so that two
// configurations that are equal can share a client.
type Config struct {
	// Provider as results name it: openai, gemini, mistral or jina.
	Provider string
	// BaseURL of the API, up to and with the version.
	BaseURL string
	// Model as the provider names it.
	Model string
	// Key is the provider's credential; empty for servers that need none.
	Key string
	// Dimensions asks an embedder for vectors of this length; 0 for the
	// model's own.
	Dimensions int
	// Timeout bounds one piece of evidence, however many requests it takes.
	Timeout time.Duration
}

// An Observer is told what a client does. Its methods are called concurrently
// and must not block.
type Observer interface {
	// Asked tells of a request, its duration and its failure, if any. A request
	// that failed with BreakerOpen or Busy was never sent, or too late.
	Asked(took time.Duration, why Failure)
	// Gathered tells how the gathering of a piece of evidence ended, whatever became of
	// the requests that it took: some are made again in another form. A text of which
	// only a part was rejected has brought evidence.
	Gathered(why Failure)
	// Cached tells of evidence that needed no request.
	Cached()
	// Breaker tells that the breaker opened, for a namespace or for all, and by
	// which failure; or that the model answers again and none is kept back.
	Breaker(open bool, why Failure)
}

// client asks one API, or a model in this process.
type client struct {
	config   Config
	base     *url.URL
	header   http.Header
	http     *http.Client
	gate     *gate
	breaker  *breaker
	observer Observer
}

// newClient checks the configuration; it asks the provider nothing.
func newClient(c Config, keyHeader string, observer Observer) (*client, error) {
	base, err := url.Parse(c.BaseURL)
	switch {
	case err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https"):
		return nil, errors.New("base_url must be an http or https address such as https://api.openai.com/v1")
	case base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return nil, errors.New("base_url must hold no credential, query or fragment; the key goes into api_key")
	case strings.TrimSpace(c.Model) == "":
		return nil, errors.New("model is required")
	case c.Timeout <= 0:
		return nil, errors.New("timeout must be positive")
	case strings.ContainsFunc(c.Key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, errors.New("api_key has characters that no key has, such as a space or a line break")
	}
	asking, err := newLocalClient(c, remoteSlots, observer)
	if err != nil {
		return nil, err
	}
	asking.base, asking.header, asking.http = base, headerFor(keyHeader, c.Key), NewHTTPClient()
	return asking, nil
}

// newLocalClient makes a client of a model in this process: it has no server.
func newLocalClient(c Config, slots int, observer Observer) (*client, error) {
	if observer == nil {
		observer = silentObserver{}
	}
	breaker, err := newBreaker(observer)
	if err != nil {
		return nil, err
	}
	return &client{config: c, gate: newGate(slots), breaker: breaker, observer: observer}, nil
}

// headerFor has an Idempotency-Key without a value, which is not sent. It tells net/http that a
// question may be sent again if the server closed a connection that it had kept open just when the
// question was on its way.
func headerFor(keyHeader, key string) http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": nil}
	if key != "" && keyHeader == "Authorization" {
		key = "Bearer " + key
	}
	if key != "" {
		h.Set(keyHeader, key)
	}
	return h
}

// A connection over HTTP/2 on which nothing came for quietTime is asked for a sign of life, and
// closed if none comes within pingTime. It carries all requests, so that all would fail for as long
// as the operating system believes in it after the network has forgotten it.
const (
	quietTime = 10 * time.Second
	pingTime  = 5 * time.Second
)

// NewHTTPClient returns a client with connections of its own, so that they can be closed with
// what used them. It is for servers that are asked now and then and for long: it finds out that
// the network has forgotten a connection. It follows no redirects.
func NewHTTPClient() *http.Client {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	if standard, ok := http.DefaultTransport.(*http.Transport); ok { // a program can replace it by any type
		transport = standard.Clone()
	}
	transport.MaxIdleConnsPerHost = 32
	transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: quietTime, PingTimeout: pingTime}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Close closes idle connections. The client can still be used.
func (c *client) Close() {
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
}

// gatherEvidence gathers one piece of evidence for a namespace within the timeout,
// by as many questions as the texts need. When several texts together take too
// long, that is not held against the provider.
func (c *client) gatherEvidence(ctx context.Context, namespace string, texts int, gather func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	err := c.breaker.run(namespace, func() error {
		err := gather(ctx)
		if texts > 1 && Why(err) == Timeout {
			return uncounted{err}
		}
		return err
	})
	if Why(err) == BreakerOpen {
		c.observer.Asked(0, BreakerOpen)
	}
	if why := Why(err); why == Rejected && Unread(err) > 0 {
		c.observer.Gathered("")
	} else {
		c.observer.Gathered(why)
	}
	return err
}

// ask sends a question as JSON and hands the answer to read. It returns the error
// of read, or that of the exchange when there was no answer.
func (c *client) ask(ctx context.Context, namespace, path string, question any, read func(answer []byte) error) error {
	return c.admitted(ctx, namespace, func() error {
		answer, err := c.post(ctx, path, question)
		if err == nil {
			err = read(answer)
		}
		return err
	})
}

// admitted makes one request as soon as the gate lets it, and tells the observer of it.
func (c *client) admitted(ctx context.Context, namespace string, request func() error) error {
	began := time.Now()
	waited, err := c.gate.enter(ctx, namespace)
	if err == nil {
		err = c.holding(namespace, request)
	}
	if waited && Why(err) == Timeout {
		err = errBusy // the time was lost before the model was asked
	}
	c.observer.Asked(time.Since(began), Why(err))
	return err
}

// holding makes a request that has a slot of the gate.
func (c *client) holding(namespace string, request func() error) error {
	defer c.gate.leave(namespace)
	return request()
}

func (c *client) post(ctx context.Context, path string, question any) ([]byte, error) {
	body, err := json.Marshal(question, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, newFailure(Rejected, "the question cannot be encoded")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return nil, newFailure(Rejected, "the question cannot be addressed")
	}
	r.Header = c.header.Clone()
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, failTransport(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		c.breaker.pause(resp)
		return nil, newFailure(ofStatus(resp.StatusCode), "status "+strconv.Itoa(resp.StatusCode))
	}
	return readAnswer(ctx, resp.Body)
}

func readAnswer(ctx context.Context, body io.Reader) ([]byte, error) {
	answer, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, failTransport(ctx, err)
	case len(answer) > maxAnswer:
		return nil, unusable("the answer is over " + strconv.Itoa(maxAnswer) + " bytes")
	}
	return answer, nil
}

// unusable says what is wrong with an answer, in this package's own words.
func unusable(what string) error { return newFailure(Unusable, what) }

// silentObserver observes nothing.
type silentObserver struct{}

func (silentObserver) Asked(time.Duration, Failure) {}
func (silentObserver) Gathered(Failure)             {}
func (silentObserver) Cached()                      {}
func (silentObserver) Breaker(bool, Failure)        {}
