package kernel_test

import (
	stdjson "encoding/json"
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

func TestCoverageComplete(t *testing.T) {
	run := func(o kernel.DetectorOutcome) []kernel.DetectorRun {
		return []kernel.DetectorRun{{Name: "local", Outcome: kernel.Clean}, {Name: "remote", Outcome: o}}
	}
	part := []kernel.SkippedPart{{Part: "request.image", Why: "image", Bytes: 1}}
	for name, c := range map[string]struct {
		coverage kernel.Coverage
		want     bool
	}{
		"nothing looked":   {kernel.Coverage{}, false},
		"clean":            {kernel.Coverage{Detectors: run(kernel.Clean)}, true},
		"flagged":          {kernel.Coverage{Detectors: run(kernel.Flagged)}, true},
		"one did not run":  {kernel.Coverage{Detectors: run(kernel.NotRun)}, false},
		"one failed":       {kernel.Coverage{Detectors: run(kernel.DetectorFailed)}, false},
		"unnamed outcome":  {kernel.Coverage{Detectors: run("")}, false},
		"a skipped part":   {kernel.Coverage{Detectors: run(kernel.Clean), Skipped: part}, false},
		"an unknown part":  {kernel.Coverage{Detectors: run(kernel.Clean), Unknown: part}, false},
		"an inspected one": {kernel.Coverage{Detectors: run(kernel.Clean), Inspected: []kernel.CoveredPart{{Part: "p"}}}, true},
	} {
		if got := c.coverage.Complete(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// The record has one shape, whichever encoder writes it.
func TestCoverageHasOneShape(t *testing.T) {
	const want = `{"detectors":[],"inspected":[],"skipped":[],"unknown":[],"bytes_inspected":0,"bytes_forwarded":0}`
	if got, err := stdjson.Marshal(kernel.Coverage{}); err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
}
