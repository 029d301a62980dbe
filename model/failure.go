package model

import (
	"context"
	"errors"
	"net"
	"net/http"
)

// A Failure is the kind of reason for which a remote model gave no evidence;
// [Why] finds it in an error. The set is bounded, so that it can be a metric's
// label and stand in a receipt.
type Failure string

// The kinds of failure.
const (
	Timeout      Failure = "timeout"           // no whole answer in time
	Unreachable  Failure = "unreachable"       // no connection, or it broke
	RateLimited  Failure = "rate_limited"      // 429
	Unauthorized Failure = "unauthorized"      // 401 or 403: the key, most likely
	Rejected     Failure = "rejected"          // 400, 413 or 422: this very question
	ServerError  Failure = "server_error"      // 5xx, or an error of a model in this process
	Unexpected   Failure = "unexpected_status" // any other, redirects among them: the address, most likely
	Unusable     Failure = "unusable_answer"   // an answer that is not what was asked for
	BreakerOpen  Failure = "breaker_open"      // not asked: it kept failing, or asked for a pause
	Busy         Failure = "busy"              // not asked, or too late: the same caller asks too much at once
	Cancelled    Failure = "cancelled"         // the caller left
)

// failureError is a failure and what happened, in this package's own words.
type failureError struct {
	kind Failure
	what string
}

func (e failureError) Error() string { return string(e.kind) + ": " + e.what }

// newFailure makes an error of a kind. The description holds no text from outside
// this package: it could contain an address, a key or a prompt.
func newFailure(kind Failure, what string) error { return failureError{kind, what} }

// Why returns the kind of an error of this package, "" for nil and Unreachable
// for any other error.
func Why(err error) Failure {
	var f failureError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &f):
		return f.kind
	}
	return Unreachable
}

// failTransport classifies a failed exchange.
func failTransport(ctx context.Context, err error) error {
	var network net.Error
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return newFailure(Cancelled, "the caller left")
	case ctx.Err() != nil || (errors.As(err, &network) && network.Timeout()):
		return newFailure(Timeout, "no whole answer in time")
	}
	return newFailure(Unreachable, "the connection could not be made, or broke")
}

// ofStatus classifies a status that is not 200.
func ofStatus(status int) Failure {
	switch {
	case status == http.StatusTooManyRequests:
		return RateLimited
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return Unauthorized
	case status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge || status == http.StatusUnprocessableEntity:
		return Rejected
	case status >= http.StatusInternalServerError:
		return ServerError
	}
	return Unexpected
}
