package detect

// The weights of a model are bytes, and each word of a text adds some hundred of them to as
// many sums. Eight weights stand in one number here, each raised by raised so that none is
// negative, and are added as two numbers with four sums of sixteen bits each. The sums
// are the same integers as if they were made one by one.

// raised is added to each weight: as bytes of two's complement, their highest bit turns.
const raised = 128

// maxAdded is how many numbers a lanes can add without a sum running over.
const maxAdded = (1<<16 - 1) / (raised + 127)

// packedByte is a weight, given as the byte that it is in a file, at place i of a number.
func packedByte(weight byte, i int) uint64 { return uint64(weight^raised) << (8 * i) }

// lanes are the sums of eight columns of weights, of up to maxAdded numbers.
type lanes struct{ even, odd uint64 }

const evenBytes = 0x00ff00ff00ff00ff

func (l *lanes) add(x uint64) {
	l.even += x & evenBytes
	l.odd += x >> 8 & evenBytes
}

// sums returns the sums of the columns over n numbers.
func (l *lanes) sums(n int32) (out [8]int32) {
	for i := range 4 {
		out[2*i] = int32(l.even>>(16*i)&0xffff) - raised*n
		out[2*i+1] = int32(l.odd>>(16*i)&0xffff) - raised*n
	}
	return out
}

// packedWord is a [Word].
type packedWord struct {
	hidden  [Hidden / 8]uint64
	meaning [Dimensions / 8]uint64
	weight  uint8
}
