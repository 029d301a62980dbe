//go:build !race

package toolcall_test

const (
	hostileLeast = 2 << 10  // bytes of the smallest hostile shapes
	hostileSize  = 16 << 10 // bytes of the largest
	leavingSize  = 64 << 10 // bytes of the call whose caller leaves
	seedSize     = 400      // bytes of the seeds of FuzzWork
	largeShare   = 1        // large texts are cut to one part in so many
)
