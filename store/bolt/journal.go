package bolt

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"go.etcd.io/bbolt"
)

const (
	// journalSize is how large the journal becomes: room for 60 to 250 turns. With more
	// there is nothing left to save, and the commit that takes them all in holds up the turns
	// that come meanwhile for longer: with 4 MB the p99 of 16 callers is twice as high.
	journalSize = 512 << 10
	// blockSize is what each record begins at a multiple of, so that a write that is torn
	// cannot damage the record before it.
	blockSize = 4 << 10
	// recordHead is the length of a record's head.
	recordHead = len(epoch{}) + 3*4
)

// An epoch names a state of the tree: the one that the records of a journal go on from. The
// tree holds its own and has another with each commit, so that the records that a commit has
// taken in are known to be old, without a write:
//
//	version  4 bytes: epochVersion; older versions of Lex had 16 random bytes
//	file     4 bytes, random: the same as long as there is the file
//	number   4 bytes, big-endian: how many states of the file came before
//	random   4 bytes: a copy that was taken back and went on has other states of that number
type epoch [16]byte

// epochVersion is what an epoch begins with.
const epochVersion = "lex2"

var (
	// epochKey is where the tree has its epoch.
	epochKey = []byte("epoch")
	// openKey is in the tree while a journal goes with it.
	openKey = []byte("open")
)

// next returns the epoch of the state that comes after. A file without one has the zero value.
func (e epoch) next() epoch {
	if !e.isNumbered() {
		copy(e[:], epochVersion)
		_, _ = rand.Read(e[4:8]) // it never fails
		binary.BigEndian.PutUint32(e[8:], 0)
	}
	binary.BigEndian.PutUint32(e[8:], e.number()+1)
	_, _ = rand.Read(e[12:])
	return e
}

func (e epoch) isNumbered() bool { return string(e[:4]) == epochVersion }

func (e epoch) number() uint32 { return binary.BigEndian.Uint32(e[8:]) }

// isPast reports whether e is that of a state of the file before now, which has taken in what
// a journal has of it. What an older version wrote always is: nothing else is known of it.
func (e epoch) isPast(now epoch) bool {
	return !e.isNumbered() || !now.isNumbered() || bytes.Equal(e[4:8], now[4:8]) && e.number() < now.number()
}

func epochOf(tree *bbolt.Tx) (e epoch) {
	copy(e[:], tree.Bucket(journalBucket).Get(epochKey))
	return e
}

// A journal makes changes durable before the tree has them: with one write in order and
// one sync, where a commit of the tree is many pages and two syncs. It is a file of
// records, one for each batch:
//
//	epoch     16 bytes
//	number    4 bytes, big-endian: 0 for the first record of an epoch, then 1, 2, ...
//	length    4 bytes, of the changes
//	checksum  4 bytes: CRC-32C of what stands before it, and of the changes
//	content   the changes, in the form that [tx] describes
//
// each filled up with zeros to the next block. The file is not cut when the tree is
// committed, it is written over, since a sync is cheaper where no block of the file is new.
// A journal is used by one goroutine at a time.
type journal struct {
	file   *os.File
	epoch  epoch
	number uint32 // of the next record
	end    int64  // where it begins
	lost   bool   // the file was not there when it was opened, or was no journal any more
}

// openJournal opens the file, and creates it with mode 0600 when it is not there. From then
// on it is never empty, which tells one without a record yet from one that was lost.
func openJournal(path string) (*journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // G304: it stands beside the operator's file
	if err != nil {
		return nil, fmt.Errorf("opening the journal: %w", err)
	}
	j := &journal{file: file}
	err = file.Chmod(0o600) // one that was made by hand or restored may have another
	if err == nil {
		err = j.fill()
	}
	if err == nil {
		err = syncFolder(filepath.Dir(path))
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("creating the journal: %w", err)
	}
	return j, nil
}

// fill gives a file that is empty its first block.
func (j *journal) fill() error {
	info, err := j.file.Stat()
	if err != nil || info.Size() > 0 {
		return err
	}
	j.lost = true
	return errors.Join(j.file.Truncate(blockSize), j.file.Sync())
}

// syncFolder makes the names in a folder durable. Windows does so by itself, and cannot be
// asked to.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	folder, err := os.Open(path) //nolint:gosec // G304: the folder of the operator's file
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// start makes e the epoch. The records that are there are of another, and old.
func (j *journal) start(e epoch) { j.epoch, j.number, j.end = e, 0, 0 }

