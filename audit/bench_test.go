package audit_test

import (
	"testing"

	"github.com/caddy-lex/lex/audit"
)

// A file of receipts as `caddy lex verify` checks it. With -cpu 1,2 it tells what more
// processors add.
func BenchmarkVerifyFile(b *testing.B) {
	const receipts = 100_000
	name, size := newArchivist(b, 200, false).file(b, receipts)
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		v := audit.NewVerifier(audit.NewFileSource(name), false, func(where string, c audit.Check) { b.Fatal(where, c) })
		if sum, err := v.Verify(b.Context()); err != nil || sum.Receipts != receipts {
			b.Fatal(sum, err)
		}
	}
	b.ReportMetric(float64(receipts)*float64(b.N)/b.Elapsed().Seconds(), "receipts/s")
	b.ReportMetric(float64(size)/receipts, "B/receipt")
}

// What is kept of a million receipts of a thousand sessions.
func BenchmarkVerifyAMillion(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(float64(held(b, 1_000_000, 1000, false, false)), "B-held")
	}
}
