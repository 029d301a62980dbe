package caddymodule

import (
	"context"
	"fmt"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-lex/lex/kernel/detect"
	"github.com/caddy-lex/lex/model"
)

func init() {
	caddy.RegisterModule(LocalJudge{})
	caddy.RegisterModule(OpenAIJudge{})
}

// A Judge says whether an answer gave in to its prompt. Implementations are
// safe for concurrent use, honour the context and give errors that hold no
// text, key or address. What is not a verdict is an error, never an acquittal.
type Judge interface {
	// Model names the judge, as judge_model shows it.
	Model() string
	// Judge reads the first [model.MaxJudged] bytes of the answer. The namespace
	// is whoever asks: one that asks much waits behind itself.
	Judge(ctx context.Context, namespace, prompt, answer string) (detect.Judgement, error)
}

// A JudgeModule is a module in the namespace lex.judges. It is asked for its
// Judge after it was provisioned; nil stands for the local judge alone.
type JudgeModule interface {
	Judge() Judge
	// Required reports whether an answer that the Judge gave no verdict on is
	// refused.
	Required() bool
}

// LocalJudge is the judge that works without a network. It reads every answer,
// also where another judge is configured.
type LocalJudge struct{}

// CaddyModule returns the Caddy module information.
func (LocalJudge) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "lex.judges.local",
		New: func() caddy.Module { return new(LocalJudge) },
	}
}

// Judge returns nil: the local judge stands alone.
func (LocalJudge) Judge() Judge { return nil }

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
func (j *OpenAIJudge) Judge() Judge { return j.judge }

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
	j.judge, j.release, err = shareRemote(ctx, config, detectorRemoteJudge, model.NewJudge)
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
	known["fail"] = choice(&j.Fail, failLocal, failRefuse)
	return block(known)(d)
}

// verdict is what is found of a whole answer. The local judge reads it in any
// case, because a stream is stopped by nobody else, and an answer must not fare
// better for coming in one piece. A configured judge is asked at the end: what
// either finds stands. When it gives no verdict the local one's is the answer,
// unless the operator requires the other's.
func (x *exchange) verdict(ctx context.Context, answers []string) detect.Judgement {
	local, answer := x.judgeAll(answers), strings.Join(answers, "\n\n")
	if x.caught != nil {
		local = *x.caught
	}
	x.ran(detectorJudge, local.Capitulated)
	x.judgeModel = x.app.localJudge()
	switch {
	case x.app.judge == nil:
		return local
	case x.caught != nil:
		x.notRun(detectorRemoteJudge, "the local judge had stopped the answer")
		return local
	}
	remote, err := x.app.judge.Judge(ctx, x.namespace, x.prompt, answer)
	if err != nil {
		x.failed(detectorRemoteJudge, err)
		x.denyUnjudged(local, err)
		return local
	}
	if unread := len(answer) - model.MaxJudged; unread > 0 {
		x.skip("response", "beyond what "+detectorRemoteJudge+" reads", unread)
	}
	x.ran(detectorRemoteJudge, remote.Capitulated)
	if local.Capitulated && !remote.Capitulated {
		return local
	}
	x.judgeModel = x.app.judge.Model()
	return remote
}

// ruleNoVerdict is what receipts call the operator's rule "judge … fail refuse".
const ruleNoVerdict = "judge_gave_no_verdict"

// denyUnjudged refuses an answer on which a judge that is required gave no
// verdict, unless it is refused anyway or its reader has left: the operator's rule
// is evidence like any other, so that the receipt names it and replays.
func (x *exchange) denyUnjudged(local detect.Judgement, err error) {
	if x.app.judgeRequired && !local.Capitulated && model.Why(err) != model.Cancelled {
		x.evidence.DeniedBy = ruleNoVerdict
	}
}

// notJudged records why no judge ran.
func (x *exchange) notJudged(why string) {
	x.notRun(detectorJudge, why)
	if x.app.judge != nil {
		x.notRun(detectorRemoteJudge, why)
	}
}

// provisionJudge loads the judge module.
func (a *App) provisionJudge(ctx caddy.Context) error {
	if a.JudgeRaw == nil {
		return nil
	}
	guest, err := ctx.LoadModule(a, "JudgeRaw")
	if err != nil {
		return fmt.Errorf("loading the judge module: %w", err)
	}
	module := guest.(JudgeModule)
	a.judge, a.judgeRequired = module.Judge(), module.Required()
	return nil
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
