package caddymodule

import (
	"context"
	"errors"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/audit"
	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/store"
)

// verifyRequest is the body of POST /audits/verify.
type verifyRequest struct {
	id             string
	record         []byte // canonical; nil when only the id was given
	prompt, output *string
}

// verify serves POST /audits/verify.
func (a *readAPI) verify(w http.ResponseWriter, r *http.Request) error {
	q, err := decodeVerify(w, r)
	if err != nil {
		return err
	}
	auditor := audit.NewAuditor(a.engine.store)
	report, err := q.verify(r.Context(), auditor)
	if err != nil {
		return storeError(err)
	}
	if q.prompt != nil || q.output != nil {
		if err := a.mayCompare(r, report.Entry); err != nil {
			return err
		}
		if err := auditor.CompareTexts(r.Context(), report, q.prompt, q.output); err != nil {
			return storeError(err)
		}
	}
	return writeJSON(w, http.StatusOK, report)
}

func decodeVerify(w http.ResponseWriter, r *http.Request) (verifyRequest, error) {
	body, apiErr := readBody(w, r, maxGovernBody)
	if apiErr != nil {
		return verifyRequest{}, apiErr
	}
	m, apiErr := decodeObject(body, "receipt_id", "receipt", "prompt", "output")
	if apiErr != nil {
		return verifyRequest{}, apiErr
	}
	id, record := present(m["receipt_id"]), present(m["receipt"])
	switch {
	case id == record:
		return verifyRequest{}, errMissingReceipt
	case id && m["receipt_id"].Type != gjson.String, record && !m["receipt"].IsObject():
		return verifyRequest{}, errInvalidReceipt
	}
	q := verifyRequest{id: m["receipt_id"].Str}
	if record { // a client holds the values, not the bytes
		q.record = []byte(m["receipt"].Raw)
		if err := (*jsontext.Value)(&q.record).Canonicalize(); err != nil {
			return verifyRequest{}, errInvalidJSON
		}
	}
	for name, to := range map[string]**string{"prompt": &q.prompt, "output": &q.output} {
		if v := m[name]; present(v) {
			if v.Type != gjson.String {
				return verifyRequest{}, errInvalidReceipt
			}
			*to = &v.Str
		}
	}
	return q, nil
}

// present reports whether a member is there and not null.
func present(v gjson.Result) bool { return v.Exists() && v.Type != gjson.Null }

// verify verifies the receipt that the request names or holds.
func (q verifyRequest) verify(ctx context.Context, auditor audit.Auditor) (*audit.Report, error) {
	switch {
	case q.record != nil:
		return auditor.VerifyRecord(ctx, q.record)
	case !receiptID.MatchString(q.id):
		return nil, store.ErrNotFound
	}
	return auditor.VerifyID(ctx, q.id)
}

// mayCompare lets those compare texts who could read them anyway: for anybody
// else the answer would tell whether a guess is right.
func (a *readAPI) mayCompare(r *http.Request, entry store.Receipt) error {
	caller, apiErr := a.auth.identify(r.Context(), r, false)
	switch {
	case apiErr != nil:
		a.auth.failures.report(apiErr) // it is not answered: the admin secret may still do
	case caller.keyed && ownsSession(r, caller, entry):
		return nil
	}
	apiErr = a.auth.checkAdmin(r)
	switch {
	case apiErr == nil:
		return nil
	case errors.Is(apiErr, errRateLimited), errors.Is(apiErr, errGovernor):
		return apiErr
	}
	return errTextsForbidden
}

// ownsSession reports whether the caller's namespace and a session id that they
// give, or that the receipt shows, make the session's key.
func ownsSession(r *http.Request, c caller, entry store.Receipt) bool {
	for _, id := range []string{entry.SessionID, r.Header.Get("X-Lex-Session")} {
		if id != "" && govern.SessionKey(c.namespace, id) == entry.SessionKey {
			return true
		}
	}
	return false
}
