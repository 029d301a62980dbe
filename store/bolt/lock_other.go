//go:build !unix || aix || solaris || illumos

package bolt

import "os"

// unlock does nothing here: the lock goes when the file is closed.
func unlock(*os.File) error { return nil }
