package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

const verifyPath = "/audits/verify"

func verifyCases() []testCase {
	return []testCase{
		{Name: "verify: a receipt", Flow: receiptVerifies},
		{Name: "verify: a changed record", Flow: changedRecordDoesNotVerify},
		{Name: "verify: an unknown id", Request: request{Path: verifyPath, Body: `{"receipt_id":"KRN-00000000000000000000000000000000"}`}, Status: http.StatusNotFound, Body: refusesWith("not_found")},
		{Name: "verify: nothing", Request: request{Path: verifyPath, Body: `{}`}, Status: http.StatusBadRequest, Body: refusesWith("missing_receipt")},
		{Name: "verify: no JSON", Request: request{Path: verifyPath, Body: `{`}, Status: http.StatusBadRequest, Body: refusesWith("invalid_json")},
	}
}

var verification = members{"valid": isBool, "checks": listOf(members{"name": isText, "ok": orNull(isBool), "detail": isText}.isObject, -1), "fault": orNull(isText)}

func receiptVerifies(ctx context.Context, c *client) error {
	turn, err := c.governed(ctx, question, newSession())
	if err != nil {
		return err
	}
	id, _ := turn["receipt_id"].(string)
	r, err := c.do(ctx, request{Path: verifyPath, Body: `{"receipt_id":"` + id + `"}`})
	if err != nil {
		return err
	}
	return allOf(hasMembers(verification), equals("valid", true), equals("fault", nil))(r)
}

func changedRecordDoesNotVerify(ctx context.Context, c *client) error {
	turn, err := c.governed(ctx, question, newSession())
	if err != nil {
		return err
	}
	id, _ := turn["receipt_id"].(string)
	whole, err := c.do(ctx, request{Path: "/audits/" + id})
	if err != nil {
		return err
	}
	changed := []byte(string(whole.Body))
	digit := indexAfter(changed, `"timestamp":`)
	if digit < 0 {
		return errors.New("the record has no timestamp")
	}
	changed[digit+1] ^= 1 // another digit, which is not the first
	r, err := c.do(ctx, request{Path: verifyPath, Body: `{"receipt":` + string(changed) + `}`})
	if err != nil {
		return err
	}
	if r.Status != http.StatusOK {
		return fmt.Errorf("status %d: %s", r.Status, r.excerpt())
	}
	return allOf(hasMembers(verification), equals("valid", false))(r)
}

// indexAfter is the place behind the first occurrence of a text, or -1.
func indexAfter(b []byte, text string) int {
	for i := 0; i+len(text) < len(b); i++ {
		if string(b[i:i+len(text)]) == text {
			return i + len(text)
		}
	}
	return -1
}
