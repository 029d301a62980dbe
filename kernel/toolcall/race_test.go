//go:build race

package toolcall_test

// The race detector makes each byte ten times as slow and finds nothing more in
// the next, so hostile calls are smaller under it. Without it they are whole.
const (
	hostileSize = 4 << 10 // bytes of the largest hostile shapes
	leavingSize = 8 << 10 // bytes of the call whose caller leaves
)
