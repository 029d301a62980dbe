package kernel

// CheckForm refuses a few things for now.
func (r Receipt) CheckForm() error {
	if r.Refused && r.Outcome == Answered {
		return ErrReceipt
	}
	return nil
}
