package kernel

// ReadCanonical reads a record with the reader for canonical JSON alone.
func ReadCanonical(text []byte) (r Receipt, ok bool) {
	ok = readCanonical(receiptShape, string(text), &r)
	return r, ok
}

// DecodeReceipt reads a record with the general decoder alone.
func DecodeReceipt(text []byte) (Receipt, error) { return decodeReceipt(text) }

// Remake gives a receipt the outputs that follow from its inputs.
func (k *Kernel) Remake(r Receipt) (Receipt, error) {
	t, err := k.recompute(r)
	if err != nil {
		return Receipt{}, err
	}
	t.Migrated = r.Migrated
	r.record(t)
	return r, nil
}

// Retake gives a receipt the start that its predecessor left, and the outputs.
func (k *Kernel) Retake(before, r Receipt) (_ Receipt, err error) {
	s := before.next()
	if r.Migrated, err = k.admit(&s); err != nil {
		return Receipt{}, err
	}
	r.X, r.Z, r.CUSUM, r.CUSUMSlow, r.Carry, r.Policy = s.X, s.Z, s.CUSUM, s.CUSUMSlow, s.Carry, s.Policy
	return k.Remake(r)
}

// ReadNumber reads a text that is one number with the reader for canonical JSON alone.
func ReadNumber(text string) (n float64, ok bool) {
	in := scanner{text}
	n, ok = in.number()
	return n, ok && in.rest == ""
}

// Decimal reads the number that a text begins with by arithmetic alone.
var Decimal = decimal
