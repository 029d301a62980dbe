package caddymodule

import (
	"context"
	"errors"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/kernel"
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
	out, entry, receipt, err := a.audit(r.Context(), q)
	if err != nil {
		return storeError(err)
	}
	if q.prompt != nil || q.output != nil {
		if err := a.mayCompare(r, entry); err != nil {
			return err
		}
		if err := a.compare(r.Context(), out, q, entry, receipt); err != nil {
			return storeError(err)
		}
	}
	return writeJSON(w, http.StatusOK, out)
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

// audit verifies the receipt that the request names or holds. A receipt that is
// held is looked for in the store: anybody can seal a record of their own.
func (a *readAPI) audit(ctx context.Context, q verifyRequest) (*report, store.Receipt, kernel.Receipt, error) {
	audits := auditor{a.engine.store}
	if q.record == nil {
		if !receiptID.MatchString(q.id) {
			return nil, store.Receipt{}, kernel.Receipt{}, store.ErrNotFound
		}
		entry, err := audits.Receipt(ctx, q.id)
		if err != nil {
			return nil, entry, kernel.Receipt{}, err
		}
		out, receipt, err := audits.receipt(ctx, entry)
		return out, entry, receipt, err
	}
	receipt, err := kernel.OpenReceipt(q.record)
	if err != nil {
		out := newReport()
		out.add("id", faultOf(err))
		return out, store.Receipt{}, receipt, nil
	}
	entry, stored, err := audits.stored(ctx, receipt.ID, q.record)
	if err != nil {
		return nil, entry, receipt, err
	}
	if entry.ID == "" { // everything that needs no neighbour
		entry = store.Receipt{ID: receipt.ID, JSON: q.record}
	}
	out, _, err := audits.receipt(ctx, entry)
	if err == nil {
		out.add("stored", stored)
	}
	return out, entry, receipt, err
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
		if id != "" && sessionKey(c.namespace, id) == entry.SessionKey {
			return true
		}
	}
	return false
}

// compare adds the checks of the texts to a report without a fault; of a receipt
// that is broken nothing more can be said.
func (a *readAPI) compare(ctx context.Context, out *report, q verifyRequest, entry store.Receipt, r kernel.Receipt) error {
	if out.Fault != nil {
		return nil
	}
	checks, err := auditor{a.engine.store}.texts(ctx, entry, r, q.prompt, q.output)
	for _, c := range checks {
		out.addCheck(c)
	}
	return err
}
