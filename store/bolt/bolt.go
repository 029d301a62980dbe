package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
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
	familiesBucket   = []byte("families")   // sequence number of a family's first receipt, key or alias of a member → of an alias, sequence number of the turn that gave it
	countersBucket   = []byte("tallies")    // "s/", place of its family and session key → what a session adds to the statistics; "total" → all
	limitsBucket     = []byte("limits")     // subject → window
	keysBucket       = []byte("keys")       // hash → API key
	documentsBucket  = []byte("policies")   // hash → JSON of a policy or a setup
	benchmarksBucket = []byte("benchmarks") // sequence number → row
	probeBucket      = []byte("probe")      // empty, see Check
	journalBucket    = []byte("journal")    // the epoch of the journal, and whether there is one
)

// Options adjusts a store. The zero value is right for production.
type Options struct {
	// Now is the clock of the limits' windows, and of the lives of sessions. Default: time.Now.
	Now func() time.Time

	// MustExist refuses a file that is not there or is empty, which would be created.
	MustExist bool
}

// Store is a [store.Store] in one file, and the journal beside it while it is open.
type Store struct {
	db     *bbolt.DB
	writes *store.GroupCommit[write]
	now    func() time.Time
	limits *limits
	closed atomic.Bool
	failed atomic.Bool // the last batch could not be written
	close  func() error
	lacks  bool // see JournalLost
	files  *files

	// mu guards what follows. A batch holds it from its first change until all of it is
	// durable, so that no read sees what could still be lost.
	mu      mutex
	tx      *tx // nil when it has to be begun
	journal *journal
	round   round // through the families, see forget

	recent recent // what the journal has
}

// A mutex is a lock for which nobody has to wait longer than he wants, however slow the disk
// is.
type mutex chan struct{}

func (m mutex) lock(ctx context.Context) error {
	select {
	case m <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m mutex) unlock() { <-m }

// journalSuffix is what the name of the journal has after that of the file.
const journalSuffix = ".journal"

// Open opens the file, and creates it with mode 0600, and its folder with 0700,
// when neither it nor its journal is there. It waits up to a second for another process to let go
// of it; after that the error says who to ask. What a process that was killed left in the
// journal is taken into the file; see [Store.JournalLost].
func Open(path string, opts Options) (*Store, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if err := checkThere(path, opts.MustExist); err != nil {
		return nil, err
	}
	db, err := openFile(path)
	if err != nil {
		return nil, err
	}
	s := &Store{db: db, now: opts.Now, limits: newLimits(opts.Now), mu: make(mutex, 1)}
	if s.journal, err = openJournal(path + journalSuffix); err != nil {
		_ = db.Close()
		return nil, err
	}
	if err := guarded(s.prepare); err != nil {
		s.undo()
		_, _ = s.journal.close(false), db.Close()
		if errors.Is(err, store.ErrInvalid) {
			return nil, damagedFile(path, err)
		}
		return nil, fmt.Errorf("preparing %s: %w", path, err)
	}
	s.writes = store.NewGroupCommit(s.writeBatch)
	s.close = sync.OnceValue(s.shut)
	return s, nil
}

// checkThere reports a file that is not there, or is empty, although it must be there: because
// the caller says so, or because its journal is there. A journal is made beside a file that has
// content, and the two go apart only when somebody takes one away or a restore fails; a new file
// would begin the log again without a word.
func checkThere(path string, must bool) error {
	// The journal comes first: who makes both meanwhile makes the file before it.
	journal, err := os.Stat(path + journalSuffix)
	left := err == nil && journal.Size() > 0
	info, err := os.Stat(path)
	gone := errors.Is(err, fs.ErrNotExist)
	switch {
	case err == nil && info.Size() > 0:
		return nil
	case left && (gone || err == nil):
		return fmt.Errorf("opening %s: it is not there or empty, but its journal %s is there and may have turns that only that file can take in: put the file back, or move the journal away to begin a new log", path, path+journalSuffix)
	case must && err != nil:
		return fmt.Errorf("opening the database: %w", err)
	case must:
		return fmt.Errorf("opening %s: it is empty, so it is no database", path)
	}
	return nil // it is made, or what is wrong with it is reported, when it is opened
}

func openFile(path string) (*bbolt.DB, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("creating the folder of the database: %w", err)
	}
	if err := checkSize(path); err != nil {
		return nil, err
	}
	db, err := openTree(path)
	switch {
	case errors.Is(err, store.ErrInvalid):
		return nil, damagedFile(path, err)
	case errors.Is(err, berrors.ErrTimeout):
		return nil, inUse(path)
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrVersionMismatch), errors.Is(err, berrors.ErrChecksum):
		return nil, fmt.Errorf("opening %s: it is no database or a damaged one (%w); %s", path, err, restoreIt)
	case errors.As(err, new(*fs.PathError)):
		return nil, fmt.Errorf("opening the database: %w", err) // it names the file
	case err != nil:
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	// A file that was made by hand or restored from a backup may have another mode.
	if err := os.Chmod(path, 0o600); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("protecting the database: %w", err)
	}
	return db, nil
}

