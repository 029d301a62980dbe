package bolt

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/caddy-lex/lex/store"
)

// guarded runs what reads or changes the tree. The library panics when it comes to a page that is
// not what the tree says it is, and such a panic becomes an error that wraps [store.ErrInvalid]: a
// page that a disk has spoilt ends neither the process nor what needs other pages. The library's
// text names a page or a kind of page. A page that cannot be read at all, because the disk fails or
// somebody cuts the file meanwhile, is a fault of the memory that the file is mapped to, and becomes
// an error, too. Every other panic is a mistake of ours and goes on.
//
// After an error the transaction is to be undone if it was being changed. Reading leaves it as
// it was.
func guarded(run func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		found := recover()
		_, unreadable := found.(fault)
		switch {
		case found == nil:
		case unreadable:
			err = fmt.Errorf("a page of the file cannot be read: %w", store.ErrInvalid)
		case inLibrary():
			err = fmt.Errorf("a page of the file is damaged (%v): %w", found, store.ErrInvalid)
		default:
			panic(found)
		}
	}()
	return run()
}

// A fault is what [debug.SetPanicOnFault] makes of an access to memory that is not there, but
// for that through a nil pointer.
type fault interface{ Addr() uintptr }

// inLibrary reports whether the panic that was recovered began in the library: whether it is the
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
