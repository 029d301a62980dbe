package bolt

import (
	"os"
	"syscall"
)

// syncData makes the content of a file durable, and of the rest what is needed to read it:
// the time of the last change is not, and would cost a write of its own.
func syncData(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if err != syscall.EINTR {
			return err
		}
	}
}
