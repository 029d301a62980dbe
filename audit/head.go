package audit

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/caddy-lex/lex/store"
)

// A Head says in a few bytes what a log holds. Whoever keeps it elsewhere can show later
// that nothing of the log was changed or removed since.
type Head struct {
	// Size is how many receipts the log has.
	Size uint64
	// Root is the Merkle tree hash of the records in the order of the log (RFC 6962,
	// section 2.1). Proofs that a receipt is in the log can be made against it.
	Root tlog.Hash
	// Last is the lower-case hex SHA-256 of the last record, "" in an empty log.
	Last string
	// Time is when the log was read, to the second.
	Time time.Time
}

// A HeadReader computes the head of a log from its receipts, in one pass. It keeps one
// hash for each bit of the size. The zero value has read nothing. It belongs to one
// goroutine.
type HeadReader struct {
	size     uint64
	subtrees []tlog.Hash // the complete ones, the largest first; their sizes are the bits of size
	walk     logWalk
	marks    map[uint64]tlog.Hash
}

// NewHeadReader returns a reader that keeps the roots at some sizes for
// [HeadReader.Extends].
func NewHeadReader(sizes ...uint64) *HeadReader {
	r := &HeadReader{marks: make(map[uint64]tlog.Hash)}
	for _, size := range sizes {
		r.marks[size] = r.Root()
	}
	return r
}

// Add takes the next receipt of the log. An error says that it does not follow the one
// before; it is counted all the same, and the root is then another.
func (r *HeadReader) Add(entry store.Receipt) error {
	if r.size == 0 {
		r.walk.begin(0)
	}
	place := r.walk.next(entry.Seq, entry.LogPrev, sha256.Sum256(entry.JSON))
	root := tlog.RecordHash(entry.JSON)
	for filled := r.size; filled&1 == 1; filled >>= 1 { // two subtrees of one size become one
		largest := len(r.subtrees) - 1
		root = tlog.NodeHash(r.subtrees[largest], root)
		r.subtrees = r.subtrees[:largest]
	}
	r.subtrees = append(r.subtrees, root)
	r.size++
	if _, marked := r.marks[r.size]; marked {
		r.marks[r.size] = r.Root()
	}
	switch {
	case entry.Seq == 0:
		return errors.New("it has no place in the log")
	case place.Failed():
		return errors.New(place.Detail)
	}
	return nil
}

// Root returns the Merkle tree hash of what was read.
func (r *HeadReader) Root() tlog.Hash {
	if len(r.subtrees) == 0 {
		return sha256.Sum256(nil)
	}
	i := len(r.subtrees) - 1
	root := r.subtrees[i]
	for i--; i >= 0; i-- {
		root = tlog.NodeHash(r.subtrees[i], root)
	}
	return root
}

// Head returns the head of what was read up to now.
func (r *HeadReader) Head(now time.Time) Head {
	return Head{Size: r.size, Root: r.Root(), Last: r.walk.lastHash(), Time: now.UTC().Truncate(time.Second)}
}

// Extends returns an error unless what was read begins with the log of the head. The
// reader must have been made for the head's size.
func (r *HeadReader) Extends(h Head) error {
	switch root, marked := r.marks[h.Size]; {
	case !marked:
		return fmt.Errorf("the reader was not made for a head of %d receipts", h.Size)
	case r.size < h.Size:
		return fmt.Errorf("the log has %d receipts and had %d at %s: some were removed", r.size, h.Size, h.Time.Format(time.RFC3339))
	case root != h.Root:
		return fmt.Errorf("the first %d receipts of the log are not those of %s: some were changed, moved, put in or removed", h.Size, h.Time.Format(time.RFC3339))
	}
	return nil
}

// Sign returns the head as a signed note (golang.org/x/mod/sumdb/note) whose text is a
// checkpoint of a log (c2sp.org/tlog-checkpoint): the origin, which is the name of the key,
// the size and the root; then the last record and the time as extension lines.
func (h Head) Sign(signer note.Signer) ([]byte, error) {
	text := fmt.Sprintf("%s\n%d\n%s\n", signer.Name(), h.Size, h.Root)
	if h.Last != "" {
		text += "last " + h.Last + "\n"
	}
	text += "time " + h.Time.Format(time.RFC3339) + "\n"
	signed, err := note.Sign(&note.Note{Text: text}, signer)
	if err != nil {
		return nil, fmt.Errorf("signing the head: %w", err)
	}
	return signed, nil
}

// errNoHead says that a signed text is no head of a log.
var errNoHead = errors.New("the note is signed and is no head of a log")

// OpenHead returns the head of a note that was signed with the key. Signatures of other
// keys, such as those of witnesses, are ignored. Extension lines may be missing.
func OpenHead(signed []byte, key note.Verifier) (Head, error) {
	n, err := note.Open(signed, note.VerifierList(key))
	if err != nil {
		return Head{}, fmt.Errorf("reading the signed head: %w", err)
	}
	lines := strings.Split(strings.TrimSuffix(n.Text, "\n"), "\n")
	if len(lines) < 3 || lines[0] != key.Name() {
		return Head{}, errNoHead
	}
	size, err1 := strconv.ParseUint(lines[1], 10, 64)
	root, err2 := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err1 != nil || err2 != nil || len(root) != tlog.HashSize {
		return Head{}, errNoHead
	}
	h := Head{Size: size, Root: tlog.Hash(root)}
	for _, line := range lines[3:] {
		switch name, value, _ := strings.Cut(line, " "); name {
		case "last":
			h.Last = value
		case "time":
			if h.Time, err = time.Parse(time.RFC3339, value); err != nil {
				return Head{}, errNoHead
			}
		}
	}
	return h, nil
}
