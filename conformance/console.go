package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const consolePath = "/lex/console"

var consoleRow = members{
	"id": matching(`^(KRN|TCR)-[0-9A-F]{32}$`), "cursor": isText, "at": isInteger, "kind": oneOf("KRN", "TCR"), "session_id": isText, "turn": isInteger,
	"mode": isText, "endpoint": isText, "dialect": isText, "model": isText, "outcome": isText,
	"verdict": oneOf("blocked", "refused", "would_refuse", "failed", "corrected", "uninspected", "answered"), "flags": listOf(isText, -1),
	"reason": orNull(isText), "invariant": orNull(isText), "denied_by": orNull(isText), "attack_type": isText, "severity": within(0, 1),
	"m_before": isNumber, "m_after": isNumber, "scored": isBool, "gap": oneOf("none", "part", "whole"), "gaps": listOf(members{}.isObject, -1),
	"prev": orNull(isText), "policy": isText,
}

// consoleCases check the console, where the service has one that this client may read.
func consoleCases() []testCase {
	counted := members{"turns": isInteger, "refused": isInteger, "would_refuse": isInteger, "corrected": isInteger, "gaps": isInteger, "failed": isInteger}
	cases := []testCase{
		{Name: "console: the page", Needs: needsConsole, Request: request{Path: consolePath}, Status: http.StatusOK, Header: map[string]string{
			"Content-Type": "text/html; charset=utf-8", "Cross-Origin-Opener-Policy": "same-origin", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "ETag": "",
		}, Body: hasStrictPolicy},
		{Name: "console: about", Needs: needsConsole, Flow: readsConsole("/about", hasMembers(members{
			"now": isInteger, "version": isText, "store": isText, "open": isBool, "sites": listOf(members{"mode": isText, "unknown": isText}.isObject, -1),
			"policy": members{"hash": isText, "constants": members{"tau": isNumber}.isObject}.isObject, "window": members{"since": isInteger, "rows": isInteger, "limit": isInteger}.isObject, "shared_origin": isBool,
		}))},
		{Name: "console: counts", Needs: needsConsole, Flow: readsConsole("/counts?from=0&to=10000&step=5000", hasMembers(members{
			"from": isInteger, "to": isInteger, "step": isInteger, "since": isInteger, "provisional_from": isInteger, "at": listOf(isInteger, 2), "turns": listOf(isInteger, 2),
			"refused": listOf(isInteger, 2), "would_refuse": listOf(isInteger, 2), "corrected": listOf(isInteger, 2), "gaps": listOf(isInteger, 2), "failed": listOf(isInteger, 2),
			"reasons": members{}.isObject, "attack_types": members{}.isObject, "before": counted.isObject,
		}))},
		{Name: "console: coverage", Needs: needsConsole, Flow: readsConsole("/coverage?from=0&to=60000", hasMembers(members{
			"since": isInteger, "turns": isInteger, "gaps": isInteger, "whole": isInteger, "parts": listOf(members{}.isObject, -1), "detectors": listOf(members{}.isObject, -1),
			"without_receipt": members{"since": isInteger, "no_prompt": isInteger, "unknown_pass": isInteger, "rejected": isInteger, "left": isInteger, "failed": isInteger}.isObject,
		}))},
		{Name: "console: rows", Needs: needsConsole, Flow: readsConsole("/receipts?limit=5", hasMembers(members{
			"receipts": listOf(consoleRow.isObject, -1), "scanned": isInteger, "complete": isBool, "next": orNull(isText),
		}))},
		{Name: "console: a turn is listed, counted and followed", Needs: needsConsole, Flow: turnIsSeen},
		{Name: "console: methods", Needs: needsConsole, Request: request{Method: http.MethodPost, Path: consolePath}, Status: http.StatusMethodNotAllowed, Header: map[string]string{"Allow": "GET, HEAD"}, Body: refusesWith("method_not_allowed")},
	}
	for path, code := range map[string]string{
		"/counts": "invalid_range", "/counts?from=0&to=1000&step=1": "invalid_range", "/coverage?from=2&to=1": "invalid_range", "/receipts?show=everything": "invalid_filter",
		"/receipts?shew=refused": "invalid_filter", "/receipts?limit=0": "invalid_limit", "/receipts?before=nowhere": "invalid_cursor", "/events?show=everything": "invalid_filter",
	} {
		cases = append(cases, testCase{Name: "console: " + path, Needs: needsConsole, Flow: refusesConsole(path, http.StatusBadRequest, code)})
	}
	return append(cases, testCase{
		Name: "console: an unknown chain", Needs: needsConsole, Flow: refusesConsole("/chains/KRN-00000000000000000000000000000000", http.StatusNotFound, "not_found"),
	})
}

