package detect

import (
	"crypto/sha256"
	_ "embed" // the model
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/caddy-lex/lex/kernel"
)

// Head indexes one of the six logistic classifiers.
type Head int

// The heads, in the order of every array of the model.
const (
	Identity Head = iota
	Coercion
	Exploitative
	HarmRequest
	Sycophancy
	Injection
	Heads int = iota // how many there are
)

// String returns the head's name as the interface writes it.
func (h Head) String() string {
	return [Heads]string{"identity", "coercion", "exploitative", "harm_request", "sycophancy", "injection"}[h]
}

// Row is what the model knows of one bucket: a weight per head, and the
// inverse document frequency in [0, 127] that the embedding uses.
type Row struct {
	Weight [Heads]int8
	IDF    int8
	_      int8 // eight bytes, so that a row never straddles a cache line
}

// Parameters is everything that training decides. The zero value of a field is
// valid; Rows must have [Buckets] entries.
type Parameters struct {
	Rows []Row
	// Gain and Offset make the calibrated logit of a head from the sum s of
	// its weights over n features: Gain·s/√n + Offset. Rule is added to it when
	// [SelfReference] holds.
	Gain, Offset, Rule [Heads]float32
	// Harm and Benign are the references behind [Signal.Threat].
	Harm, Benign [Dimensions]float32
	// Calibration holds the thresholds measured on the training data.
	Calibration Calibration
}

// Calibration holds thresholds that belong to this model's scale.
type Calibration struct {
	// Threat is exceeded by 0.5 % of benign prompts.
	Threat float32
	// LostThread is the 1 % quantile of the continuity c of benign dialogues,
	// from the third answer on. At 0 nothing falls under it: the embedding is
	// too weak on short answers to call a thread lost.
	LostThread float32
}

// Model is a trained detector. It is immutable and safe for concurrent use.
type Model struct {
	p       Parameters
	version string
}

//go:embed model.bin
var embedded []byte

var load = sync.OnceValue(func() *Model {
	m, err := Decode(embedded)
	if err != nil {
		panic(err) // the build is broken: every test of the package sees it first
	}
	return m
})

// Default returns the embedded model, decoded once.
func Default() *Model { return load() }

// Version is a short hash of the model's bytes: twelve hex digits.
func (m *Model) Version() string { return m.version }

// Calibration returns the thresholds that belong to the model.
func (m *Model) Calibration() Calibration { return m.p.Calibration }

// ErrModel is wrapped by every error of [Decode].
var ErrModel = errors.New("malformed model")

// The format: magic, the numbers little-endian, then Rows column by column
// (columns compress and diff better than rows).
const (
	magic   = "LEXD0001"
	columns = Heads + 1
)

type header struct {
	Gain, Offset, Rule [Heads]float32
	Harm, Benign       [Dimensions]float32
	Calibration        Calibration
}

// Encode writes the parameters in the model's file format.
func (p Parameters) Encode() ([]byte, error) {
	if len(p.Rows) != Buckets {
		return nil, fmt.Errorf("encoding %d rows: %w", len(p.Rows), ErrModel)
	}
	out, err := binary.Append([]byte(magic), binary.LittleEndian, header{p.Gain, p.Offset, p.Rule, p.Harm, p.Benign, p.Calibration})
	if err != nil {
		return nil, fmt.Errorf("encoding the model: %w", err)
	}
	for c := range columns {
		for i := range p.Rows {
			out = append(out, byte(*p.Rows[i].column(c)))
		}
	}
	return out, nil
}

func (r *Row) column(c int) *int8 {
	if c < Heads {
		return &r.Weight[c]
	}
	return &r.IDF
}

// Decode reads a model from its file format.
func Decode(raw []byte) (*Model, error) {
	var h header
	size := len(magic) + binary.Size(h) + columns*Buckets
	if len(raw) != size || string(raw[:len(magic)]) != magic {
		return nil, fmt.Errorf("decoding %d bytes: %w", len(raw), ErrModel)
	}
	n, err := binary.Decode(raw[len(magic):], binary.LittleEndian, &h)
	if err != nil {
		return nil, fmt.Errorf("decoding the header: %w: %w", ErrModel, err)
	}
	if !h.finite() {
		return nil, fmt.Errorf("decoding the header: not a finite number: %w", ErrModel)
	}
	p := Parameters{Rows: make([]Row, Buckets), Gain: h.Gain, Offset: h.Offset, Rule: h.Rule, Harm: h.Harm, Benign: h.Benign, Calibration: h.Calibration}
	table := raw[len(magic)+n:]
	for c := range columns {
		for i, b := range table[c*Buckets : (c+1)*Buckets] {
			*p.Rows[i].column(c) = int8(b)
		}
	}
	sum := sha256.Sum256(raw)
	return &Model{p: p, version: hex.EncodeToString(sum[:6])}, nil
}

func (h *header) finite() bool {
	sum := h.Calibration.Threat + h.Calibration.LostThread
	for i := range Heads {
		sum += h.Gain[i] + h.Offset[i] + h.Rule[i]
	}
	for i := range Dimensions {
		sum += h.Harm[i] + h.Benign[i]
	}
	return !math.IsNaN(float64(sum)) && !math.IsInf(float64(sum), 0)
}

// scores maps the heads' probabilities to the kernel's fields.
func scores(p [Heads]float64) kernel.Scores {
	return kernel.Scores{
		Identity: p[Identity], Coercion: p[Coercion], Exploitative: p[Exploitative],
		HarmRequest: p[HarmRequest], Sycophancy: p[Sycophancy], Injection: p[Injection],
	}
}
