package kernel_test

import (
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

func BenchmarkStep(b *testing.B) {
	k := newKernel(b, kernel.DefaultPolicy())
	for _, c := range []struct {
		name     string
		evidence kernel.Evidence
		output   kernel.Output
	}{
		{"quiet", scores(0.05, 0.01, 0.02, 0.04, 0.1, 0), kernel.Output{}},
		{"corrected", scores(0.66, 0.01, 0.02, 0.04, 0.1, 0), kernel.Output{}},
		{"refused", scores(0.9, 0.01, 0.02, 0.04, 0.1, 0), kernel.Output{}},
		{"carried", scores(0.05, 0.01, 0.02, 0.04, 0.1, 0), kernel.Output{LostThread: true}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			s := k.NewSession()
			for b.Loop() {
				turn, err := k.Assess(s, c.evidence, kernel.Enforce)
				if err != nil {
					b.Fatal(err)
				}
				if turn, err = k.Conclude(turn, c.output); err != nil {
					b.Fatal(err)
				}
				s = turn.Next
				s.CUSUM = 0
			}
		})
	}
}

func BenchmarkSeal(b *testing.B) {
	r := sealedReceipt(b, newKernel(b, kernel.DefaultPolicy()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Seal(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReplay(b *testing.B) {
	k := newKernel(b, kernel.DefaultPolicy())
	r := sealedReceipt(b, k)
	b.ReportAllocs()
	for b.Loop() {
		if err := k.Replay(r); err != nil {
			b.Fatal(err)
		}
	}
}
