package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// A footprint is the memory of a proxy at the moments that the table shows.
type footprint struct {
	rest    memory // after its start and one request of each work
	streams memory // while streams are open
	rounds  memory // after all rounds
	soak    memory // after the last load
}

// atRest sends one request of each work and then reads the memory of every proxy, once
// with nothing to do and once with open streams. A governed target or bare Caddy that
// cannot do a work is an error.
func atRest(ctx context.Context, f *field, u *upstream, streams int) (map[*target]*footprint, error) {
	out := make(map[*target]*footprint)
	for _, t := range f.targets {
		for _, w := range works {
			if err := once(ctx, t, w); err != nil && !t.peer {
				return nil, fmt.Errorf("%s, %s: %w", t.name, w, err)
			}
		}
		if t.proxy == nil {
			continue
		}
		var m footprint
		var err error
		if m.rest, err = t.proxy.memory(); err != nil {
			return nil, err
		}
		if m.streams, err = whileOpen(ctx, t, u, streams); err != nil && !t.peer {
			return nil, fmt.Errorf("%s, %d open streams: %w", t.name, streams, err)
		}
		out[t] = &m
	}
	return out, nil
}

// whileOpen opens streams that stop in the middle, sixteen at a time, reads the memory of
// the proxy when text of each has arrived, and lets them end. How they end is not
// measured.
func whileOpen(ctx context.Context, t *target, u *upstream, streams int) (m memory, err error) {
	request := work{prompt: 170, streamed: true}.request(t, heldModel)
	rests := make([]func() error, streams)
	var opening, closing errgroup.Group
	opening.SetLimit(16)
	u.hold()
	for i := range rests {
		opening.Go(func() (err error) {
			rests[i], err = open(ctx, t, request)
			return err
		})
	}
	if err = opening.Wait(); err == nil {
		m, err = t.proxy.memory()
	}
	u.release()
	for _, rest := range rests {
		if rest != nil {
			closing.Go(rest)
		}
	}
	return m, errors.Join(err, closing.Wait())
}

// open asks for a stream and reads its first text; rest reads what follows.
func open(ctx context.Context, t *target, request []byte) (rest func() error, err error) {
	c, err := dial(ctx, t.address, request)
	if err != nil {
		return nil, err
	}
	if err := c.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		return nil, err
	}
	body, err := c.send()
	if err != nil {
		return nil, err
	}
	if _, err := c.readText(body); err != nil {
		return nil, err
	}
	return func() error {
		defer func() { _ = errors.Join(body.Close(), c.Close()) }()
		if _, err := c.body.ReadFrom(body); err != nil {
			return err
		}
		if bytes.Contains(c.body.Bytes(), []byte(ending)) {
			t.turns.Add(1)
		}
		return nil
	}, nil
}

// soak keeps one connection of every proxy busy with the first work, all at the same
// time. Nothing is timed.
func soak(ctx context.Context, f *field, d time.Duration) error {
	busy, finish := context.WithTimeout(ctx, d)
	defer finish()
	var group errgroup.Group
	for _, t := range f.targets {
		if t.proxy != nil {
			group.Go(func() error {
				_, err := load(busy, t, works[0], 1)
				return err
			})
		}
	}
	return group.Wait()
}

// remember reads the memory of every proxy into one place of its footprint.
func remember(of map[*target]*footprint, place func(*footprint) *memory) error {
	for t, m := range of {
		now, err := t.proxy.memory()
		if err != nil {
			return err
		}
		*place(m) = now
	}
	return nil
}
