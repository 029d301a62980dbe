package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"github.com/caddy-lex/lex/store"
)

// Files that are open can be removed, moved away, replaced, cut or written over: by a restore
// from a backup, by rsync, by a full disk that somebody empties. What is written then is durable
// for nobody, and to read a page that is gone ends the process, because the library maps the
// file. So what is there is compared with what this process left there, before anything is read
// or written.

// files are the tree and the journal as they are when nobody else has touched them.
type files struct {
	opened []openedFile
	tree   *os.File
	pages  int64        // bytes of a page
	size   atomic.Int64 // of the tree after the last commit
	metas  []byte       // its two first pages' beginnings, of which each commit changes one
}

// An openedFile is a file as it was when it was opened.
type openedFile struct {
	path string
	info os.FileInfo
}

// watchFiles notes the files of a database as they are. Close them when it is closed.
func watchFiles(db *bbolt.DB, journal string) (f *files, err error) {
	f = &files{pages: int64(db.Info().PageSize)}
	for _, path := range []string{db.Path(), journal} {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		f.opened = append(f.opened, openedFile{path, info})
	}
	if f.tree, err = os.Open(db.Path()); err != nil {
		return nil, err
	}
	if err := f.note(); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// note notes the tree as a commit left it.
func (f *files) note() error {
	info, err := f.tree.Stat()
	if err != nil {
		return err
	}
	f.size.Store(info.Size())
	f.metas, err = f.readMetas()
	return err
}

// metaSize is what a page has at its beginning that says which commit wrote it: the header,
// and the root, the number of the transaction and the checksum.
const metaSize = 16 + 64

func (f *files) readMetas() ([]byte, error) {
	metas := make([]byte, 2*metaSize)
	_, err := f.tree.ReadAt(metas[:metaSize], 0)
	if err == nil {
		_, err = f.tree.ReadAt(metas[metaSize:], f.pages)
	}
	return metas, err
}

// check reports files of which this process is no longer the only writer. It is called under the
// store's lock.
func (f *files) check() error {
	for _, o := range f.opened {
		if now, err := os.Stat(o.path); err != nil || !os.SameFile(now, o.info) {
			return fmt.Errorf("%w: its file or journal was removed, moved away or replaced", store.ErrRefused)
		}
	}
	if err := f.checkSize(); err != nil {
		return err
	}
	metas, err := f.readMetas()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !bytes.Equal(metas, f.metas) {
		return errWrittenOver
	}
	return nil
}

// checkSize reports a tree that was cut: reading what is gone would end the process.
func (f *files) checkSize() error {
	info, err := f.tree.Stat()
	if err != nil {
		return err
	}
	if info.Size() < f.size.Load() {
		return errWrittenOver
	}
	return nil
}

var errWrittenOver = fmt.Errorf("%w: its file was written over or cut by somebody else", store.ErrRefused)

func (f *files) close() error {
	if f == nil {
		return nil
	}
	return f.tree.Close()
}
