package caddymodule

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/detect"
)

// Policy is the operator's part of the kernel's policy. What is absent keeps
// the kernel's default.
type Policy struct {
	// The governor fires when the margin falls below it. Default: 0.08.
	Tau *float64 `json:"tau,omitempty"`

	// Severity from which a prompt is refused. Default: 0.70.
	RefuseAt *float64 `json:"refuse_at,omitempty"`

	// The same while detection is degraded. Default: 0.50.
	RefuseAtDegraded *float64 `json:"refuse_at_degraded,omitempty"`

	// What a refused turn answers.
	RefusalText string `json:"refusal_text,omitempty"`

	// A file with the system text of the governed arm, in place of the
	// built-in constitution.
	Constitution string `json:"constitution,omitempty"`

	// The identity mode of requests that name none: full, minimal, dynamic or
	// none. Default: full.
	Identity string `json:"identity,omitempty"`

	// The identity modes that requests may name; without `none` no caller can
	// leave the constitution out. Default: all four.
	IdentityModes []string `json:"identity_modes,omitempty"`

	governor *govern.Governor
}

// provision builds the governor that works under the policy. Its store comes with
// Start.
func (p *Policy) provision(a *App) error {
	if p.RefusalText == "" {
		p.RefusalText = govern.DefaultRefusal
	}
	if p.Identity == "" {
		p.Identity = govern.IdentityFull
	}
	if err := p.checkIdentity(); err != nil {
		return err
	}
	constitution, err := p.constitution()
	if err != nil {
		return err
	}
	policy := kernel.DefaultPolicy()
	override(&policy.Tau, p.Tau)
	override(&policy.RefuseAt, p.RefuseAt)
	override(&policy.RefuseAtDegraded, p.RefuseAtDegraded)
	detector := detect.Default()
	if a.embedder == nil { // the threshold belongs to the detector's own scale
		policy.ThreatAt = math.Round(float64(detector.Calibration().Threat)*1e4) / 1e4
	}
	k, err := kernel.New(policy)
	if err != nil {
		return fmt.Errorf("checking the policy: %w", err)
	}
	p.governor = &govern.Governor{
		Kernel: k, Detector: detector, Embedder: a.embedder, Judge: a.judge, JudgeRequired: a.judgeRequired,
		RefusalText: p.RefusalText, Constitution: constitution, Memory: *a.Memory,
		Version: pipelineVersion + "+policy." + k.PolicyHash()[:12],
	}
	return nil
}

// checkIdentity checks the modes and puts those that requests may name into
// their usual order.
func (p *Policy) checkIdentity() error {
	for _, mode := range append([]string{p.Identity}, p.IdentityModes...) {
		if !slices.Contains(govern.IdentityModes, mode) {
			return fmt.Errorf("policy identity %q: give one of %s", mode, strings.Join(govern.IdentityModes, ", "))
		}
	}
	if len(p.IdentityModes) == 0 {
		p.IdentityModes = govern.IdentityModes
	}
	if !slices.Contains(p.IdentityModes, p.Identity) {
		return fmt.Errorf("policy identity_modes: the default identity %s is not among them; name it, or set identity to one that is", p.Identity)
	}
	p.IdentityModes = slices.DeleteFunc(slices.Clone(govern.IdentityModes), func(mode string) bool { return !slices.Contains(p.IdentityModes, mode) })
	return nil
}

func override(field, value *float64) {
	if value != nil {
		*field = *value
	}
}

// constitution reads the governed arm's system text.
func (p *Policy) constitution() (string, error) {
	if p.Constitution == "" {
		return govern.DefaultConstitution(), nil
	}
	text, err := os.ReadFile(p.Constitution)
	if err != nil {
		return "", fmt.Errorf("reading the constitution: %w", err)
	}
	trimmed := strings.TrimSpace(string(text))
	if trimmed == "" || !utf8.ValidString(trimmed) {
		return "", errors.New("the constitution file is empty or not UTF-8")
	}
	return trimmed, nil
}
