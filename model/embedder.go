package model

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/caddy-lex/lex/kernel/detect"
)

const (
	// cacheBytes bounds the memory of the signals that are kept, and entryBytes
	// is what one takes: the hash of its text, a number, and the bookkeeping of
	// a map and a linked list.
	cacheBytes = 4 << 20
	entryBytes = 160

	// batchTexts and batchBytes bound one request: TEI takes 32 texts unless told
	// otherwise, and Mistral 16384 tokens, of which each has a byte at least.
	batchTexts = 32
	batchBytes = 16000

	maxDimensions    = 8192
	embedTimeout     = 2 * time.Second
	indistinct       = 0.9999       // similarity from which two centroids count as the same
	referencesFlight = "references" // and the namespace that asks for them
)

// embedReach bounds what is read of a prompt. 2000 bytes are at most 2000 tokens,
// which is under the 2048 after which gemini-embedding-001 cuts a text without
// saying so.
var embedReach = reach{size: 2000, overlap: 200, most: 32}

// MaxEmbedded is how many bytes of a text [Embedder.Threat] reads.
var MaxEmbedded = embedReach.bytes()

// Embedder places texts between references by the vectors of a remote model. It
// is safe for concurrent use.
type Embedder struct {
	*client
	provider provider
	cache    *lru.Cache[[sha256.Size]byte, float64]
	flights  singleflight.Group

	mu   sync.Mutex
	refs *references // nil until embedded
}

// references are the centroids of the reference prompts in the embedder's own
// space.
type references struct{ harm, benign detect.Vector }

// NewEmbedder checks the configuration and completes it with the provider's
// defaults; it asks the provider nothing. The observer may be nil.
func NewEmbedder(c Config, observer Observer) (*Embedder, error) {
	p, ok := providers[c.Provider]
	if !ok {
		return nil, fmt.Errorf("provider must be one of %s", strings.Join(slices.Sorted(maps.Keys(providers)), ", "))
	}
	c.BaseURL, c.Model = withDefault(c.BaseURL, p.base), withDefault(c.Model, p.model)
	if c.Timeout == 0 {
		c.Timeout = embedTimeout
	}
	switch {
	case c.Dimensions < 0 || c.Dimensions > maxDimensions:
		return nil, fmt.Errorf("dimensions must be from 1 to %d", maxDimensions)
	case c.Key == "" && p.needsKey(c):
		return nil, errKey
	}
	client, err := newClient(c, p.keyHeader, observer)
	if err != nil {
		return nil, err
	}
	cache, err := lru.New[[sha256.Size]byte, float64](cacheBytes / entryBytes)
	if err != nil {
		return nil, fmt.Errorf("making the cache: %w", err)
	}
	return &Embedder{client: client, provider: p, cache: cache}, nil
}

func withDefault(given, standard string) string {
	if given == "" {
		return standard
	}
	return given
}

// Provider names the provider, as results do.
func (e *Embedder) Provider() string { return e.config.Provider }

// Model names the model and, if it is asked for vectors of another length than its own,
// their length.
func (e *Embedder) Model() string {
	if e.config.Dimensions == 0 {
		return e.config.Model
	}
	return fmt.Sprintf("%s@%d", e.config.Model, e.config.Dimensions)
}

// Threat places a text between the references: its similarity to the harm
// centroid minus its similarity to the benign one, in [-2, 2]. Of a text longer
// than a piece it is that of the worst piece; the first [MaxEmbedded] bytes are
// read. [Why] tells the kind of an error.
//
// Results are cached for the namespace alone, which names the caller: otherwise
// the time that an answer takes would tell one caller what another has asked.
func (e *Embedder) Threat(ctx context.Context, namespace, text string) (float64, error) {
	text = strings.ToValidUTF8(text[:min(len(text), MaxEmbedded)], "?")
	key := cacheKey(namespace, text)
	if threat, ok := e.cache.Get(key); ok {
		e.observer.Cached()
		return threat, nil
	}
	pieces := embedReach.pieces(text)
	if len(pieces) == 0 {
		return 0, nil // the text is blank
	}
	var threat float64
	err := e.gatherEvidence(ctx, namespace, len(pieces), func(ctx context.Context) (err error) {
		threat, err = e.measure(ctx, namespace, pieces)
		return err
	})
	if err == nil {
		e.cache.Add(key, threat)
	}
	return threat, err
}

