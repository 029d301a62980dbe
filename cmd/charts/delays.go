package main

import (
	"bytes"
	"fmt"

	"github.com/caddy-lex/lex/kernel"
)

// former is the single chart of the policy's revision 0.
var former = charts{{K: 0.30, H: 0.95, Relief: 0.15}}

func reportDelays(b *bytes.Buffer) {
	fmt.Fprintf(b, "## Delay\n\nTurn of the first alarm, within %d:\n\n| pattern | revision 0 | fast | slow | either |\n|---|---|---|---|---|\n", patience)
	both := defaultCharts()
	rows := append([]pattern{constant(0.31), every(2, 0.60)}, family...)
	for _, p := range rows {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", p.name, former.first(p), charts{both[0]}.first(p), charts{both[1]}.first(p), both.first(p))
	}
	fmt.Fprintf(b, "\nThe least severity, in steps of 0.01, that is seen within %d turns:\n\n| on every | revision 0 | now |\n|---|---|---|\n", patience)
	for _, n := range []int{1, 2, 3, 4, 5, 6, 8, 10, 12} {
		fmt.Fprintf(b, "| %d | %s | %s |\n", n, former.least(n), both.least(n))
	}
	fmt.Fprintln(b)
}

func (c charts) first(p pattern) string {
	if turn, seen := c.delay(p); seen {
		return fmt.Sprint(turn)
	}
	return "never"
}

// least is the least severity under the refusal threshold that is seen on every nth turn.
func (c charts) least(n int) string {
	for percent := 31; percent < int(100*kernel.DefaultPolicy().RefuseAt); percent++ {
		if _, seen := c.delay(every(n, float64(percent)/100)); seen {
			return fmt.Sprintf("0.%d", percent)
		}
	}
	return "none"
}
