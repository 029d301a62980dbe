package caddymodule

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/caddy-lex/lex/kernel"
)

// A receipt is kept for good and served to everybody, so nothing in it is of a
// caller's own length or wording: it names what it must, in a bounded form.

// maxModelName is how long a model's name may be to stand in a receipt.
const maxModelName = 128

// plainName is a name as it is, or its hash where it is anything else than a
// short name of plain letters.
func plainName(name string) string {
	plain := len(name) <= maxModelName && !strings.ContainsFunc(name, func(c rune) bool {
		return !strings.ContainsRune("._-/:@+", c) && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
	if plain {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "sha256:" + hex.EncodeToString(sum[:8])
}

// maxListed is how many parts a receipt lists of each kind; a long conversation
// has some hundred. With it a receipt has less than 64 KiB.
const maxListed = 100

// listed is the coverage with its lists cut: the last entry counts the rest and
// sums its bytes. A list that had an entry keeps one, so that nothing becomes
// complete by being cut.
func listed(c kernel.Coverage) kernel.Coverage {
	c.Inspected = cutList(c.Inspected, func(rest []kernel.CoveredPart) kernel.CoveredPart {
		sum := kernel.CoveredPart{Part: more(len(rest)), Detector: rest[0].Detector}
		for _, p := range rest {
			if sum.Bytes += p.Bytes; p.Detector != sum.Detector {
				sum.Detector = "several"
			}
		}
		return sum
	})
	for _, list := range []*[]kernel.SkippedPart{&c.Redacted, &c.Skipped, &c.Unknown} {
		*list = cutList(*list, sumSkipped)
	}
	return c
}

func sumSkipped(rest []kernel.SkippedPart) kernel.SkippedPart {
	sum := kernel.SkippedPart{Part: more(len(rest)), Why: "beyond what a receipt lists"}
	for _, p := range rest {
		sum.Bytes += p.Bytes
	}
	return sum
}

func more(n int) string { return fmt.Sprintf("%d more", n) }

// cutList keeps maxListed entries, the last of which stands for the rest.
func cutList[P any](list []P, sum func(rest []P) P) []P {
	if len(list) <= maxListed {
		return list
	}
	return append(list[:maxListed-1:maxListed-1], sum(list[maxListed-1:]))
}
