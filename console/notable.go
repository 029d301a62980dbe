package console

import (
	"iter"
	"slices"
)

// notable are the newest rows with a flag, at most [Limit] and what is trimmed at a time.
type notable struct {
	tail    []Row // oldest first: came since the window began
	past    []Row // newest first: read back
	dropped bool  // there were older ones
}

// trimmedAt is how many rows over the limit are taken away at a time.
const trimmedAt = 1000

func (n *notable) len() int { return len(n.tail) + len(n.past) }

// extend adds a newer row, if it is notable.
func (n *notable) extend(r Row) {
	if len(r.Flags) == 0 {
		return
	}
	if n.tail = append(n.tail, r); n.len() <= Limit+trimmedAt {
		return
	}
	n.dropped = true
	over := min(trimmedAt, len(n.past))
	clear(n.past[len(n.past)-over:])
	n.past = n.past[:len(n.past)-over]
	n.tail = slices.Delete(n.tail, 0, trimmedAt-over)
}

// prepend adds an older row, if it is notable and there is room.
func (n *notable) prepend(r *Row) {
	switch {
	case len(r.Flags) == 0:
	case n.dropped || n.len() >= Limit:
		n.dropped = true
	default:
		n.past = append(n.past, r.kept())
	}
}

// olderThan returns the rows behind the one with a cursor, newest first; found is false if
// it is not here. "" begins with the newest.
func (n *notable) olderThan(cursor string) (rows iter.Seq[*Row], found bool) {
	all := n.newestFirst()
	if cursor == "" {
		return all, true
	}
	for r := range all {
		if r.Cursor == cursor {
			found = true
			break
		}
	}
	return func(yield func(*Row) bool) {
		behind := false
		for r := range all {
			if behind && !yield(r) {
				return
			}
			behind = behind || r.Cursor == cursor
		}
	}, found
}

func (n *notable) newestFirst() iter.Seq[*Row] {
	return func(yield func(*Row) bool) {
		for i := range slices.Backward(n.tail) {
			if !yield(&n.tail[i]) {
				return
			}
		}
		for i := range n.past {
			if !yield(&n.past[i]) {
				return
			}
		}
	}
}
