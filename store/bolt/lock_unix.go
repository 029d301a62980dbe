//go:build unix && !aix && !solaris && !illumos

package bolt

import (
	"os"
	"syscall"
)

// unlock lets go of the library's lock on a file that stays mapped: to close it is not enough.
func unlock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
