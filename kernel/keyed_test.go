package kernel_test

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

// TestKeyedHashes compares commitments and keys with crypto/hmac and crypto/hkdf, for keys
// around the size of a block, while others are made.
func TestKeyedHashes(t *testing.T) {
	var all sync.WaitGroup
	for seed := range uint64(4) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, 1))
			piece := func(size int) []byte {
				b := make([]byte, size)
				for i := range b {
					b[i] = byte(random.Uint32())
				}
				return b
			}
			for size := range 3 * sha256.BlockSize {
				key, text, secret := piece(size), piece(random.IntN(200)), piece(random.IntN(200))
				mac := hmac.New(sha256.New, key)
				mac.Write(text)
				if got := kernel.Commit(key, string(text)); got != hex.EncodeToString(mac.Sum(nil)) {
					t.Errorf("a key of %d bytes: %s is not its HMAC", size, got)
				}
				want, err := hkdf.Key(sha256.New, secret, key, string(text), sha256.Size)
				if err != nil || !bytes.Equal(kernel.DeriveKey(secret, string(key), string(text)), want) {
					t.Errorf("a salt of %d bytes: not HKDF", size)
				}
			}
		})
	}
	all.Wait()
}
