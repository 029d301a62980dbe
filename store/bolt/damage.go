package bolt

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/caddy-lex/lex/store"
)

// guarded runs what reads or changes the tree. The library panics when it comes to a page that is
// not what the tree says it is, and such a panic becomes an error that wraps [store.ErrInvalid]: a
// page that a disk has spoilt ends neither the process nor what needs other pages. The library's
// text names a page or a kind of page. Every other panic is a mistake of ours and goes on.
//
// After an error the transaction is to be undone if it was being changed. Reading leaves it as
// it was.
func guarded(run func() error) (err error) {
	ended := false
	defer func() {
		if !ended && inLibrary() {
			err = fmt.Errorf("a page of the file is damaged (%v): %w", recover(), store.ErrInvalid)
		}
	}()
	err = run()
	ended = true
	return err
}

// inLibrary reports whether the panic that is under way began in the library: whether it is the
// library that called the runtime.
func inLibrary() bool {
	callers := make([]uintptr, 32)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	panicking := false
	for {
		frame, more := frames.Next()
		panicking = panicking || frame.Function == "runtime.gopanic"
		if panicking && !strings.HasPrefix(frame.Function, "runtime.") {
			return strings.HasPrefix(frame.Function, "go.etcd.io/bbolt")
		}
		if !more {
			return false
		}
	}
}

// unusable says why the store cannot answer at all: because of a damaged page, because the file
// is no longer where it was, or because it cannot be read or written now.
func unusable(err error) error {
	if errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrRefused) {
		return err
	}
	return fmt.Errorf("%w: %s", store.ErrUnavailable, cause(err))
}
