//go:build race

package kernel_test

// randomSteps is how many random steps the theorems are tested on. The race
// detector makes each ten times as slow and finds nothing more in the next.
const randomSteps = 100_000
