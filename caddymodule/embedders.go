package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/model"
)

func init() {
	caddy.RegisterModule(LocalEmbedder{})
	caddy.RegisterModule(OpenAIEmbedder{})
}

// An Embedder places a prompt between what is asked of assistants every day
// and what attacks them: the contrastive threat signal. Implementations are
// safe for concurrent use, honour the context and give errors that hold no
// text, key or address.
type Embedder interface {
	// Provider names the embedder, as embed_provider shows it.
	Provider() string
	// Threat returns a number in [-2, 2]; positive is nearer to harm.
	Threat(ctx context.Context, text string) (float64, error)
}

// An EmbedderModule is a module in the namespace lex.embedders. A nil Embedder
// stands for the detector's own embedding, which needs no call.
type EmbedderModule interface {
	NewEmbedder() (Embedder, error)
}

// LocalEmbedder uses the detector's own embedding, without a network.
type LocalEmbedder struct{}

// CaddyModule returns the Caddy module information.
func (LocalEmbedder) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "lex.embedders.local",
		New: func() caddy.Module { return new(LocalEmbedder) },
	}
}

// NewEmbedder returns nil: the detector embeds as it scores.
func (LocalEmbedder) NewEmbedder() (Embedder, error) { return nil, nil } //nolint:nilnil // nil is the local one

// UnmarshalCaddyfile accepts the bare name. Syntax:
//
//	local
func (*LocalEmbedder) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume module name
	return noMoreArguments(d)
}

// OpenAIEmbedder asks an OpenAI-compatible embeddings API: OpenAI itself,
// Ollama, vLLM, TEI, LM Studio.
type OpenAIEmbedder struct {
	// Address up to and with the version. Default: https://api.openai.com/v1.
	BaseURL string `json:"base_url,omitempty"`

	// The model. Default: text-embedding-3-small.
	Model string `json:"model,omitempty"`

	// The credential. Placeholders such as {env.OPENAI_API_KEY} are resolved
	// when the configuration is loaded.
	APIKey string `json:"api_key,omitempty"`

	// How long a request waits for the provider. Default: 2s.
	Timeout caddy.Duration `json:"timeout,omitempty"`
}

// CaddyModule returns the Caddy module information.
func (OpenAIEmbedder) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "lex.embedders.openai",
		New: func() caddy.Module { return new(OpenAIEmbedder) },
	}
}

// NewEmbedder builds the client; it asks the provider nothing.
func (o *OpenAIEmbedder) NewEmbedder() (Embedder, error) {
	key, err := caddy.NewReplacer().ReplaceOrErr(o.APIKey, false, true)
	if err != nil {
		return nil, errors.New("resolving api_key")
	}
	config := model.Config{Provider: "openai", BaseURL: o.BaseURL, Model: o.Model, Key: key, Timeout: time.Duration(o.Timeout)}
	if config.BaseURL == "" {
		config.BaseURL = "https://api.openai.com/v1"
	}
	if config.Model == "" {
		config.Model = "text-embedding-3-small"
	}
	if config.Timeout == 0 {
		config.Timeout = 2 * time.Second
	}
	return model.NewEmbedder(config)
}

// UnmarshalCaddyfile sets up the embedder from Caddyfile tokens. Syntax:
//
//	openai {
//	    base_url <address>
//	    model    <name>
//	    api_key  <key>
//	    timeout  <duration>
//	}
func (o *OpenAIEmbedder) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume module name
	return block(options{
		"base_url": text(&o.BaseURL),
		"model":    text(&o.Model),
		"api_key":  text(&o.APIKey),
		"timeout":  duration(&o.Timeout),
	})(d)
}

// maxEmbedded is how many characters of a prompt a remote embedder is given.
const maxEmbedded = 8000

// embed asks the pinned embedder, where there is one, for the threat signal.
// When it fails nothing else stands in: the detection counts as degraded, and
// the local scores decide by the lower threshold.
func (x *exchange) embed(ctx context.Context) {
	if x.app.embedder == nil || x.prompt == "" {
		return
	}
	name := x.app.embedder.Provider() + "_embedder"
	sent := excerpt(x.prompt, maxEmbedded)
	threat, err := x.app.embedder.Threat(ctx, sent)
	if err != nil {
		x.evidence.ThreatSignal, x.evidence.Degraded = 0, true
		x.coverage.Detectors = append(x.coverage.Detectors, kernel.DetectorRun{Name: name, Outcome: kernel.DetectorFailed, Why: model.Why(err)})
		return
	}
	x.evidence.ThreatSignal = max(-2, min(2, threat))
	x.ran(name, threat > x.app.kernel.Policy().ThreatAt)
}

// provisionEmbedder loads the embedder module.
func (a *App) provisionEmbedder(ctx caddy.Context) error {
	if a.EmbedderRaw == nil {
		return nil
	}
	guest, err := ctx.LoadModule(a, "EmbedderRaw")
	if err != nil {
		return fmt.Errorf("loading the embedder module: %w", err)
	}
	if a.embedder, err = guest.(EmbedderModule).NewEmbedder(); err != nil {
		return fmt.Errorf("embedder: %w", err)
	}
	return nil
}

// embedProvider names the space in which prompts are compared.
func (a *App) embedProvider() string {
	if a.embedder == nil {
		return detectorLocal
	}
	return a.embedder.Provider()
}

// Interface guards
var (
	_ EmbedderModule        = (*LocalEmbedder)(nil)
	_ caddyfile.Unmarshaler = (*LocalEmbedder)(nil)
	_ EmbedderModule        = (*OpenAIEmbedder)(nil)
	_ caddyfile.Unmarshaler = (*OpenAIEmbedder)(nil)
)
