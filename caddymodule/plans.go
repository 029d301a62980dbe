package caddymodule

import (
	"context"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	errPlanExhausted   = &apiError{http.StatusTooManyRequests, "The runs of this API key's plan are used up; retry when the plan renews.", "plan_exhausted"}
	errPlanUnavailable = &apiError{http.StatusForbidden, "The plan of this API key is not configured here; ask the operator for another key.", "plan_unavailable"}
)

// takeRun counts one accepted request against the plan of the caller's key, and
// returns the error to answer with when the plan is used up. A key without a
// plan has no quota; one whose plan is no longer configured is refused, because
// a renamed plan must not become an unlimited one.
func (g *request) takeRun(ctx context.Context, w http.ResponseWriter) *apiError {
	if g.caller.key.Plan == "" {
		return nil
	}
	plan, known := g.app.Limits.Plans[g.caller.key.Plan]
	if !known {
		return errPlanUnavailable
	}
	subject := "plan:" + g.caller.key.ID
	got, err := g.engine.store.Consume(ctx, subject, plan.Requests, time.Duration(plan.Window))
	if err != nil {
		g.storeFailed("limit", err)
		return errGovernor
	}
	if !got.Allowed {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(got.Reset.Seconds()))))
		return errPlanExhausted
	}
	g.run = subject
	return nil
}

// giveBackRun undoes takeRun for a request that we or the provider failed, once.
// Once the model was called the client must still be there: a call that was made
// for somebody who hung up is theirs, or hanging up would make calls for free.
// ctx is the request's.
func (g *request) giveBackRun(ctx context.Context) {
	if g.run == "" || g.asked.Load() && clientLeft(ctx) {
		return
	}
	subject := g.run
	g.run = ""
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	if err := g.engine.store.Refund(ctx, subject); err != nil {
		g.storeFailed("limit", err)
	}
}

// validPlan reports whether a plan can be configured under the name.
func validPlan(name string) bool {
	return name != "" && len(name) <= 64 && !strings.ContainsFunc(name, func(c rune) bool {
		return !slices.Contains([]rune("-_."), c) && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
}
