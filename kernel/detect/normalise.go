package detect

// Normalise maps a text to the form that the detector reads.
func Normalise(s string) string { return s }
