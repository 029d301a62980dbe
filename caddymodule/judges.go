package caddymodule

import (
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/model"
)

func init() {
	caddy.RegisterModule(LocalJudge{})
	caddy.RegisterModule(OpenAIJudge{})
}

// A JudgeModule is a module in the namespace lex.judges. It is asked for its judge
// after it was provisioned; nil stands for the local judge alone.
type JudgeModule interface {
	Judge() govern.Judge
	// Required reports whether an answer on which the judge gave no verdict is
	// refused.
	Required() bool
}

// LocalJudge is the judge that works without a network. It reads every answer, also
// where another judge is configured.
type LocalJudge struct{}

// CaddyModule returns the Caddy module information.
func (LocalJudge) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "lex.judges.local",
		New: func() caddy.Module { return new(LocalJudge) },
	}
}

// Judge returns nil: the local judge stands alone.
func (LocalJudge) Judge() govern.Judge { return nil }

// Required returns false: the local judge always gives a verdict.
func (LocalJudge) Required() bool { return false }

// UnmarshalCaddyfile accepts the bare name. Syntax:
//
//	local
func (*LocalJudge) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume module name
	return noMoreArguments(d)
}

// OpenAIJudge asks a chat model on an OpenAI-compatible API (OpenAI, Ollama,
// vLLM, LM Studio) beside the local judge. Guard models are understood in their
// own form: Llama Guard, ShieldGemma, gpt-oss-safeguard.
type OpenAIJudge struct {
	Remote

	// What happens to an answer that the model gives no verdict on: local lets
	// the local judge decide alone, refuse refuses it. Default: local.
	Fail string `json:"fail,omitempty"`

	judge   *model.Judge
	release func()
}

// CaddyModule returns the Caddy module information.
func (OpenAIJudge) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "lex.judges.openai",
		New: func() caddy.Module { return new(OpenAIJudge) },
	}
}

// Judge returns the client. It is shared with all configurations that ask the
// same model in the same way.
func (j *OpenAIJudge) Judge() govern.Judge { return j.judge }

// Required reports whether "fail refuse" is configured.
func (j *OpenAIJudge) Required() bool { return j.Fail == failRefuse }

// The values of OpenAIJudge.Fail.
const (
	failLocal  = "local"
	failRefuse = "refuse"
)

// Provision resolves the key and builds the client or takes the one that is
// there; it asks the model nothing.
func (j *OpenAIJudge) Provision(ctx caddy.Context) error {
	if j.Fail != "" && j.Fail != failLocal && j.Fail != failRefuse {
		return fmt.Errorf("judge fail %q: give local or refuse", j.Fail)
	}
	config, err := j.config("openai")
	if err != nil {
		return err
	}
	j.judge, j.release, err = shareRemote(ctx, &j.Remote, config, govern.DetectorRemoteJudge, model.NewJudge)
	return err
}

// Cleanup lets go of the client.
func (j *OpenAIJudge) Cleanup() error {
	if j.release != nil {
		j.release()
	}
	return nil
}

// UnmarshalCaddyfile sets up the judge from Caddyfile tokens. Syntax:
//
//	openai {
//	    base_url <address>
//	    model    <name>
//	    api_key  <key>
//	    timeout  <duration>
//	    fail     local|refuse
//	}
func (j *OpenAIJudge) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume module name
	known := j.options()
	known["fail"] = choiceOption(&j.Fail, failLocal, failRefuse)
	return blockOption(known)(d)
}

// Interface guards
var (
	_ JudgeModule           = (*LocalJudge)(nil)
	_ caddyfile.Unmarshaler = (*LocalJudge)(nil)

	_ JudgeModule           = (*OpenAIJudge)(nil)
	_ caddy.Provisioner     = (*OpenAIJudge)(nil)
	_ caddy.CleanerUpper    = (*OpenAIJudge)(nil)
	_ caddyfile.Unmarshaler = (*OpenAIJudge)(nil)
)
