package bolt

import (
	"errors"
	"fmt"
	"syscall"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/caddy-lex/lex/store"
)

// A write changes the file as part of a batch. When it returns
// [store.ErrConflict] it has changed nothing; after any other error the batch
// is begun anew without it. So it may run more than once.
type write func(*bbolt.Tx) error

// writeBatch runs the writes in one transaction, which is one fsync. It answers
// only when the transaction is durable. That holds for refusals too, because the
// state that a write conflicted with may be part of the same batch.
func (s *Store) writeBatch(batch []write) []error {
	errs := make([]error, len(batch))
	for {
		spoiler := -1
		err := s.db.Update(func(tx *bbolt.Tx) error {
			for i, w := range batch {
				if w == nil {
					continue
				}
				if errs[i] = w(tx); errs[i] != nil && !errors.Is(errs[i], store.ErrConflict) {
					spoiler = i
					return errs[i]
				}
			}
			return nil
		})
		if spoiler < 0 {
			s.failed.Store(err != nil)
			if err != nil {
				return failBatch(batch, errs, err)
			}
			return errs
		}
		errs[spoiler], batch[spoiler] = refusal(errs[spoiler]), nil
	}
}

// failBatch answers every write that has no answer of its own.
func failBatch(batch []write, errs []error, err error) []error {
	for i := range batch {
		if batch[i] != nil {
			errs[i] = fmt.Errorf("writing the database: %w: %s", store.ErrUnavailable, cause(err))
		}
	}
	return errs
}

// refusal turns an error of one write into a kind of the contract.
func refusal(err error) error {
	for _, rule := range []error{berrors.ErrKeyRequired, berrors.ErrKeyTooLarge, berrors.ErrValueTooLarge} {
		if errors.Is(err, rule) {
			return fmt.Errorf("%w: %w", store.ErrInvalid, err)
		}
	}
	return err
}

// cause says why the file could not be written. It never passes on the library's
// own message, which may hold the path of the file: an error of a store names no
// place.
func cause(err error) string {
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		return errno.Error()
	case errors.Is(err, berrors.ErrDatabaseNotOpen):
		return "closed"
	}
	return "the file cannot grow or be written; is the disk full?"
}
