package toolcall

// Scenarios returns the script.
func Scenarios() []Scenario { return nil }