// recover makes e the epoch and finds the end of its records, which a process left that was
// killed. An error means that not all that was acknowledged is there: the journal is damaged,
// or begins with a record that the tree does not know.
func (j *journal) recover(e epoch) error {
	j.start(e)
	data, err := j.read(journalSize)
	if err != nil {
		return err
	}
	if isForeign(data, e) {
		return errors.New("the journal goes with another file, or with a newer state of this one, whose last turns it may have")
	}
	j.lost = j.lost || !isJournal(data)
	for {
		changes, number, ok := readRecord(data, j.end, e)
		if !ok || number != j.number {
			break
		}
		j.advance(len(changes))
	}
	// A record that was not acknowledged may be torn, but nothing follows it: the next one
	// is written when it is durable. So the head of a next one tells enough, be its changes
	// damaged as well.
	for at := j.end; at < int64(len(data)); at += blockSize {
		if _, number, _ := readRecord(data, at, e); number > j.number {
			return fmt.Errorf("record %d of the journal is damaged, and record %d is there", j.number, number)
		}
	}
	return nil
}

// isForeign reports whether a journal begins with a record of an epoch that is neither e nor
// past.
func isForeign(data []byte, e epoch) bool {
	if len(data) < recordHead {
		return false
	}
	first := epoch(data)
	_, _, ok := readRecord(data, 0, first)
	return ok && first != e && !first.isPast(e)
}

// isJournal reports whether data can be a journal as it is left at any instant: its first block
// is there since it was made, with zeros until a first record is written, and then with the head
// of a first record, be it of an epoch that is over or torn behind its head. Nothing tells apart
// a journal that was cut later from one whose last records were never written.
func isJournal(data []byte) bool {
	if len(data) < blockSize {
		return false
	}
	numberAt := len(epoch{})
	number, length := binary.BigEndian.Uint32(data[numberAt:]), binary.BigEndian.Uint32(data[numberAt+4:])
	return number == 0 && int64(length) <= journalSize-int64(recordHead)
}

// replay hands over the changes of all records of the epoch, in their order.
func (j *journal) replay(apply func(changes []byte) error) error {
	if j.end == 0 {
		return nil
	}
	data, err := j.read(j.end)
	if err != nil {
		return err
	}
	for at := int64(0); at < j.end; {
		changes, _, ok := readRecord(data, at, j.epoch)
		if !ok {
			return errors.New("a record of the journal is damaged")
		}
		if err := apply(changes); err != nil {
			return fmt.Errorf("reading the journal: %w", err)
		}
		at += blocks(recordHead + len(changes))
	}
	return nil
}

// read returns the file's first bytes, up to a size.
func (j *journal) read(size int64) ([]byte, error) {
	data, err := io.ReadAll(io.NewSectionReader(j.file, 0, size))
	if err != nil {
		return nil, fmt.Errorf("reading the journal: %w", err)
	}
	return data, nil
}

// readRecord returns the changes and the number of the record that begins at a place, if
// there is one of the epoch. One whose checksum is wrong is not ok, and has a number all the
// same.
func readRecord(data []byte, at int64, e epoch) (changes []byte, number uint32, ok bool) {
	if int64(len(data))-at < int64(recordHead) || !bytes.Equal(data[at:][:len(e)], e[:]) {
		return nil, 0, false
	}
	head, rest := data[at:][:recordHead], data[at:][recordHead:]
	length := binary.BigEndian.Uint32(head[len(e)+4:])
	if uint64(length) > uint64(len(rest)) {
		return nil, 0, false
	}
	changes = rest[:length]
	return changes, binary.BigEndian.Uint32(head[len(e):]), binary.BigEndian.Uint32(head[len(e)+8:]) == checksum(head, changes)
}

// checksum is that of a record with the head and the changes.
func checksum(head, changes []byte) uint32 {
	return crc32.Update(crc32.Checksum(head[:recordHead-4], castagnoli), castagnoli, changes)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// append makes a record durable. Its first recordHead bytes are room for the head. After an
// error it may be there or not, and is not the journal's: the next one is written over it.
func (j *journal) append(record []byte) error {
	size := blocks(len(record))
	if j.end+size > journalSize {
		return errors.New("the journal is full")
	}
	head, changes := record[:recordHead], record[recordHead:]
	copy(head, j.epoch[:])
	binary.BigEndian.PutUint32(head[len(j.epoch):], j.number)
	binary.BigEndian.PutUint32(head[len(j.epoch)+4:], uint32(len(changes))) //nolint:gosec // G115: it fits into the journal
	binary.BigEndian.PutUint32(head[len(j.epoch)+8:], checksum(head, changes))
	if _, err := j.file.WriteAt(append(record, padding[:size-int64(len(record))]...), j.end); err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}
	if err := syncData(j.file); err != nil {
		return fmt.Errorf("syncing the journal: %w", err)
	}
	j.advance(len(changes))
	return nil
}

// padding is what fills up a block.
var padding [blockSize]byte

// advance goes to the place of the next record.
func (j *journal) advance(changes int) {
	j.end += blocks(recordHead + changes)
	j.number++
}

// blocks is the room that a record of n bytes takes.
func blocks(n int) int64 { return (int64(n) + blockSize - 1) / blockSize * blockSize }

// close lets go of the file, and deletes it if the tree has everything.
func (j *journal) close(settled bool) error {
	err := j.file.Close()
	if settled {
		err = errors.Join(err, os.Remove(j.file.Name()))
	}
	return err
}
