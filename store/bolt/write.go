package bolt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/caddy-lex/lex/store"
)

// A write changes the tree as part of a batch. When it returns
// [store.ErrConflict] it has changed nothing; after any other error the batch
// is begun anew without it. So it may run more than once.
type write func(*tx) error

// writeBatch runs the writes in the open transaction and makes what they changed durable,
// with one sync. It answers only then. That holds for refusals too, because the
// state that a write conflicted with may be part of the same batch.
//
// As a rule the journal is what makes a batch durable. When that is full or cannot be
// written, the transaction is committed, which takes in all that the journal has, and so it
// is when the last batch failed: nothing builds on a commit of which nobody knows whether it
// is durable.
func (s *Store) writeBatch(batch []write) []error {
	_ = s.mu.lock(context.Background())
	defer s.mu.unlock()
	if err := s.files.check(); err != nil {
		return failBatch(batch, make([]error, len(batch)), err)
	}
	asked := len(batch)
	if s.round.due {
		s.round.due = false
		batch = append(slices.Clip(batch), s.forget)
	}
	errs, err := s.runBatch(batch)
	if err == nil {
		err = s.makeDurable()
	}
	if err != nil {
		s.undo()
		errs = failBatch(batch, errs, err)
	}
	return errs[:asked]
}

// runBatch runs the writes one after the other. One that fails is answered and set to nil,
// all is taken back, and the others run again.
func (s *Store) runBatch(batch []write) ([]error, error) {
	errs := make([]error, len(batch))
	for i := 0; i < len(batch); i++ {
		if err := s.begin(); err != nil {
			return errs, err
		}
		if batch[i] == nil {
			continue
		}
		if errs[i] = guarded(func() error { return batch[i](s.tx) }); errs[i] != nil && !errors.Is(errs[i], store.ErrConflict) {
			errs[i], batch[i] = refusal(errs[i]), nil
			s.undo()
			i = -1
		}
	}
	return errs, guarded(s.tx.writeSum)
}

// makeDurable returns when what the transaction has noted is durable.
func (s *Store) makeDurable() error {
	if len(s.tx.record) == recordHead {
		return nil
	}
	if !s.failed.Load() && s.journal.append(s.tx.record) == nil {
		s.recent.add(s.tx.latest)
		s.tx.record, s.tx.latest = emptyRecord(s.tx.record), s.tx.latest[:0]
		return nil
	}
	err := s.commit()
	s.failed.Store(err != nil)
	return err
}

// begin opens a transaction, if none is open, and repeats in it what the journal has since
// the last commit.
func (s *Store) begin() error {
	if s.tx != nil {
		return nil
	}
	tree, err := s.db.Begin(true)
	if err != nil {
		return err
	}
	if err := guarded(func() error { return s.catchUp(tree) }); err != nil {
		return errors.Join(err, tree.Rollback())
	}
	s.tx = &tx{tree: tree, record: emptyRecord(nil)}
	return nil
}

// catchUp repeats in a new transaction what the journal has.
func (s *Store) catchUp(tree *bbolt.Tx) error {
	if e := epochOf(tree); e != s.journal.epoch { // there was a commit
		s.journal.start(e)
	}
	return s.journal.replay(func(changes []byte) error { return repeat(tree, changes) })
}

// undo ends the transaction, and with it all that is not durable.
func (s *Store) undo() {
	if s.tx != nil {
		_ = s.tx.tree.Rollback() // it fails only if the library has ended it after a failed commit
		s.tx = nil
	}
}

// commit ends the transaction and makes it part of the tree. What the journal has belongs
// to an epoch that is over. After an error the transaction is to be undone: one in which a
// damaged page was found is still open, and nothing of it was written.
func (s *Store) commit() error {
	id := s.tx.tree.ID()
	err := guarded(func() error {
		next := epochOf(s.tx.tree).next()
		if err := s.tx.tree.Bucket(journalBucket).Put(epochKey, next[:]); err != nil {
			return err
		}
		return s.tx.tree.Commit()
	})
	if err == nil {
		s.tx, s.round.due = nil, true
		s.recent.begin(id)
	}
	// A commit that failed may have left its mark as well.
	return errors.Join(err, s.files.note())
}

// failBatch answers every write that has no answer of its own.
func failBatch(batch []write, errs []error, err error) []error {
	for i := range batch {
		if batch[i] != nil {
			errs[i] = fmt.Errorf("writing the database: %w", unusable(err))
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
