package govern

// KeptFindings is how many findings are kept.
func KeptFindings() int { return kept.Len() }