// askConsole reads of the console, with the admin secret if there is one.
func (c *client) askConsole(ctx context.Context, path string) (response, error) {
	q := request{Path: consolePath + path}
	if c.target.Admin != "" {
		q = c.asAdmin(q)
	}
	return c.do(ctx, q)
}

// showsConsole reports whether the service has a console that this client may read. Without one
// the path is the upstream's, which may answer whatever it is asked for.
func (c *client) showsConsole(ctx context.Context) bool {
	r, err := c.askConsole(ctx, "/about")
	if err != nil || r.Status != http.StatusOK {
		return false
	}
	about, err := r.object()
	return err == nil && about["version"] != nil
}

func readsConsole(path string, check func(response) error) func(context.Context, *client) error {
	return func(ctx context.Context, c *client) error {
		r, err := c.askConsole(ctx, path)
		if err != nil {
			return err
		}
		if r.Status != http.StatusOK {
			return fmt.Errorf("status %d: %s", r.Status, r.excerpt())
		}
		return check(r)
	}
}

func refusesConsole(path string, status int, code string) func(context.Context, *client) error {
	return func(ctx context.Context, c *client) error {
		r, err := c.askConsole(ctx, path)
		if err != nil {
			return err
		}
		if r.Status != status {
			return fmt.Errorf("status %d, want %d: %s", r.Status, status, r.excerpt())
		}
		return refusesWith(code)(r)
	}
}

func hasStrictPolicy(r response) error {
	policy := r.Header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
		if !strings.Contains(policy, part) || strings.Contains(policy, "unsafe") {
			return fmt.Errorf("the policy of the page is %q", policy)
		}
	}
	return nil
}

// turnIsSeen makes a turn and expects it in its chain, in the list, and, once the window
// has looked again, in the counts.
func turnIsSeen(ctx context.Context, c *client) error {
	session, began := newSession(), time.Now()
	turn, err := c.governed(ctx, question, session)
	if err != nil {
		return err
	}
	id, _ := turn["receipt_id"].(string)
	if err := readsConsole("/chains/"+id, func(r response) error {
		m, err := r.object()
		steps := list(m["steps"])
		if err != nil || len(steps) != 1 || object(steps[0])["id"] != id || m["head"] != id {
			return errors.Join(err, fmt.Errorf("the chain is not the turn: %s", r.excerpt()))
		}
		return nil
	})(ctx, c); err != nil {
		return err
	}
	if err := readsConsole("/receipts?session_id="+text(turn["session_id"]), func(r response) error {
		m, err := r.object()
		for _, row := range list(m["receipts"]) {
			if object(row)["id"] == id {
				return nil
			}
		}
		return errors.Join(err, fmt.Errorf("the turn is not listed: %s", r.excerpt()))
	})(ctx, c); err != nil {
		return err
	}
	ms := func(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }
	path := "/counts?step=3600000&from=" + ms(began.Add(-time.Hour)) + "&to=" + ms(began.Add(time.Hour))
	for range quietTries {
		err = readsConsole(path, func(r response) error {
			m, err := r.object()
			for _, n := range list(m["turns"]) {
				if number(n) > 0 {
					return nil
				}
			}
			return errors.Join(err, errors.New("the turn is not counted"))
		})(ctx, c)
		if err == nil {
			return nil
		}
		if err := c.target.Wait(ctx, time.Second); err != nil {
			return err
		}
	}
	return err
}
