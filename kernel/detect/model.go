package detect

import (
	_ "embed" // the model
	"sync"

	"github.com/caddy-lex/lex/kernel"
)

// Head indexes one of the six classifiers.
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

// Hidden is the number of hidden units of the network.
const Hidden = 48

// Row is what the model knows of one bucket: a weight per head.
type Row [Heads]int8

// Word is what the model knows of one word, or of one bucket of the subwords
// that other words are made of.
type Word struct {
	// Hidden is what the word adds to each hidden unit, and Meaning to each
	// dimension of the embedding: its vector times its weight, and for the
	// hidden units times their weights.
	Hidden  [Hidden]int8
	Meaning [Dimensions]int8
	// Weight is how much the word counts, in 255ths: little for frequent ones.
	// A word outside the lexicon counts in full.
	Weight uint8
}

// Parameters is everything that training decides. Rows must have [Buckets]
// entries, Words one for each entry of the lexicon and then [SubwordBuckets].
//
// The logit of a head over a span of text is
//
//	Gain·Σ weights/√n + Rule·rule + Out·max(0, Scale·Σ hidden/Σ weight + Bias) + Offset
//
// with the sums over the span's n features and its words.
type Parameters struct {
	Lexicon *Lexicon
	Rows    []Row
	Words   []Word
	Numbers
	Languages Languages
}

// Numbers are the model's real parameters.
type Numbers struct {
	Gain, Offset, Rule [Heads]float32
	Out                [Heads][Hidden]float32
	Bias               [Hidden]float32
	Scale              float32
	// Common is the mean of Σ meaning/Σ weight over ordinary texts; the
	// embedding is what differs from it.
	Common [Dimensions]float32
	// Harm and Benign are the references behind [Signal.Threat].
	Harm, Benign [Dimensions]float32
	// Calibration holds the thresholds measured on the training data.
	Calibration Calibration
}

// Calibration holds thresholds that belong to this model's scale.
type Calibration struct {
	// Threat is exceeded by 0.1 % of benign prompts.
	Threat float32
	// LostThread is the 1 % quantile of the continuity c of benign dialogues,
	// from the third answer on.
	LostThread float32
}

// Model is a trained detector. It is safe for concurrent use, and nothing changes what it says.
type Model struct {
	lexicon        *Lexicon
	numbers        Numbers
	rows           []uint64 // the weights of a row, and Foreign of [Languages], in one number
	spelled        memory[wordSums]
	words          []packedWord
	out            [Hidden][Heads]float64 // Out by hidden unit
	bias           [Hidden]float64
	gate           float32 // see [Languages]
	floor          [Questions]float32
	english, other requestReader
	sum            string // SHA-256 of the file, in lower-case hex
}

//go:embed model.bin
var modelFile []byte

var loadDefault = sync.OnceValue(func() *Model {
	m, err := Decode(modelFile)
	if err != nil {
		panic(err) // the build is broken: every test of the package sees it first
	}
	return m
})

// Default returns the embedded model, decoded once.
func Default() *Model { return loadDefault() }

// Lexicon is what a [Scanner] of the model needs.
func (m *Model) Lexicon() *Lexicon { return m.lexicon }

// Version is a short hash of the model's bytes: twelve hex digits.
func (m *Model) Version() string { return m.SHA256()[:12] }

// SHA256 is the hash of the model's bytes, in lower-case hex.
func (m *Model) SHA256() string { return m.sum }

// Calibration returns the thresholds that belong to the model.
func (m *Model) Calibration() Calibration { return m.numbers.Calibration }

// kernelScores maps the heads' probabilities to the kernel's fields.
func kernelScores(p [Heads]float64) kernel.Scores {
	return kernel.Scores{
		Identity: p[Identity], Coercion: p[Coercion], Exploitative: p[Exploitative],
		HarmRequest: p[HarmRequest], Sycophancy: p[Sycophancy], Injection: p[Injection],
	}
}
