package store_test

import (
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// FuzzSession checks that a session comes back from its stored form bit by bit.
func FuzzSession(f *testing.F) {
	f.Add("head", []byte("secret"), []byte{1, 2, 3, 4}, []byte("memory"), 3, 2, true, 0.1, 1e-320)
	f.Add("", []byte(nil), []byte(nil), []byte(nil), 0, 0, false, 0.0, math.Copysign(0, -1))
	f.Fuzz(func(t *testing.T, head string, secret, centre, memory []byte, turns, highest int, eval bool, a, b float64) {
		want := store.Session{
			Key: "k", Version: 7, Head: head, Family: head, Secret: secret, Memory: memory, Turns: turns, HighestTurn: highest, Eval: eval,
			State: kernel.Session{X: kernel.Point{a, b, a}, Z: kernel.Point{b, a, b}, CUSUM: a, CUSUMSlow: b, Carry: kernel.Point{a, a, b}},
		}
		for ; len(centre) >= 4; centre = centre[4:] {
			if v := math.Float32frombits(binary.LittleEndian.Uint32(centre)); !math.IsNaN(float64(v)) { // NaN is not equal to itself
				want.Centre = append(want.Centre, v)
			}
		}
		data, err := store.EncodeSession(want)
		if math.IsNaN(a+b) || math.IsInf(a, 0) || math.IsInf(b, 0) || !utf8.ValidString(head) {
			if !errors.Is(err, store.ErrInvalid) {
				t.Fatalf("a state that is not finite, or a text that is not UTF-8: %v", err)
			}
			return
		}
		if err != nil {
			t.Fatalf("encoding: %v", err)
		}
		got, err := store.DecodeSession("k", 7, data)
		if err != nil {
			t.Fatalf("decoding: %v", err)
		}
		// Nothing is told from no bytes at all.
		for _, s := range []*store.Session{&want, &got} {
			if len(s.Secret) == 0 {
				s.Secret = nil
			}
			if len(s.Memory) == 0 {
				s.Memory = nil
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("session:\n got %+v\nwant %+v", got, want)
		}
	})
}

func BenchmarkEncodeSession(b *testing.B) {
	s := store.Session{Key: "k", Secret: make([]byte, 32), Centre: make([]float32, 256), Memory: make([]byte, 4096)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := store.EncodeSession(s); err != nil {
			b.Fatal(err)
		}
	}
}
