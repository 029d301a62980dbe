//go:build !race

package kernel_test

// randomSteps is how many random steps the theorems are tested on.
const randomSteps = 1_000_000
