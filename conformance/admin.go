package conformance

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

const (
	keysPath       = "/admin/keys"
	benchmarksPath = "/admin/benchmarks"
	sessionsPath   = "/admin/sessions/"
)

const benchmarkRow = `{"benchmark":"lex-conformance","metric":"none","n_total":200,"bare_pct":41.5,"governed_pct":1.5,` +
	`"bare_ci95":[34.9,48.4],"governed_ci95":[0.5,4.3],"notes":"published by the conformance suite"}`

func adminCases() []Case {
	var cases []Case
	for _, k := range []struct{ method, path string }{
		{http.MethodGet, keysPath},
		{http.MethodPost, keysPath},
		{http.MethodDelete, keysPath + "/key_0"},
		{http.MethodPost, benchmarksPath},
		{http.MethodGet, sessionsPath + strings.Repeat("0", 64)},
		{http.MethodDelete, sessionsPath + strings.Repeat("0", 64)},
	} {
		cases = append(cases, Case{Name: fmt.Sprintf("secrets: %s %s without one", k.method, k.path), Flow: closedWithoutSecret(Request{Method: k.method, Path: k.path})})
	}
	cases = append(
		cases,
		Case{Name: "secrets: a wrong one", Needs: AdminSecret, Request: Request{Path: keysPath, Header: map[string]string{"X-Lex-Admin-Password": "wrong " + newSession()}}, Status: http.StatusUnauthorized, Header: map[string]string{"WWW-Authenticate": ""}, Body: fails("unauthorized")},
		Case{Name: "keys: an unknown one", Request: Request{Path: governPath, Body: govern(question), Anonymous: true, Header: map[string]string{"X-Lex-Api-Key": "lex_sk_" + strings.Repeat("A", 32)}}, Status: http.StatusUnauthorized, Body: fails("invalid_api_key")},
		Case{Name: "keys: an unknown bearer token", Request: Request{Path: governPath, Body: govern(question), Anonymous: true, Header: map[string]string{"Authorization": "Bearer nobody"}}, Status: http.StatusUnauthorized, Body: fails("invalid_api_key")},
		Case{Name: "keys: checked before the body", Request: Request{Path: governPath, Body: `{`, Anonymous: true, Header: map[string]string{"X-Lex-Api-Key": "nobody"}}, Status: http.StatusUnauthorized, Body: fails("invalid_api_key")},
		Case{Name: "keys: made, used, listed, revoked", Needs: AdminSecret, Flow: keysLive},
		Case{Name: "keys: expired", Needs: AdminSecret, Flow: keysExpire},
		Case{Name: "keys: an unknown id", Needs: AdminSecret, Flow: unknownKeyIsNotFound},
		Case{Name: "keys: invalid requests", Needs: AdminSecret, Flow: invalidKeys},
		Case{Name: "sessions: shown and erased", Needs: AdminSecret, Flow: sessionsAreErased},
		Case{Name: "sessions: of another key are apart", Needs: AdminSecret, Flow: sessionsAreApart},
		Case{Name: "benchmarks: published", Needs: BenchSecret, Flow: benchmarksArePublished},
		Case{Name: "benchmarks: invalid rows", Needs: BenchSecret, Flow: invalidBenchmarks},
	)
	return cases
}

// closedWithoutSecret expects 401, or 503 where no secret is configured.
func closedWithoutSecret(q Request) func(context.Context, *Client) error {
	return func(ctx context.Context, c *Client) error {
		r, err := c.Do(ctx, q)
		if err != nil {
			return err
		}
		switch r.Status {
		case http.StatusServiceUnavailable:
			return fails("not_configured")(r)
		case http.StatusUnauthorized:
			if r.Header.Get("WWW-Authenticate") == "" {
				return errors.New("a 401 without WWW-Authenticate")
			}
			return fails("unauthorized")(r)
		}
		return fmt.Errorf("status %d: %s", r.Status, r.excerpt())
	}
}

var newKeyAnswer = members{
	"id": isText, "name": isText, "plan": orNull(isText), "key": matching(`^lex_sk_[A-Za-z0-9_-]{32}$`), "created_at": isText, "expires_at": orNull(isText),
}

// makeKey makes a key; the caller revokes it.
func (c *Client) makeKey(ctx context.Context, body string) (id, key string, err error) {
	r, err := c.Do(ctx, c.asAdmin(Request{Path: keysPath, Body: body}))
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
	return m["id"].(string), m["key"].(string), nil
}

func (c *Client) with(ctx context.Context, header, value string) (Response, error) {
	return c.Do(ctx, Request{Path: governPath, Body: govern(question), Anonymous: true, Header: map[string]string{header: value}})
}

func keysLive(ctx context.Context, c *Client) error {
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
	list, err := c.Do(ctx, c.asAdmin(Request{Path: keysPath}))
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
		r, err := c.Do(ctx, c.asAdmin(Request{Method: http.MethodDelete, Path: keysPath + "/" + id}))
		if err != nil || r.Status != http.StatusNoContent {
			return errors.Join(err, fmt.Errorf("revoking: status %d", r.Status))
		}
	}
	r, err := c.with(ctx, "X-Lex-Api-Key", key)
	if err != nil || r.Status != http.StatusUnauthorized {
		return errors.Join(err, fmt.Errorf("the revoked key: status %d", r.Status))
	}
	return fails("invalid_api_key")(r)
}

