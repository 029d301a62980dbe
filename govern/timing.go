package govern

import "time"

// Timing is how long the phases of a turn took in this process, for metrics. They do not
// overlap. A phase that did not take place is 0. What a model takes to answer is in none
// of them, and what a remote embedder or judge takes is in Assess or Conclude.
type Timing struct {
	// Read takes the texts out of the request, and reads what is resent for the first time.
	Read time.Duration
	// Assess scores the newest turn.
	Assess time.Duration
	// Decide is the kernel's step, on the request and on its answer.
	Decide time.Duration
	// Conclude judges the answer: a stream while it passes, and every answer at its end.
	Conclude time.Duration
	// Commit waits for the session's other turns and writes the receipt.
	Commit time.Duration
}

// add adds the time since a phase began.
func add(phase *time.Duration, began time.Time) { *phase += time.Since(began) }
