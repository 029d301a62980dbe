package model

import (
	"context"
	"errors"
	"net"
	"net/http"
)

// A Failure is the kind of reason for which a remote model gave no evidence.
// Every error of a call wraps exactly one; the set is bounded, so that it can be
// a metric's label and stand in a receipt.
type Failure string

// The kinds of failure.
const (
	Timeout      Failure = "timeout"         // no whole answer in time
	Unreachable  Failure = "unreachable"     // no connection, or it broke
	RateLimited  Failure = "rate_limited"    // 429
	Unauthorized Failure = "unauthorized"    // 401 or 403: the key, most likely
	Rejected     Failure = "rejected"        // another status that no repetition will mend
	ServerError  Failure = "server_error"    // 5xx
	Unusable     Failure = "unusable_answer" // an answer that is not what was asked for
	BreakerOpen  Failure = "breaker_open"    // not asked: it kept failing, or asked for a pause
	Cancelled    Failure = "cancelled"       // the caller left
)

// Error makes a Failure an error.
func (f Failure) Error() string { return "the remote model failed: " + string(f) }

// Why returns the kind of an error of this package, "" for nil and Unreachable
// for an error of anybody else.
func Why(err error) Failure {
	var f Failure
	if err != nil && !errors.As(err, &f) {
		f = Unreachable
	}
	return f
}

// ofTransport classifies a failed exchange. The cause itself is not passed on:
// it may name the address.
func ofTransport(ctx context.Context, err error) Failure {
	var network net.Error
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return Cancelled
	case ctx.Err() != nil || (errors.As(err, &network) && network.Timeout()):
		return Timeout
	}
	return Unreachable
}

// ofStatus classifies a status that is not 200. Redirects are among those that
// are not followed.
func ofStatus(status int) Failure {
	switch {
	case status == http.StatusTooManyRequests:
		return RateLimited
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return Unauthorized
	case status >= http.StatusInternalServerError:
		return ServerError
	}
	return Rejected
}
