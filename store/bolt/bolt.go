package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/caddy-lex/lex/store"
)

// lockTimeout is how long Open waits for another process to let go of the file,
// so that a restart that overlaps with the old process succeeds.
const lockTimeout = time.Second

// probeSize is the size of a batch that Check tries to write.
const probeSize = 256 << 10

// The buckets. Numbers in keys are eight bytes, big-endian, so that the tree's
// order is theirs.
var (
	receiptsBucket   = []byte("receipts")   // sequence number, the place in the log → receipt
	summariesBucket  = []byte("summaries")  // sequence number → id and summary, of receipts that older versions wrote
	idsBucket        = []byte("ids")        // receipt id → sequence number
	turnsBucket      = []byte("turns")      // turn id → sequence number
	sessionsBucket   = []byte("sessions")   // session key → version, session
	aliasesBucket    = []byte("aliases")    // alias → session key
	familiesBucket   = []byte("families")   // sequence number of a family's first receipt, key or alias of a member → nothing
	countersBucket   = []byte("tallies")    // "s/", place of its family and session key → what a session adds to the statistics; "total" → all
	limitsBucket     = []byte("limits")     // subject → window
	keysBucket       = []byte("keys")       // hash → API key
	documentsBucket  = []byte("policies")   // hash → JSON of a policy or a setup
	benchmarksBucket = []byte("benchmarks") // sequence number → row
	probeBucket      = []byte("probe")      // empty, see Check
)

// Options adjusts a store. The zero value is right for production.
type Options struct {
	// Now is the clock of the limits' windows. Default: time.Now.
	Now func() time.Time
}

// Store is a [store.Store] in one file.
type Store struct {
	db     *bbolt.DB
	writes *store.GroupCommit[write]
	last   tail // the writer's
	limits *limits
	closed atomic.Bool
	failed atomic.Bool // the last batch could not be written
	close  func() error
}

// Open opens the file, and creates it with mode 0600, and its folder with 0700,
// when it is not there. It waits up to a second for another process to let go
// of it; after that the error says who to ask.
func Open(path string, opts Options) (*Store, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	db, err := openFile(path)
	if err != nil {
		return nil, err
	}
	s := &Store{db: db, limits: newLimits(opts.Now)}
	if err := db.Update(s.prepare); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("preparing %s: %w", path, err)
	}
	s.writes = store.NewGroupCommit(s.writeBatch)
	s.close = sync.OnceValue(s.shut)
	return s, nil
}

func openFile(path string) (*bbolt.DB, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("creating the folder of the database: %w", err)
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout:      lockTimeout,
		FreelistType: bbolt.FreelistMapType, // the default slows down as the file grows
	})
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, fmt.Errorf("opening %s: another process has it open; stop that process or give this one a path of its own: %w", path, store.ErrUnavailable)
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrVersionMismatch), errors.Is(err, berrors.ErrChecksum):
		return nil, fmt.Errorf("opening %s: it is no database or a damaged one (%w); restore it from a backup or move it away", path, err)
	case err != nil:
		return nil, fmt.Errorf("opening the database: %w", err)
	}
	// A file that was made by hand or restored from a backup may have another mode.
	if err := os.Chmod(path, 0o600); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("protecting the database: %w", err)
	}
	return db, nil
}

// prepare creates what is missing in the file and loads the windows.
func (s *Store) prepare(tx *bbolt.Tx) error {
	for _, name := range [][]byte{
		receiptsBucket, summariesBucket, idsBucket, turnsBucket, sessionsBucket, aliasesBucket, familiesBucket, countersBucket, limitsBucket, keysBucket, documentsBucket, benchmarksBucket, probeBucket,
	} {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	return s.limits.load(tx.Bucket(limitsBucket))
}

// Close finishes the writes that were begun and lets go of the file.
func (s *Store) Close() error { return s.close() }

func (s *Store) shut() error {
	s.closed.Store(true)
	s.writes.Close()
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("closing the database: %s", cause(err))
	}
	return nil
}

// Check reads. When the last write failed it also writes, because a full disk
// shows only in a write, and more than a little, because a little finds room
// between what is there.
func (s *Store) Check(ctx context.Context) error {
	if !s.failed.Load() {
		return s.view(ctx, "checking", func(*bbolt.Tx) error { return nil })
	}
	probe := []byte("probe")
	if err := s.writes.Do(ctx, func(tx *bbolt.Tx) error {
		return tx.Bucket(probeBucket).Put(probe, make([]byte, probeSize))
	}); err != nil {
		return err
	}
	return s.writes.Do(ctx, func(tx *bbolt.Tx) error { return tx.Bucket(probeBucket).Delete(probe) })
}

// view reads one moment of the file.
func (s *Store) view(ctx context.Context, doing string, read func(*bbolt.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	err := s.db.View(read)
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return fmt.Errorf("%s: closed: %w", doing, store.ErrUnavailable)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

var _ store.Store = (*Store)(nil)
