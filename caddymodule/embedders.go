package caddymodule

import (
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/model"
)

func init() {
	caddy.RegisterModule(LocalEmbedder{})
	caddy.RegisterModule(OpenAIEmbedder{})
	caddy.RegisterModule(GeminiEmbedder{})
	caddy.RegisterModule(MistralEmbedder{})
	caddy.RegisterModule(JinaEmbedder{})
}

// An EmbedderModule is a module in the namespace lex.embedders. It is asked for its
// embedder after it was provisioned; nil stands for the detector's own embedding,
// which needs no call.
type EmbedderModule interface {
	Embedder() govern.Embedder
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

// Embedder returns nil: the detector embeds as it scores.
func (LocalEmbedder) Embedder() govern.Embedder { return nil }

// UnmarshalCaddyfile accepts the bare name. Syntax:
//
//	local
func (*LocalEmbedder) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume module name
	return noMoreArguments(d)
}

// RemoteEmbedder holds what the modules of all providers have in common.
type RemoteEmbedder struct {
	Remote

	// The length of the vectors, for models that can shorten them. Default: the
	// model's own.
	Dimensions int `json:"dimensions,omitempty"`

	embedder *model.Embedder
	release  func()
}

// Embedder returns the client. It is shared with all configurations that ask
// the same model in the same way.
func (e *RemoteEmbedder) Embedder() govern.Embedder { return e.embedder }

// provision builds the client or takes the one that is there; it asks the
// provider nothing.
func (e *RemoteEmbedder) provision(ctx caddy.Context, provider string) error {
	config, err := e.config(provider)
	if err != nil {
		return err
	}
	config.Dimensions = e.Dimensions
	e.embedder, e.release, err = shareRemote(ctx, &e.Remote, config, provider+"_embedder", model.NewEmbedder)
	return err
}

// Cleanup lets go of the client.
func (e *RemoteEmbedder) Cleanup() error {
	if e.release != nil {
		e.release()
	}
	return nil
}

// UnmarshalCaddyfile sets up the embedder from Caddyfile tokens. Syntax:
//
//	openai|gemini|mistral|jina {
//	    api_key    <key>
//	    model      <name>
//	    dimensions <number>
//	    base_url   <address>
//	    timeout    <duration>
//	}
func (e *RemoteEmbedder) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume module name
	known := e.options()
	known["dimensions"] = countOption(&e.Dimensions)
	return blockOption(known)(d)
}

// OpenAIEmbedder asks an OpenAI-compatible embeddings API: OpenAI itself,
// Ollama, vLLM, TEI, LM Studio. The model is text-embedding-3-small by default.
type OpenAIEmbedder struct{ RemoteEmbedder }

// CaddyModule returns the Caddy module information.
func (OpenAIEmbedder) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "lex.embedders.openai",
		New: func() caddy.Module { return new(OpenAIEmbedder) },
	}
}

// Provision resolves the key and builds the client.
func (e *OpenAIEmbedder) Provision(ctx caddy.Context) error { return e.provision(ctx, "openai") }

// GeminiEmbedder asks Google's Gemini API. The model is gemini-embedding-001 by
// default.
type GeminiEmbedder struct{ RemoteEmbedder }

// CaddyModule returns the Caddy module information.
func (GeminiEmbedder) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "lex.embedders.gemini",
		New: func() caddy.Module { return new(GeminiEmbedder) },
	}
}

// Provision resolves the key and builds the client.
func (e *GeminiEmbedder) Provision(ctx caddy.Context) error { return e.provision(ctx, "gemini") }

// MistralEmbedder asks Mistral's API. The model is mistral-embed by default.
type MistralEmbedder struct{ RemoteEmbedder }

// CaddyModule returns the Caddy module information.
func (MistralEmbedder) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "lex.embedders.mistral",
		New: func() caddy.Module { return new(MistralEmbedder) },
	}
}

// Provision resolves the key and builds the client.
func (e *MistralEmbedder) Provision(ctx caddy.Context) error { return e.provision(ctx, "mistral") }

// JinaEmbedder asks Jina's API. The model is jina-embeddings-v3 by default.
type JinaEmbedder struct{ RemoteEmbedder }

// CaddyModule returns the Caddy module information.
func (JinaEmbedder) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "lex.embedders.jina",
		New: func() caddy.Module { return new(JinaEmbedder) },
	}
}

// Provision resolves the key and builds the client.
func (e *JinaEmbedder) Provision(ctx caddy.Context) error { return e.provision(ctx, "jina") }

// Interface guards
var (
	_ EmbedderModule        = (*LocalEmbedder)(nil)
	_ caddyfile.Unmarshaler = (*LocalEmbedder)(nil)

	_ EmbedderModule        = (*OpenAIEmbedder)(nil)
	_ caddy.Provisioner     = (*OpenAIEmbedder)(nil)
	_ caddy.CleanerUpper    = (*OpenAIEmbedder)(nil)
	_ caddyfile.Unmarshaler = (*OpenAIEmbedder)(nil)

	_ EmbedderModule        = (*GeminiEmbedder)(nil)
	_ caddy.Provisioner     = (*GeminiEmbedder)(nil)
	_ caddy.CleanerUpper    = (*GeminiEmbedder)(nil)
	_ caddyfile.Unmarshaler = (*GeminiEmbedder)(nil)

	_ EmbedderModule        = (*MistralEmbedder)(nil)
	_ caddy.Provisioner     = (*MistralEmbedder)(nil)
	_ caddy.CleanerUpper    = (*MistralEmbedder)(nil)
	_ caddyfile.Unmarshaler = (*MistralEmbedder)(nil)

	_ EmbedderModule        = (*JinaEmbedder)(nil)
	_ caddy.Provisioner     = (*JinaEmbedder)(nil)
	_ caddy.CleanerUpper    = (*JinaEmbedder)(nil)
	_ caddyfile.Unmarshaler = (*JinaEmbedder)(nil)
)