// openTree lets go of the file if a page that is read at once is damaged.
func openTree(path string) (db *bbolt.DB, err error) {
	var file *os.File
	err = guarded(func() error {
		db, err = bbolt.Open(path, 0o600, &bbolt.Options{
			Timeout:      lockTimeout,
			FreelistType: bbolt.FreelistMapType, // the default slows down as the file grows

			InitialMmapSize: mapSize(),
			OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
				file, err = os.OpenFile(name, flag, mode) //nolint:gosec // G304: the operator's file
				return file, err
			},
		})
		return err
	})
	if errors.Is(err, store.ErrInvalid) {
		_ = errors.Join(unlock(file), file.Close())
	}
	return db, err
}

// restoreIt is what to do with a file that is damaged.
const restoreIt = "restore it from a backup, or move it away with its journal to begin a new log"

func damagedFile(path string, err error) error {
	return fmt.Errorf("opening %s: %w; %s", path, err, restoreIt)
}

func inUse(path string) error {
	return fmt.Errorf("opening %s: another process has it open; stop that process or give this one a path of its own: %w", path, store.ErrUnavailable)
}

// checkSize reports a file that ends before its last page. The library maps the file, and the
// process would die by a signal, with all that it serves, as soon as such a page is read.
// Every other damage is found when the file is opened.
func checkSize(path string) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return nil //nolint:nilerr // it is made, or reported, when it is opened
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockTimeout, ReadOnly: true})
	if errors.Is(err, berrors.ErrTimeout) {
		return inUse(path)
	}
	if err != nil {
		if info.Size() < 2*int64(os.Getpagesize()) && !errors.Is(err, berrors.ErrInvalid) && !errors.As(err, new(*fs.PathError)) {
			return cutOff(path, info.Size(), "the two pages that every file begins with")
		}
		return nil
	}
	err = db.View(func(tx *bbolt.Tx) error {
		// Whoever had it open until now may have made it larger.
		if info, err = os.Stat(path); err != nil {
			return err
		}
		if tx.Size() > info.Size() {
			return cutOff(path, info.Size(), fmt.Sprint(tx.Size()))
		}
		return nil
	})
	return errors.Join(err, db.Close())
}

func cutOff(path string, size int64, of string) error {
	return fmt.Errorf("opening %s: it is cut off after %d bytes of %s; %s", path, size, of, restoreIt)
}

// mapSize is how much of the address space the file is given at first. To map it anew as it
// grows copies all that waits for a commit. Windows makes the file as large as its map.
func mapSize() int {
	if runtime.GOOS == "windows" {
		return 0
	}
	return 256 << 20
}

