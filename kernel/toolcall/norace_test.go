//go:build !race

package toolcall_test

const (
	hostileSize = 16 << 10 // bytes of the largest hostile shapes
	leavingSize = 64 << 10 // bytes of the call whose caller leaves
)
