package conformance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// publicReceipt are the members of the receipts that are listed.
var publicReceipt = members{
	"id": matching(`^(KRN|TCR)-[0-9A-F]{32}$`), "session_id": isText, "turn": isInteger,
	"pre_eval_label": oneOf("CLEAR", "WATCH", "THREAT", "UNASSESSED"), "m_before": isNumber, "m_after": isNumber,
	"governor_mode": oneOf("observe", "refuse", "correct", "pass"), "intervention": isBool, "slow_drip": isBool,
	"governor_effort": isNumber, "sigma_viol": isNumber, "timestamp": isInteger,
}

var benchmark = members{
	"benchmark": isText, "metric": isText, "n_total": isInteger, "bare_pct": within(0, 100), "governed_pct": within(0, 100),
	"bare_ci95": listOf(within(0, 100), 2), "governed_ci95": listOf(within(0, 100), 2), "delta_pct": within(-100, 100),
	"notes": isText, "created_at": matching(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$`),
}

func readCases() []testCase {
	cases := []testCase{
		{Name: "audits: the list", Request: request{Path: "/audits/recent"}, Status: http.StatusOK, Header: map[string]string{"Content-Type": "application/json"}, Body: listsAtMost(20)},
		{Name: "audits: limit 1", Request: request{Path: "/audits/recent?limit=1"}, Status: http.StatusOK, Body: listsAtMost(1)},
		{Name: "audits: a large limit is clamped", Request: request{Path: "/audits/recent?limit=99999"}, Status: http.StatusOK, Body: listsAtMost(200)},
		{Name: "audits: an unknown cursor", Request: request{Path: "/audits/recent?before=nowhere"}, Status: http.StatusBadRequest, Body: refusesWith("invalid_cursor")},
		{Name: "audits: newest first, page by page", Flow: pagesAreExact},
		{Name: "audits: the log", Flow: logIsLinked},
		{Name: "audits: behind the log", Request: request{Path: "/audits/log?after=9007199254740991&limit=99999"}, Status: http.StatusOK, Header: map[string]string{"Content-Type": "application/x-ndjson"}, Body: isEmpty},
		{Name: "audits: no place in the log", Request: request{Path: "/audits/log?after=-1"}, Status: http.StatusBadRequest, Body: refusesWith("invalid_cursor")},
		{Name: "audits: no limit of the log", Request: request{Path: "/audits/log?limit=0"}, Status: http.StatusBadRequest, Body: refusesWith("invalid_limit")},
		{Name: "audits: one receipt is what was hashed", Flow: receiptIsWhatWasHashed},
		{Name: "audits: an unknown id", Request: request{Path: "/audits/KRN-00000000000000000000000000000000"}, Status: http.StatusNotFound, Body: refusesWith("not_found")},
		{Name: "audits: a malformed id", Request: request{Path: "/audits/krn-1"}, Status: http.StatusNotFound, Body: refusesWith("not_found")},
		{Name: "stats", Request: request{Path: "/stats"}, Status: http.StatusOK, Body: hasMembers(members{"total_receipts": isInteger, "intervention_rate": within(0, 1), "stability_margin": within(0, 1.0/3), "thresholds": isThresholds})},
		{Name: "stats: a receipt counts", Flow: receiptCounts},
		{Name: "stats: a turn counts for the thresholds", Flow: turnCountsForThresholds},
		{Name: "stats: evaluation sessions do not count", Flow: evaluationDoesNotCount},
		{Name: "stats: sessions over 80 turns do not count", Flow: longSessionsDoNotCount},
		{Name: "benchmarks", Request: request{Path: "/benchmarks"}, Status: http.StatusOK, Header: map[string]string{"ETag": "", "Cache-Control": "public, max-age=60, s-maxage=60"}, Body: hasMembers(members{"results": listOf(benchmark.isObject, -1)})},
		{Name: "benchmarks: If-None-Match", Flow: notModified},
		{Name: "agentic-sim", Request: request{Path: "/agentic-sim"}, Status: http.StatusOK, Body: isSimulation},
		{Name: "health", Request: request{Path: "/lex/health"}, Status: http.StatusOK, Body: hasMembers(members{"status": oneOf("ok"), "components": members{}.isObject})},
		{Name: "openapi", Request: request{Path: "/lex/openapi.json"}, Status: http.StatusOK, Body: hasMembers(members{"openapi": matching(`^3\.1\.`), "paths": members{"/lex/govern": members{}.isObject}.isObject})},
		{Name: "docs", Request: request{Path: "/lex/docs"}, Status: http.StatusOK, Header: map[string]string{"Content-Security-Policy": "", "X-Content-Type-Options": "nosniff"}, Body: hasNoScript},
	}
	for _, limit := range []string{"0", "-1", "x", "1.5", "", "1e1", "0x1", "%201"} {
		cases = append(cases, testCase{Name: "audits: limit " + limit, Request: request{Path: "/audits/recent?limit=" + limit}, Status: http.StatusBadRequest, Body: refusesWith("invalid_limit")})
	}
	return cases
}

func hasNoScript(r response) error {
	if bytes.Contains(r.Body, []byte("<script")) || !strings.Contains(r.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
		return errors.New("the page has scripts or may be framed")
	}
	return nil
}

func listsAtMost(n int) func(response) error {
	return func(r response) error {
		m, err := r.object()
		if err != nil {
			return err
		}
		list, ok := m["receipts"].([]any)
		if !ok || len(list) > n {
			return fmt.Errorf("%d receipts, want at most %d", len(list), n)
		}
		if !listOf(publicReceipt.isObject, -1)(m["receipts"]) {
			return errors.New("a receipt has not the twelve members")
		}
		return nil
	}
}

// page reads one page of receipts and the path of the next.
func (c *client) page(ctx context.Context, path string) (ids []string, next string, err error) {
	r, err := c.do(ctx, request{Path: path})
	if err != nil {
		return nil, "", err
	}
	if err := listsAtMost(200)(r); err != nil {
		return nil, "", err
	}
	m, err := r.object()
	if err != nil {
		return nil, "", err
	}
	for _, receipt := range list(m["receipts"]) {
		ids = append(ids, text(object(receipt)["id"]))
	}
	target, rest, ok := strings.Cut(strings.TrimPrefix(r.Header.Get("Link"), "<"), ">")
	if ok && !strings.Contains(rest, `rel="next"`) {
		return nil, "", fmt.Errorf("header Link is %q", r.Header.Get("Link"))
	}
	if !ok {
		return ids, "", nil
	}
	at, err := url.Parse(c.basePath + path)
	if err == nil {
		at, err = at.Parse(target) // RFC 8288, section 3.1
	}
	if err != nil {
		return nil, "", fmt.Errorf("header Link is %q", r.Header.Get("Link"))
	}
	return ids, strings.TrimPrefix(at.RequestURI(), c.basePath), nil
}

// pagesAreExact makes five receipts and finds them in their order, each once,
// by pages of two. Others may write meanwhile.
func pagesAreExact(ctx context.Context, c *client) error {
	session := newSession()
	var made []string // newest first
	for range 5 {
		turn, err := c.governed(ctx, question, session)
		if err != nil {
			return err
		}
		id, _ := turn["receipt_id"].(string)
		made = append([]string{id}, made...)
	}
	seen := make(map[string]bool)
	path := "/audits/recent?limit=2"
	for pages := 0; path != "" && len(made) > 0; pages++ {
		if pages > 500 {
			return errors.New("the pages do not end")
		}
		ids, next, err := c.page(ctx, path)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if seen[id] {
				return fmt.Errorf("%s is listed twice", id)
			}
			seen[id] = true
			if len(made) > 0 && id == made[0] {
				made = made[1:]
			}
		}
		path = next
	}
	if len(made) > 0 {
		return fmt.Errorf("%d receipts are not listed, or not in their order", len(made))
	}
	return nil
}

// logIsLinked makes two receipts and reads the beginning of the log: the numbers follow
// each other, and each line has the hash of the receipt before.
func logIsLinked(ctx context.Context, c *client) error {
	session := newSession()
	for range 2 {
		if _, err := c.governed(ctx, question, session); err != nil {
			return err
		}
	}
	r, err := c.do(ctx, request{Path: "/audits/log?limit=10"})
	if err != nil {
		return err
	}
	lines := bytes.Split(bytes.TrimSuffix(r.Body, []byte("\n")), []byte("\n"))
	if r.Status != http.StatusOK || len(lines) < 2 || len(lines) > 10 {
		return fmt.Errorf("status %d and %d lines, want 2 to 10", r.Status, len(lines))
	}
	prev := ""
	for i, line := range lines {
		place, record, _ := bytes.Cut(line, []byte(`,"receipt":`))
		if want := fmt.Sprintf(`{"seq":%d,"log_prev":"%s"`, i+1, prev); string(place) != want {
			return fmt.Errorf("line %d begins %s, want %s", i+1, place, want)
		}
		sum := sha256.Sum256(bytes.TrimSuffix(record, []byte("}")))
		prev = hex.EncodeToString(sum[:])
	}
	return nil
}

// record reads one receipt whole.
func (c *client) record(ctx context.Context, id string) (map[string]any, error) {
	r, err := c.do(ctx, request{Path: "/audits/" + id})
	if err != nil {
		return nil, err
	}
	if r.Status != http.StatusOK {
		return nil, fmt.Errorf("the receipt %s: status %d", id, r.Status)
	}
	return r.object()
}

func receiptIsWhatWasHashed(ctx context.Context, c *client) error {
	turn, err := c.governed(ctx, question, newSession())
	if err != nil {
		return err
	}
	id, _ := turn["receipt_id"].(string)
	r, err := c.do(ctx, request{Path: "/audits/" + id})
	if err != nil {
		return err
	}
	member := []byte(`"id":"` + id + `",`)
	if bytes.Count(r.Body, member) != 1 {
		return fmt.Errorf("the record does not hold its id: %s", r.excerpt())
	}
	sum := sha256.Sum256(bytes.Replace(r.Body, member, nil, 1))
	if want := "KRN-" + strings.ToUpper(hex.EncodeToString(sum[:16])); id != want {
		return fmt.Errorf("the id is %s, the record's hash %s", id, want)
	}
	if bytes.Contains(r.Body, []byte("capital of France")) {
		return errors.New("the record holds the prompt")
	}
	return nil
}

var isThresholds = members{
	"since": orNull(isInteger), "turns": isInteger,
	"refuse_at": listOf(within(0, 1), -1), "refused": listOf(isInteger, -1),
	"attack_types": members{}.isObject,
	"rates": listOf(members{
		"rate": within(0, 1), "needed": isInteger, "refuse_at": orNull(within(0, 1)), "refuse_at_ci95": orNull(listOf(within(0, 1), 2)),
		"refused": isInteger, "refused_ci95": orNull(listOf(within(0, 100), 2)),
	}.isObject, -1),
}.isObject

// turnCountsForThresholds expects a turn to be counted, and no threshold to refuse more
// turns than there are, or fewer than a higher one does.
func turnCountsForThresholds(ctx context.Context, c *client) error {
	thresholds := func() (map[string]any, error) {
		r, err := c.do(ctx, request{Path: "/stats"})
		if err != nil {
			return nil, err
		}
		m, err := r.object()
		return object(m["thresholds"]), err
	}
	before, err := thresholds()
	if err != nil {
		return err
	}
	if _, err := c.governed(ctx, question, newSession()); err != nil {
		return err
	}
	after, err := thresholds()
	if err != nil {
		return err
	}
	if number(after["turns"]) <= number(before["turns"]) {
		return fmt.Errorf("thresholds.turns goes from %v to %v with a new turn", before["turns"], after["turns"])
	}
	last, refused := number(after["turns"]), list(after["refused"])
	if len(refused) == 0 || len(refused) != len(list(after["refuse_at"])) {
		return fmt.Errorf("thresholds.refused has %d counts for %d thresholds", len(refused), len(list(after["refuse_at"])))
	}
	for i, n := range refused {
		if number(n) > last {
			return fmt.Errorf("thresholds.refused: %v at place %d, after %v", n, i, last)
		}
		last = number(n)
	}
	return nil
}

func (c *client) total(ctx context.Context) (float64, error) {
	r, err := c.do(ctx, request{Path: "/stats"})
	if err != nil {
		return 0, err
	}
	m, err := r.object()
	if err != nil {
		return 0, err
	}
	n, _ := m["total_receipts"].(float64)
	return n, nil
}

// counted is by how much the statistics grew while f ran.
func (c *client) counted(ctx context.Context, f func() error) (float64, error) {
	before, err := c.total(ctx)
	if err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	after, err := c.total(ctx)
	return after - before, err
}

// quietTries is how often a case that needs nobody else about is tried.
const quietTries = 5

func receiptCounts(ctx context.Context, c *client) error {
	grown, err := c.counted(ctx, func() error { _, err := c.governed(ctx, question, newSession()); return err })
	if err == nil && grown < 1 {
		err = fmt.Errorf("total_receipts grew by %v with a new receipt", grown)
	}
	return err
}

// doesNotCount expects the statistics to stay as they are; traffic of others
// may grow them, which it tries to evade.
func (c *client) doesNotCount(ctx context.Context, f func() error) error {
	for range quietTries {
		grown, err := c.counted(ctx, f)
		if err != nil || grown == 0 {
			return err
		}
	}
	return errors.New("total_receipts grows (or others are about all the time)")
}

func evaluationDoesNotCount(ctx context.Context, c *client) error {
	return c.doesNotCount(ctx, func() error { _, err := c.governed(ctx, question, "bench-"+newSession()); return err })
}

// longSessionsDoNotCount makes a session of three turns, the last labelled 81:
// all three are left out.
func longSessionsDoNotCount(ctx context.Context, c *client) error {
	return c.doesNotCount(ctx, func() error {
		session := newSession()
		for _, turn := range []int{1, 80, 81} {
			r, err := c.do(ctx, request{Path: governPath, Body: govern(question, "session_id", session, "turn", turn)})
			if err != nil {
				return err
			}
			if err := isResult(r); err != nil {
				return err
			}
		}
		return nil
	})
}

func notModified(ctx context.Context, c *client) error {
	first, err := c.do(ctx, request{Path: "/benchmarks"})
	if err != nil {
		return err
	}
	again, err := c.do(ctx, request{Path: "/benchmarks", Header: map[string]string{"If-None-Match": first.Header.Get("ETag")}})
	if err != nil {
		return err
	}
	if again.Status != http.StatusNotModified || len(again.Body) != 0 {
		return fmt.Errorf("status %d with %d bytes, want 304 with none", again.Status, len(again.Body))
	}
	return nil
}

func isSimulation(r response) error {
	if err := hasMembers(members{
		"scenarios": listOf(members{"name": isText, "blocked": isBool, "reason": orNull(isText)}.isObject, -1),
		"summary":   members{"total": isInteger, "blocked": isInteger, "approved": isInteger}.isObject,
	})(r); err != nil {
		return err
	}
	m, err := r.object()
	if err != nil {
		return err
	}
	blocked, names := 0.0, make(map[any]bool)
	scenarios := list(m["scenarios"])
	for _, s := range scenarios {
		scenario := object(s)
		names[scenario["name"]] = true
		if scenario["blocked"] != (scenario["reason"] != nil) {
			return fmt.Errorf("scenario %v: blocked and reason disagree", scenario["name"])
		}
		if scenario["blocked"] == true {
			blocked++
		}
	}
	total, summary := float64(len(scenarios)), object(m["summary"])
	if total < 24 || float64(len(names)) != total || summary["total"] != total || summary["blocked"] != blocked || summary["approved"] != total-blocked {
		return fmt.Errorf("%v scenarios with %d names, of which %v blocked; summary %v", total, len(names), blocked, summary)
	}
	return nil
}
