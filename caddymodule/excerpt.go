package caddymodule

// excerpt cuts s to at most n characters and marks the cut with an ellipsis.
func excerpt(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	return string(runes[:n]) + "…"
}
