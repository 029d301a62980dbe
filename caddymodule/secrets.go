package caddymodule

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
)

// Secrets open what is not public. Each may hold a placeholder such as
// {env.ADMIN_PASSWORD} or {file./run/secrets/admin}, which is resolved when
// the configuration is loaded and never written back into it.
type Secrets struct {
	// For the administrative endpoints.
	Admin string `json:"admin,omitempty"`

	// For publishing benchmarks and for evaluation sessions.
	Bench string `json:"bench,omitempty"`

	admin, bench secret
}

func (s *Secrets) provision(logger *zap.Logger) error {
	for _, one := range []struct {
		name, raw string
		to        *secret
	}{{"admin", s.Admin, &s.admin}, {"bench", s.Bench, &s.bench}} {
		value, err := caddy.NewReplacer().ReplaceOrErr(one.raw, false, true)
		if err != nil {
			return fmt.Errorf("resolving the secret %s: %w", one.name, err)
		}
		if one.raw != "" && value == "" {
			logger.Warn("a secret is configured, but what it names is empty: what it opens stays closed", zap.String("secret", one.name))
		}
		*one.to = newSecret(value)
	}
	return nil
}

// A secret is the digest of a configured secret; the zero value is one that is
// not configured and matches nothing.
type secret struct {
	set bool
	sum [sha256.Size]byte
}

func newSecret(value string) secret {
	if value == "" {
		return secret{}
	}
	return secret{set: true, sum: sha256.Sum256([]byte(value))}
}

// matches compares in constant time.
func (s secret) matches(given string) bool {
	if !s.set {
		return false
	}
	sum := sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(s.sum[:], sum[:]) == 1
}
