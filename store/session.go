package store

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/go-json-experiment/json"

	"github.com/caddy-lex/lex/kernel"
)

// sessionRecord is the stored form of a session. Key and version are not part
// of it: back-ends compare them without decoding.
type sessionRecord struct {
	State       kernel.Session `json:"state"`
	Family      string         `json:"family,omitempty"`
	PublicID    string         `json:"public_id,omitempty"`
	Head        string         `json:"head"`
	Secret      []byte         `json:"secret,omitempty"`
	Centre      []byte         `json:"centre,omitempty"` // little-endian float32s: a third of their size in decimal
	Memory      []byte         `json:"memory,omitempty"`
	Turns       int            `json:"turns"`
	HighestTurn int            `json:"highest_turn"`
	Eval        bool           `json:"eval,omitzero"`
}

// EncodeSession returns the stored form of s without its key and version: one
// JSON object on one line. A state that is not finite is [ErrInvalid].
func EncodeSession(s Session) ([]byte, error) {
	data, err := json.Marshal(sessionRecord{
		State: s.State, Family: s.Family, PublicID: s.PublicID, Head: s.Head, Secret: s.Secret, Centre: packFloats(s.Centre), Memory: s.Memory,
		Turns: s.Turns, HighestTurn: s.HighestTurn, Eval: s.Eval,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding a session: %w", ErrInvalid)
	}
	return data, nil
}

// DecodeSession returns the session that [EncodeSession] encoded. The result
// shares nothing with data.
func DecodeSession(key string, version uint64, data []byte) (Session, error) {
	var r sessionRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return Session{}, fmt.Errorf("decoding a session: %w: %w", ErrInvalid, err)
	}
	return Session{
		Key: key, Version: version,
		State: r.State, Family: r.Family, PublicID: r.PublicID, Head: r.Head, Secret: r.Secret, Centre: unpackFloats(r.Centre), Memory: r.Memory,
		Turns: r.Turns, HighestTurn: r.HighestTurn, Eval: r.Eval,
	}, nil
}

// WithFamily returns the session as it is stored: a session without a family begins
// one, named by the receipt of its first turn. existing says that its family must be
// there already.
func (c Change) WithFamily() (s Session, existing bool) {
	s = c.Session
	if s.Family != "" {
		return s, true
	}
	s.Family = c.Receipt.ID
	return s, false
}

func packFloats(v []float32) []byte {
	if v == nil {
		return nil
	}
	out := make([]byte, 0, 4*len(v))
	for _, f := range v {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(f))
	}
	return out
}

func unpackFloats(data []byte) []float32 {
	if data == nil {
		return nil
	}
	v := make([]float32, len(data)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return v
}
