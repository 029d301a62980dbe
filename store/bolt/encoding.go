package bolt

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/klauspost/compress/s2"

	"github.com/caddy-lex/lex/store"
)

// receiptHeader is the stored form of a receipt's fields.
type receiptHeader struct {
	ID         string  `json:"id"`
	Kind       string  `json:"kind"`
	SessionKey string  `json:"session_key,omitempty"`
	SessionID  string  `json:"session_id,omitempty"`
	TurnID     string  `json:"turn_id,omitempty"`
	Turn       int     `json:"turn"`
	Timestamp  int64   `json:"timestamp"`
	Intervened bool    `json:"intervened,omitzero"`
	MAfter     float64 `json:"m_after"`
}

// The forms of a stored receipt. Of older versions it is [store.Receipt.LogPrev] in
// hexadecimal, of all but the first receipt of a log, a line of JSON with the fields, and
// the record, none of it compressed; their summaries have a bucket of their own. The
// form that is written begins with its number, which is no hexadecimal digit and no brace:
//
//	form number        1 byte
//	LogPrev            32 bytes, zero for the first receipt
//	length of the head 4 bytes, big-endian
//	head               compressed: a line of JSON with the fields, then the summary
//	record             compressed
//
// Both parts are blocks of S2, each with the dictionary, which belongs to the form: it
// must not change. The record is not inside the JSON because an encoder would be free
// to write it anew, and its hash would change. The summary stands before it so that it
// can be read alone.
const (
	formCompressed = 1
	headAt         = 1 + sha256.Size + 4
	linkSize       = 2 * sha256.Size // of older versions
	// maxPart bounds what a damaged length can make a reader allocate.
	maxPart = 64 << 20
)

// dictionaryText has what receipts have in common. Compression with it takes 2.4 KB of
// fields and record to 0.8 KB in 5 microseconds.
//
//go:embed dictionary.txt
var dictionaryText []byte

var dictionary = sync.OnceValue(func() *s2.Dict { return s2.MakeDict(dictionaryText, nil) })

