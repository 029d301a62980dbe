package govern

import (
	"crypto/sha256"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/caddy-lex/lex/kernel/detect"
)

// mostFindings bounds the findings that a process keeps. Each takes some 400 bytes.
const mostFindings = 1 << 14

// kept has what was found in texts that callers send again with each turn. An agent sends
// its instructions, the definitions of its tools and all results again, tens of kilobytes of
// which one line is new.
var kept = newFindings()

type findingKey struct {
	detector *detect.Model
	text     string // the digest of its caller, its source and itself
}

func newFindings() *lru.Cache[findingKey, detect.Finding] {
	cache, err := lru.New[findingKey, detect.Finding](mostFindings)
	if err != nil {
		panic(err) // a size under 1 is the only error
	}
	return cache
}

// findings are those of one caller: otherwise the time that an answer takes would tell one
// caller what another has sent.
type findings struct {
	governor  *Governor
	namespace string
}

func (f findings) Get(t detect.Text) (detect.Finding, bool) {
	found, ok := kept.Get(f.key(t))
	wanted := found.Hides() && len(f.governor.Guards) > 0 // guards are shown what is hidden
	return found, ok && !wanted
}

func (f findings) Add(t detect.Text, found detect.Finding) { kept.Add(f.key(t), found) }

func (f findings) key(t detect.Text) findingKey {
	return findingKey{f.governor.Detector, digestOf(sha256.Size, func(h *textHash) {
		h.writePart(f.namespace, string(t.Source))
		h.write(t.Body)
	})}
}