func lastUsed(list Response, id string) (bool, error) {
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

// keysExpire makes a key of one second and uses it until it is refused.
func keysExpire(ctx context.Context, c *Client) error {
	until := time.Now().Add(2 * time.Second)
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
	return all(fails("invalid_api_key"))(r)
}

func unknownKeyIsNotFound(ctx context.Context, c *Client) error {
	r, err := c.Do(ctx, c.asAdmin(Request{Method: http.MethodDelete, Path: keysPath + "/key_0"}))
	if err != nil || r.Status != http.StatusNotFound {
		return errors.Join(err, fmt.Errorf("status %d", r.Status))
	}
	return fails("not_found")(r)
}

// refusesAll sends bodies that must each be answered with 400 and their code.
func (c *Client) refusesAll(ctx context.Context, path string, as func(Request) Request, bodies map[string]string) error {
	for body, code := range bodies {
		r, err := c.Do(ctx, as(Request{Method: http.MethodPost, Path: path, Body: body}))
		if err != nil {
			return err
		}
		if r.Status != http.StatusBadRequest {
			return fmt.Errorf("%.100s: status %d: %s", body, r.Status, r.excerpt())
		}
		if err := fails(code)(r); err != nil {
			return fmt.Errorf("%.100s: %w", body, err)
		}
	}
	return nil
}

func invalidKeys(ctx context.Context, c *Client) error {
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

func sessionsAreErased(ctx context.Context, c *Client) error {
	id, key, err := c.makeKey(ctx, `{"name":"lex conformance: sessions"}`)
	if err != nil {
		return err
	}
	defer c.returnKey(ctx, id)
	session := newSession()
	r, err := c.Do(ctx, Request{Path: governPath, Body: govern(question, "session_id", session), Anonymous: true, Header: map[string]string{"X-Lex-Api-Key": key}})
	if err != nil || r.Status != http.StatusOK {
		return errors.Join(err, fmt.Errorf("status %d", r.Status))
	}
	sum := sha256.Sum256([]byte("key:" + id + "\x00" + session))
	path := sessionsPath + hex.EncodeToString(sum[:])
	for i, want := range []struct {
		method string
		status int
	}{{http.MethodGet, http.StatusOK}, {http.MethodDelete, http.StatusNoContent}, {http.MethodGet, http.StatusNotFound}, {http.MethodDelete, http.StatusNoContent}} {
		got, err := c.Do(ctx, c.asAdmin(Request{Method: want.method, Path: path}))
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

func sessionsAreApart(ctx context.Context, c *Client) error {
	id, key, err := c.makeKey(ctx, `{"name":"lex conformance: another"}`)
	if err != nil {
		return err
	}
	defer c.returnKey(ctx, id)
	session := newSession()
	if _, err := c.governed(ctx, question, session); err != nil {
		return err
	}
	r, err := c.Do(ctx, Request{Path: governPath, Body: govern(question, "session_id", session), Anonymous: true, Header: map[string]string{"X-Lex-Api-Key": key}})
	if err != nil {
		return err
	}
	return all(isResult, equals("memory_injected", false))(r)
}

func benchmarksArePublished(ctx context.Context, c *Client) error {
	for body, n := range map[string]float64{benchmarkRow: 1, "[" + benchmarkRow + "," + benchmarkRow + "]": 2} {
		r, err := c.Do(ctx, c.asBench(Request{Path: benchmarksPath, Body: body}))
		if err != nil || r.Status != http.StatusCreated {
			return errors.Join(err, fmt.Errorf("status %d: %s", r.Status, r.excerpt()))
		}
		if err := equals("published", n)(r); err != nil {
			return err
		}
	}
	counts := `{"benchmark":"lex-conformance","metric":"none","n_total":200,"bare_successes":83,"governed_successes":3,"notes":"counts"}`
	if r, err := c.Do(ctx, c.asBench(Request{Path: benchmarksPath, Body: counts})); err != nil || r.Status != http.StatusCreated {
		return errors.Join(err, fmt.Errorf("counts: status %d: %s", r.Status, r.excerpt()))
	}
	r, err := c.Do(ctx, Request{Path: "/benchmarks"})
	if err != nil {
		return err
	}
	return showsCounts(r)
}

// showsCounts expects the row that was published last.
func showsCounts(r Response) error {
	var list struct {
		Results []struct {
			Benchmark, Notes string
			Delta            float64    `json:"delta_pct"`
			CI               [2]float64 `json:"bare_ci95"`
		}
	}
	if err := json.Unmarshal(r.Body, &list); err != nil {
		return err
	}
	for _, row := range list.Results {
		if row.Benchmark != "lex-conformance" {
			continue
		}
		if row.Notes != "counts" || row.Delta != 1.5-41.5 || row.CI[0] < 34.89 || row.CI[0] > 34.90 || row.CI[1] < 48.42 || row.CI[1] > 48.43 {
			return fmt.Errorf("the row is %+v", row)
		}
		return nil
	}
	return errors.New("the published row is not listed")
}

func invalidBenchmarks(ctx context.Context, c *Client) error {
	bodies := map[string]string{`{`: "invalid_json", `[]`: "invalid_benchmark", `7`: "invalid_benchmark", `{}`: "invalid_benchmark"}
	for _, change := range [][2]string{
		{`200`, `0`},
		{`200`, `2.5`},
		{`41.5`, `100.1`},
		{`41.5`, `-1`},
		{`41.5`, `"41.5"`},
		{`[34.9,48.4]`, `[48.4,34.9]`},
		{`[34.9,48.4]`, `[42,48.4]`},
		{`[34.9,48.4]`, `[34.9]`},
		{`"notes"`, `"created_at":"2026-11-01T10:00:00+01:00","notes"`},
		{`"notes"`, `"created_at":"yesterday","notes"`},
		{`"lex-conformance"`, `""`},
	} {
		bodies[strings.Replace(benchmarkRow, change[0], change[1], 1)] = "invalid_benchmark"
	}
	return c.refusesAll(ctx, benchmarksPath, c.asBench, bodies)
}
