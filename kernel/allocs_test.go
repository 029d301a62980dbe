//go:build !race

package kernel_test

import (
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

// An ordinary turn allocates nothing. The race detector allocates on its own,
// so this is tested without it.
func TestAnOrdinaryTurnDoesNotAllocate(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	s, e := k.NewSession(), scores(0.05, 0.64, 0, 0, 0, 0)
	if n := testing.AllocsPerRun(100, func() { take(t, k, s, e, kernel.Enforce, kernel.Output{LostThread: true}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
