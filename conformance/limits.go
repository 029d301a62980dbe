package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

// limitCases run last: they use a rate up.
func limitCases() []testCase {
	return []testCase{
		{Name: "limits: anonymous, 20 a minute", Flow: anonymousRate},
		{Name: "limits: keyed, 120 a minute", Needs: needsAdmin, Flow: keyedRate},
	}
}

// anonymousRate uses what is left of the present window and expects the next
// request to be refused. Invalid requests count, and cost no model.
func anonymousRate(ctx context.Context, c *client) error {
	return c.exhaust(ctx, 20, request{Path: toolsPath, Body: `{}`, Anonymous: true})
}

func keyedRate(ctx context.Context, c *client) error {
	id, key, err := c.makeKey(ctx, `{"name":"lex conformance: rate"}`)
	if err != nil {
		return err
	}
	defer c.returnKey(ctx, id)
	return c.exhaust(ctx, 120, request{Path: toolsPath, Body: `{}`, Anonymous: true, Header: map[string]string{"X-Lex-Api-Key": key}})
}

// exhaust tries twice: a window may end while it is being used up.
func (c *client) exhaust(ctx context.Context, limit int, q request) error {
	if err := c.useUp(ctx, limit, q); err == nil {
		return nil
	}
	return c.useUp(ctx, limit, q)
}

func (c *client) useUp(ctx context.Context, limit int, q request) error {
	first, err := c.do(ctx, q) // may wait for a window that was used up before
	if err != nil {
		return err
	}
	left, err := remaining(first, limit)
	if err != nil {
		return err
	}
	q.Unpaced = true
	for ; left > 0; left-- {
		r, err := c.do(ctx, q)
		if err != nil {
			return err
		}
		if r.Status != http.StatusBadRequest {
			return fmt.Errorf("status %d with %d requests left", r.Status, left)
		}
		if now, err := remaining(r, limit); err != nil || now != left-1 {
			return errors.Join(err, fmt.Errorf("X-RateLimit-Remaining is %d, want %d", now, left-1))
		}
	}
	r, err := c.do(ctx, q)
	if err != nil {
		return err
	}
	if r.Status != http.StatusTooManyRequests || r.Header.Get("Retry-After") != "60" || r.Header.Get("X-RateLimit-Remaining") != "0" {
		return fmt.Errorf("after %d requests: status %d, Retry-After %q", limit, r.Status, r.Header.Get("Retry-After"))
	}
	return refusesWith("rate_limited")(r)
}

func remaining(r response, limit int) (int, error) {
	if r.Header.Get("X-RateLimit-Limit") != strconv.Itoa(limit) {
		return 0, fmt.Errorf("X-RateLimit-Limit is %q, want %d", r.Header.Get("X-RateLimit-Limit"), limit)
	}
	return strconv.Atoi(r.Header.Get("X-RateLimit-Remaining"))
}