// encodeReceipt returns the stored form of r without its cursor, with room for the link.
func encodeReceipt(r store.Receipt) ([]byte, error) {
	head, err := json.Marshal(receiptHeader{
		ID: r.ID, Kind: r.Kind, SessionKey: r.SessionKey, SessionID: r.SessionID, TurnID: r.TurnID,
		Turn: r.Turn, Timestamp: r.Timestamp, Intervened: r.Intervened, MAfter: r.MAfter,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding a receipt: %w", store.ErrInvalid)
	}
	head = append(append(head, '\n'), r.Summary...)
	if len(head) > maxPart || len(r.JSON) > maxPart {
		return nil, fmt.Errorf("encoding a receipt: it is too large: %w", store.ErrInvalid)
	}
	scratch := scratches.Get().(*[]byte) //nolint:forcetypeassert // it has nothing else
	defer scratches.Put(scratch)
	data := slices.Grow((*scratch)[:0], headAt)[:headAt]
	clear(data)
	data[0] = formCompressed
	data = compress(data, head)
	binary.BigEndian.PutUint32(data[headAt-4:], uint32(len(data)-headAt)) //nolint:gosec // bounded by maxPart
	data = compress(data, r.JSON)
	*scratch = data
	return bytes.Clone(data), nil
}

// scratches are where receipts are compressed, which takes several times the room of the
// result, and the tree keeps results for a while.
var scratches = sync.Pool{New: func() any { return new([]byte) }}

// compress appends the block of a part.
func compress(data, part []byte) []byte {
	data = slices.Grow(data, s2.MaxEncodedLen(len(part)))
	block := dictionary().Encode(data[len(data):cap(data)], part)
	return data[:len(data)+len(block)] // it is in data's memory, where there is room for it
}

// decompress returns the part of a block.
func decompress(block []byte) ([]byte, error) {
	if n, err := s2.DecodedLen(block); err != nil || n > maxPart {
		return nil, errors.New("decompressing a receipt: it is damaged")
	}
	part, err := dictionary().Decode(nil, block)
	if err != nil {
		return nil, fmt.Errorf("decompressing a receipt: %w", err)
	}
	return part, nil
}

// isCompressed tells the forms of a stored receipt apart.
func isCompressed(data []byte) bool { return len(data) >= headAt && data[0] == formCompressed }

// splitHead returns the compressed parts of a stored receipt.
func splitHead(data []byte) (head, record []byte, err error) {
	n := uint64(binary.BigEndian.Uint32(data[headAt-4:]))
	if n > uint64(len(data)-headAt) { //nolint:gosec // G115: isCompressed saw headAt bytes
		return nil, nil, errors.New("decoding a receipt: it is cut")
	}
	return data[headAt:][:n], data[headAt:][n:], nil
}

// decodeHead returns the fields of a compressed receipt, and its summary or nil.
func decodeHead(data []byte) (h receiptHeader, summary []byte, err error) {
	block, _, err := splitHead(data)
	if err != nil {
		return h, nil, err
	}
	head, err := decompress(block)
	if err != nil {
		return h, nil, err
	}
	fields, summary, _ := bytes.Cut(head, []byte{'\n'})
	if err := json.Unmarshal(fields, &h); err != nil {
		return h, nil, fmt.Errorf("decoding a receipt: %w", err)
	}
	if len(summary) == 0 {
		return h, nil, nil
	}
	return h, summary, nil
}

// recordOf returns the record of a stored receipt of any form.
func recordOf(data []byte) ([]byte, error) {
	if !isCompressed(data) {
		_, record, ok := bytes.Cut(data, []byte{'\n'})
		if !ok {
			return nil, errors.New("decoding a receipt: it has no record")
		}
		return bytes.Clone(record), nil
	}
	_, block, err := splitHead(data)
	if err != nil {
		return nil, err
	}
	return decompress(block)
}

// cutLink splits off the hash of the record before, in hexadecimal, from a receipt that
// an older version stored. The first receipt has none, and neither have those that were
// written before there was a log: they begin with the fields.
func cutLink(data []byte) (link, rest []byte) {
	if len(data) < linkSize || data[0] == '{' {
		return nil, data
	}
	return data[:linkSize], data[linkSize:]
}

// linkOf returns the [store.Receipt.LogPrev] of a stored receipt of any form.
func linkOf(data []byte) string {
	if !isCompressed(data) {
		link, _ := cutLink(data)
		return string(link)
	}
	link := data[1:][:sha256.Size]
	if bytes.Equal(link, make([]byte, sha256.Size)) {
		return ""
	}
	return hex.EncodeToString(link)
}

// decodeFields returns the fields of a stored receipt of any form.
func decodeFields(data []byte) (h receiptHeader, err error) {
	if isCompressed(data) {
		h, _, err = decodeHead(data)
		return h, err
	}
	_, data = cutLink(data)
	fields, _, _ := bytes.Cut(data, []byte{'\n'})
	if err := json.Unmarshal(fields, &h); err != nil {
		return h, fmt.Errorf("decoding a receipt: %w", err)
	}
	return h, nil
}

// decodeReceipt returns a stored receipt without its place. One that is damaged has no record,
// and of the rest what can be read. The result shares nothing with data.
func decodeReceipt(data []byte) store.Receipt {
	h, _ := decodeFields(data)
	record, err := recordOf(data)
	if err != nil {
		record = nil
	}
	return store.Receipt{
		ID: h.ID, Kind: h.Kind, SessionKey: h.SessionKey, SessionID: h.SessionID, TurnID: h.TurnID,
		Turn: h.Turn, Timestamp: h.Timestamp, Intervened: h.Intervened, MAfter: h.MAfter,
		JSON: record, LogPrev: linkOf(data),
	}
}

// decodeSummary returns a summary that an older version stored: the length of the id,
// the id, the summary. It has no cursor and shares nothing with data.
func decodeSummary(data []byte) (store.Summary, error) {
	length, n := binary.Uvarint(data)
	if n <= 0 || length > uint64(len(data[n:])) {
		return store.Summary{}, errors.New("decoding a summary: it is cut")
	}
	id, summary := data[n:][:length], data[n:][length:]
	return store.Summary{ID: string(id), JSON: bytes.Clone(summary)}, nil
}
