package caddymodule

import (
	"context"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/audit"
	"github.com/caddy-lex/lex/store"
)

var (
	errMissingReceipt = &apiError{http.StatusBadRequest, "Give either receipt_id or receipt.", "missing_receipt"}
	errInvalidReceipt = &apiError{http.StatusBadRequest, "receipt_id, prompt and output must be strings, and receipt an object.", "invalid_type"}
	errTextsForbidden = &apiError{http.StatusUnauthorized, "Comparing texts needs the admin secret or the API key of the session.", "unauthorized"}
)

// verifyRequest is the body of POST /audits/verify.
type verifyRequest struct {
	id             string
	record         []byte // canonical; nil when only the id was given
	prompt, output *string
}

// verify serves POST /audits/verify.
func (g *request) verify(w http.ResponseWriter, r *http.Request) {
	q, apiErr := decodeVerify(w, r)
	if apiErr != nil {
		writeError(w, apiErr)
		return
	}
	auditor := audit.NewAuditor(g.engine.store)
	report, err := q.verify(r.Context(), auditor)
	if err != nil {
		g.readFailed(w, err)
		return
	}
	if q.prompt != nil || q.output != nil {
		if apiErr := g.mayCompare(r, report.Entry); apiErr != nil {
			writeError(w, apiErr)
			return
		}
		if err := auditor.CompareTexts(r.Context(), report, q.prompt, q.output); err != nil {
			g.readFailed(w, err)
			return
		}
	}
	_ = writeJSON(w, http.StatusOK, report)
}

func decodeVerify(w http.ResponseWriter, r *http.Request) (verifyRequest, *apiError) {
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
func (g *request) mayCompare(r *http.Request, entry store.Receipt) *apiError {
	caller, apiErr := g.identify(r.Context(), r, false)
	if apiErr == nil && caller.keyed && g.ownsSession(r, caller, entry) {
		return nil
	}
	if apiErr := g.checkAdmin(r); apiErr == nil || apiErr == errRateLimited || apiErr == errGovernor {
		return apiErr
	}
	return errTextsForbidden
}

// ownsSession reports whether the caller's namespace and a session id that they
// give, or that the receipt shows, make the session's key.
func (g *request) ownsSession(r *http.Request, c caller, entry store.Receipt) bool {
	for _, id := range []string{entry.SessionID, r.Header.Get("X-Lex-Session")} {
		if id != "" && sessionKey(c.namespace, id) == entry.SessionKey {
			return true
		}
	}
	return false
}
