package caddymodule

import (
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-lex/lex/govern"
	"github.com/caddy-lex/lex/kernel"
)

// What is logged of traffic: one line for each decision, at debug level, or at info level if
// it refuses a turn or blocks a call. Lines hold lengths, hashes, ids of ours and words from
// bounded sets. Texts, credentials and names that callers choose (models, tools, sessions,
// paths) stay out. docs/operations.md lists the members.

// logTurn writes the line of a committed turn.
func (a *App) logTurn(o *govern.Opened, r *govern.Receipt) {
	level, message := zapcore.DebugLevel, "a turn was let through"
	if r.Turn.Refused || r.Outcome == kernel.Refused {
		level, message = zapcore.InfoLevel, "a turn was refused"
	}
	line := a.logger.Check(level, message)
	if line == nil {
		return
	}
	line.Write(append(logged(o, r),
		zap.String("outcome", string(r.Outcome)),
		zap.Strings("reasons", asStrings(r.Turn.Reasons)),
		zap.String("attack_type", string(r.Turn.AttackType)),
		zap.Float64("severity", r.Turn.Severity),
		zap.Float64("margin", r.Turn.M),
		zap.String("health_band", string(r.Turn.Band)),
		zap.Bool("coverage_complete", o.Coverage.Complete()),
		zap.Int("bytes_inspected", o.Coverage.BytesInspected),
		zap.Int("bytes_forwarded", o.Coverage.BytesForwarded),
		zap.String("prompt_commitment", r.PromptCommitment),
		zap.String("output_commitment", r.OutputCommitment),
		zap.Duration("assess", o.Timing.Assess),
		zap.Duration("conclude", o.Timing.Conclude),
		zap.Duration("commit", o.Timing.Commit))...)
}

// logCall writes the line of a committed decision on a tool call.
func (a *App) logCall(o *govern.Opened, r *govern.Receipt) {
	call := r.Turn.Call
	level, message := zapcore.DebugLevel, "a tool call was let through"
	if call.Decision == kernel.Blocked {
		level, message = zapcore.InfoLevel, "a tool call was blocked"
	}
	line := a.logger.Check(level, message)
	if line == nil {
		return
	}
	line.Write(append(logged(o, r),
		zap.String("decision", string(call.Decision)),
		zap.String("invariant", call.Invariant),
		zap.String("rule", call.Rule),
		zap.String("effect", string(call.Effect)),
		zap.String("arguments_commitment", r.ArgumentsCommitment))...)
}

// logged is what the lines of turns and of tool calls have in common.
func logged(o *govern.Opened, r *govern.Receipt) []zap.Field {
	return []zap.Field{
		zap.String("receipt_id", r.ID),
		zap.String("turn_id", o.TurnID),
		zap.String("session", o.SessionHash()),
		zap.String("endpoint", o.Endpoint),
		zap.String("dialect", o.Dialect),
		zap.String("mode", string(o.Mode)),
	}
}

func asStrings[S ~string](list []S) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}

// logRejected writes the line of a request that was not accepted.
func (g *request) logRejected(e *apiError) {
	g.app.logger.Debug("a request was not accepted",
		zap.String("endpoint", g.endpoint), zap.String("dialect", g.dialectName), zap.Int("status", e.Status), zap.String("code", e.Code))
}

// An upstreamLog writes one line when what is behind a handler can no longer be reached, and
// one when it answers again.
type upstreamLog struct {
	mu     sync.Mutex
	outage outage
}

// record notes how a request behind lex ended; cause is "" if there was an answer.
func (u *upstreamLog) record(logger *zap.Logger, cause string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch changed := u.outage.note(cause != ""); {
	case changed && cause != "":
		logger.Warn("the upstream is failing", zap.String("cause", cause))
	case changed:
		logger.Warn("the upstream is back")
	}
}

// An outage is when something began to fail, until it is back.
type outage struct {
	down   bool
	flaps  bool      // it was hardly back when it failed again
	failed time.Time // last
	back   time.Time // last
}

// steadyTime is for how long what failed again so soon must not fail before it is back. A store that
// serves some requests and refuses others, or one of two upstreams, would else fill the log.
const steadyTime = 10 * time.Second

// note notes whether a request failed, and reports whether the outage begins or ends with it.
func (o *outage) note(failed bool) (changed bool) {
	now := time.Now()
	switch {
	case failed && !o.down:
		o.down, o.flaps, changed = true, now.Sub(o.back) < steadyTime, true
	case !failed && o.down && (!o.flaps || now.Sub(o.failed) >= steadyTime):
		o.down, o.back, changed = false, now, true
	}
	if failed {
		o.failed = now
	}
	return changed
}
