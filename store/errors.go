package store

import (
	"errors"
	"fmt"
)

// The kinds of failure. Every error of a store wraps one of these or the error
// of the context it was called with.
var (
	// ErrConflict says that the session has another version than the one that
	// was read. Nothing was written. Read the session again, compute the turn
	// again, commit again.
	ErrConflict = errors.New("session has changed")

	// ErrNotFound says that there is no such session, receipt, key or place in
	// the listing.
	ErrNotFound = errors.New("not found")

	// ErrUnavailable says that the store cannot answer now: it is closed, its
	// server cannot be reached, its disk is full. Whether a write happened is
	// unknown.
	ErrUnavailable = errors.New("store unavailable")

	// ErrRefused is the [ErrUnavailable] of a store that answered, and said no: its server
	// is full, is a replica, or lets the user not do this. The same write sent again at
	// once gets the same answer.
	ErrRefused = fmt.Errorf("%w: refused", ErrUnavailable)

	// ErrInvalid says that a value does not keep the rules stated at its type.
	// Nothing was written, and repeating it will not help.
	ErrInvalid = errors.New("invalid record")
)
