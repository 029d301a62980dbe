package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/audit"
	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/toolcall"
	"github.com/caddy-lex/lex/store"
)

// Who may use the read endpoints: the values of the option `read`.
const (
	readPublic = "public"
	readKeyed  = "keyed" // those with a Lex key, or the read or admin secret
	readAdmin  = "admin"
)

// groupVerify is what verifications are counted on: each reads many receipts.
const groupVerify = "verify"

// The limits of a page of GET /audits/recent and of GET /audits/log.
const (
	defaultRecent = 20
	maxRecent     = 200

	defaultLog  = 100
	maxLog      = 1000
	maxLogBytes = 4 << 20 // a page has at least one receipt, whatever its size
	logAtOnce   = 16      // receipts that are read at a time, with their records
)

// readAPI are the endpoints that read: receipts, policies, setups, statistics and
// benchmarks. There is one for each request.
type readAPI struct {
	shared *sharedStore
	auth   *authenticator
	limits limiter

	access string // the option `read`
	rate   Rate
}

// reading lets an endpoint run for callers that may read. They are counted
// together, except those of verifying.
func reading(serve func(*readAPI, http.ResponseWriter, *http.Request) error) endpointFunc {
	return readingAs(groupRead, serve)
}

// verifying is reading for an endpoint that is counted by itself.
func verifying(serve func(*readAPI, http.ResponseWriter, *http.Request) error) endpointFunc {
	return readingAs(groupVerify, serve)
}

func readingAs(group string, serve func(*readAPI, http.ResponseWriter, *http.Request) error) endpointFunc {
	return func(g *request, w http.ResponseWriter, r *http.Request) error {
		api := &readAPI{
			shared: g.shared, auth: &g.auth, limits: g.limits,
			access: g.handler.Read, rate: g.app.Limits.Read,
		}
		if apiErr := api.admit(w, r, group); apiErr != nil {
			return challenged(w, apiErr)
		}
		return serve(api, w, r)
	}
}

