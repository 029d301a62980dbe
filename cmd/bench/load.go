package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// A sample is one answer.
type sample struct {
	at    time.Time     // when it was complete
	first time.Duration // from sending to the first text of the answer
	whole time.Duration // from sending to the end of the answer
}

// A connection asks a target one request after the other. It writes bytes that were
// made before and reads with net/http's parser, without the goroutines of http.Client,
// so that the client takes little of the processors that it shares with the proxy.
type connection struct {
	net.Conn
	in      *bufio.Reader
	request []byte
	number  []byte // the part of request that differs from one to the next
	body    bytes.Buffer
	piece   [4 << 10]byte
}

// asked counts the requests of this process, for the numbers in prompts.
var asked atomic.Int64

func dial(ctx context.Context, address string, request []byte) (*connection, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	c := &connection{Conn: conn, in: bufio.NewReaderSize(conn, 32<<10), request: bytes.Clone(request)}
	if at := bytes.LastIndex(c.request, []byte(number)); at >= 0 {
		c.number = c.request[at : at+len(number)]
	}
	return c, nil
}

// ask sends the request and reads the answer to its end.
func (c *connection) ask() (sample, error) {
	if c.number != nil {
		copy(c.number, fmt.Appendf(nil, "%08d", asked.Add(1)%1e8))
	}
	began := time.Now()
	body, err := c.send()
	if err != nil {
		return sample{}, err
	}
	defer body.Close()
	first, err := c.readText(body)
	if err != nil {
		return sample{}, fmt.Errorf("reading the answer: %w", err)
	}
	if _, err := c.body.ReadFrom(body); err != nil {
		return sample{}, fmt.Errorf("reading the answer: %w", err)
	}
	ended := time.Now()
	if !bytes.Contains(c.body.Bytes(), []byte(ending)) {
		return sample{}, fmt.Errorf("not the upstream's answer: %.300s", c.body.Bytes())
	}
	return sample{at: ended, first: first.Sub(began), whole: ended.Sub(began)}, nil
}

// send returns the body of the answer.
func (c *connection) send() (io.ReadCloser, error) {
	if _, err := c.Write(c.request); err != nil {
		return nil, fmt.Errorf("sending: %w", err)
	}
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		reason, _ := io.ReadAll(io.LimitReader(resp.Body, 300)) // what there is of one
		return nil, fmt.Errorf("status %d: %s", resp.StatusCode, reason)
	}
	return resp.Body, nil
}

// readText reads until text of the model has arrived, and returns when that was. The
// headers, and comments in a stream, may arrive before.
func (c *connection) readText(body io.Reader) (time.Time, error) {
	c.body.Reset()
	for {
		n, err := body.Read(c.piece[:])
		c.body.Write(c.piece[:n])
		if bytes.Contains(c.body.Bytes(), []byte(`"content":`)) || errors.Is(err, io.EOF) {
			return time.Now(), nil
		}
		if err != nil {
			return time.Time{}, err
		}
	}
}

// once asks a target for a work one time, with some time limit for a target that hangs.
func once(ctx context.Context, t *target, w work) error {
	c, err := dial(ctx, t.address, w.request(t, quickModel))
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	_, err = c.ask()
	if err == nil && w.prompt > 0 {
		t.turns.Add(1)
	}
	return err
}

// load is a closed loop: each connection sends its next request when it has read the
// answer to the one before. It runs until the context ends. Its samples are in no
// order.
func load(ctx context.Context, t *target, w work, connections int) ([]sample, error) {
	var mu sync.Mutex
	var all []sample
	var group errgroup.Group
	request := w.request(t, quickModel)
	for range connections {
		group.Go(func() error {
			samples, err := askUntil(ctx, t, request)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, samples...)
			return err
		})
	}
	err := group.Wait()
	if w.prompt > 0 {
		t.turns.Add(int64(len(all)))
	}
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w", t.name, w, err)
	}
	return all, nil
}

func askUntil(ctx context.Context, t *target, request []byte) ([]sample, error) {
	c, err := dial(context.WithoutCancel(ctx), t.address, request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	samples := make([]sample, 0, 1<<14)
	for ctx.Err() == nil {
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			return nil, err
		}
		s, err := c.ask()
		if err != nil {
			return samples, err
		}
		t.answers.Add(1)
		samples = append(samples, s)
	}
	return samples, nil
}