// prepare creates what is missing in the file, takes in what the journal has, and loads the
// windows.
func (s *Store) prepare() error {
	if err := s.db.Update(createBuckets); err != nil {
		return err
	}
	if err := s.db.View(func(tree *bbolt.Tx) error {
		return s.journal.recover(epochOf(tree))
	}); err != nil {
		return fmt.Errorf("%w; restore the file from a backup, or move its journal away, which loses the last turns", err)
	}
	var err error
	if s.files, err = watchFiles(s.db, s.journal.file.Name()); err != nil {
		return err
	}
	if err := s.begin(); err != nil {
		return err
	}
	if err := s.limits.load(s.tx.bucket(limitsBucket)); err != nil {
		return err
	}
	use := s.tx.tree.Bucket(journalBucket)
	s.lacks = s.journal.lost && use.Get(openKey) != nil
	if err := use.Put(openKey, []byte{1}); err != nil {
		return err
	}
	return s.commit()
}

// JournalLost reports whether the file was not closed by the process that had it last, and
// its journal was not there when it was opened, or does not begin as a journal does: the last
// turns may be missing.
func (s *Store) JournalLost() bool { return s.lacks }

// createBuckets creates those that are missing, and the first epoch.
func createBuckets(tree *bbolt.Tx) error {
	for _, name := range [][]byte{
		receiptsBucket, summariesBucket, idsBucket, turnsBucket, sessionsBucket, aliasesBucket, familiesBucket, countersBucket, limitsBucket, keysBucket, documentsBucket, benchmarksBucket, probeBucket, journalBucket,
	} {
		if _, err := tree.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	if b := tree.Bucket(journalBucket); b.Get(epochKey) == nil {
		first := epoch{}.next()
		return b.Put(epochKey, first[:])
	}
	return nil
}

// Close finishes the writes that were begun, takes them all into the file, removes the
// journal and lets go of the file.
func (s *Store) Close() error { return s.close() }

func (s *Store) shut() error {
	s.closed.Store(true)
	s.writes.Close()
	_ = s.mu.lock(context.Background())
	defer s.mu.unlock()
	err := s.files.check() // before anything is written into what may be another file
	if err == nil {
		err = s.begin()
	}
	if err == nil {
		err = guarded(func() error {
			return errors.Join(s.limits.saveBrief(s.tx), s.tx.tree.Bucket(journalBucket).Delete(openKey))
		})
	}
	if err == nil {
		err = s.commit()
	}
	s.undo()
	err = errors.Join(err, s.journal.close(err == nil)) // beside no file it keeps the next start from beginning a new log
	err = errors.Join(err, s.files.close(), s.db.Close())
	if err != nil {
		return fmt.Errorf("closing the database: %w", unusable(err))
	}
	return nil
}

// Check reads. When the last write failed it also writes, because a full disk
// shows only in a write, and more than a little, because a little finds room
// between what is there.
func (s *Store) Check(ctx context.Context) error {
	if !s.failed.Load() {
		return s.view(ctx, "checking", func(*tx) error { return nil })
	}
	probe := []byte("probe")
	if err := s.writes.Do(ctx, func(tx *tx) error {
		return tx.bucket(probeBucket).put(probe, make([]byte, probeSize))
	}); err != nil {
		return err
	}
	return s.writes.Do(ctx, func(tx *tx) error { return tx.bucket(probeBucket).delete(probe) })
}

// view reads one moment of what is durable.
func (s *Store) view(ctx context.Context, doing string, read func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if err := s.mu.lock(ctx); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	defer s.mu.unlock()
	if s.closed.Load() {
		return fmt.Errorf("%s: closed: %w", doing, store.ErrUnavailable)
	}
	if err := s.files.check(); err != nil {
		return fmt.Errorf("%s: %w", doing, unusable(err))
	}
	if err := s.begin(); err != nil {
		return fmt.Errorf("%s: %w", doing, unusable(err))
	}
	if err := guarded(func() error { return read(s.tx) }); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

var _ store.Store = (*Store)(nil)
