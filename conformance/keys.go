package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

var newKeyAnswer = members{
	"id": isText, "name": isText, "plan": orNull(isText), "key": matching(`^lex_sk_[A-Za-z0-9_-]{32}$`), "created_at": isText, "expires_at": orNull(isText),
}

// makeKey makes a key; the caller revokes it.
func (c *client) makeKey(ctx context.Context, body string) (id, key string, err error) {
	r, err := c.do(ctx, c.asAdmin(request{Path: keysPath, Body: body}))
	if err != nil {
		return "", "", err
	}
	if r.Status != http.StatusCreated {
		return "", "", fmt.Errorf("making a key: status %d: %s", r.Status, r.excerpt())
	}
	m, err := r.object()
	if err == nil {
		err = newKeyAnswer.check(m)
	}
	if err != nil {
		return "", "", err
	}
	return text(m["id"]), text(m["key"]), nil
}

func (c *client) with(ctx context.Context, header, value string) (response, error) {
	return c.do(ctx, request{Path: governPath, Body: govern(question), Anonymous: true, Header: map[string]string{header: value}})
}

func keysLive(ctx context.Context, c *client) error {
	id, key, err := c.makeKey(ctx, `{"name":"lex conformance: lives"}`)
	if err != nil {
		return err
	}
	defer c.returnKey(ctx, id)
	for _, header := range [][2]string{{"X-Lex-Api-Key", key}, {"Authorization", "Bearer " + key}, {"Authorization", "bearer " + key}} {
		r, err := c.with(ctx, header[0], header[1])
		if err != nil || r.Status != http.StatusOK {
			return errors.Join(err, fmt.Errorf("the key in %s: status %d: %s", header[0], r.Status, r.excerpt()))
		}
	}
	list, err := c.do(ctx, c.asAdmin(request{Path: keysPath}))
	if err != nil {
		return err
	}
	if strings.Contains(string(list.Body), key) {
		return errors.New("the list shows the key")
	}
	if used, err := lastUsed(list, id); err != nil || !used {
		return errors.Join(err, fmt.Errorf("last_used_at of a used key: %v", used))
	}
	for range 2 { // revoking twice succeeds
		r, err := c.do(ctx, c.asAdmin(request{Method: http.MethodDelete, Path: keysPath + "/" + id}))
		if err != nil || r.Status != http.StatusNoContent {
			return errors.Join(err, fmt.Errorf("revoking: status %d", r.Status))
		}
	}
	r, err := c.with(ctx, "X-Lex-Api-Key", key)
	if err != nil || r.Status != http.StatusUnauthorized {
		return errors.Join(err, fmt.Errorf("the revoked key: status %d", r.Status))
	}
	return refusesWith("invalid_api_key")(r)
}

func lastUsed(list response, id string) (bool, error) {
	var keys struct {
		Keys []struct {
			ID         string  `json:"id"`
			LastUsedAt *string `json:"last_used_at"`
		} `json:"keys"`
	}
	if err := json.Unmarshal(list.Body, &keys); err != nil {
		return false, err
	}
	for _, k := range keys.Keys {
		if k.ID == id {
			return k.LastUsedAt != nil, nil
		}
	}
	return false, errors.New("the key is not listed")
}

// keysExpire makes a key of a few seconds and uses it when they are over.
func keysExpire(ctx context.Context, c *client) error {
	until := time.Now().Add(4 * time.Second)
	id, key, err := c.makeKey(ctx, `{"name":"lex conformance: expires","expires_at":"`+until.UTC().Format(time.RFC3339Nano)+`"}`)
	if err != nil {
		return err
	}
	defer c.returnKey(ctx, id)
	if err := sleep(ctx, time.Until(until)+time.Second); err != nil {
		return err
	}
	r, err := c.with(ctx, "X-Lex-Api-Key", key)
	if err != nil {
		return err
	}
	return allOf(refusesWith("invalid_api_key"))(r)
}

func unknownKeyIsNotFound(ctx context.Context, c *client) error {
	r, err := c.do(ctx, c.asAdmin(request{Method: http.MethodDelete, Path: keysPath + "/key_0"}))
	if err != nil || r.Status != http.StatusNotFound {
		return errors.Join(err, fmt.Errorf("status %d", r.Status))
	}
	return refusesWith("not_found")(r)
}

func invalidKeys(ctx context.Context, c *client) error {
	return c.refusesAll(ctx, keysPath, c.asAdmin, map[string]string{
		``: "invalid_json", `[]`: "invalid_json", `{}`: "invalid_name", `{"name":""}`: "invalid_name", `{"name":7}`: "invalid_name", `{"name":"a\u0000"}`: "invalid_name",
		`{"name":"` + strings.Repeat("a", 129) + `"}`:      "invalid_name",
		`{"name":"a","plan":"no such plan"}`:               "invalid_plan",
		`{"name":"a","plan":7}`:                            "invalid_plan",
		`{"name":"a","expires_at":"tomorrow"}`:             "invalid_expires_at",
		`{"name":"a","expires_at":"2020-01-01T00:00:00Z"}`: "invalid_expires_at",
		`{"name":"a","expires_at":7}`:                      "invalid_expires_at",
		`{"name":"a","name":"b"}`:                          "invalid_json",
	})
}
