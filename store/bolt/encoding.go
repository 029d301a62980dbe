package bolt

import (
	"bytes"
	"encoding/json"
	"fmt"

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
	Intervened bool    `json:"intervened,omitempty"`
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

// decodeReceipt returns the receipt that encodeReceipt encoded, without a
// cursor. The result shares nothing with data.
func decodeReceipt(data []byte) (store.Receipt, error) {
	header, record, ok := bytes.Cut(data, []byte{'\n'})
	var h receiptHeader
	if err := json.Unmarshal(header, &h); err != nil {
		return store.Receipt{}, fmt.Errorf("decoding a receipt: %w", err)
	}
	if !ok {
		return store.Receipt{}, fmt.Errorf("decoding receipt %s: it has no record", h.ID)
	}
	return store.Receipt{
		ID: h.ID, Kind: h.Kind, SessionKey: h.SessionKey, SessionID: h.SessionID, TurnID: h.TurnID,
		Turn: h.Turn, Timestamp: h.Timestamp, Intervened: h.Intervened, MAfter: h.MAfter,
		JSON: bytes.Clone(record),
	}, nil
}
