package audit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// MaxLine bounds a line of JSON, in bytes. A receipt that lists every part of the
// largest request is much smaller.
const MaxLine = 32 << 20

// EachLine visits the lines of JSON that are not empty. n counts all lines from 1;
// line is valid until visit returns. A byte order mark at the beginning, as programs
// on Windows write it, belongs to no line. A line over [MaxLine] is an error that names
// its number, and an error of visit is returned as it is.
func EachLine(r io.Reader, visit func(n int, line []byte) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), MaxLine)
	n := 1
	for ; lines.Scan(); n++ {
		line := lines.Bytes()
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if len(line) == 0 {
			continue
		}
		if err := visit(n, line); err != nil {
			return err
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("line %d is over %d MiB, the most that a line may have", n, MaxLine>>20)
	case err != nil:
		return fmt.Errorf("reading line %d: %w", n, err)
	}
	return nil
}
