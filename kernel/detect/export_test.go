package detect

import "context"

// Views returns the texts of [Read].
func Views(s string) []string {
	r := read(context.Background(), s)
	out := make([]string, len(r.Views))
	for i, v := range r.Views {
		out[i] = v.Text
	}
	return out
}
