//go:build race

package toolcall_test

// The race detector makes each byte ten times as slow and finds nothing more in
// the next, so hostile calls are smaller under it. Without it they are whole.
const (
	hostileLeast = 1 << 10 // bytes of the smallest hostile shapes
	hostileSize  = 2 << 10 // bytes of the largest
	leavingSize  = 8 << 10 // bytes of the call whose caller leaves
	seedSize     = 100     // bytes of the seeds of FuzzWork
	largeShare   = 4       // large texts are cut to one part in so many
)
