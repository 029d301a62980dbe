//go:build !linux

package bolt

import "os"

// syncData makes the content of a file durable.
func syncData(f *os.File) error { return f.Sync() }
