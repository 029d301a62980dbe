package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/store"
)

// Documents holds the policies and setups that receipts name by their hash.
type Documents interface {
	// Document returns the JSON of a policy or a setup, or an error that wraps
	// [store.ErrNotFound].
	Document(ctx context.Context, hash string) ([]byte, error)
}

// DocumentOf returns the document that is kept under a hash. If it has another, the error
// wraps [store.ErrInvalid].
func DocumentOf(ctx context.Context, from Documents, hash string) ([]byte, error) {
	text, err := from.Document(ctx, hash)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != hash {
		return nil, fmt.Errorf("what is kept under %s is another: %w", hash, store.ErrInvalid)
	}
	return text, nil
}

// kernelOf returns the kernel of a policy that is kept under its hash.
func kernelOf(ctx context.Context, from Documents, hash string) (*kernel.Kernel, error) {
	text, err := DocumentOf(ctx, from, hash)
	switch {
	case errors.Is(err, store.ErrInvalid):
		return nil, fmt.Errorf("%w: the policy kept under %s is another", kernel.ErrPolicy, hash)
	case err != nil:
		return nil, err
	}
	p, err := kernel.ParsePolicy(text)
	if err != nil {
		return nil, err
	}
	return kernel.New(p)
}

// setupOf makes the check of the setup that is kept under a hash: what it says of the receipts
// that name it is not in them.
func setupOf(ctx context.Context, from Documents, hash string) (Check, error) {
	const name = "setup"
	_, err := DocumentOf(ctx, from, hash)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return unknown(name, "its setup is not known here"), nil
	case errors.Is(err, store.ErrInvalid):
		return failed(name, "the setup kept under "+hash+" is another"), nil
	case err != nil:
		return Check{}, err
	}
	return passed(name, "its setup is the one that it names"), nil
}