// challenged tells the client of an answer with 401 how to authenticate.
func challenged(w http.ResponseWriter, e *apiError) error {
	if e.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="lex"`)
	}
	return e
}

// admit lets callers of the read endpoints in, and counts them. A caller with
// the admin secret is not counted.
func (a *readAPI) admit(w http.ResponseWriter, r *http.Request, group string) *apiError {
	if a.access == readAdmin {
		return a.auth.checkAdmin(r)
	}
	reader, apiErr := a.identify(r)
	if apiErr != nil {
		return apiErr
	}
	apiErr = a.checkOffered(r, reader)
	switch {
	case apiErr == nil:
		return nil
	case a.access == readKeyed && !reader.keyed:
		return apiErr
	}
	a.auth.failures.report(apiErr) // the secret could not be checked, and reading needs none
	return a.limits.take(r.Context(), w, a.rate, reader.subject(group))
}

// identify finds the caller of a read endpoint. These are public, so a key that is
// not one makes an anonymous caller.
func (a *readAPI) identify(r *http.Request) (caller, *apiError) {
	anonymous := caller{address: clientAddress(r)}
	if _, given := lexKey(r.Header, false); !given {
		return anonymous, nil
	}
	c, apiErr := a.auth.identify(r.Context(), r, false)
	switch {
	case apiErr == nil:
		return c, nil
	case errors.Is(apiErr, errInvalidKey):
		return anonymous, nil
	}
	return anonymous, apiErr
}

// checkOffered checks the read or admin secret where the request brings something that
// is meant for it: an Authorization may be meant for others while reading is public, and
// a Lex key never is.
func (a *readAPI) checkOffered(r *http.Request, reader caller) *apiError {
	meant := r.Header.Get(adminHeader) != "" || a.access == readKeyed && !reader.keyed && bearer(r.Header) != ""
	if !meant || !a.auth.secrets.admin.set && !a.auth.secrets.read.set {
		return errKeyRequired
	}
	return a.auth.checkRead(r)
}

// storeError is the error to answer with when the store has no such record, or
// failed.
func storeError(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return errNotFound
	}
	if errors.Is(err, store.ErrInvalid) {
		return errDamaged.because("read", err) // asking again does not help
	}
	return errGovernor.because("read", err)
}

// recent serves GET /audits/recent, newest first, with a link to the next page.
func (a *readAPI) recent(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	limit, err := pageLimit(query, defaultRecent, maxRecent)
	if err != nil {
		return err
	}
	summaries, err := a.shared.store.Summaries(r.Context(), query.Get("before"), limit)
	if errors.Is(err, store.ErrNotFound) {
		return errInvalidCursor
	}
	receipts := make([]any, len(summaries))
	for i := 0; i < len(summaries) && err == nil; i++ {
		receipts[i], err = a.shown(r.Context(), summaries[i])
	}
	if err != nil {
		return errGovernor.because("read", err)
	}
	if len(summaries) == limit {
		next := url.Values{"limit": {strconv.Itoa(limit)}, "before": {summaries[limit-1].Cursor}}
		w.Header().Set("Link", fmt.Sprintf(`<?%s>; rel="next"`, next.Encode())) // without a path: proxies in front may take some of it away
	}
	return writeJSON(w, http.StatusOK, map[string]any{"receipts": receipts})
}

// A damagedEntry stands in a list in the place of a receipt that cannot be read.
type damagedEntry struct {
	ID      string `json:"id,omitzero"` // if it is known
	Damaged bool   `json:"damaged"`
}

// shown is what the list shows of a receipt. A receipt that was written before
// there were summaries is read from its record, which holds the same members. One that is
// damaged is listed as such, and does not hide the others.
func (a *readAPI) shown(ctx context.Context, s store.Summary) (any, error) {
	text := s.JSON
	if text == nil {
		entry, err := a.shared.store.Receipt(ctx, s.ID)
		if err != nil && !errors.Is(err, store.ErrInvalid) && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		text = entry.JSON
	}
	var shown govern.Summary
	if err := json.Unmarshal(text, &shown); err == nil && shown.ID == s.ID {
		return shown, nil
	}
	if !kernel.IsReceiptID(s.ID) {
		s.ID = ""
	}
	return damagedEntry{s.ID, true}, nil
}

// pageLimit reads the parameter limit of a list.
func pageLimit(query url.Values, usual, most int) (int, error) {
	raw := query.Get("limit")
	if !query.Has("limit") {
		return usual, nil
	}
	n, err := strconv.Atoi(raw)
	if errors.Is(err, strconv.ErrRange) && !strings.HasPrefix(raw, "-") {
		return most, nil // an integer, and more than there is
	}
	if err != nil || n < 1 {
		return 0, errInvalidLimit
	}
	return min(n, most), nil
}

// log serves GET /audits/log: receipts with their places in the log, oldest first, one on
// each line. A page that is empty is the end; a shorter one than asked for is not.
func (a *readAPI) log(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	limit, err := pageLimit(query, defaultLog, maxLog)
	if err != nil {
		return err
	}
	var after uint64
	if query.Has("after") {
		if after, err = strconv.ParseUint(query.Get("after"), 10, 64); err != nil {
			return errInvalidPlace
		}
	}
	page, err := a.logPage(r.Context(), after, limit)
	if err != nil {
		return storeError(err)
	}
	_ = writeBody(w, http.StatusOK, "application/x-ndjson", page) // a failure means that the client left
	return nil
}

// logPage returns up to limit lines of the log, and no more once they have the size of a
// page.
func (a *readAPI) logPage(ctx context.Context, after uint64, limit int) (page []byte, err error) {
	for limit > 0 {
		entries, err := a.shared.store.Log(ctx, after, min(limit, logAtOnce))
		if err != nil || len(entries) == 0 {
			return page, err
		}
		for _, entry := range entries {
			if len(page) > 0 && len(page)+len(entry.JSON) > maxLogBytes {
				return page, nil
			}
			page = audit.AppendLogLine(page, entry)
			after = entry.Seq
		}
		limit -= len(entries)
	}
	return page, nil
}

// turnID is the form of a turn's id: 26 digits in base 32. No other name is looked up.
var turnID = regexp.MustCompile(`^[A-Z2-7]{26}$`)

// receipt serves GET /audits/{id}: the whole record, byte for byte as hashed.
func (a *readAPI) receipt(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if !kernel.IsReceiptID(id) {
		return errNotFound
	}
	entry, err := a.shared.store.Receipt(r.Context(), id)
	if err != nil {
		return storeError(err)
	}
	return writeRecord(w, entry.JSON)
}

// receiptOfTurn serves GET /audits/turn/{id}: the receipt of the turn that
// X-Lex-Turn named, as soon as it is durable.
func (a *readAPI) receiptOfTurn(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if !turnID.MatchString(id) {
		return errNotFound
	}
	entry, err := a.shared.store.ReceiptOfTurn(r.Context(), id)
	if err != nil {
		return storeError(err)
	}
	return writeRecord(w, entry.JSON)
}

// policy serves GET /lex/policies/{hash}: the constants that a receipt of this
// policy replays with, byte for byte as hashed. They never change.
func (a *readAPI) policy(w http.ResponseWriter, r *http.Request) error {
	return a.document(w, r, func(text []byte) error {
		_, err := kernel.ParsePolicy(text)
		return err
	})
}

// setup serves GET /lex/setups/{hash}: what decided on a receipt of this setup, byte for
// byte as hashed. It never changes.
func (a *readAPI) setup(w http.ResponseWriter, r *http.Request) error {
	return a.document(w, r, func(text []byte) error {
		_, err := govern.ParseSetup(text)
		return err
	})
}

// document serves the document whose hash is in the path, unless it is of another kind.
func (a *readAPI) document(w http.ResponseWriter, r *http.Request, check func(text []byte) error) error {
	hash := r.PathValue("hash")
	if !kernel.IsHex256(hash) {
		return errNotFound
	}
	text, err := audit.DocumentOf(r.Context(), a.shared.store, hash)
	if err != nil {
		return storeError(err)
	}
	if check(text) != nil {
		return errNotFound
	}
	return writeRecord(w, text)
}

// writeRecord answers with a record as it is stored.
func writeRecord(w http.ResponseWriter, record []byte) error {
	_ = writeBody(w, http.StatusOK, "application/json", record) // a failure means that the client left
	return nil
}

// stats serves GET /stats.
func (a *readAPI) stats(w http.ResponseWriter, r *http.Request) error {
	s, err := a.shared.store.Stats(r.Context())
	if err != nil {
		return storeError(err)
	}
	return writeJSON(w, http.StatusOK, map[string]any{
		"total_receipts": s.TotalReceipts, "intervention_rate": s.InterventionRate, "stability_margin": s.StabilityMargin,
		"thresholds": newThresholds(s),
	})
}

// simulation runs the scripted scenarios through the interceptor, once: the
// interceptor is deterministic and the script is part of the program.
var simulation = sync.OnceValue(toolcall.Simulate)

// agenticSim serves GET /agentic-sim. It leaves no receipt.
func (a *readAPI) agenticSim(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, simulation())
}

// verifyRequest is the body of POST /audits/verify.
type verifyRequest struct {
	id     string
	record []byte // canonical; nil when only the id was given
	texts  audit.Texts
}

// verify serves POST /audits/verify.
func (a *readAPI) verify(w http.ResponseWriter, r *http.Request) error {
	q, err := decodeVerify(w, r)
	if err != nil {
		return err
	}
	auditor := audit.NewAuditor(a.shared.store)
	report, err := q.verify(r.Context(), auditor)
	if err != nil {
		return storeError(err)
	}
	if q.texts.NeedSession() {
		if err := a.mayCompare(r, report.Entry); err != nil {
			return err
		}
	}
	if err := auditor.CompareTexts(r.Context(), report, q.texts); err != nil {
		return storeError(err)
	}
	return writeJSON(w, http.StatusOK, report)
}

func decodeVerify(w http.ResponseWriter, r *http.Request) (verifyRequest, error) {
	body, apiErr := readBody(w, r, maxGovernBody)
	if apiErr != nil {
		return verifyRequest{}, apiErr
	}
	m, apiErr := decodeObject(body, "receipt_id", "receipt", "prompt", "output", "arguments", "openings")
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
	err := q.readTexts(m)
	return q, err
}

// readTexts reads the texts to compare, and their openings. An opening without its text
// opens nothing and is ignored.
func (q *verifyRequest) readTexts(m map[string]gjson.Result) error {
	openings := map[string]gjson.Result{}
	if v := m["openings"]; present(v) {
		var apiErr *apiError
		if !v.IsObject() {
			return errInvalidReceipt
		}
		if openings, apiErr = members(v, "prompt", "output", "arguments"); apiErr != nil {
			return apiErr
		}
	}
	for name, to := range map[string]struct {
		text    **string
		opening *string
	}{
		"prompt":    {&q.texts.Prompt, &q.texts.Openings.Prompt},
		"output":    {&q.texts.Output, &q.texts.Openings.Output},
		"arguments": {&q.texts.Arguments, &q.texts.Openings.Arguments},
	} {
		text, opening := m[name], openings[name]
		if present(text) && text.Type != gjson.String || present(opening) && opening.Type != gjson.String {
			return errInvalidReceipt
		}
		if present(text) {
			*to.text, *to.opening = &text.Str, opening.Str
		}
	}
	return nil
}

// present reports whether a member is there and not null.
func present(v gjson.Result) bool { return v.Exists() && v.Type != gjson.Null }

// verify verifies the receipt that the request names or holds.
func (q verifyRequest) verify(ctx context.Context, auditor audit.Auditor) (*audit.Report, error) {
	switch {
	case q.record != nil:
		return auditor.VerifyRecord(ctx, q.record)
	case !kernel.IsReceiptID(q.id):
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
