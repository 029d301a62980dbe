//go:build race

package detect_test

// The race detector makes each text ten times as slow to read and finds nothing
// more in the next, so under it there are fewer and shorter ones.
const (
	longText    = 1 << 15 // bytes of a text whose reader leaves
	randomTexts = 5_000
	runeStep    = 7 // every seventh rune is normalised
)
