package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
)

const (
	keysPath       = "/admin/keys"
	benchmarksPath = "/admin/benchmarks"
	sessionsPath   = "/admin/sessions/"
)

const benchmarkRow = `{"benchmark":"lex-conformance","metric":"none","n_total":200,"bare_pct":41.5,"governed_pct":1.5,` +
	`"bare_ci95":[34.9,48.4],"governed_ci95":[0.5,4.3],"notes":"published by the conformance suite"}`

func adminCases() []testCase {
	var cases []testCase
	for _, k := range []struct{ method, path string }{
		{http.MethodGet, keysPath},
		{http.MethodPost, keysPath},
		{http.MethodDelete, keysPath + "/key_0"},
		{http.MethodPost, benchmarksPath},
		{http.MethodGet, sessionsPath + strings.Repeat("0", 64)},
		{http.MethodDelete, sessionsPath + strings.Repeat("0", 64)},
	} {
		cases = append(cases, testCase{Name: fmt.Sprintf("secrets: %s %s without one", k.method, k.path), Flow: closedWithoutSecret(request{Method: k.method, Path: k.path})})
	}
	cases = append(
		cases,
		testCase{Name: "secrets: a wrong one", Needs: needsAdmin, Request: request{Path: keysPath, Header: map[string]string{"X-Lex-Admin-Password": "wrong " + newSession()}}, Status: http.StatusUnauthorized, Header: map[string]string{"WWW-Authenticate": ""}, Body: refusesWith("unauthorized")},
		testCase{Name: "keys: an unknown one", Request: request{Path: governPath, Body: govern(question), Anonymous: true, Header: map[string]string{"X-Lex-Api-Key": "lex_sk_" + strings.Repeat("A", 32)}}, Status: http.StatusUnauthorized, Body: refusesWith("invalid_api_key")},
		testCase{Name: "keys: an unknown bearer token", Request: request{Path: governPath, Body: govern(question), Anonymous: true, Header: map[string]string{"Authorization": "Bearer nobody"}}, Status: http.StatusUnauthorized, Body: refusesWith("invalid_api_key")},
		testCase{Name: "keys: checked before the body", Request: request{Path: governPath, Body: `{`, Anonymous: true, Header: map[string]string{"X-Lex-Api-Key": "nobody"}}, Status: http.StatusUnauthorized, Body: refusesWith("invalid_api_key")},
		testCase{Name: "keys: made, used, listed, revoked", Needs: needsAdmin, Flow: keysLive},
		testCase{Name: "keys: expired", Needs: needsAdmin, Flow: keysExpire},
		testCase{Name: "keys: an unknown id", Needs: needsAdmin, Flow: unknownKeyIsNotFound},
		testCase{Name: "keys: invalid requests", Needs: needsAdmin, Flow: invalidKeys},
		testCase{Name: "sessions: shown and erased", Needs: needsAdmin, Flow: sessionsAreErased},
		testCase{Name: "sessions: of another key are apart", Needs: needsAdmin, Flow: sessionsAreApart},
		testCase{Name: "benchmarks: published", Needs: needsBench, Flow: benchmarksArePublished},
		testCase{Name: "benchmarks: invalid rows", Needs: needsBench, Flow: invalidBenchmarks},
	)
	return cases
}

// closedWithoutSecret expects 401, or 503 where no secret is configured.
func closedWithoutSecret(q request) func(context.Context, *client) error {
	return func(ctx context.Context, c *client) error {
		r, err := c.do(ctx, q)
		if err != nil {
			return err
		}
		switch r.Status {
		case http.StatusServiceUnavailable:
			return refusesWith("not_configured")(r)
		case http.StatusUnauthorized:
			if r.Header.Get("WWW-Authenticate") == "" {
				return errors.New("a 401 without WWW-Authenticate")
			}
			return refusesWith("unauthorized")(r)
		}
		return fmt.Errorf("status %d: %s", r.Status, r.excerpt())
	}
}

// refusesAll sends bodies that must each be answered with 400 and their code.
func (c *client) refusesAll(ctx context.Context, path string, as func(request) request, bodies map[string]string) error {
	for body, code := range bodies {
		r, err := c.do(ctx, as(request{Method: http.MethodPost, Path: path, Body: body}))
		if err != nil {
			return err
		}
		if r.Status != http.StatusBadRequest {
			return fmt.Errorf("%.100s: status %d: %s", body, r.Status, r.excerpt())
		}
		if err := refusesWith(code)(r); err != nil {
			return fmt.Errorf("%.100s: %w", body, err)
		}
	}
	return nil
}

func benchmarksArePublished(ctx context.Context, c *client) error {
	for body, n := range map[string]float64{benchmarkRow: 1, "[" + benchmarkRow + "," + benchmarkRow + "]": 2} {
		r, err := c.do(ctx, c.asBench(request{Path: benchmarksPath, Body: body}))
		if err != nil || r.Status != http.StatusCreated {
			return errors.Join(err, fmt.Errorf("status %d: %s", r.Status, r.excerpt()))
		}
		if err := equals("published", n)(r); err != nil {
			return err
		}
	}
	counts := `{"benchmark":"lex-conformance","metric":"none","n_total":200,"bare_successes":83,"governed_successes":3,"notes":"counts"}`
	if r, err := c.do(ctx, c.asBench(request{Path: benchmarksPath, Body: counts})); err != nil || r.Status != http.StatusCreated {
		return errors.Join(err, fmt.Errorf("counts: status %d: %s", r.Status, r.excerpt()))
	}
	r, err := c.do(ctx, request{Path: "/benchmarks"})
	if err != nil {
		return err
	}
	return showsCounts(r)
}

// showsCounts expects the row that was published last.
func showsCounts(r response) error {
	var list struct {
		Results []struct {
			Benchmark string     `json:"benchmark"`
			Notes     string     `json:"notes"`
			Delta     float64    `json:"delta_pct"`
			CI        [2]float64 `json:"bare_ci95"`
		} `json:"results"`
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

func invalidBenchmarks(ctx context.Context, c *client) error {
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