// cacheKey hashes the namespace by itself, so that no namespace and text are
// those of another pair run together.
func cacheKey(namespace, text string) [sha256.Size]byte {
	whose := sha256.Sum256([]byte(namespace))
	return sha256.Sum256(append(whose[:], text...))
}

func (e *Embedder) measure(ctx context.Context, namespace string, pieces []string) (float64, error) {
	refs, err := e.references(ctx)
	if err != nil {
		return 0, err
	}
	vectors, err := e.embed(ctx, namespace, pieces)
	if err != nil {
		return 0, err
	}
	if len(vectors[0]) != len(refs.harm) {
		e.forget()
		return 0, unusable("another dimension than before")
	}
	worst := -2.0
	for _, v := range vectors {
		worst = max(worst, detect.Similarity(v, refs.harm)-detect.Similarity(v, refs.benign))
	}
	return worst, nil
}

// references embeds the reference prompts once for all callers that wait, even
// when some of them leave. After a failure the next caller tries again.
func (e *Embedder) references(ctx context.Context) (*references, error) {
	if refs := e.known(); refs != nil {
		return refs, nil
	}
	flight := e.flights.DoChan(referencesFlight, func() (any, error) {
		if refs := e.known(); refs != nil {
			return refs, nil // another flight ended between the look above and this one
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.config.Timeout)
		defer cancel()
		return e.embedReferences(ctx)
	})
	select {
	case done := <-flight:
		refs, _ := done.Val.(*references)
		return refs, done.Err
	case <-ctx.Done():
		return nil, failTransport(ctx, ctx.Err())
	}
}

func (e *Embedder) known() *references {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.refs
}

// embedReferences refuses a space in which the two references are the same vector:
// no text could be placed between them.
func (e *Embedder) embedReferences(ctx context.Context) (*references, error) {
	vectors, err := e.embed(ctx, referencesFlight, slices.Concat(harmReferences, benignReferences))
	if err != nil {
		return nil, err
	}
	refs := &references{meanVector(vectors[:len(harmReferences)]), meanVector(vectors[len(harmReferences):])}
	if !(detect.Similarity(refs.harm, refs.benign) < indistinct) {
		return nil, unusable("the references cannot be told apart")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refs = refs
	return refs, nil
}

// forget drops everything measured so far: the provider has changed the model
// behind its name, and with it the space.
func (e *Embedder) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refs = nil
	e.cache.Purge()
}

// embed returns one vector a text, in the texts' order, all of one dimension.
func (e *Embedder) embed(ctx context.Context, namespace string, texts []string) ([]detect.Vector, error) {
	var out []detect.Vector
	for part := range batches(texts) {
		err := e.ask(ctx, namespace, e.provider.path(e.config), e.provider.question(e.config, part), func(answer []byte) error {
			vectors, err := e.provider.vectors(answer, len(part))
			out = append(out, vectors...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if err := validateVectors(out); err != nil {
		return nil, err
	}
	if want := e.config.Dimensions; want != 0 && len(out[0]) != want {
		return nil, unusable("another dimension than was asked for")
	}
	return out, nil
}

// batches cuts texts into runs that one request can hold.
func batches(texts []string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		from, bytes := 0, 0
		for i, t := range texts {
			if bytes+len(t) > batchBytes || i-from == batchTexts {
				if !yield(texts[from:i]) {
					return
				}
				from, bytes = i, 0
			}
			bytes += len(t)
		}
		yield(texts[from:])
	}
}
