//go:build !race

package detect_test

const (
	longText    = 1 << 17 // bytes of a text whose reader leaves
	randomTexts = 30_000
	runeStep    = 1 // every rune is normalised
)
