package main

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/caddy-lex/lex/evaluation"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
)

// shipped is the default policy with the threshold of the local detector's own scale.
func shipped() kernel.Policy {
	p := kernel.DefaultPolicy()
	p.ThreatAt = math.Round(float64(detect.Default().Calibration().Threat)*1e4) / 1e4
	return p
}

// reportThreat says what the contrastive signal refuses alone, by the severity that it
// asks for as well.
func reportThreat(b *bytes.Buffer, choosing, reporting half) {
	fmt.Fprintf(b, "## Contrastive signal\n\nPrompts that it refuses alone, in per cent (95 %%), by threat_severity. The last three columns are prompts that the detector was not trained on:\n\n| threat_severity | ordinary, choosing | ordinary, reporting | ordinary | borderline | attacks |\n|---|---|---|---|---|---|\n")
	p := shipped()
	for _, severity := range []float64{0, 0.40, 0.45, 0.50, 0.55, 0.60} {
		p.ThreatSeverity = severity
		k := must(kernel.New(p))
		fmt.Fprintf(b, "| %.2f |", severity)
		for _, prompts := range [][]dialogue{choosing.prompts, reporting.prompts, onlyUnseen(reporting.prompts), onlyUnseen(reporting.borderline), onlyUnseen(reporting.attacks)} {
			fmt.Fprintf(b, " %s |", alone(k, prompts))
		}
		fmt.Fprintln(b)
	}
	fmt.Fprintln(b)
}

func onlyUnseen(ds []dialogue) []dialogue {
	return slices.DeleteFunc(slices.Clone(ds), func(d dialogue) bool { return !unseen(d.source) })
}

// alone counts what the contrastive signal alone refuses in a session of its own.
func alone(k *kernel.Kernel, ds []dialogue) string {
	refused := 0
	for _, d := range ds {
		turn := must(k.Assess(k.NewSession(), d.turns[0].evidence, kernel.Enforce))
		if slices.Equal(turn.Reasons, []kernel.Reason{kernel.ContrastiveThreat}) {
			refused++
		}
	}
	return share(refused, len(ds))
}

func share(k, n int) string {
	if n == 0 {
		return "none"
	}
	interval := evaluation.Wilson(k, n)
	return fmt.Sprintf("%.2f (%.2f–%.2f), %d of %d", evaluation.Percent(k, n), interval[0], interval[1], k, n)
}
