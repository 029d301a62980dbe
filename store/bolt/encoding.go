package bolt

import (
	"bytes"
	"encoding/binary"
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

// encodeReceipt returns the stored form of r without its cursor: a line of JSON
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
	data := make([]byte, 0, len(header)+1+len(r.JSON))
	data = append(append(data, header...), '\n')
	return append(data, r.JSON...), nil
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

// decodeReceipt returns the receipt that encodeReceipt encoded, without a
// cursor. The result shares nothing with data.
func decodeReceipt(data []byte) (store.Receipt, error) {
	h, record, err := decodeHeader(data)
	if err != nil {
		return store.Receipt{}, err
	}
	return store.Receipt{
		ID: h.ID, Kind: h.Kind, SessionKey: h.SessionKey, SessionID: h.SessionID, TurnID: h.TurnID,
		Turn: h.Turn, Timestamp: h.Timestamp, Intervened: h.Intervened, MAfter: h.MAfter,
		JSON: bytes.Clone(record),
	}, nil
}
