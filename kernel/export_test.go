package kernel

// ReadCanonical reads a record with the reader for canonical JSON alone.
func ReadCanonical(text []byte) (r Receipt, ok bool) {
	ok = receiptShape.read(string(text), &r)
	return r, ok
}

// DecodeReceipt reads a record with the general decoder alone.
func DecodeReceipt(text []byte) (Receipt, error) { return decodeReceipt(text) }
