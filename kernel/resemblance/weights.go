package resemblance

import (
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"math"
)

// Buckets is how many weights there are, a power of two: features are below it.
const Buckets = 1 << 17

// partOdds is how much more a part of a call has to resemble hostile ones. Parts are judged so that
// whatever is ordinary beside the harm does not outweigh it.
const partOdds = 0.4

// Weights tell how much the features of a call resemble those of hostile ones. They do not
// change.
type Weights struct {
	bias, unit float64
	buckets    []int8
}

//go:embed weights.bin
var shipped []byte

// Shipped are the weights in the binary.
var Shipped = Read(shipped)

// SHA256 is the hash of the shipped weights, in lower-case hex.
func SHA256() string {
	sum := sha256.Sum256(shipped)
	return hex.EncodeToString(sum[:])
}

// Read reads a file of weights as [Encode] writes it.
func Read(file []byte) *Weights {
	number := func(at int) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(file[at:]))) }
	w := &Weights{number(0), number(4), make([]int8, Buckets)}
	for i, b := range file[8:] {
		w.buckets[i] = int8(b) //nolint:gosec // G115: the bits of an int8
	}
	return w
}

// Encode writes the weights of all buckets: two numbers of 32 bits, and a byte for each.
func Encode(bias float64, weights []float64) []byte {
	unit := 0.0
	for _, w := range weights {
		unit = max(unit, math.Abs(w)/127)
	}
	file := binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(bias)))
	file = binary.LittleEndian.AppendUint32(file, math.Float32bits(float32(unit)))
	for _, w := range weights {
		file = append(file, byte(int8(math.Round(w/unit)))) //nolint:gosec // G115: the bits of an int8
	}
	return file
}

// Odds returns the log-odds that a call with these impressions is hostile, or that one of its
// parts is.
func (w *Weights) Odds(impressions [][]uint32) float64 {
	odds := w.of(impressions[0])
	for _, part := range impressions[1:] {
		odds = max(odds, w.of(part)-partOdds)
	}
	return odds
}

// of returns the log-odds that what has these features is hostile.
func (w *Weights) of(features []uint32) float64 {
	sum := 0
	for _, f := range features {
		sum += int(w.buckets[f])
	}
	return w.bias + w.unit*float64(sum)*Scale(features)
}

// fewFeatures is how many features some ten words have.
const fewFeatures = 40

// Scale is what each feature of a call counts: a long call says as much in all as a shorter
// one, and a call of a few words less, since chance may have chosen them.
func Scale(features []uint32) float64 { return 4 / math.Sqrt(float64(len(features)+fewFeatures)) }
