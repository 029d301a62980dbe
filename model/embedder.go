package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/caddy-lex/lex/kernel/detect"
)

var (
	// ErrUnavailable says that the provider did not answer in time, or not with
	// a success.
	ErrUnavailable = errors.New("the embedding provider is unavailable")
	// ErrAnswer says that the provider's answer was not what was asked for.
	ErrAnswer = errors.New("the embedding provider's answer is unusable")
)

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 16 << 20

// Config says which embeddings API to use. All fields but Key are required.
type Config struct {
	Provider string // as results name it
	BaseURL  string // up to and with the version, such as https://api.openai.com/v1
	Model    string
	Key      string
	Timeout  time.Duration
}

// Embedder is a client of an OpenAI-compatible embeddings API (OpenAI, Ollama,
// vLLM, TEI, LM Studio). It is safe for concurrent use.
type Embedder struct {
	config   Config
	endpoint string
	client   *http.Client

	mu           sync.Mutex
	harm, benign detect.Vector // centroids of the references; nil until embedded
}

// NewEmbedder checks the configuration; it asks the provider nothing.
func NewEmbedder(c Config) (*Embedder, error) {
	base, err := url.Parse(c.BaseURL)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, errors.New("base_url must be an http or https address such as https://api.openai.com/v1")
	}
	if c.Model == "" {
		return nil, errors.New("model is required")
	}
	if c.Timeout <= 0 {
		return nil, errors.New("timeout must be positive")
	}
	client := &http.Client{
		Timeout:       c.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &Embedder{config: c, endpoint: base.JoinPath("embeddings").String(), client: client}, nil
}

// Provider names the provider, as results do.
func (e *Embedder) Provider() string { return e.config.Provider }

// Threat places a text between the references: its similarity to the harm
// centroid minus its similarity to the benign one, in [-2, 2]. Errors wrap
// [ErrUnavailable] or [ErrAnswer]. The centroids are embedded with the first
// text that needs them.
func (e *Embedder) Threat(ctx context.Context, text string) (float64, error) {
	harm, benign, err := e.centroids(ctx)
	if err != nil {
		return 0, err
	}
	vectors, err := e.Embed(ctx, []string{text})
	if err != nil {
		return 0, err
	}
	if len(vectors[0]) != len(harm) {
		return 0, fmt.Errorf("%w: another dimension than before", ErrAnswer)
	}
	return detect.Similarity(vectors[0], harm) - detect.Similarity(vectors[0], benign), nil
}

// centroids embeds the references once. After a failure the next caller tries
// again.
func (e *Embedder) centroids(ctx context.Context) (harm, benign detect.Vector, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.harm != nil {
		return e.harm, e.benign, nil
	}
	vectors, err := e.Embed(ctx, append(append([]string{}, harmReferences...), benignReferences...))
	if err != nil {
		return nil, nil, err
	}
	harm, benign = centre(vectors[:len(harmReferences)]), centre(vectors[len(harmReferences):])
	e.harm, e.benign = harm, benign
	return harm, benign, nil
}

// centre is the mean of vectors of one dimension.
func centre(vectors []detect.Vector) detect.Vector {
	mean := make(detect.Vector, len(vectors[0]))
	for _, v := range vectors {
		for i := range mean {
			mean[i] += v[i] / float32(len(vectors))
		}
	}
	return mean
}

// Embed returns one vector a text, in the texts' order, all of one dimension.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([]detect.Vector, error) {
	body, err := json.Marshal(map[string]any{"model": e.config.Model, "input": texts, "encoding_format": "float"})
	if err != nil {
		return nil, fmt.Errorf("%w: the request cannot be encoded", ErrAnswer)
	}
	answer, err := e.post(ctx, body)
	if err != nil {
		return nil, err
	}
	return decodeVectors(answer, len(texts))
}

// post sends a request. What went wrong is not passed on: it may name the
// address, and a provider may repeat the key or the text.
func (e *Embedder) post(ctx context.Context, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, ErrUnavailable
	}
	r.Header.Set("Content-Type", "application/json")
	if e.config.Key != "" {
		r.Header.Set("Authorization", "Bearer "+e.config.Key)
	}
	resp, err := e.client.Do(r)
	if err != nil {
		return nil, ErrUnavailable
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: status %d", ErrUnavailable, resp.StatusCode)
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, ErrUnavailable
	}
	return answer, nil
}

// decodeVectors orders by index, not by arrival, and refuses what would make a
// comparison meaningless.
func decodeVectors(answer []byte, n int) ([]detect.Vector, error) {
	var got struct {
		Data []struct {
			Index     int           `json:"index"`
			Embedding detect.Vector `json:"embedding"`
		} `json:"data"`
	}
	if err := json.Unmarshal(answer, &got); err != nil || len(got.Data) != n {
		return nil, fmt.Errorf("%w: not one vector for each text", ErrAnswer)
	}
	vectors := make([]detect.Vector, n)
	for _, d := range got.Data {
		if d.Index < 0 || d.Index >= n || vectors[d.Index] != nil || len(d.Embedding) == 0 || len(d.Embedding) != len(got.Data[0].Embedding) {
			return nil, fmt.Errorf("%w: vectors without order or of several dimensions", ErrAnswer)
		}
		vectors[d.Index] = d.Embedding
	}
	return vectors, nil
}

// Why turns an error of this package into a few words for a receipt.
func Why(err error) string {
	switch {
	case errors.Is(err, ErrAnswer):
		return "unusable answer"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	}
	return strings.TrimPrefix(ErrUnavailable.Error(), "the embedding ")
}
