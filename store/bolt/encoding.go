package bolt

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/caddy-lex/lex/store"
)

// receiptHeader is the stored form of a receipt without its record.
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

// linkSize is the length of [store.Receipt.LogPrev] in a stored receipt.
const linkSize = 2 * sha256.Size

// encodeReceipt returns the stored form of r without its cursor: room for the hash
// of the record before it in the log, which only the writer knows, a line of JSON
// that holds the fields, then the record byte for byte. The record is not
// inside the JSON because an encoder would be free to write it anew, and its
// hash would change.
func encodeReceipt(r store.Receipt) ([]byte, error) {
	header, err := json.Marshal(receiptHeader{
		ID: r.ID, Kind: r.Kind, SessionKey: r.SessionKey, SessionID: r.SessionID, TurnID: r.TurnID,
		Turn: r.Turn, Timestamp: r.Timestamp, Intervened: r.Intervened, MAfter: r.MAfter,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding a receipt: %w", store.ErrInvalid)
	}
	data := make([]byte, linkSize, linkSize+len(header)+1+len(r.JSON))
	data = append(append(data, header...), '\n')
	return append(data, r.JSON...), nil
}

// linkTo fills in an encoded receipt that it follows a stored one in the log, and
// returns it. The first receipt follows none, which is nil, and has no room for a link.
// A stored one that is damaged is followed all the same.
func linkTo(before, encoded []byte) []byte {
	if before == nil {
		return encoded[linkSize:]
	}
	_, record, _ := bytes.Cut(before, []byte{'\n'})
	sum := sha256.Sum256(record)
	hex.Encode(encoded, sum[:])
	return encoded
}

// cutLink splits off the hash of the record before. The first receipt has none, and
// neither have those that were written before there was a log: they begin with the
// fields.
func cutLink(data []byte) (link, rest []byte) {
	if len(data) < linkSize || data[0] == '{' {
		return nil, data
	}
	return data[:linkSize], data[linkSize:]
}

// encodeSummary returns the stored form of r's summary: the length of the id,
// the id, the summary. It is nil when r has none.
func encodeSummary(r store.Receipt) []byte {
	if len(r.Summary) == 0 {
		return nil
	}
	data := binary.AppendUvarint(nil, uint64(len(r.ID)))
	return append(append(data, r.ID...), r.Summary...)
}

// decodeSummary returns the summary that encodeSummary encoded, without a
// cursor. The result shares nothing with data.
func decodeSummary(data []byte) (store.Summary, error) {
	length, n := binary.Uvarint(data)
	if n <= 0 || length > uint64(len(data[n:])) {
		return store.Summary{}, errors.New("decoding a summary: it is cut")
	}
	id, summary := data[n:][:length], data[n:][length:]
	return store.Summary{ID: string(id), JSON: bytes.Clone(summary)}, nil
}

// decodeHeader returns the fields of a stored receipt, and its record, which is
// a part of data.
func decodeHeader(data []byte) (receiptHeader, []byte, error) {
	_, data = cutLink(data)
	header, record, ok := bytes.Cut(data, []byte{'\n'})
	var h receiptHeader
	if err := json.Unmarshal(header, &h); err != nil {
		return h, nil, fmt.Errorf("decoding a receipt: %w", err)
	}
	if !ok {
		return h, nil, fmt.Errorf("decoding receipt %s: it has no record", h.ID)
	}
	return h, record, nil
}

// decodeReceipt returns the receipt that encodeReceipt encoded, without its
// place. The result shares nothing with data.
func decodeReceipt(data []byte) (store.Receipt, error) {
	h, record, err := decodeHeader(data)
	if err != nil {
		return store.Receipt{}, err
	}
	link, _ := cutLink(data)
	return store.Receipt{
		ID: h.ID, Kind: h.Kind, SessionKey: h.SessionKey, SessionID: h.SessionID, TurnID: h.TurnID,
		Turn: h.Turn, Timestamp: h.Timestamp, Intervened: h.Intervened, MAfter: h.MAfter,
		JSON: bytes.Clone(record), LogPrev: string(link),
	}, nil
}
