package detect

// The weights of a model are bytes, and each word of a text adds some hundred of them to as
// many sums. Eight weights stand in one number here, each raised by raised so that none is
// negative, and are added as two numbers with four sums of sixteen bits each. The sums
// are the same integers as if they were made one by one.

// raised is added to each weight.
const raised = 128

// maxAdded is how many numbers a lanes can add without a sum running over.
const maxAdded = (1<<16 - 1) / (raised + 127)

// packed puts weights into a number, the first one lowest.
func packed(weights []int8) (x uint64) {
	for i, w := range weights {
		x |= uint64(int(w)+raised) << (8 * i) //nolint:gosec // G115: 0 to 255
	}
	return x
}

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

func packedWords(words []Word) []packedWord {
	out := make([]packedWord, len(words))
	for i := range words {
		w := &words[i]
		for k := range out[i].hidden {
			out[i].hidden[k] = packed(w.Hidden[8*k : 8*k+8])
		}
		for d := range out[i].meaning {
			out[i].meaning[d] = packed(w.Meaning[8*d : 8*d+8])
		}
		out[i].weight = w.Weight
	}
	return out
}

func packedRows(rows []Row) []uint64 {
	out := make([]uint64, len(rows))
	for i := range rows {
		out[i] = packed(rows[i][:])
	}
	return out
}
