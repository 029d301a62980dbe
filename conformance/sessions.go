package conformance

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

func sessionsAreErased(ctx context.Context, c *client) error {
	id, key, err := c.makeKey(ctx, `{"name":"lex conformance: sessions"}`)
	if err != nil {
		return err
	}
	defer c.returnKey(ctx, id)
	session := newSession()
	r, err := c.do(ctx, request{Path: governPath, Body: govern(question, "session_id", session), Anonymous: true, Header: map[string]string{"X-Lex-Api-Key": key}})
	if err != nil || r.Status != http.StatusOK {
		return errors.Join(err, fmt.Errorf("status %d", r.Status))
	}
	sum := sha256.Sum256([]byte("key:" + id + "\x00" + session))
	path := sessionsPath + hex.EncodeToString(sum[:])
	for i, want := range []struct {
		method string
		status int
	}{{http.MethodGet, http.StatusOK}, {http.MethodDelete, http.StatusNoContent}, {http.MethodGet, http.StatusNotFound}, {http.MethodDelete, http.StatusNoContent}} {
		got, err := c.do(ctx, c.asAdmin(request{Method: want.method, Path: path}))
		if err != nil || got.Status != want.status {
			return errors.Join(err, fmt.Errorf("%s, the %d. request: status %d, want %d", want.method, i+1, got.Status, want.status))
		}
		if i == 0 && strings.Contains(string(got.Body), "France") {
			return errors.New("the session shows what was said in it")
		}
	}
	m, err := r.object()
	if err != nil {
		return err
	}
	receipt, _ := m["receipt_id"].(string)
	_, err = c.record(ctx, receipt) // stays
	return err
}

func sessionsAreApart(ctx context.Context, c *client) error {
	id, key, err := c.makeKey(ctx, `{"name":"lex conformance: another"}`)
	if err != nil {
		return err
	}
	defer c.returnKey(ctx, id)
	session := newSession()
	if _, err := c.governed(ctx, question, session); err != nil {
		return err
	}
	r, err := c.do(ctx, request{Path: governPath, Body: govern(question, "session_id", session), Anonymous: true, Header: map[string]string{"X-Lex-Api-Key": key}})
	if err != nil {
		return err
	}
	return allOf(isResult, equals("memory_injected", false))(r)
}
