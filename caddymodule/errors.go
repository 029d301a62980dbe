package caddymodule

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// apiError is an error as the /lex endpoints answer it. Message is a sentence
// for people, Code is stable, and neither ever holds an internal detail, a
// credential or a piece of a prompt.
type apiError struct {
	Status  int    `json:"-"`
	Message string `json:"error"`
	Code    string `json:"code"`
}

// Error returns the message.
func (e *apiError) Error() string { return e.Message }

var (
	errInvalidJSON     = &apiError{http.StatusBadRequest, "The body must be one JSON object in UTF-8, without duplicate members.", "invalid_json"}
	errBodyRead        = &apiError{http.StatusBadRequest, "The body could not be read to its end.", "invalid_json"}
	errBodyTimeout     = &apiError{http.StatusRequestTimeout, "The body did not arrive in time.", "request_timeout"}
	errBodyTooLarge    = &apiError{http.StatusRequestEntityTooLarge, "The body is too large.", "body_too_large"}
	errMissingPrompt   = &apiError{http.StatusBadRequest, "prompt is required and must not be blank.", "missing_prompt"}
	errPromptTooLong   = &apiError{http.StatusBadRequest, "prompt exceeds 8000 characters.", "prompt_too_long"}
	errMissingSession  = &apiError{http.StatusBadRequest, "session_id is required and must not be blank.", "missing_session_id"}
	errInvalidSession  = &apiError{http.StatusBadRequest, "session_id must have 1 to 128 characters and no control characters.", "invalid_session_id"}
	errInvalidType     = &apiError{http.StatusBadRequest, "prompt and session_id must be strings.", "invalid_type"}
	errInvalidTurn     = &apiError{http.StatusBadRequest, "turn must be an integer from 1 to 100000.", "invalid_turn"}
	errInvalidIdentity = &apiError{http.StatusBadRequest, "identity_mode must be one of those that are allowed here.", "invalid_identity_mode"}
	errInvalidLimit    = &apiError{http.StatusBadRequest, "limit must be an integer of at least 1.", "invalid_limit"}
	errInvalidCursor   = &apiError{http.StatusBadRequest, "before is not a cursor of this list.", "invalid_cursor"}
	errInvalidKey      = &apiError{http.StatusUnauthorized, "The API key is unknown, revoked or expired.", "invalid_api_key"}
	errKeyRequired     = &apiError{http.StatusUnauthorized, "This service requires an API key.", "api_key_required"}
	errRateLimited     = &apiError{http.StatusTooManyRequests, "Rate limit exceeded; retry after 60 seconds.", "rate_limited"}
	errNotFound        = &apiError{http.StatusNotFound, "There is no such resource.", "not_found"}
	errMethod          = &apiError{http.StatusMethodNotAllowed, "This method is not allowed here.", "method_not_allowed"}
	errGovernedTwice   = &apiError{http.StatusInternalServerError, "The service is configured to govern this request twice.", "governed_twice"}
	errGovernor        = &apiError{http.StatusInternalServerError, "The governor is unavailable; retry.", "governor_unavailable"}
	errProviders       = &apiError{http.StatusInternalServerError, "No model provider answered; retry.", "provider_exhausted"}
)

// writeError answers with the error's status and body.
func writeError(w http.ResponseWriter, e *apiError) {
	if e.Status == http.StatusTooManyRequests && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", "60")
	}
	_ = writeJSON(w, e.Status, e) // a failure means that the client left
}

// writeJSON answers with v. An error means that the client left: v is always
// one of our own types, which encode.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return writeBody(w, status, "application/json", append(body, '\n'))
}

func writeBody(w http.ResponseWriter, status int, contentType string, body []byte) error {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Content-Type-Options", "nosniff")
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	w.WriteHeader(status)
	_, err := w.Write(body)
	return err
}
